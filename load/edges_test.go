package load

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"carronade/measure"
	"carronade/test/testkit/assert"
)

// Events still in flight when the measurement ends then count for the drain, not the measurement.
func TestInFlightMeanKeepsToThePhase(t *testing.T) {
	for _, tt := range []struct {
		name              string
		warm, stop        time.Duration
		measurement, want float64
		most              uint64
	}{
		{"measurement and drain", 0, 0, 1, 5.5, 10},
		{"warm-up, measurement and drain", time.Second, 0, 1, 15.5, 20},
		{"stopped", 0, time.Second - time.Nanosecond, 1, 5.5, 10},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := Plan{Schedule: Constant(10), BatchEvents: 1, MaxInFlight: 1000, WarmupTime: tt.warm}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tt.stop > 0 {
					time.AfterFunc(tt.stop, cancel)
				} else {
					p.Measurement.Time = time.Second
				}
				p.Portable = true
				r := assert.Value(Fire(ctx, p, newFake(Single(), 1, constantly(5*time.Second))))(t)
				got := r.Measurement.InFlight
				assert.True(t, got >= tt.want-0.01 && got <= tt.want+0.01, "%.2f in flight over the measurement, want %.2f", got, tt.want)
				assert.Equal(t, r.Measurement.InFlightPeak, tt.most, "in flight at most")
			})
		})
	}
}

// Events that are in flight in the middle of intervals, and never at their ends, count for the peak. Batches
// of three events are due at the start of each second and answered within it.
func TestInFlightPeakBetweenIntervals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := fireTest(t, Plan{Schedule: Constant(10), Linger: 250 * time.Millisecond, MaxInFlight: 1, Measurement: Limits{Time: 4 * time.Second}},
			newFake(Single(), 1, constantly(30*time.Millisecond)))
		for i, iv := range r.Intervals {
			assert.True(t, iv.InFlight == 0, "%d in flight at the end of interval %d, want none", iv.InFlight, i)
		}
		assert.Equal(t, r.Measurement.InFlightPeak, 3, "in flight at most")
		assert.True(t, float64(r.Measurement.InFlightPeak) >= r.Measurement.InFlight,
			"%d in flight at most, and %v in the mean", r.Measurement.InFlightPeak, r.Measurement.InFlight)
	})
}

// unwritten is a fake that does not write the first attempts.
type unwritten struct {
	*fake
	lane *unwrittenLane
}

type unwrittenLane struct {
	*fakeLane
	attempts int32 // number of attempts that are not written
}

func (u *unwritten) Route(int32) Lane { return u.lane }

func (l *unwrittenLane) Fire(batches []Batch) int {
	var rest []Batch
	for i := range batches {
		batches[i].Bytes = 10
		if batches[i].Attempt < l.attempts {
			s, now := batches[i], l.f.sink.Now()
			time.AfterFunc(time.Millisecond, func() {
				l.f.sink.Complete([]Outcome{{Batch: s, Sent: -1, Done: now + time.Millisecond, Failed: s.Events, Class: Refused, Text: "no connection", Place: -1}})
			})
			continue
		}
		rest = append(rest, batches[i])
	}
	l.fakeLane.Fire(rest)
	return len(batches)
}

// Service time begins with the first byte written, at any attempt.
func TestRetryOfTheUnwritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(Single(), 1, constantly(5*time.Millisecond))
		u := &unwritten{f, &unwrittenLane{f.lanes[0], 2}}
		r := assert.Value(Fire(t.Context(), Plan{Schedule: Constant(10), BatchEvents: 1, Retry: 3, Measurement: Limits{Time: time.Second}, Portable: true}, u))(t)
		assert.Equal(t, r.Measurement.Service.Max(), 5*time.Millisecond, "longest service time")
		assert.Equal(t, r.Measurement.Response.Max(), 7*time.Millisecond, "longest response time")
		assert.Equal(t, r.Measurement.SendDelay.Max(), 0, "longest send delay while the system refuses first attempts")
		assert.Equal(t, r.Measurement.Queueing.Max(), 2*time.Millisecond, "longest queueing")
	})
}

// A waitingLane refuses every later attempt until a time.
type waitingLane struct {
	*unwrittenLane
	until time.Duration
	armed bool
}

