package report

import (
	"carronade/internal/system"
	"carronade/load"
)

// The exit codes of runs; see package system.
const (
	ExitOK          = system.ExitOK
	ExitBroken      = system.ExitBroken
	ExitFailed      = system.ExitFailed
	ExitUntrusted   = system.ExitUntrusted
	ExitCannotTell  = system.ExitCannotTell
	ExitInterrupted = system.ExitInterrupted
)

// Worse returns the exit code that takes precedence.
func Worse(a, b int) int { return system.WorseExit(a, b) }

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
	case d.Scenario != nil:
		return d.Scenario.ExitCode()
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
