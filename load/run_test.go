package load

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"carronade/measure"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// constantly answers every batch after d.
func constantly(d time.Duration) func(int, Batch, time.Duration) (time.Duration, Outcome) {
	return func(_ int, _ Batch, at time.Duration) (time.Duration, Outcome) { return at + d, Outcome{} }
}

// fireTest runs a plan in virtual time.
func fireTest(t *testing.T, p Plan, f *fake) *Result {
	t.Helper()
	p.Portable = true
	res := assert.Value(Fire(t.Context(), p, f))(t)
	return res
}

// TestConservation runs random plans against targets that answer, fail, forget and never answer at random.
// The engine itself checks the identities and the sums of the series; the histograms are counted here.
func TestConservation(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		streams := rapid.IntRange(1, 7).Draw(rt, "streams")
		clients := rapid.IntRange(1, streams).Draw(rt, "clients")
		p := Plan{
			MaxInFlight: rapid.IntRange(1, 6).Draw(rt, "bound"),
			BatchEvents: rapid.SampledFrom([]int{0, 1, 3}).Draw(rt, "events per batch"),
			Overload:    rapid.SampledFrom([]Overload{Queue, Drop}).Draw(rt, "overload"),
			Retry:       rapid.IntRange(0, 2).Draw(rt, "retry"), Threads: rapid.IntRange(1, 4).Draw(rt, "threads"),
			Interval: rapid.SampledFrom([]time.Duration{100 * time.Millisecond, time.Second}).Draw(rt, "interval"),
			Drain:    300 * time.Millisecond,
			Linger:   rapid.SampledFrom([]time.Duration{0, 5 * time.Millisecond}).Draw(rt, "linger"),
		}
		switch rapid.SampledFrom([]string{"open", "closed", "full"}).Draw(rt, "mode") {
		case "open":
			p.Schedule = Constant(rapid.Float64Range(1, 3000).Draw(rt, "rate"))
		case "closed":
			p.Concurrency = rapid.IntRange(1, 9).Draw(rt, "concurrency")
		}
		if rapid.Bool().Draw(rt, "warm") {
			p.WarmupTime = 250 * time.Millisecond
		}
		p.Measurement.Time = rapid.SampledFrom([]time.Duration{0, 700 * time.Millisecond}).Draw(rt, "time")
		if p.Measurement.Time == 0 || rapid.Bool().Draw(rt, "counted") {
			p.Measurement.Events = uint64(rapid.IntRange(1, 900).Draw(rt, "events"))
		}
		if rapid.Bool().Draw(rt, "wide") {
			p.MaxInFlight, p.Concurrency = p.MaxInFlight*20, p.Concurrency*20
		}
		groups := rapid.SampledFrom([]int{0, 2, 50}).Draw(rt, "batch groups")
		stopAt := rapid.SampledFrom([]time.Duration{0, 333 * time.Millisecond}).Draw(rt, "stop")

		var faults []string // rapid must not fail within the synctest bubble
		fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
		synctest.Test(t, func(t *testing.T) {
			f := newFake(RoundRobin(streams), clients, func(lane int, s Batch, at time.Duration) (time.Duration, Outcome) {
				rng := rand.New(rand.NewPCG(seed, s.Seq<<16|uint64(lane)<<8|uint64(s.Attempt)))
				done := at + time.Duration(rng.IntN(int(20*time.Millisecond))) + 50*time.Microsecond
				switch rng.IntN(10) {
				case 0:
					return done, Outcome{Failed: s.Events, Class: Rejected, Text: "no"}
				case 1:
					return done, Outcome{Unknown: s.Events, Class: Timeout, Text: "who knows"}
				case 2:
					if rng.IntN(10) == 0 {
						return Never, Outcome{}
					}
				case 3:
					return done, Outcome{Acked: s.Events - 1, Failed: 1, Class: TooLarge, Text: "one of them"}
				}
				return done, Outcome{}
			})
			f.room, f.groups = 64, groups
			p.Portable = true
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if stopAt > 0 {
				time.AfterFunc(stopAt, cancel)
			}
			// A batch that is never answered occupies a slot forever; if nothing else ends the run, this timer does.
			limit := time.AfterFunc(20*time.Second, cancel)
			defer limit.Stop()
			res, err := Fire(ctx, p, f)
			if err != nil {
				fault("%v", err)
			}
			for _, h := range []*measure.Tally{&res.Warmup, &res.Measurement} {
				// A lower value exists where the time does: nil is not empty.
				if h.Response == nil && h.Lower.Response != nil || h.Service == nil && h.Lower.Service != nil || h.EndToEnd == nil && h.Lower.EndToEnd != nil {
					fault("%s: lower values %+v of times %+v", h.Name, h.Lower, h.Set)
				}
				if p.Schedule != nil && h.Response != nil && h.Response.Count() != h.Acked {
					fault("%s: %d response times, %d acked", h.Name, h.Response.Count(), h.Acked)
				}
				var answered uint64
				if h.Service != nil {
					answered += h.Service.Count()
				}
				if h.FailedService != nil {
					answered += h.FailedService.Count()
				}
				if answered != h.Answered {
					fault("%s: %d service times, %d answered", h.Name, answered, h.Answered)
				}
				if p.Schedule != nil && h.Unknown+h.Unsent > 0 && h.Censored.Count() != h.Unknown+h.Unsent {
					fault("%s: %d censored, %d unknown + %d unsent", h.Name, h.Censored.Count(), h.Unknown, h.Unsent)
				}
			}
			if p.Measurement.Events > 0 && res.Measurement.Offered > p.Measurement.Events {
				fault("offered %d of %d", res.Measurement.Offered, p.Measurement.Events)
			}
		})
		for _, f := range faults {
			rt.Error(f)
		}
	})
}

