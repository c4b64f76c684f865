package heyapm

import (
	"context"
	"fmt"
	"io"

	"carronade/internal/dropin"
	"carronade/internal/host"
	"carronade/internal/report"
)

// heyExit is the exit code. With --strict it is 0 once the run has begun, as in the
// tool.
func heyExit(p *dropin.Program, code int) int {
	if p.Strict {
		return 0
	}
	return code
}

// heyNoReport returns the exit code and the error of a run without a report. An interrupt
// is not an error.
func heyNoReport(ctx context.Context, p *dropin.Program, err error) (int, error) {
	switch {
	case ctx.Err() != nil:
		return heyExit(p, host.ExitInterrupted), nil //nolint:nilerr // see above
	case p.Strict:
		return 1, err
	}
	return host.ExitFailed, err
}

// heyOutcome is the exit code of a run: the report's, or a worse one if events failed
// or their outcome is unknown.
func heyOutcome(d *report.Document) int {
	return dropin.WithLost(d.ExitCode(), notAccepted(d))
}

// notAccepted is the number of events sent and not accepted.
func notAccepted(d *report.Document) uint64 { return d.Totals.Failed + d.Totals.Unknown }

// writeHeyWarnings writes why a run's exit code is not 0.
func writeHeyWarnings(w io.Writer, d *report.Document) {
	if n := notAccepted(d); n > 0 {
		fmt.Fprintf(w, "warning: of %d events sent %d were not accepted\n", d.Totals.Sent, n)
	}
	dropin.WriteWarnings(w, d)
}

// worstOutcome is the worst exit code of several runs.
func worstOutcome(ds []*report.Document) int {
	code := host.ExitOK
	for _, d := range ds {
		code = host.WorseExit(code, heyOutcome(d))
	}
	return code
}
