package load

import (
	"testing"
	"testing/synctest"
	"time"

	"carronade/measure"
	"carronade/test/testkit/assert"
)

// roomless is a target whose streams have no lane, or whose lane has no room for them, as during a login.
type roomless struct {
	*fake
	lanes bool
}

func (r roomless) Route(s int32) Lane {
	if !r.lanes {
		return nil
	}
	return noRoomLane{r.fake.lanes[r.Client(s)]}
}

type noRoomLane struct{ *fakeLane }

func (noRoomLane) Room(int32, uint64) int { return 0 }

// Events that linger when the run is stopped are fired and answered. Events that the bound holds back are
// not, nor are those of streams without a lane or room; they do not delay the end.
func TestStopFiresWhatWaits(t *testing.T) {
	room := func(f *fake) Target { return f }
	noRoom := func(f *fake) Target { return roomless{f, true} }
	nowhere := func(f *fake) Target { return roomless{f, false} }
	wide := Plan{MaxInFlight: 1000}
	for _, tt := range []struct {
		name    string
		plan    Plan
		streams int
		service time.Duration
		of      func(*fake) Target
		why     Reason
		want    measure.Counts
		whole   bool
	}{
		{"one stream", wide, 1, time.Millisecond, room, Interrupted, measure.Counts{Offered: 996, Sent: 996, Acked: 996}, true},
		{"streams that batch separately", wide, 7, time.Millisecond, room, Interrupted, measure.Counts{Offered: 996, Sent: 996, Acked: 996}, true},
		{"delayed", Plan{}, 1, time.Second, room, Interrupted, measure.Counts{Offered: 996, Sent: 11, Acked: 11, Unsent: 985}, true},
		{"ended by a limit", wide, 1, time.Millisecond, room, ByFailures, measure.Counts{Offered: 996, Sent: 990, Acked: 990, Unsent: 6}, false},
		{"no lane", wide, 3, time.Millisecond, nowhere, Interrupted, measure.Counts{Offered: 996, Unsent: 996}, true},
		{"a lane without room", wide, 3, time.Millisecond, noRoom, Interrupted, measure.Counts{Offered: 996, Unsent: 996}, true},
		{"one stream, drop", Plan{MaxInFlight: 1000, Overload: Drop}, 1, time.Millisecond, room, Interrupted, measure.Counts{Offered: 996, Sent: 996, Acked: 996}, true},
		{"delayed, drop", Plan{Overload: Drop}, 1, time.Second, room, Interrupted, measure.Counts{Offered: 996, Sent: 11, Acked: 11, Dropped: 979, Unsent: 6}, true},
		{"streams delayed, drop", Plan{Overload: Drop}, 7, time.Second, room, Interrupted, measure.Counts{Offered: 996, Sent: 2, Acked: 2, Dropped: 990, Unsent: 4}, true},
		{"no lane, drop", Plan{Overload: Drop}, 3, time.Millisecond, nowhere, Interrupted, measure.Counts{Offered: 996, Dropped: 992, Unsent: 4}, true},
		{"a lane without room, drop", Plan{Overload: Drop}, 3, time.Millisecond, noRoom, Interrupted, measure.Counts{Offered: 996, Dropped: 992, Unsent: 4}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := tt.plan
				p.Schedule, p.Linger, p.Portable, p.MaxInFlight = Constant(1000), 10*time.Millisecond, true, max(p.MaxInFlight, 1)
				r := assert.Value(New(p, tt.of(newFake(RoundRobin(tt.streams), 1, constantly(tt.service)))))(t)
				r.Start()
				time.Sleep(995*time.Millisecond + 500*time.Microsecond)
				r.Stop(tt.why)
				res := assert.Value(r.Wait())(t)
				h := &res.Measurement
				got := measure.Counts{Offered: h.Offered, Sent: h.Sent, Acked: h.Acked, Dropped: h.Dropped, Unsent: h.Unsent}
				assert.Same(t, got, tt.want)
				assert.Equal(t, res.Whole, tt.whole, "whole")
				assert.True(t, h.Censored.Count() == h.Unsent && (h.Sent == 0 || h.Batching.Max() <= 10*time.Millisecond),
					"%d ages of %d unsent events, batched for at most %v", h.Censored.Count(), h.Unsent, h.Batching.Max())
			})
		})
	}
}