// TestThreadsDoNotMatter: with a target whose answer time is constant, any number of
// clients gives the same counts and the same histograms.
func TestThreadsDoNotMatter(t *testing.T) {
	testkit.Need(t, "some seconds")
	run := func(clients, streams int) (out *Result) {
		synctest.Test(t, func(t *testing.T) {
			out = fireTest(t, Plan{
				Schedule: Constant(4000), BatchEvents: 1, MaxInFlight: 1000, Threads: clients,
				Measurement: Limits{Time: 2 * time.Second},
			}, newFake(RoundRobin(streams), clients, constantly(3*time.Millisecond)))
		})
		return out
	}
	want := run(1, 8)
	for _, clients := range []int{2, 8} {
		got := run(clients, 8)
		assert.Same(t, got.Measurement.Counts, want.Measurement.Counts, "%d clients: counts (-1 client, +%d)", clients, clients)
		assert.True(t, got.Measurement.Response.Equal(want.Measurement.Response), "%d clients: response times differ", clients)
		assert.True(t, got.Measurement.Service.Equal(want.Measurement.Service), "%d clients: service times differ", clients)
	}
}

// TestBatchSizeDoesNotMatter: any batch size fires the same events.
func TestBatchSizeDoesNotMatter(t *testing.T) {
	for _, room := range []int{1, 7, 1000} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake(RoundRobin(3), 1, constantly(time.Millisecond))
			f.room = room
			res := fireTest(t, Plan{Schedule: Constant(10_000), MaxInFlight: 10_000, Linger: 5 * time.Millisecond, Measurement: Limits{Time: time.Second}}, f)
			assert.True(t, res.Measurement.Offered == 10_000 && res.Measurement.Acked == 10_000,
				"room %d: offered %d, acked %d, want 10000", room, res.Measurement.Offered, res.Measurement.Acked)
			got := res.Measurement.Batching.Max()
			assert.True(t, got <= 5*time.Millisecond, "room %d: batching took %v, longer than the linger", room, got)
			assert.True(t, room != 1 || res.Measurement.Batching.Max() == 0,
				"batches of one event took %v of batching", res.Measurement.Batching.Max())
		})
	}
}

