package heyapm

import (
	"fmt"
	"io"

	"carronade/internal/compat"
	"carronade/internal/report"
	"carronade/internal/system"
)

// exit is the exit code. With --strict it is 0 once the run has begun, as in the
// tool.
func exit(p *compat.Program, code int) int {
	if p.Strict {
		return 0
	}
	return code
}

// notStarted is the exit code if the run could not start.
func notStarted(strict bool) int {
	if strict {
		return 1
	}
	return system.ExitFailed
}

// outcome is the exit code of a run: the report's, or a worse one if events failed
// or their outcome is unknown.
func outcome(d *report.Document) int {
	code := d.ExitCode()
	if refused(d) > 0 {
		code = system.WorseExit(code, system.ExitBroken)
	}
	return code
}

// refused is the number of events sent and not accepted.
func refused(d *report.Document) uint64 { return d.Totals.Failed + d.Totals.Unknown }

// writeWarnings writes why a run's exit code is not 0.
func writeWarnings(w io.Writer, d *report.Document) {
	if n := refused(d); n > 0 {
		fmt.Fprintf(w, "warning: of %d events sent %d were not accepted\n", d.Totals.Sent, n)
	}
	compat.WriteWarnings(w, d)
}

// worst is the worst exit code of several runs.
func worst(ds []*report.Document) int {
	code := system.ExitOK
	for _, d := range ds {
		code = system.WorseExit(code, outcome(d))
	}
	return code
}
