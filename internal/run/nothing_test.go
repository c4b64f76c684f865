package run

import (
	"context"
	"strings"
	"testing"
	"time"

	"carronade/internal/report"
	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

// A mute is a source that gives nothing, and knows why.
type mute struct {
	load.Source
	why string
}

func (m mute) WhyNothing(context.Context) string { return m.why }

// A run that read nothing says so, and why. If it should have read something it fails.
func TestNothingRead(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		settings []string
		change   func(*load.Result)
		text     string // "": nothing is said
		fails    bool
	}{
		{"for a time", []string{"for=1s"}, nil, "nothing was read: it began at the end", false},
		{"a number of events", []string{"count=10"}, nil, "nothing was read: it began at the end", true},
		{"in the warm-up", []string{"for=1s"}, func(r *load.Result) { r.Warmup.Consumed = 5 }, "nothing was read: everything had been read in the warm-up", false},
		{"something", []string{"for=1s"}, func(r *load.Result) { r.Measurement.Consumed = 5 }, "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := &execution{Job: Job{Workload: resolve(t, &fakeKind{}, append(tt.settings, "op=consume")...)}}
			out := outcome{result: &load.Result{Mode: load.Consuming}}
			if tt.change != nil {
				tt.change(out.result)
			}
			e.noteNothing(&out, mute{why: "it began at the end"})
			said := strings.Join(out.warnings, "; ")
			for _, c := range out.checks {
				assert.Equal(t, c.OK, false, "whether check %s holds", c.Name)
				said += c.Text
			}
			assert.Equal(t, said, tt.text, "what is said")
			assert.Equal(t, len(out.checks) > 0, tt.fails, "fails")
			assert.Equal(t, out.notice != "", tt.text != "", "whether the headline says so")
		})
	}
}

// Of several generators that read, some may get nothing. The run of all has read nothing only if none did.
func TestNothingReadByOne(t *testing.T) {
	t.Parallel()
	e := &execution{Job: Job{Workload: resolve(t, &fakeKind{}, "count=10", "op=consume"), Share: &Share{}}}
	out := outcome{result: &load.Result{Mode: load.Consuming}}
	e.noteNothing(&out, mute{why: "it began at the end"})
	assert.Equal(t, strings.Join(out.warnings, "; "), "nothing was read: it began at the end", "warning")
	assert.Equal(t, out.notice, "", "notice of one")
	assert.Equal(t, len(out.checks), 0, "checks of one")

	for _, read := range []uint64{0, 10} {
		of := func(n uint64) Measured {
			return Measured{Facts: map[string]any{}, Result: &load.Result{
				Mode: load.Consuming, Stopped: load.ByEvents, Measurement: measure.Tally{Name: measure.Measurement, End: time.Second, Counts: measure.Counts{Consumed: n}},
			}}
		}
		all := &Combined{Agents: []Measured{of(0), of(read)}, Rows: make([]report.Agent, 2)}
		out := outcome{}
		e.merge(all, &load.Plan{}, &out)
		assert.Equal(t, len(out.checks) > 0, read == 0, "%d events were read, fails", read)
		assert.Equal(t, out.notice != "", read == 0, "%d events were read, the headline says that there were none", read)
	}
}

// The rate of a run that read includes the wait for the first event. If that is long, the report says so.
func TestWaitedAtStart(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name             string
		first, rebalance time.Duration
		consumed         uint64
		want             string
	}{
		{"a share group", 7 * time.Second, 0, 50_000, "the first event came after 5 s of the measurement: the rate includes that wait (without it 10 k/s)"},
		{"a short wait", 2500 * time.Millisecond, 0, 95_000, ""},
		{"while it joined a group, which the report has", 7 * time.Second, 5 * time.Second, 50_000, ""},
		{"nothing", -1, 0, 0, ""},
		{"in the warm-up", time.Second, 0, 100_000, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := &load.Result{Rebalance: tt.rebalance, Measurement: measure.Tally{Start: 2 * time.Second, End: 12 * time.Second, Counts: measure.Counts{Consumed: tt.consumed}}}
			assert.Equal(t, strings.Join(waitedAtStart(r, tt.first), "; "), tt.want, "warning")
		})
	}
}

// What the target says first does not replace that nothing was read.
func TestNoticesAreJoined(t *testing.T) {
	t.Parallel()
	assert.Equal(t, joinNotices("", "nothing was read"), "nothing was read", "without one of the target")
	assert.Equal(t, joinNotices("the broker created the topic", "nothing was read"), "the broker created the topic, nothing was read", "with one")
	assert.Equal(t, joinNotices("", ""), "", "without any")
}
