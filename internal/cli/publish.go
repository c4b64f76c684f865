package cli

import (
	"context"
	"fmt"
	"strings"

	"carronade/internal/command"
	"carronade/internal/compat"
	"carronade/internal/publish"
	"carronade/internal/report"
	"carronade/internal/workload"
	"carronade/target"
)

// publisher prepares the export of metrics, if requested; otherwise nil. The observer belongs
// to a drop-in with its own output and series.
func (s *session) publisher(t *command.Settings, observer compat.Observer) (*publish.Hub, error) {
	o := publish.Options{
		MetricsAddr: t.Last("metrics-addr"), Graphite: t.Last("graphite"), Prefix: t.Last("graphite-prefix"), OTLP: t.Last("otlp"),
		Version: version(), Published: observer.Published, ZeroP99: observer.ZeroP99,
		Logf: func(format string, args ...any) { s.restore.Load().Message(fmt.Sprintf(format, args...)) },
	}
	for _, h := range t.All("otlp-header") {
		name, ref, _ := strings.Cut(h, "=")
		value, err := target.ReadSecret("otlp-header", ref)
		if err != nil {
			return nil, err
		}
		o.Headers = append(o.Headers, publish.Header{Name: name, Value: value})
	}
	hub, err := publish.Open(o)
	if err == nil && hub.Addr() != "" {
		s.note("metrics for Prometheus at http://%s/metrics", hub.Addr())
	}
	return hub, err
}

// publicRun describes a run in exported metrics.
func publicRun(w *workload.Workload, runID uint64, i int) publish.Run {
	return publish.Run{ID: report.IDOf(runID), Target: w.Target(), Op: w.Op, Labels: w.Labels(), Repetition: i + 1}
}

// unpublish closes the export and prints what could not be sent.
func (s *session) unpublish(hub *publish.Hub) {
	for _, text := range hub.Close(context.Background()) {
		s.warn(text)
	}
}
