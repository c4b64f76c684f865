package kafkatools

import (
	"errors"
	"strings"
	"testing"
	"time"

	"carronade/internal/dropin"
	"carronade/internal/dropin/dropintest"
	"carronade/internal/report"
	"carronade/internal/workload"
	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

// roundTrips reports a made-up run: 1,500 messages, of which 15 took 2.6 ms and the
// others 0.75 ms, on a topic created for it.
func roundTrips(observer dropin.Observer) *report.Document {
	observer.Found(map[string]any{"topic": map[string]any{"created_by": "carronade"}})
	h := measure.NewHistogram()
	for i := range 1500 {
		d := 750 * time.Microsecond
		if i%100 == 99 {
			d = 2600 * time.Microsecond
		}
		observer.RoundTrip(d)
		h.Record(d)
	}
	d := &report.Document{Stopped: load.ByEvents, Trust: measure.Trust{OK: true}}
	d.EndToEnd = measure.Summarize(h, nil, nil)
	d.Totals.Acked, d.Totals.Consumed = 1500, 1500
	return d
}

func runLatencyTool(t *testing.T, p dropin.Program, args ...string) dropintest.Result {
	t.Helper()
	p.Args = args
	s := dropintest.Run(t.Context(), t, &Latency, p, func(_ *workload.Document, observer dropin.Observer) (*report.Document, error) {
		return roundTrips(observer), nil
	})
	if s.Err != nil { // carronade prints it
		s.Errs += s.Err.Error()
	}
	return s
}

func TestLatencyCases(t *testing.T) {
	dropintest.AsPrinted(t, "latency", "--num-headers", runLatencyTool)
	allTested(t, "testdata/cases/latency.txt", latencyOptions, func(o joptOption) string { return o.name })
}

// Every generation runs the workload of its arguments; 4.2 is 4.3.
func TestLatencyGenerations(t *testing.T) {
	for generation, out := range map[string]string{"": "", "2018": "", "4.1": "", "4.2": positionalDeprecated, "4.3": positionalDeprecated} {
		got := runLatencyTool(t, dropin.Program{Generation: generation}, strings.Fields("a:1 t 5 all 20")...)
		if got.Last()["acks"] != "all" || got.Last()["count"] != "5" || strings.HasPrefix(got.Out, "WARNING") != (out != "") || !strings.HasPrefix(got.Out, out) {
			t.Errorf("%q: exit %d, workloads %v, stdout %q, stderr %q", generation, got.Code, got.Workloads, got.Out, got.Errs)
		}
	}
}

func TestLatencyExit(t *testing.T) {
	lost := &report.Document{
		Stopped: load.ByEvents, Trust: measure.Trust{OK: true}, Checks: []report.Check{{Name: "verify", Text: "1 event was lost"}},
		Failures: []measure.Failure{{Class: "broker", Text: "too large", Events: 2}}, Problems: nil, Warnings: []string{"a warning"},
	}
	lost.Totals.Acked, lost.Totals.Consumed = 3, 2
	for _, tt := range []struct {
		name   string
		strict bool
		doc    *report.Document
		err    error
		code   int
		errs   string
	}{
		{"refused", false, nil, errors.New("connection refused"), 0, ""},
		{"interrupted", false, &report.Document{Stopped: load.Interrupted}, nil, 130, ""},
		{"interrupted, strict", true, &report.Document{Stopped: load.Interrupted}, nil, 130, ""},
		{"lost", false, lost, nil, 1, "broker: too large (2 records)\nwarning: verify: 1 event was lost\n"},
		{"lost, strict", true, lost, nil, 1, "broker: too large (2 records)\nwarning: verify: 1 event was lost\n"},
		{"the generator was at its limit", false, &report.Document{Trust: measure.Trust{Reasons: []string{"pauses"}}}, nil, 3, "warning: not to be trusted: pauses\n"},
		{"the generator was at its limit, strict", true, &report.Document{Trust: measure.Trust{Reasons: []string{"pauses"}}}, nil, 0, "warning: not to be trusted: pauses\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := dropintest.Run(t.Context(), t, &Latency, dropin.Program{Args: strings.Fields("h:1 t 5 1 20"), Strict: tt.strict}, func(*workload.Document, dropin.Observer) (*report.Document, error) {
				return tt.doc, tt.err
			})
			assert.True(t, got.Code == tt.code && (got.Err != nil) == (tt.err != nil) && got.Errs == tt.errs && got.Out == "",
				"exit %d, error %v, stdout %q, stderr %q", got.Code, got.Err, got.Out, got.Errs)
		})
	}
}
