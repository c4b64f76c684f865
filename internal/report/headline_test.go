package report

import (
	"strings"
	"testing"
	"time"

	"carronade/internal/layout"
	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

// The second rate of the headline is the one that was asked for. If a number of events took less time than they
// would at that rate, the headline says so.
func TestHeadlineTargetRate(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name          string
		stopped       load.Reason
		events        uint64
		elapsed, rate float64
		want          string
	}{
		{"five events", load.ByEvents, 5, 4, 1, "1.25/s of 1/s acked (5 events within 4 s), "},
		{"all at once", load.ByEvents, 200, 0.025, 200, "8 k/s of 200/s acked (200 events within 25 ms), "},
		{"many", load.ByEvents, 10_000, 10, 1000, "1 k/s of 1 k/s acked, "},
		{"a time", load.ByTime, 4990, 5, 1000, "998/s of 1 k/s acked, "},
		{"killed", load.Killed, 4990, 5, 0, "998/s of 998/s acked, "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := &Document{Mode: load.OpenLoop, Stopped: tt.stopped, Phases: []Phase{{Name: measure.Measurement, Rate: tt.rate}}}
			d.Totals = Totals{RateOf: RateAcked, ElapsedS: tt.elapsed, EventsPerS: float64(tt.events) / tt.elapsed, Counts: measure.Counts{Offered: tt.events, Sent: tt.events, Acked: tt.events}}
			assert.True(t, strings.HasPrefix(d.Headline(), tt.want), "headline %q, want it to begin with %q", d.Headline(), tt.want)
		})
	}
}

// The series says where it begins: all times of a report count from the start of the run, warm-up included. The rate of
// an interval in which a warm-up ended, or two steps met, is that of its parts.
func TestSeriesRates(t *testing.T) {
	t.Parallel()
	row := func(at, within float64, arrived uint64) Interval {
		iv := Interval{Phase: measure.Measurement, StartS: at, EndS: at + 1, WithinS: within, Arrived: arrived}
		iv.EventsPerS = float64(arrived) / within
		return iv
	}
	d := &Document{Mode: load.OpenLoop, Phases: []Phase{{Name: measure.Measurement, StartS: 10.5, EndS: 14}}}
	d.Totals.RateOf = RateAcked
	d.Intervals = []Interval{row(10, 0.5, 1000), row(11, 1, 2000), row(12, 0.25, 500), row(12, 0.75, 1500), row(13, 1, 2000)}
	var b strings.Builder
	assert.OK(t, d.Text(&b, layout.Style{ASCII: true}))
	assert.Has(t, strings.Join(strings.Fields(b.String()), " "), "from 10.5 s on", " 2 k/s 2 k/s ")
}

// The conditions say what the default limit of what is in flight is for each of several clients.
func TestConditionsDivideInFlight(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ clients, want string }{
		{"1", "max-in-flight 1000"},
		{"8", "max-in-flight 1000 (125 on each connection of 8 clients)"},
	} {
		d := &Document{Settings: []Setting{{Name: "max-in-flight", Value: "1000", Default: true}, {Name: "clients", Value: tt.clients}}}
		got := ""
		for _, c := range d.Conditions() {
			if c.Name == "by default" {
				got = c.Text
			}
		}
		assert.Same(t, got, tt.want)
	}
}

// What the server's output refused stands next to the share that was indexed.
func TestRefusedByTheOutput(t *testing.T) {
	t.Parallel()
	in := underTest()
	d := build(in)
	before, after := 10.0, 175.0
	d.Gauges = append(d.Gauges, Gauge{From: "server", Name: "output failed", Total: true, Before: &before, After: &after})
	assert.True(t, strings.Contains(d.Headline(), "% indexed, the server's output failed for 165 events"), "headline %q", d.Headline())
	var full, brief strings.Builder
	assert.OK(t, d.Text(&full, layout.Style{}))
	assert.OK(t, d.Brief(&brief, layout.Style{}))
	for _, text := range []string{full.String(), brief.String()} {
		assert.True(t, strings.Contains(strings.Join(strings.Fields(text), " "), "the server's output failed for 165 events, which are not indexed"), "got\n%s", text)
	}
}

// A run of which most events have no certain answer fails, whatever limits it has.
func TestMostlyUnknownFails(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name                     string
		acked, unknown, exitCode int
		change                   func(*load.Result)
	}{
		{"most", 400, 600, 1, nil},
		{"half", 500, 500, 0, nil},
		{"nothing is acknowledged", 0, 1000, 0, func(r *load.Result) { r.Unanswered = true }},
		{"interrupted at once", 0, 1000, 130, func(r *load.Result) {
			r.Stopped, r.Measurement.End = load.Interrupted, r.Measurement.Start+time.Millisecond
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			in := openLoop()
			m := &in.Result.Measurement
			m.Counts = measure.Counts{Offered: 1000, Sent: 1000, Acked: uint64(tt.acked), Unknown: uint64(tt.unknown)}
			m.Arrived = m.Acked
			if tt.change != nil {
				tt.change(in.Result)
			}
			d := build(in)
			assert.Equal(t, d.ExitCode(), tt.exitCode, "exit code, with the checks %+v", d.Checks)
		})
	}
}