func (l *waitingLane) Fire(batches []Batch) int {
	if now := l.f.sink.Now(); batches[0].Attempt > 0 && now < l.until {
		if !l.armed {
			l.armed = true
			time.AfterFunc(l.until-now, func() { l.f.sink.Ready(l.id, l.until) })
		}
		return 0
	}
	return l.unwrittenLane.Fire(batches)
}

type waitingTarget struct {
	*fake
	lane *waitingLane
}

func (w *waitingTarget) Route(int32) Lane { return w.lane }

// A batch of which nothing was written, and whose next attempt waits for its lane, waits for the system.
func TestRetryThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(Single(), 1, constantly(5*time.Millisecond))
		w := &waitingTarget{f, &waitingLane{unwrittenLane: &unwrittenLane{f.lanes[0], 1}, until: 300 * time.Millisecond}}
		r := assert.Value(Fire(t.Context(), Plan{Schedule: Constant(1), BatchEvents: 1, Retry: 1, Measurement: Limits{Events: 1}, Portable: true}, w))(t)
		assert.Equal(t, r.Measurement.SendDelay.Max(), 0, "longest send delay")
		assert.Equal(t, r.Measurement.Queueing.Max(), 300*time.Millisecond, "longest queueing")
		assert.Equal(t, r.Measurement.Response.Max(), 305*time.Millisecond, "longest response time")
	})
}

// What a client library takes before it writes is not the system's, but at full speed its queue is the load.
func TestTimeInALibrary(t *testing.T) {
	for _, tt := range []struct {
		name         string
		plan         Plan
		lower, upper time.Duration
	}{
		{"schedule", Plan{Schedule: Constant(100), MaxInFlight: 8}, 2 * time.Millisecond, 5 * time.Millisecond},
		{"closed loop", Plan{Concurrency: 8, MaxInFlight: 8}, 2 * time.Millisecond, 5 * time.Millisecond},
		{"full speed", Plan{MaxInFlight: 8}, 5 * time.Millisecond, 5 * time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(Single(), 1, func(_ int, _ Batch, at time.Duration) (time.Duration, Outcome) {
					return at + 5*time.Millisecond, Outcome{Unwritten: 3 * time.Millisecond}
				})
				tt.plan.BatchEvents, tt.plan.Measurement, tt.plan.Portable = 1, Limits{Time: time.Second}, true
				r := assert.Value(Fire(t.Context(), tt.plan, f))(t)
				assert.Equal(t, r.Measurement.Service.Max(), tt.upper, "longest service time")
				assert.Equal(t, r.Measurement.Lower.Service.Max(), tt.lower, "longest lower value")
			})
		})
	}
}

// A batch that is given up before its retry has a final outcome, and Observe receives it.
func TestRetriesCutShortAreObserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(Single(), 1, func(_ int, s Batch, at time.Duration) (time.Duration, Outcome) {
			return at + time.Millisecond, Outcome{Failed: s.Events, Class: Rejected, Text: "no"}
		})
		n := &blockedTarget{f, &blockedLane{fakeLane: f.lanes[0], from: 500 * time.Microsecond, to: time.Hour}}
		var seen int32
		r := assert.Value(Fire(t.Context(), Plan{
			Schedule: Constant(1), BatchEvents: 1, Retry: 1, Measurement: Limits{Time: 100 * time.Millisecond}, Drain: time.Second, Portable: true,
			Observe: func(out []Outcome) {
				for i := range out {
					seen += out[i].Failed
				}
			},
		}, n))(t)
		assert.True(t, r.Measurement.Failed == 1 && seen == 1, "%d failed, %d of them observed; want 1 each", r.Measurement.Failed, seen)
	})
}

// TestUnansweredAreNoFailures: if nothing is acknowledged, a limit on failures counts
// failed events but not unknown ones, and snapshots say so.
func TestUnansweredAreNoFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shown, known := 0, 0
		watch := func(s Snapshot) {
			if shown++; s.Unanswered {
				known++
			}
		}
		r := fireTest(t, Plan{
			BatchEvents: 1, Unanswered: true, Measurement: Limits{Time: time.Second, Failures: 10, FailureRate: 0.1}, Watch: watch,
		}, newFake(Single(), 1, func(_ int, s Batch, at time.Duration) (time.Duration, Outcome) {
			return at + time.Millisecond, Outcome{Unknown: s.Events}
		}))
		assert.True(t, r.Stopped == ByTime && r.Measurement.Unknown >= 1000,
			"stopped by %q after %d events", r.Stopped, r.Measurement.Unknown)
		assert.True(t, shown != 0 && known == shown, "%d of %d snapshots say that nothing is acknowledged", known, shown)
	})
}

