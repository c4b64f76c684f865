package report

import (
	"carronade/internal/host"
	"carronade/load"
)

// ExitCode is the exit code of the program after this run. Precedence: interruption, then
// output that could not be written, then a broken limit, then an untrustworthy run.
func (d *Document) ExitCode() int {
	switch {
	case d.Stopped == load.Interrupted:
		return host.ExitInterrupted
	case len(d.Problems) > 0 || d.Stopped == load.ByTarget || d.Stopped == load.ByMemory:
		return host.ExitFailed
	case d.Search != nil:
		return d.Search.ExitCode()
	case d.Scenario != nil:
		return d.Scenario.ExitCode()
	}
	code := host.ExitOK
	for _, c := range d.Checks {
		switch {
		case c.OK:
		case c.CannotTell:
			code = host.ExitCannotTell
		default:
			return host.ExitBroken
		}
	}
	if !d.Trust.OK {
		return host.ExitUntrusted
	}
	return code
}
