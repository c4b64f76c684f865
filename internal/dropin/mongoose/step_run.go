package mongoose

import (
	"fmt"
	"time"

	"carronade/internal/dropin"
	"carronade/internal/host"
	"carronade/internal/report"
)

// warner returns a function that writes messages to stderr.
func warner(p *dropin.Program) func(format string, args ...any) {
	return func(format string, args ...any) {
		fmt.Fprintf(p.Err, "%s: %s\n", p.Called, fmt.Sprintf(format, args...))
	}
}

// outputs makes the files and the table of a step. If the folder of the step exists, and that is
// not expected, a message says that rows are appended.
func (s *step) outputs(p *dropin.Program, args []string, expected bool) (*files, *table, error) {
	f, again, err := openFiles(s, args)
	if err != nil {
		return nil, nil, err
	}
	if again && !expected {
		warner(p)("step %s exists already: rows are appended to %s", s.id, f.dir)
	}
	return f, &table{w: p.Out, s: s, color: s.v.flag("output-color") && p.Color}, nil
}

// last returns the metrics at the end of a run.
func (m *meter) last(d *report.Document) *metrics {
	last := m.metrics(time.Now())
	last.mean = d.Totals.InFlightMean
	return last
}

// totalOf writes the total row of one of several steps that share the files.
func (f *files) totalOf(s *step, m *metrics) {
	own := *f
	own.s = s
	own.total(m)
	f.keepError(own.err)
}

// rowOf is row for one of several steps that share the files.
func (f *files) rowOf(s *step, m *metrics) {
	own := *f
	own.s = s
	own.row(m)
	f.keepError(own.err)
}

// withFailures returns the exit code of a step with failed operations. A limit of failures
// decides in their place if one is given.
func (s *step) withFailures(code int, failed uint64) int {
	if s.v.has("load-op-limit-fail-count") {
		return code
	}
	return dropin.WithLost(code, failed)
}

// exit returns the exit code of a step: the given one, or a worse one if not all files could be
// written, which a message on stderr says.
func (f *files) exit(p *dropin.Program, code int) int {
	if f.err == nil {
		return code
	}
	warner(p)("not all files of the step could be written: %v", f.err)
	return host.WorseExit(code, host.ExitFailed)
}