// A thread that waits is not at work, even if its wait began before the measurement or lasted beyond its end.
func TestBusy(t *testing.T) {
	for _, tt := range []struct {
		name string
		plan Plan
	}{
		{"one event", Plan{Schedule: Constant(1), Measurement: Limits{Time: time.Second}}},
		{"shorter than an interval", Plan{Schedule: Constant(10), Measurement: Limits{Time: 350 * time.Millisecond}}},
		{"with a warm-up", Plan{Schedule: Constant(0.5), WarmupTime: 1500 * time.Millisecond, Measurement: Limits{Time: time.Second}, Interval: time.Hour}},
	} {
		for _, service := range []time.Duration{3 * time.Second, time.Millisecond} { // the last answer comes in the drain, or long before it
			t.Run(fmt.Sprintf("%s, answered after %v", tt.name, service), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := fireTest(t, tt.plan, newFake(Single(), 1, constantly(service)))
					assert.True(t, r.Busy <= 0.001,
						"busy for %.1f %% of the measurement, want none: time passes only while waiting", 100*r.Busy)
				})
			})
		}
	}
}

// The measurement ends with the limit that is reached first, and its length is the time until then.
func TestWhicheverLimitIsFirst(t *testing.T) {
	for _, tt := range []struct {
		name    string
		plan    Plan
		why     Reason
		length  time.Duration
		missing uint64
	}{
		{"events before time", Plan{MaxInFlight: 1, Measurement: Limits{Events: 100, Time: 20 * time.Second}}, ByEvents, time.Second, 0},
		{"time before events", Plan{MaxInFlight: 1, Measurement: Limits{Events: 5000, Time: time.Second}}, ByTime, time.Second, 4900},
		{"time before events, at most", Plan{MaxInFlight: 1, Measurement: Limits{Events: 5000, AtMost: true, Time: time.Second}}, ByTime, time.Second, 0},
		{"bytes before events, at most", Plan{MaxInFlight: 1, Measurement: Limits{Events: 5000, AtMost: true, Bytes: 1000}}, ByBytes, time.Second, 0},
		{"bytes before time", Plan{MaxInFlight: 1, Measurement: Limits{Bytes: 1000, Time: 20 * time.Second}}, ByBytes, time.Second, 0},
		{"events of a schedule before time", Plan{Schedule: Constant(100), MaxInFlight: 100, Measurement: Limits{Events: 50, Time: 20 * time.Second}}, ByEvents, 500 * time.Millisecond, 0},
		{"time before the events of a schedule", Plan{Schedule: Constant(100), MaxInFlight: 100, Measurement: Limits{Events: 5000, Time: 2 * time.Second}}, ByTime, 2 * time.Second, 4800},
		{"bytes in the drain of a schedule", Plan{Schedule: Constant(100), MaxInFlight: 1, Measurement: Limits{Bytes: 1500, Time: time.Second}, Drain: time.Minute}, ByTime, time.Second, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tt.plan.BatchEvents = 1
				service := 10 * time.Millisecond
				if tt.plan.Schedule != nil && tt.plan.Measurement.Bytes > 0 {
					service = 20 * time.Millisecond
				}
				r := fireTest(t, tt.plan, newFake(Single(), 1, constantly(service)))
				assert.True(t, r.Stopped == tt.why && r.Measurement.Length() == tt.length && r.Missing == tt.missing,
					"stopped by %q after %v with %d missing; want %q, %v, %d", r.Stopped, r.Measurement.Length(), r.Missing, tt.why, tt.length, tt.missing)
			})
		})
	}
}

