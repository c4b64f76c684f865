package load

import (
	"testing"
	"testing/synctest"
	"time"

	"carronade/measure"
	"carronade/test/testkit/assert"
)

// checkWithin checks that the intervals of a phase last as long as it, have its answers, and that each has the rate.
func checkWithin(t *testing.T, of measure.Tally, rows []measure.Interval, rate float64) {
	t.Helper()
	var sum measure.Interval
	for i := range rows {
		iv := &rows[i]
		if iv.Phase != of.Name {
			continue
		}
		sum.Within += iv.Within
		sum.Arrived += iv.Arrived
		if got := iv.EventsPerSecond(); iv.Within > 0 && (got < 0.98*rate || got > 1.02*rate) {
			t.Errorf("%s: %v/s in the interval from %v to %v, which lasts %v of the phase; want %v/s", of.Name, got, iv.Start, iv.End, iv.Within, rate)
		}
	}
	assert.Equal(t, sum.Within, of.Length(), "%s: length of its intervals", of.Name)
	assert.Equal(t, sum.Arrived, of.Arrived, "%s: answers in its intervals", of.Name)
}

// TestPhasesEndWithinIntervals: the rate of an interval counts what came while its phase lasted, over that time.
func TestPhasesEndWithinIntervals(t *testing.T) {
	const rate = 2000
	for _, tt := range []struct {
		name   string
		plan   Plan
		answer time.Duration
	}{
		{"a warm-up", Plan{Schedule: Constant(rate), WarmupTime: 500 * time.Millisecond, Measurement: Limits{Time: 3 * time.Second}}, time.Millisecond},
		{"a warm-up of two intervals", Plan{Schedule: Constant(rate), WarmupTime: 1300 * time.Millisecond, Measurement: Limits{Time: 3 * time.Second}}, time.Millisecond},
		{"the end", Plan{Schedule: Constant(rate), Measurement: Limits{Time: 2500 * time.Millisecond}}, time.Millisecond},
		{"a long drain", Plan{Schedule: Constant(rate), WarmupTime: 2 * time.Second, Measurement: Limits{Time: 2500 * time.Millisecond}}, 1200 * time.Millisecond},
		{"events", Plan{Schedule: Constant(rate), WarmupTime: 250 * time.Millisecond, Measurement: Limits{Events: 4000}}, time.Millisecond},
		{"a closed loop", Plan{Concurrency: 2, BatchEvents: 1, WarmupEvents: 900, Measurement: Limits{Events: 3000}}, time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tt.plan.MaxInFlight = 10_000
				r := fireTest(t, tt.plan, newFake(Single(), 1, constantly(tt.answer)))
				if tt.name != "a long drain" { // in its warm-up the first answers come late
					checkWithin(t, r.Warmup, r.Intervals, rate)
				}
				checkWithin(t, r.Measurement, r.Intervals, rate)
			})
		})
	}
}

// TestStepsMeetWithinIntervals: each step has its own part of the interval in which two of them meet.
func TestStepsMeetWithinIntervals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shape := assert.Value(ParseShape("constant(1k/s):1500ms+constant(3k/s):1500ms"))(t)
		r := fireTest(t, Plan{Schedule: shape, Steps: shape.(Stepped).Steps(), Measurement: Limits{Time: 3 * time.Second}}, newFake(Single(), 1, constantly(time.Microsecond)))
		rates := []float64{1000, 1000, 3000, 3000}
		var got []measure.Interval
		for _, iv := range r.Intervals {
			if iv.Within > 0 {
				got = append(got, iv)
			}
		}
		assert.Equal(t, len(got), len(rates), "intervals")
		for i, iv := range got {
			if n := iv.EventsPerSecond(); n < 0.98*rates[i] || n > 1.02*rates[i] {
				t.Errorf("%v/s in the interval from %v to %v, want %v/s", n, iv.Start, iv.End, rates[i])
			}
		}
	})
}

// TestTargetRate: the rate of a measurement is the one that was asked for, however many events were due in it.
func TestTargetRate(t *testing.T) {
	ramp := assert.Value(ParseShape("ramp(100/s,300/s,2s)"))(t)
	poisson := assert.Value(ParseShape("poisson(1k/s)"))(t)
	for _, tt := range []struct {
		name string
		plan Plan
		want float64
	}{
		{"five events", Plan{Schedule: Constant(1), Measurement: Limits{Events: 5}}, 1},
		{"a batch of all", Plan{Schedule: Constant(200), BatchEvents: 200, Measurement: Limits{Events: 200}}, 200},
		{"a time", Plan{Schedule: Constant(300), Measurement: Limits{Time: time.Second}}, 300},
		{"at random", Plan{Schedule: poisson, Measurement: Limits{Time: time.Second}}, 1000},
		{"a ramp", Plan{Schedule: ramp, Measurement: Limits{Time: 2 * time.Second}}, 200},
		{"half of a ramp", Plan{Schedule: ramp, Measurement: Limits{Time: time.Second}}, 150},
		{"after a warm-up", Plan{Schedule: Constant(300), WarmupTime: 300 * time.Millisecond, Measurement: Limits{Events: 10}}, 300},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(Single(), 1, constantly(time.Millisecond))
				f.room = 1000
				r := fireTest(t, tt.plan, f)
				d := r.Measurement.Rate - tt.want
				assert.True(t, d >= -1e-6*tt.want && d <= 1e-6*tt.want, "target rate %v, want %v", r.Measurement.Rate, tt.want)
			})
		})
	}
}

// TestReadingEndsWithinIntervals: the same for a run that reads. That it had ended when nothing arrived any more becomes
// known later.
func TestReadingEndsWithinIntervals(t *testing.T) {
	for _, tt := range []struct {
		name string
		plan ReadPlan
	}{
		{"a warm-up", ReadPlan{Warmup: 500 * time.Millisecond, Measurement: Limits{Time: 2 * time.Second}}},
		{"idle", ReadPlan{Warmup: 500 * time.Millisecond, Idle: 2 * time.Second}},
		{"events", ReadPlan{Measurement: Limits{Events: 15_000}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tt.plan.Portable = true
				r, err := Consume(t.Context(), tt.plan, &tickSource{tick: time.Millisecond, until: 1700 * time.Millisecond})
				assert.OK(t, err)
				if tt.name != "a warm-up" { // it ends later than what arrives
					checkWithin(t, r.Measurement, r.Intervals, 10_000)
				}
				checkWithin(t, r.Warmup, r.Intervals, 10_000)
			})
		})
	}
}
