// Package exit has the exit codes of the program. It is separate because the answer of a search has
// one, and reports have answers in them.
package exit

import "slices"

// The exit codes of the program, as `help exit-codes` describes them; commands have them as
// command.OK and so on.
const (
	OK          = 0
	Broken      = 1   // done, but a requested limit does not hold, or the system took nothing
	Failed      = 2   // the command failed
	Untrusted   = 3   // done, but the generator was the limit
	CannotTell  = 4   // a gate or a limit cannot tell: too little history, too noisy, or not read
	Interrupted = 130 // interrupted; the partial report is kept and marked
)

// Worse returns the exit code that takes precedence: interrupted, then failed, then broken
// limit, then not trustworthy, then cannot tell.
func Worse(a, b int) int {
	order := []int{OK, CannotTell, Untrusted, Broken, Failed, Interrupted}
	if slices.Index(order, b) > slices.Index(order, a) {
		return b
	}
	return a
}
