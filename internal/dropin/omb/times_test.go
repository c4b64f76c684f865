package omb

import (
	"context"
	"fmt"
	"testing"
	"time"

	"carronade/internal/dropin/dropintest"
	"carronade/internal/report"
	"carronade/internal/verdict/find"
	"carronade/internal/workload"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

// Quantiles are as HdrHistogram's iterator with 100 steps in each half has them: worked out by hand.
func TestQuantiles(t *testing.T) {
	h := measure.NewHistogram()
	for _, d := range []time.Duration{10 * time.Microsecond, 20 * time.Microsecond, 30 * time.Microsecond} {
		h.RecordN(d, 300)
	}
	h.RecordN(40*time.Microsecond, 99)
	h.Record(50 * time.Microsecond)
	got := timesOf(h)
	got.withQuantiles(h)
	want := []quantile{{100 * 300. / 1000, 10}, {100 * 600. / 1000, 20}, {100 * 900. / 1000, 30}, {100 * 999. / 1000, 40}, {100, 50}}
	assert.Equal(t, fmt.Sprint(got.quantiles), fmt.Sprint(want))
	var many times
	wide := measure.NewHistogram()
	for us := range 100_000 {
		wide.Record(time.Duration(us+1) * time.Microsecond)
	}
	many.withQuantiles(wide)
	// 100 steps to a half, 100 to three quarters, and so on until the steps are smaller than a value.
	n := 0
	for _, q := range many.quantiles {
		if q.p <= 75 {
			n++
		}
	}
	assert.True(t, n >= 195 && n <= 205, "%d steps to 75 %%", n)
	var none times
	none.withQuantiles(nil)
	assert.True(t, none.quantiles == nil, "quantiles of nothing")
}

// searchOf is a search with this answer.
func searchOf(holds float64, settings *dropintest.Settings) func(context.Context, *workload.Document, time.Duration) (*report.Document, error) {
	return func(_ context.Context, d *workload.Document, _ time.Duration) (*report.Document, error) {
		*settings = dropintest.SettingsOf(d)
		return &report.Document{Search: &report.Search{Answer: &find.Answer{Holds: holds, Fails: 5000, Why: "too busy"}}}, nil
	}
}

// Numbers are padded as the tool's.
func TestPadded(t *testing.T) {
	for _, tt := range []struct {
		x    float64
		want string
	}{{1, "    1.0"}, {1000, " 1000.0"}, {1e7, "10000000.0"}, {0.25, "    0.2"}, {0.35, "    0.3"}} {
		assert.Equal(t, padded(tt.x, rateWidth), tt.want)
	}
}

// A long report has one interval for several lines: each line has the rate of the interval in which it lies.
func TestConsumedOfLongRuns(t *testing.T) {
	m := &meter{r: &pair{spec: &spec{size: 100}}}
	for i := range 4 {
		m.periods = append(m.periods, period{middle: time.Duration(65+10*i) * time.Second})
	}
	d := &report.Document{Intervals: []report.Interval{
		{Phase: measure.WarmUp, StartS: 0, EndS: 60, WithinS: 60, Counts: measure.Counts{Consumed: 1}},
		{Phase: measure.Measurement, StartS: 60, EndS: 80, WithinS: 20, Counts: measure.Counts{Consumed: 2000}},
		{Phase: measure.Measurement, StartS: 80, EndS: 100, WithinS: 20, Counts: measure.Counts{Consumed: 4000}},
	}}
	m.consumed(d)
	for i, want := range []float64{100, 100, 200, 200} {
		assert.Equal(t, m.periods[i].consumed, want, "line %d", i)
		assert.Equal(t, m.periods[i].consumedBytes, want*100, "bytes of line %d", i)
	}
}
