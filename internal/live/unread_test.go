package live

import (
	"strings"
	"testing"
	"time"

	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

// TestUnreadIsShown: while a run goes on, events that were not read are in the end-to-end times at their age: in the
// terminal, on the page, and in what is exported.
func TestUnreadIsShown(t *testing.T) {
	for _, read := range []uint64{0, 80} {
		times, ages := measure.NewHistogram(), measure.NewHistogram()
		times.RecordN(5*time.Millisecond, read)
		ages.RecordN(4*time.Second, 20)
		s := load.Snapshot{At: time.Second, Phase: measure.Measurement, Left: load.Never}
		s.Interval = measure.Interval{Phase: measure.Measurement, End: time.Second, LagEvents: -1, Counts: measure.Counts{Sent: 100, Acked: 100, Answered: 100, Consumed: read, Unread: 20}}
		s.Interval.EndToEnd, s.Interval.UnreadAges = times, ages
		s.Total = s.Interval.Counts

		st := statusOf(&s, nil)
		if line := st.line(); !strings.Contains(line, "p99 >= 4 s") || !strings.Contains(line, "max >= 4 s") || !strings.Contains(line, "20 unread") {
			t.Errorf("the terminal says %q", line)
		}
		var frames []Frame
		r := NewRecorder("x", Run{}, func(e Event) {
			if e.Frame != nil {
				frames = append(frames, *e.Frame)
			}
		})
		r.Show(s)
		r.End(Done{Totals: CountsOf(s.Total), Report: "x"})
		f := frames[0]
		assert.True(t, f.EndToEnd.AtLeast > 0 && f.EndToEnd.P99 >= Micros(3990*time.Millisecond) && f.Counts.Unread == 20, "the frame has %+v, %d unread", f.EndToEnd, f.Counts.Unread)
		var all state
		all.add(&s)
		p := all.point(&s)
		found := false
		for _, q := range p.p99 {
			found = found || q.name == "end_to_end" && q.d >= 3990*time.Millisecond
		}
		assert.True(t, found, "the exported p99 are %v", p.p99)
	}
}
