package host

import "slices"

// The exit codes of the program, as `help exit-codes` describes them.
const (
	ExitOK          = 0
	ExitBroken      = 1   // done, but a requested limit does not hold, or the system took nothing
	ExitFailed      = 2   // the command failed
	ExitUntrusted   = 3   // done, but the generator was the limit, the system ended, or a fault left no connection
	ExitCannotTell  = 4   // a gate or a limit cannot tell: too little history, too noisy, or not read
	ExitInterrupted = 130 // interrupted; the partial report is kept and marked
)

// WorseExit returns the exit code that takes precedence: interrupted, then failed, then broken
// limit, then not trustworthy, then cannot tell.
func WorseExit(a, b int) int {
	order := []int{ExitOK, ExitCannotTell, ExitUntrusted, ExitBroken, ExitFailed, ExitInterrupted}
	if slices.Index(order, b) > slices.Index(order, a) {
		return b
	}
	return a
}
