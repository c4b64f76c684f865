package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"carronade/internal/command"
	"carronade/internal/compat"
	"carronade/internal/publish"
	"carronade/internal/report"
	"carronade/internal/workload"
	"carronade/target"
	"carronade/units"
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
	if t.Last("metrics-linger") != "" && o.MetricsAddr == "" {
		return nil, &words{Err: errors.New("--metrics-linger has no effect without --metrics-addr"), Hint: "add --metrics-addr PORT, or leave out --metrics-linger"}
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

// unpublish ends the sending of metrics, and prints what could not be sent.
func (s *session) unpublish(hub *publish.Hub) {
	for _, text := range hub.Flush(context.Background()) {
		s.warn(text)
	}
}

// linger waits while the last metrics are served, so that Prometheus reads them. An interrupt
// ends the wait. If one has ended the run already, the next one ends the program; see
// watchSignals.
func (s *session) linger(ctx context.Context, hub *publish.Hub, text string) {
	if text == "" || !hub.Shown() {
		return
	}
	d, err := units.ParseDuration(text)
	if err != nil {
		panic(err) // the setting is checked
	}
	interrupted := ctx.Done()
	if ctx.Err() != nil { // before the note: an interrupt that follows it at once ends the wait
		interrupted = nil
	}
	s.note("the last metrics stay at http://%s/metrics for %s; Ctrl-C ends this", hub.Addr(), units.FormatDuration(d))
	select {
	case <-time.After(d):
	case <-interrupted:
	}
}
