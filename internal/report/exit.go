package report

import (
	"slices"

	"carronade/load"
)

// The exit codes of the program, as `help exit-codes` describes them; commands have them as
// command.OK and so on.
const (
	ExitOK          = 0
	ExitBroken      = 1   // done, but a requested limit does not hold, or the system took nothing
	ExitFailed      = 2   // could not be done
	ExitUntrusted   = 3   // done, but the generator was the limit
	ExitCannotTell  = 4   // a gate or a limit cannot tell: too little history, too noisy, or not read
	ExitInterrupted = 130 // interrupted; the partial report is kept and marked
)

// Worse returns the exit code that takes precedence: interrupted, then failed, then broken
// limit, then not trustworthy, then cannot tell.
func Worse(a, b int) int {
	order := []int{ExitOK, ExitCannotTell, ExitUntrusted, ExitBroken, ExitFailed, ExitInterrupted}
	if slices.Index(order, b) > slices.Index(order, a) {
		return b
	}
	return a
}

// ExitCode is the exit code of the program after this run. Precedence: interruption, then
// output that could not be written, then a broken limit, then an untrustworthy run.
func (d *Document) ExitCode() int {
	switch {
	case d.Stopped == load.Interrupted:
		return ExitInterrupted
	case len(d.Problems) > 0 || d.Stopped == load.ByTarget:
		return ExitFailed
	case d.Search != nil:
		return d.Search.ExitCode()
	}
	code := ExitOK
	for _, c := range d.Checks {
		switch {
		case c.OK:
		case c.CannotTell:
			code = ExitCannotTell
		default:
			return ExitBroken
		}
	}
	if !d.Trust.OK {
		return ExitUntrusted
	}
	return code
}