func TestLimits(t *testing.T) {
	failing := func(_ int, s Batch, at time.Duration) (time.Duration, Outcome) {
		return at + time.Millisecond, Outcome{Failed: s.Events, Class: Rejected, Text: "no"}
	}
	for _, tt := range []struct {
		name   string
		plan   Plan
		answer func(int, Batch, time.Duration) (time.Duration, Outcome)
		why    Reason
		check  func(t *testing.T, r *Result)
	}{
		{"time", Plan{Measurement: Limits{Time: time.Second}}, nil, ByTime, func(t *testing.T, r *Result) {
			assert.Equal(t, r.Measurement.Length(), time.Second, "length of the measurement")
		}},
		{"events", Plan{Measurement: Limits{Events: 1234}}, nil, ByEvents, func(t *testing.T, r *Result) {
			assert.Equal(t, r.Measurement.Sent, 1234, "sent")
		}},
		{"events of a schedule", Plan{Schedule: Constant(100), Measurement: Limits{Events: 50}}, nil, ByEvents, func(t *testing.T, r *Result) {
			assert.True(t, r.Measurement.Sent == 50 && r.Measurement.Length() >= 490*time.Millisecond,
				"sent %d in %v", r.Measurement.Sent, r.Measurement.Length())
		}},
		{"bytes", Plan{Measurement: Limits{Bytes: 1000}}, nil, ByBytes, func(t *testing.T, r *Result) {
			assert.True(t, r.Measurement.Bytes >= 1000 && r.Measurement.Bytes <= 1060, "%d bytes", r.Measurement.Bytes)
		}},
		{"failures", Plan{Measurement: Limits{Failures: 10}}, failing, ByFailures, func(t *testing.T, r *Result) {
			f := r.Measurement.Counts.Failed
			assert.True(t, f >= 11 && f <= 20, "%d failed", f)
		}},
		{"failure rate", Plan{Measurement: Limits{FailureRate: 0.5}}, failing, ByFailureRate, func(t *testing.T, r *Result) {
			f := r.Measurement.Counts.Failed
			assert.True(t, f >= 100 && f <= 110, "%d failed", f)
		}},
		{"warm-up by events", Plan{WarmupEvents: 100, Measurement: Limits{Events: 50}}, nil, ByEvents, func(t *testing.T, r *Result) {
			assert.True(t, r.Warmup.Sent == 100 && r.Measurement.Sent == 50, "sent %d + %d", r.Warmup.Sent, r.Measurement.Sent)
		}},
		{"warm-up by time", Plan{Schedule: Constant(100), WarmupTime: time.Second, Measurement: Limits{Time: 2 * time.Second}}, nil, ByTime, func(t *testing.T, r *Result) {
			assert.True(t, r.Warmup.Sent == 100 && r.Measurement.Sent == 200, "sent %d + %d", r.Warmup.Sent, r.Measurement.Sent)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tt.plan.BatchEvents = 1
				if tt.answer == nil {
					tt.answer = constantly(time.Millisecond)
				}
				r := fireTest(t, tt.plan, newFake(Single(), 1, tt.answer))
				assert.Equal(t, r.Stopped, tt.why, "stopped by")
				tt.check(t, r)
			})
		})
	}
}

func TestClosedLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := fireTest(t, Plan{Concurrency: 4, BatchEvents: 1, Measurement: Limits{Time: time.Second}}, newFake(RoundRobin(3), 1, constantly(10*time.Millisecond)))
		assert.True(t, r.Measurement.Sent == 400 && r.Mode == ClosedLoop,
			"%s: concurrency 4 of 10 ms each sent %d in a second, want 400", r.Mode, r.Measurement.Sent)
		assert.True(t, r.Measurement.Response == nil && r.Measurement.SendDelay == nil, "a closed loop has response times or send delay")
		got := r.Measurement.InFlight
		assert.True(t, got >= 3.95 && got <= 4.05, "%.2f in flight, want 4", got)
	})
}

// The in-flight limit of a connection does not limit a closed loop.
func TestConcurrencyIsTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := fireTest(t, Plan{Concurrency: 12, MaxInFlight: 5, BatchEvents: 1, Measurement: Limits{Time: time.Second}}, newFake(Single(), 1, constantly(10*time.Millisecond)))
		assert.Equal(t, r.Measurement.InFlightPeak, 12, "at most in flight on one connection")
	})
}

func TestStepsAreReportedApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := assert.Value(ParseShape("steps(100/s:1s,200/s:1s,400/s:1s)"))(t)
		r := fireTest(t, Plan{Schedule: s, Steps: s.(Stepped).Steps(), BatchEvents: 1}, newFake(Single(), 1, constantly(time.Millisecond)))
		var got []uint64
		for _, st := range r.Steps {
			got = append(got, st.Acked)
		}
		assert.Same(t, got, []uint64{100, 200, 400}, "acked by step")
		assert.Equal(t, r.Measurement.Acked, 700, "events acked in the measurement")
	})
}

// TestRetry: a batch that failed is fired again, and stays one batch.
func TestRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(Single(), 1, func(_ int, s Batch, at time.Duration) (time.Duration, Outcome) {
			if s.Attempt < 2 {
				return at + time.Millisecond, Outcome{Failed: s.Events, Class: Throttled, Text: "later"}
			}
			return at + time.Millisecond, Outcome{}
		})
		r := fireTest(t, Plan{Schedule: Constant(100), BatchEvents: 1, Retry: 2, Measurement: Limits{Time: time.Second}}, f)
		assert.True(t, r.Measurement.Acked == 100 && r.Measurement.Batches == 100 && r.Measurement.Retries == 200,
			"acked %d in %d batches with %d retries, want 100, 100, 200",
			r.Measurement.Acked, r.Measurement.Batches, r.Measurement.Retries)
		assert.Equal(t, r.Measurement.Service.Min(), 3*time.Millisecond, "service time")
	})
}

