package trust

import (
	"strings"
	"testing"
	"time"

	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

// A run in which nothing was answered for a while is not steady, however short the while was, and no
// text says that it was.
func TestStalledIsNotSteady(t *testing.T) {
	r := &load.Result{Mode: load.OpenLoop, Measurement: measure.Tally{Name: "measurement", End: time.Minute}}
	for i := range 60 {
		iv := measure.Interval{Phase: measure.Measurement, Start: time.Duration(i) * time.Second, End: time.Duration(i+1) * time.Second}
		iv.Counts = measure.Counts{Offered: 100, Sent: 100, Acked: 100}
		iv.InFlight = 5
		if i == 29 {
			iv.Acked, iv.InFlight = 0, 105
		}
		iv.Response = measure.NewHistogram()
		iv.Response.RecordN(time.Millisecond, max(iv.Acked, 1))
		r.Intervals = append(r.Intervals, iv)
	}
	s := Steady(r)
	assert.True(t, s.Known && !s.OK && s.Outage == "" && s.Text == "nothing was answered from second 29 to second 30", "got %+v", s)

	// With fewer intervals than show a trend, it says that it cannot tell.
	r.Intervals = r.Intervals[27:31]
	r.Measurement.Start, r.Measurement.End = 27*time.Second, 31*time.Second
	s = Steady(r)
	assert.True(t, !s.Known && strings.HasPrefix(s.Text, "nothing was answered from second 29 to second 30; the measurement was too short"), "got %+v", s)
}