// TestStall: the numbers of a stall, at various times and for various clients.
func TestStall(t *testing.T) {
	for _, tt := range []struct {
		name    string
		plan    Plan
		streams int
		answer  func(lane int, s Batch, at time.Duration) (time.Duration, Outcome)
		longest time.Duration
		share   float64
	}{
		{"in the middle", Plan{Schedule: Constant(200), Measurement: Limits{Time: 3 * time.Second}}, 1, frozen(time.Second), 501 * time.Millisecond, 0.167},
		{"never over", Plan{Schedule: Constant(200), Measurement: Limits{Time: 2 * time.Second}, Drain: time.Second}, 1, func(_ int, _ Batch, at time.Duration) (time.Duration, Outcome) {
			if at >= time.Second {
				return Never, Outcome{}
			}
			return at + time.Millisecond, Outcome{}
		}, 2 * time.Second, 0.5},
		{"over in the drain", Plan{Schedule: Constant(200), Measurement: Limits{Time: 2 * time.Second}, Drain: 10 * time.Second}, 1, func(_ int, _ Batch, at time.Duration) (time.Duration, Outcome) {
			if at >= time.Second {
				return 5*time.Second + time.Millisecond, Outcome{}
			}
			return at + time.Millisecond, Outcome{}
		}, 4001 * time.Millisecond, 0.5},
		{"of one client of two", Plan{Schedule: Constant(2), Measurement: Limits{Time: 4 * time.Second}, Threads: 2}, 2, func(lane int, _ Batch, at time.Duration) (time.Duration, Outcome) {
			if lane == 0 && at < 3600*time.Millisecond { // the answers of the other one are a second apart
				return 3600 * time.Millisecond, Outcome{}
			}
			return at + time.Millisecond, Outcome{}
		}, time.Second, 0.875},
		{"failures are not answers", Plan{Schedule: Constant(10), Measurement: Limits{Time: 2 * time.Second}}, 1, func(_ int, s Batch, at time.Duration) (time.Duration, Outcome) {
			if at >= time.Second && at < 2*time.Second {
				return at + 500*time.Millisecond, Outcome{Failed: s.Events, Class: Timeout, Text: "late"}
			}
			return at + time.Millisecond, Outcome{}
		}, 1400 * time.Millisecond, 0.5},
		{"nothing in flight is not a stall", Plan{Schedule: Constant(1), Measurement: Limits{Time: 4 * time.Second}}, 1, constantly(2 * time.Millisecond), 2 * time.Millisecond, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tt.plan.BatchEvents, tt.plan.MaxInFlight = 1, 1000
				r := fireTest(t, tt.plan, newFake(RoundRobin(tt.streams), tt.streams, tt.answer))
				got := r.Stall.Longest
				assert.True(t, (got-tt.longest).Abs() <= 5*time.Millisecond, "longest %v, want %v", got, tt.longest)
				checkStalls(t, r)
				if got := r.Stall.Share; got < tt.share-0.01 || got > tt.share+0.01 {
					t.Errorf("stalled for %.3f of the measurement, want %.3f", got, tt.share)
				}
			})
		})
	}
}

// checkStalls compares the individual stalls with their share of the measurement.
func checkStalls(t *testing.T, r *Result) {
	t.Helper()
	if len(r.Stall.Spans) != int(r.Stall.Count) {
		assert.True(t, r.Stall.Count > measure.MostSpans, "%d stalls, and %d are kept", r.Stall.Count, len(r.Stall.Spans))
		return
	}
	var sum time.Duration
	for _, s := range r.Stall.Spans {
		sum += max(0, min(s.At+s.Length, r.Measurement.End)-s.At)
	}
	got := float64(sum) / float64(r.Measurement.Length())
	assert.True(t, math.Abs(got-r.Stall.Share) <= 0.005, "%d stalls are %.3f of the measurement, want %.3f: %v", r.Stall.Count, got, r.Stall.Share, r.Stall.Spans)
}

