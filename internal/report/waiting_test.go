package report

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"carronade/internal/layout"
	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

// TestBacklogIsABound: in whatever order events are done, no percentile of
// answers and of waiting events is below the reported bound.
func TestBacklogIsABound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const rate, rows = 50, 6
		type event struct{ due, done time.Duration } // done beyond the run: never
		events := make([]event, rate*rows)
		for i := range events {
			due := time.Duration(i) * time.Second / rate
			took := time.Duration(rapid.Int64Range(0, int64(10*time.Second)).Draw(t, "took"))
			if rapid.Bool().Draw(t, "quick") {
				took /= 1000
			}
			events[i] = event{due, due + took}
		}
		var b Backlog
		for r := range rows {
			start, end := time.Duration(r)*time.Second, time.Duration(r+1)*time.Second
			var c measure.Counts
			answers := measure.NewHistogram()
			var seen []time.Duration // as an observer at the end of the row would see them
			for _, e := range events {
				if e.due >= start && e.due < end {
					c.Offered++
				}
				switch {
				case e.done >= start && e.done < end:
					c.Acked++
					answers.Record(e.done - e.due)
					seen = append(seen, e.done-e.due)
				case e.due < end && e.done >= end:
					seen = append(seen, end-e.due)
				}
			}
			b.Add(end.Seconds(), &c)
			slices.Sort(seen)
			for _, p := range []float64{50, 90, 99, 100} {
				v, ok := b.At(p, measure.Summarize(answers, nil, []float64{100}))
				if !ok || !v.AtLeast {
					continue
				}
				rank := min(max(int(p/100*float64(len(seen))+0.9999999), 1), len(seen))
				if truth := seen[rank-1]; v.D > truth {
					t.Fatalf("row %d, p%v: at least %v, and it was %v", r, p, v.D, truth)
				}
			}
		}
	})
}

// withOutage is a run of eight seconds at 1000 events per second, without answers
// from the third second to the end of the fifth.
func withOutage() *Document {
	d := &Document{Mode: load.OpenLoop, Totals: Totals{RateOf: RateAcked, ElapsedS: 8}, Phases: []Phase{{Name: measure.Measurement, EndS: 8}}}
	for i := range 8 {
		iv := Interval{Phase: measure.Measurement, StartS: float64(i), EndS: float64(i + 1), Counts: measure.Counts{Offered: 1000, Sent: 1000, Acked: 1000}, EventsPerS: 1000}
		h := measure.NewHistogram()
		switch {
		case i >= 2 && i < 5:
			iv.Acked, iv.EventsPerS = 0, 0
		case i == 5:
			iv.Acked, iv.EventsPerS = 4000, 4000
			h.RecordSpan(time.Millisecond, 3*time.Second, 4000)
		default:
			h.RecordN(5*time.Millisecond, 1000)
		}
		iv.Response = measure.Summarize(h, nil, nil)
		d.Response = iv.Response
		d.Intervals = append(d.Intervals, iv)
	}
	return d
}

func TestOutageIsSeen(t *testing.T) {
	d := withOutage()
	got := d.responses(99)
	for at, want := range map[float64]measure.Value{
		1: {P: 99, D: 5 * time.Millisecond},
		3: {P: 99, D: time.Second, AtLeast: true},
		4: {P: 99, D: 2 * time.Second, AtLeast: true},
		6: {P: 99, D: 5 * time.Millisecond},
	} {
		assert.Equal(t, got[at], want, "at %v s", at)
	}
	v, ok := got[2]
	assert.True(t, !ok, "at 2 s: got %v, want nothing: no answer came, and the waiting events are younger than a row", v)
	var b strings.Builder
	assert.OK(t, d.Text(&b, layout.Style{}))
	assert.Has(t, b.String(), "  4 s", ">= 1.00 s", ">= 2.00 s")

	// If nothing is due or nothing is answered, nothing waits.
	d.Mode = load.ClosedLoop
	got = d.responses(99)
	assert.True(t, got == nil, "a closed loop: got %v", got)
	d.Mode, d.Totals.RateOf = load.OpenLoop, RateSent
	got = d.responses(99)
	assert.True(t, got == nil, "nothing is acknowledged: got %v", got)
}