// TestStopAndAbort: a stop waits for answers, an abort does not.
func TestStopAndAbort(t *testing.T) {
	for _, abort := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r, err := New(Plan{Schedule: Constant(100), BatchEvents: 1, MaxInFlight: 1000, Portable: true}, newFake(Single(), 1, constantly(500*time.Millisecond)))
			assert.OK(t, err)
			r.Start()
			time.Sleep(time.Second - time.Microsecond)
			r.Stop(Interrupted)
			if abort {
				r.Abort()
			}
			res := assert.Value(r.Wait())(t)
			want := measure.Counts{Offered: 100, Sent: 100, Acked: 100}
			if abort {
				want.Acked, want.Unknown = 50, 50
			}
			got := measure.Counts{Offered: res.Measurement.Offered, Sent: res.Measurement.Sent, Acked: res.Measurement.Acked, Unknown: res.Measurement.Unknown}
			assert.Same(t, got, want, "abort %v", abort)
			assert.Equal(t, res.Stopped, Interrupted, "stopped by")
		})
	}
}

// TestInterruptedDrain: an interruption while answers are waited for ends the wait; the
// measurement keeps its length, and the result says that the run was interrupted.
func TestInterruptedDrain(t *testing.T) {
	for _, tt := range []struct {
		name        string
		limit       Limits
		measurement time.Duration
	}{{"after a time", Limits{Time: time.Second}, time.Second}, {"after a schedule", Limits{}, time.Second}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := assert.Value(New(Plan{
					Schedule: Until(Constant(100), time.Second), BatchEvents: 1, MaxInFlight: 1000, Portable: true,
					Measurement: tt.limit, Drain: time.Minute,
				}, newFake(Single(), 1, constantly(time.Hour))))(t)
				r.Start()
				time.Sleep(3 * time.Second)
				r.Stop(Interrupted)
				res := assert.Value(r.Wait())(t)
				assert.True(t, res.Measurement.Unknown == 100 && res.Measurement.Length() == tt.measurement && res.Stopped == Interrupted,
					"%d unknown, a measurement of %v, stopped by %q; want 100, %v, %q", res.Measurement.Unknown, res.Measurement.Length(), res.Stopped, tt.measurement, Interrupted)
				got := res.Drain.Length()
				assert.True(t, got <= 2100*time.Millisecond, "the drain took %v, want the 2 s until the interruption", got)
			})
		})
	}
}

// Events that were due and never sent count in the response times with their age.
func TestUnsentIsCensored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		never := func(int, Batch, time.Duration) (time.Duration, Outcome) { return Never, Outcome{} }
		r := fireTest(t, Plan{
			Schedule: Constant(10), BatchEvents: 1, MaxInFlight: 3, Drain: time.Second, Measurement: Limits{Time: time.Second},
		}, newFake(Single(), 1, never))
		assert.True(t, r.Measurement.Unknown == 3 && r.Measurement.Unsent == 7,
			"unknown %d, unsent %d, want 3 and 7", r.Measurement.Unknown, r.Measurement.Unsent)
		assert.Equal(t, r.Measurement.Censored.Max(), 2*time.Second, "the oldest")
	})
}

// TestIdentitiesCanFail: the check that every run makes can fail.
func TestIdentitiesCanFail(t *testing.T) {
	good := measure.Tally{Counts: measure.Counts{Offered: 3, Sent: 2, Dropped: 1, Acked: 2}}
	assert.OK(t, identities(&good))
	for _, bad := range []measure.Counts{{Offered: 1}, {Offered: 1, Sent: 1}, {Sent: 1, Acked: 1}} {
		assert.True(t, identities(&measure.Tally{Counts: bad}) != nil, "%+v passes", bad)
	}
	errs := errors.Join(identities(&good))
	assert.True(t, errs == nil, "%v", errs)
}

// TestBrokenLimits: too many failures, as a number or as a share of what was answered, end a run.
func TestBrokenLimits(t *testing.T) {
	for _, tt := range []struct {
		limits           Limits
		failed, answered uint64
		want             Reason
	}{
		{Limits{}, 1000, 1000, ""},
		{Limits{Failures: 3}, 3, 9, ""},
		{Limits{Failures: 3}, 4, 9, ByFailures},
		{Limits{FailureRate: 0.1}, 50, 99, ""},
		{Limits{FailureRate: 0.1}, 10, 100, ""},
		{Limits{FailureRate: 0.1}, 11, 100, ByFailureRate},
		{Limits{Failures: 3, FailureRate: 0.1}, 11, 100, ByFailures},
	} {
		assert.Equal(t, tt.limits.Broken(tt.failed, tt.answered), tt.want, "%+v, %d of %d", tt.limits, tt.failed, tt.answered)
	}
}