// Without a connection nothing can be in flight, but answers are missing. If it does not come back, they are
// missing until the end of the run.
func TestStallWithoutConnection(t *testing.T) {
	const ms, sec = time.Millisecond, time.Second
	last := Limits{Time: 2 * sec}
	none := func(_ int, s Batch, at time.Duration) (time.Duration, Outcome) {
		return at + ms, Outcome{Failed: s.Events, Class: Refused, Text: "no"}
	}
	lost := func(_ int, s Batch, at time.Duration) (time.Duration, Outcome) {
		if at < sec || at >= 1500*ms {
			return at + 10*ms, Outcome{}
		}
		return at + 50*ms, Outcome{Unknown: s.Events, Class: Refused, Text: "reset"}
	}
	for _, tt := range []struct {
		name        string
		plan        Plan
		away, back  time.Duration
		answer      func(lane int, s Batch, at time.Duration) (time.Duration, Outcome)
		stop        time.Duration // 0: not stopped
		longest, at time.Duration
		share       float64
	}{
		{"at full speed", Plan{Measurement: last}, sec, sec + 500*ms, nil, 0, 500 * ms, sec, 0.25},
		{"at full speed, to the end", Plan{Measurement: last}, 1200 * ms, Never, nil, 0, 800 * ms, 1200 * ms, 0.4},
		{"closed loop, to the end", Plan{Measurement: last, Concurrency: 2}, sec, Never, nil, 0, sec, sec, 0.5},
		{"never any", Plan{Measurement: last}, 0, Never, nil, 0, 2 * sec, 0, 1},
		{"nothing but refusals", Plan{Measurement: last}, 0, 0, none, 0, 2 * sec, 0, 1},
		{"since the warm-up", Plan{Measurement: last, WarmupTime: sec}, 500 * ms, Never, nil, 0, 2 * sec, sec, 1},
		{"stopped", Plan{Measurement: last}, sec, Never, nil, 1500 * ms, 500 * ms, sec, 0.333},
		{"a number of events, stopped", Plan{Measurement: Limits{Events: 1 << 30}}, sec, Never, nil, 1500 * ms, 500 * ms, sec, 0.333},
		{"a number of events, fired in time", Plan{Measurement: Limits{Time: 2 * sec, Events: 50}}, sec, Never, nil, 0, 10 * ms, 0, 0},
		{"a number of bytes, spent in time", Plan{Measurement: Limits{Time: 2 * sec, Bytes: 500}}, sec, Never, nil, 0, 10 * ms, 0, 0},
		{"nothing to wait for", Plan{Measurement: last, Unanswered: true}, sec, Never, nil, 0, 0, 0, 0},
		{"by a schedule", Plan{Schedule: Constant(200), Measurement: last}, sec, sec + 500*ms, nil, 0, 510 * ms, sec, 0.25},
		{"by a schedule, to the end", Plan{Schedule: Constant(200), Measurement: last, Drain: sec}, sec, Never, nil, 0, 2 * sec, sec, 0.5},
		{"by a schedule, lost again and again", Plan{Schedule: Constant(50), Measurement: last, MaxInFlight: 1}, 0, 0, lost, 0, 510 * ms, sec, 0.25},
		{"by a schedule, dropped", Plan{Schedule: Constant(200), Measurement: last, Overload: Drop}, sec, Never, nil, 0, sec, sec, 0.5},
		{"by a schedule, stopped", Plan{Schedule: Constant(200), Measurement: last}, sec, Never, nil, 1500 * ms, 500 * ms, sec, 0.333},
		{"by a schedule, and nothing was due", Plan{Schedule: Constant(1), Measurement: last}, 1100 * ms, Never, nil, 0, 10 * ms, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if tt.answer == nil {
					tt.answer = constantly(10 * ms)
				}
				f := newFake(Single(), 1, tt.answer)
				f.downFrom, f.downUntil = tt.away, tt.back
				tt.plan.BatchEvents, tt.plan.MaxInFlight, tt.plan.Portable = 1, cmp.Or(tt.plan.MaxInFlight, 10), true
				run := assert.Value(New(tt.plan, f))(t)
				run.Start()
				if tt.stop > 0 {
					time.AfterFunc(tt.stop, func() { run.Stop(Interrupted) })
				}
				r := assert.Value(run.Wait())(t)
				got := r.Stall.Longest
				assert.True(t, (got-tt.longest).Abs() <= 20*ms, "longest %v, want %v", got, tt.longest)
				got = r.Stall.LongestAt
				assert.True(t, (got-tt.at).Abs() <= 20*ms, "it began at %v, want %v", got, tt.at)
				checkStalls(t, r)
				if got := r.Stall.Share; got < tt.share-0.01 || got > tt.share+0.01 {
					t.Errorf("stalled for %.3f of the measurement, want %.3f", got, tt.share)
				}
			})
		})
	}
}

// Once the last requested event has been fired, the bound empties, which is not caused by the generator.
func TestFullShareOfACount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := fireTest(t, Plan{BatchEvents: 1, MaxInFlight: 10, Measurement: Limits{Events: 15}}, newFake(Single(), 1, constantly(100*time.Millisecond)))
		assert.True(t, r.Full >= 0.999, "the bound was full for %.2f of the measurement, want all", r.Full)
	})
}

