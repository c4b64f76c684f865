package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"carronade/internal/cli/cmdutil"
	"carronade/internal/dropin"
	"carronade/internal/live"
	"carronade/internal/report"
	"carronade/internal/workload"
	"carronade/protocol"
	"carronade/units"
)

// openExporter prepares the export of metrics, if requested; otherwise nil. The observer belongs
// to a drop-in with its own output and series.
func (s *session) openExporter(t *cmdutil.Settings, observer dropin.Observer) (*live.Exporter, error) {
	o := live.ExporterOptions{
		MetricsAddr: t.Last("metrics-addr"), Graphite: t.Last("graphite"), Prefix: t.Last("graphite-prefix"), OTLP: t.Last("otlp"),
		Version: version(), Published: observer.Published, ZeroP99: observer.ZeroP99,
		Logf: func(format string, args ...any) { s.restore.Load().Message(fmt.Sprintf(format, args...)) },
	}
	for _, h := range t.All("otlp-header") {
		name, ref, _ := strings.Cut(h, "=")
		value, err := protocol.ReadSecret("otlp-header", ref)
		if err != nil {
			return nil, err
		}
		o.Headers = append(o.Headers, live.Header{Name: name, Value: value})
	}
	if err := checkLinger(t, "metrics-linger", "metrics-addr", "--metrics-addr PORT"); err != nil {
		return nil, err
	}
	exporter, err := live.OpenExporter(o)
	if err == nil && exporter.Addr() != "" {
		s.note("metrics for Prometheus at http://%s/metrics", exporter.Addr())
	}
	return exporter, err
}

// checkLinger refuses a time for what is not served. add is the flag that serves it.
func checkLinger(t *cmdutil.Settings, linger, of, add string) error {
	if t.Last(linger) == "" || t.Last(of) != "" {
		return nil
	}
	return &protocol.Error{Err: fmt.Errorf("--%s has no effect without --%s", linger, of), Hint: fmt.Sprintf("add %s, or leave out --%s", add, linger)}
}

// exportedRun describes a run in exported metrics.
func exportedRun(w *workload.Workload, runID uint64, i int) live.ExportedRun {
	return live.ExportedRun{ID: report.IDOf(runID), Target: w.Target(), Op: w.Op, Labels: w.Labels(), Repetition: i + 1}
}

// flushExporter ends the sending of metrics, and prints what could not be sent.
func (s *session) flushExporter(exporter *live.Exporter) {
	for _, text := range exporter.Flush(context.Background()) {
		s.warn(text)
	}
}

// metricsLinger is the page for Prometheus after the end.
func metricsLinger(t *cmdutil.Settings, exporter *live.Exporter) (l lingering) {
	if exporter.Shown() {
		l = lingering{what: fmt.Sprintf("the last metrics stay at http://%s/metrics", exporter.Addr()), text: t.Last("metrics-linger")}
	}
	return l
}

// A lingering is what is served for a time after the end of the runs.
type lingering struct {
	what string // with its address
	text string // the time; "" is none
}

// linger waits while pages are served after the end, so that Prometheus or a user reads the last
// values. An interrupt ends the wait. If one has ended the run already, the next one ends the program;
// see watchSignals.
func (s *session) linger(ctx context.Context, pages ...lingering) {
	interrupted := ctx.Done()
	if ctx.Err() != nil { // before the notes: an interrupt that follows them at once ends the wait
		interrupted = nil
	}
	longest := time.Duration(0)
	for _, p := range pages {
		if p.text == "" {
			continue
		}
		d, err := units.ParseDuration(p.text)
		if err != nil {
			panic(err) // the setting is checked
		}
		longest = max(longest, d)
		s.note("%s for %s; Ctrl-C ends this", p.what, units.FormatDuration(d))
	}
	if longest == 0 {
		return
	}
	select {
	case <-time.After(longest):
	case <-interrupted:
	}
}