// TestStopEndsWithItsDrain: batches in flight when fireRemaining finds no room are
// still waited for, until the drain is over or aborted.
func TestStopEndsWithItsDrain(t *testing.T) {
	for _, tt := range []struct {
		name  string
		abort time.Duration // after the stop; 0: never
		took  time.Duration
		acked uint64
	}{{"answered in it", 0, 1490 * time.Millisecond, 1}, {"aborted", 100 * time.Millisecond, 595500 * time.Microsecond, 0}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := Plan{Schedule: Constant(1000), Linger: 490 * time.Millisecond, MaxInFlight: 1, Overload: Drop, Portable: true, Drain: 5 * time.Second}
				f := newFake(RoundRobin(2), 1, constantly(time.Second))
				r := assert.Value(New(p, f))(t)
				began := time.Now()
				r.Start()
				time.Sleep(495*time.Millisecond + 500*time.Microsecond)
				r.Stop(Interrupted)
				if tt.abort > 0 {
					time.Sleep(tt.abort)
					r.Abort()
				}
				res := assert.Value(r.Wait())(t)
				assert.Equal(t, time.Since(began), tt.took, "time until it ended")
				assert.Equal(t, min(1, res.Measurement.Acked), tt.acked, "%d events were answered", res.Measurement.Acked)
			})
		})
	}
}

// TestWhole: an interruption completes a run without another end. It cuts short a run
// that has another end, has not begun to measure, or whose answers were not awaited.
func TestWhole(t *testing.T) {
	for _, tt := range []struct {
		name        string
		plan        Plan
		abort, want bool
	}{
		{name: "a rate", plan: Plan{Schedule: Constant(100)}, want: true},
		{name: "concurrency", plan: Plan{Concurrency: 2}, want: true},
		{name: "full speed", want: true},
		{name: "aborted", plan: Plan{Schedule: Constant(100)}, abort: true},
		{name: "in the warm-up", plan: Plan{Schedule: Constant(100), WarmupTime: 2 * time.Second}},
		{name: "a time", plan: Plan{Schedule: Constant(100), Measurement: Limits{Time: time.Minute}}},
		{name: "a number", plan: Plan{Concurrency: 2, Measurement: Limits{Events: 1e6}}},
		{name: "bytes", plan: Plan{Concurrency: 2, Measurement: Limits{Bytes: 1 << 40}}},
		{name: "failures, but none occur", plan: Plan{Concurrency: 2, Measurement: Limits{Failures: 3}}, want: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := tt.plan
				p.BatchEvents, p.Portable = 1, true
				r := assert.Value(New(p, newFake(Single(), 1, constantly(50*time.Millisecond))))(t)
				r.Start()
				time.Sleep(time.Second)
				r.Stop(Interrupted)
				if tt.abort {
					r.Abort()
				}
				res := assert.Value(r.Wait())(t)
				assert.True(t, res.Whole == tt.want && res.Stopped == Interrupted, "whole: got %v, stopped by %q", res.Whole, res.Stopped)
			})
		})
	}
}

// The snapshots of a run longer than the series show every row of several intervals when it
// is complete, as the result has it, but for the newest rows.
func TestSnapshotsHaveMergedRows(t *testing.T) {
	const long = (measure.DefaultSeries + 500) * time.Second
	type key struct {
		phase      string
		start, end time.Duration
	}
	keyOf := func(iv *measure.Interval) key { return key{iv.Phase, iv.Start, iv.End} }
	for _, tt := range []struct {
		name string
		run  func(t *testing.T, watch func(Snapshot)) (*Result, error)
	}{
		{"firing", func(t *testing.T, watch func(Snapshot)) (*Result, error) {
			plan := Plan{Schedule: Constant(1), WarmupTime: 10 * time.Second, Measurement: Limits{Time: long}, BatchEvents: 1, Portable: true, Watch: watch}
			return Fire(t.Context(), plan, newFake(Single(), 1, constantly(10*time.Millisecond)))
		}},
		{"reading", func(t *testing.T, watch func(Snapshot)) (*Result, error) {
			plan := ReadPlan{Warmup: 10 * time.Second, Measurement: Limits{Time: long}, Portable: true, Watch: watch}
			return Consume(t.Context(), plan, &tickSource{tick: time.Second})
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				seen := map[key]measure.Interval{}
				r := assert.Value(tt.run(t, func(s Snapshot) {
					for i := range s.Merged {
						seen[keyOf(&s.Merged[i])] = s.Merged[i]
					}
				}))(t)
				merged, missing := 0, 0
				for i := range r.Intervals {
					iv := &r.Intervals[i]
					if iv.Length() <= time.Second {
						continue
					}
					merged++
					got, ok := seen[keyOf(iv)]
					if !ok {
						missing++
						continue
					}
					assert.Must(t, got.Counts == iv.Counts && (got.Service == nil || got.Service.Equal(iv.Service)),
						"the snapshot had %+v of a row, the result has %+v", got.Counts, iv.Counts)
				}
				assert.True(t, merged >= 400 && missing <= 2, "no snapshot had %d of %d merged rows", missing, merged)
			})
		})
	}
}

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

// The same for a run that reads. That it had ended when nothing arrived any more becomes known later.
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
				r := assert.Value(Consume(t.Context(), tt.plan, &tickSource{tick: time.Millisecond, until: 1700 * time.Millisecond}))(t)
				if tt.name != "a warm-up" { // it ends later than what arrives
					checkWithin(t, r.Measurement, r.Intervals, 10_000)
				}
				checkWithin(t, r.Warmup, r.Intervals, 10_000)
			})
		})
	}
}