// Counting the events that were due and never sent takes a time that does not grow with their number.
func TestManyUnsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		never := func(int, Batch, time.Duration) (time.Duration, Outcome) { return Never, Outcome{} }
		f := newFake(RoundRobin(3), 1, never)
		f.room = 100
		r := fireTest(t, Plan{
			Schedule: Constant(50_000_000), MaxInFlight: 3, Drain: time.Second, Measurement: Limits{Time: time.Minute},
		}, f)
		m := &r.Measurement
		assert.True(t, m.Unsent+m.Unknown == 3_000_000_000 && m.Censored.Count() == 3_000_000_000,
			"unsent %d, unknown %d, censored %d; want 3 billion", m.Unsent, m.Unknown, m.Censored.Count())
		// Their ages lie evenly between one second and 61.
		got, want := r.Measurement.Censored.Percentile(50), 31*time.Second
		assert.True(t, (got-want).Abs() <= want/500, "half of them are %v old or younger, want %v", got, want)
	})
}

// TestNoLaneForEver: a run ends as planned even if a stream never gets a lane.
func TestNoLaneForEver(t *testing.T) {
	for _, tt := range []struct {
		name string
		plan Plan
		want uint64 // unsent
	}{
		{"scheduled", Plan{Schedule: Constant(100), Measurement: Limits{Time: time.Second}, Drain: time.Second}, 100},
		{"dropping", Plan{Schedule: Constant(100), Overload: Drop, Measurement: Limits{Time: time.Second}, Drain: time.Second}, 0},
		{"counted", Plan{Schedule: Constant(100), Measurement: Limits{Events: 100}, Drain: time.Second}, 100},
		{"full speed", Plan{Measurement: Limits{Time: time.Second}}, 0},
		{"concurrency", Plan{Concurrency: 3, Measurement: Limits{Time: time.Second}}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(Single(), 2, constantly(time.Millisecond))
				w := &movingLane{fake: f, noneFrom: 0, noneUntil: time.Hour}
				tt.plan.Portable, tt.plan.BatchEvents = true, 1
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				r := assert.Value(Fire(ctx, tt.plan, w))(t)
				assert.True(t, r.Measurement.Unsent == tt.want && r.Measurement.Sent == 0,
					"unsent %d, sent %d, want %d, 0", r.Measurement.Unsent, r.Measurement.Sent, tt.want)
				assert.True(t, tt.name == "counted" || r.Stopped != Interrupted, "only the interruption ended the run")
			})
		})
	}
}

// A run with a gate ends when the gate is empty and closed, with or without a schedule.
func TestGateOfASchedule(t *testing.T) {
	for _, tt := range []struct {
		name string
		plan Plan
	}{
		{"schedule", Plan{Schedule: Constant(1000)}},
		{"schedule and time", Plan{Schedule: Constant(1000), Measurement: Limits{Time: time.Minute}}},
		{"full speed and time", Plan{Measurement: Limits{Time: time.Minute}}},
		{"warm-up by events", Plan{WarmupEvents: 30}},
		{"dropping", Plan{Schedule: Constant(1000), Overload: Drop}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewGate()
				tt.plan.Gate, tt.plan.Portable, tt.plan.BatchEvents, tt.plan.MaxInFlight = g, true, 7, 50
				r := assert.Value(New(tt.plan, newFake(RoundRobin(3), 1, constantly(time.Millisecond))))(t)
				r.Start()
				for range 10 {
					time.Sleep(10 * time.Millisecond)
					g.Add(10)
				}
				time.Sleep(100*time.Millisecond - time.Microsecond)
				g.Close()
				time.AfterFunc(2*time.Minute, func() { r.Stop(Interrupted) })
				res := assert.Value(r.Wait())(t)
				assert.Equal(t, res.Warmup.Acked+res.Measurement.Acked, 100, "acked")
				assert.Equal(t, res.Stopped, ByFeed, "stopped by")
				got := res.Measurement.End
				assert.True(t, got <= 210*time.Millisecond, "the measurement ended after %v", got)
				assert.True(t, res.Measurement.Dropped == 0,
					"%d dropped, but waiting for the gate is not overload", res.Measurement.Dropped)
			})
		})
	}
}
