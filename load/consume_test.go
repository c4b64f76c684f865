package load

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"carronade/test/testkit/assert"
)

// tickSource is a source in virtual time: it delivers a piece of ten events every tick.
type tickSource struct {
	tick      time.Duration
	until     time.Duration // nothing arrives afterwards; 0: no end
	err       error         // returned at once
	stopDelay time.Duration // how long it continues after its context has ended
	closed    chan struct{}
}

func (*tickSource) Logs() []string                   { return []string{"log"} }
func (*tickSource) Lanes() int                       { return 1 }
func (*tickSource) Lag() []int64                     { return []int64{-1} }
func (*tickSource) Rebalancing() time.Duration       { return 7 * time.Millisecond }
func (*tickSource) Wire() (written, read uint64)     { return 0, 0 }
func (*tickSource) Capabilities() SourceCapabilities { return SourceCapabilities{} }

func (s *tickSource) Receive(ctx context.Context, now func() time.Duration, sink func(int, []Arrival)) error {
	if s.closed != nil {
		defer close(s.closed)
	}
	if s.err != nil {
		return s.err
	}
	tick := time.NewTicker(s.tick)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			time.Sleep(s.stopDelay)
			return ctx.Err()
		case <-tick.C:
			if at := now(); s.until == 0 || at < s.until {
				sink(0, []Arrival{{Events: 10, Bytes: 100, At: at}})
			}
		}
	}
}

// TestIdleExplained: silence that is explained does not end a reading, and belongs to it if it ends later.
func TestIdleExplained(t *testing.T) {
	const second = time.Second
	for _, tt := range []struct {
		name   string
		until  func(now time.Duration) time.Duration // silence is explained
		length time.Duration
	}{
		{"by nothing", func(time.Duration) time.Duration { return 0 }, 499 * time.Millisecond},
		{"before the newest events", func(time.Duration) time.Duration { return 400 * time.Millisecond }, 499 * time.Millisecond},
		{"after them", func(time.Duration) time.Duration { return 600 * time.Millisecond }, 1600 * time.Millisecond},
		{"for a while", func(now time.Duration) time.Duration { return min(now, 10*second) }, 11 * second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				src := &tickSource{tick: time.Millisecond, until: 500 * time.Millisecond}
				began := time.Now()
				plan := ReadPlan{Idle: second, Portable: true, Explained: func() time.Duration { return tt.until(time.Since(began)) }}
				r := assert.Value(Consume(t.Context(), plan, src))(t)
				if got := r.Measurement.Length(); r.Stopped != ByIdle || got < tt.length || got > tt.length+100*time.Millisecond {
					t.Errorf("ended by %s after %v, want idle after %v", r.Stopped, got, tt.length)
				}
			})
		})
	}
}

func TestConsumeLimits(t *testing.T) {
	for _, tt := range []struct {
		name            string
		plan            ReadPlan
		src             tickSource
		why             Reason
		consumed        uint64
		length, longest time.Duration
	}{
		{"a time between two ticks", ReadPlan{Measurement: Limits{Time: 1010 * time.Millisecond}}, tickSource{}, ByTime, 10_090, 1010 * time.Millisecond, time.Millisecond},
		{"warm-up and time", ReadPlan{Warmup: 505 * time.Millisecond, Measurement: Limits{Time: 510 * time.Millisecond}}, tickSource{}, ByTime, 5100, 510 * time.Millisecond, time.Millisecond},
		{"events", ReadPlan{Measurement: Limits{Events: 1005}}, tickSource{}, ByEvents, 1005, 101 * time.Millisecond, time.Millisecond},
		{"bytes", ReadPlan{Measurement: Limits{Bytes: 1000}}, tickSource{}, ByBytes, 100, 10 * time.Millisecond, time.Millisecond},
		{"idle", ReadPlan{Idle: time.Second}, tickSource{until: 500 * time.Millisecond}, ByIdle, 4990, 499 * time.Millisecond, time.Millisecond},
		{"nothing arrives any more", ReadPlan{Measurement: Limits{Time: 5 * time.Second}}, tickSource{until: time.Second}, ByTime, 9990, 5 * time.Second, 4001 * time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tt.src.tick, tt.plan.Portable = time.Millisecond, true
				tt.plan.Watch = func(s Snapshot) {
					assert.Equal(t, s.Rebalance, 7*time.Millisecond, "a snapshot without an assignment")
				}
				r := assert.Value(Consume(t.Context(), tt.plan, &tt.src))(t)
				assert.True(t, r.Stopped == tt.why && r.Measurement.Consumed == tt.consumed && r.Measurement.Length() == tt.length,
					"stopped by %q, %d events in %v; want %q, %d, %v", r.Stopped, r.Measurement.Consumed, r.Measurement.Length(), tt.why, tt.consumed, tt.length)
				assert.Equal(t, r.Stall.Longest, tt.longest, "longest time without an arrival")
				var rows uint64
				for _, iv := range r.Intervals {
					if iv.Phase == "measurement" {
						rows += iv.Consumed
					}
				}
				assert.Equal(t, rows, tt.consumed, "sum of the intervals")
			})
		})
	}
}

// twoLaneSource is a source in virtual time with two lanes that deliver at the same moments.
type twoLaneSource struct {
	tickSource
	at []time.Duration
}

func (*twoLaneSource) Lanes() int { return 2 }
func (b *twoLaneSource) Receive(ctx context.Context, now func() time.Duration, sink func(int, []Arrival)) error {
	var ready atomic.Int64
	var all sync.WaitGroup
	for lane := range 2 {
		all.Go(func() {
			for i, at := range b.at {
				time.Sleep(at - now())
				ready.Add(1)
				for spin := 1; ready.Load() < int64(2*i+2); spin++ { // deliver as close together as possible
					if spin%10000 == 0 {
						runtime.Gosched()
					}
				}
				sink(lane, []Arrival{{Events: 1, Bytes: 1, At: at}})
			}
		})
	}
	all.Wait()
	<-ctx.Done()
	return ctx.Err()
}

// TestGaps: a gap of all lanes counts once, and of a gap that began before the
// measurement or ends after it, only the part within counts.
func TestGaps(t *testing.T) {
	const ms = time.Millisecond
	var often []time.Duration // silent for 150 of every 200 ms
	for i := range 5000 {
		often = append(often, time.Duration(i)*200*ms+ms, time.Duration(i)*200*ms+51*ms)
	}
	for _, tt := range []struct {
		name          string
		plan          ReadPlan
		at            []time.Duration
		longest, from time.Duration
		share         float64
		consumed      uint64
	}{
		{"two lanes", ReadPlan{Measurement: Limits{Time: 1000 * time.Second}}, often, 150 * ms, 51 * ms, 0.75, 20000},
		{"over the start", ReadPlan{Warmup: time.Second, Measurement: Limits{Time: time.Second}}, []time.Duration{900 * ms, 1500 * ms, 1990 * ms}, 500 * ms, time.Second, 0.99, 4},
		{"up to the start", ReadPlan{Warmup: time.Second, Measurement: Limits{Time: 100 * ms}}, []time.Duration{500 * ms, 1000 * ms, 1050 * ms}, 50 * ms, 1000 * ms, 0, 4},
		{"over both ends", ReadPlan{Warmup: time.Second, Measurement: Limits{Time: time.Second}}, []time.Duration{900 * ms}, time.Second, time.Second, 1, 0},
		{"nothing ever", ReadPlan{Measurement: Limits{Time: time.Second}}, nil, 0, 0, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tt.plan.Portable = true
				r := assert.Value(Consume(t.Context(), tt.plan, &twoLaneSource{at: tt.at}))(t)
				assert.Equal(t, r.Measurement.Consumed, tt.consumed, "consumed")
				assert.True(t, r.Stall.Longest == tt.longest && r.Stall.LongestAt == tt.from,
					"longest time without an arrival %v at %v, want %v at %v", r.Stall.Longest, r.Stall.LongestAt, tt.longest, tt.from)
				checkStalls(t, r)
				assert.True(t, math.Abs(r.Stall.Share-tt.share) <= 1e-5,
					"%v of the measurement without an arrival, want %v", r.Stall.Share, tt.share)
			})
		})
	}
}

// TestSourceFails: an error of the source ends the reading, which is still reported.
func TestSourceFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		want := errors.New("no such log")
		r, err := Consume(t.Context(), ReadPlan{Measurement: Limits{Time: time.Minute}, Portable: true}, &tickSource{err: want})
		assert.True(t, errors.Is(err, want) && r != nil && r.Stopped == ByTarget, "got %v and %+v", err, r)
	})
}

// TestSourceThatDoesNotStop: a source that does not stop on request does not prevent
// the reading from ending, and an abort does not wait for it.
func TestSourceThatDoesNotStop(t *testing.T) {
	for _, tt := range []struct {
		name       string
		abort      bool
		deaf, took time.Duration
		fails      bool
	}{
		{"in time", false, time.Second, 2 * time.Second, false},
		{"too late", false, time.Hour, 11 * time.Second, true},
		{"aborted", true, time.Hour, time.Second, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &tickSource{tick: time.Millisecond, stopDelay: tt.deaf, closed: make(chan struct{})}
				began := time.Now()
				r := NewReading(ReadPlan{Portable: true}, s)
				r.Start()
				time.Sleep(time.Second)
				if tt.abort {
					r.Abort()
				} else {
					r.Stop(Interrupted)
				}
				res, err := r.Wait()
				assert.Equal(t, time.Since(began), tt.took, "time until it ended")
				assert.Equal(t, (err != nil), tt.fails, "error %v", err)
				assert.True(t, res.Stopped == Interrupted && res.Measurement.Length() == time.Second,
					"stopped by %q after %v", res.Stopped, res.Measurement.Length())
				assert.True(t, res.Whole != tt.abort, "whole: got %v of a reading without a limit", res.Whole)
				<-s.closed
			})
		})
	}
}

// An interruption completes a reading without another end, and cuts short one that has another end.
func TestWholeReading(t *testing.T) {
	for _, tt := range []struct {
		name string
		plan ReadPlan
		want bool
	}{
		{"no limit", ReadPlan{}, true},
		{"no limit, and a warm-up", ReadPlan{Warmup: time.Second / 2}, true},
		{"in the warm-up", ReadPlan{Warmup: time.Minute}, false},
		{"a time", ReadPlan{Measurement: Limits{Time: time.Minute}}, false},
		{"a number", ReadPlan{Measurement: Limits{Events: 1e9}}, false},
		{"bytes", ReadPlan{Measurement: Limits{Bytes: 1 << 40}}, false},
		{"until nothing comes", ReadPlan{Idle: time.Minute}, false},
		{"until the end of what there is", ReadPlan{Ends: true}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tt.plan.Portable = true
				r := NewReading(tt.plan, &tickSource{tick: time.Millisecond, closed: make(chan struct{})})
				r.Start()
				time.Sleep(time.Second)
				r.Stop(Interrupted)
				res := assert.Value(r.Wait())(t)
				assert.True(t, res.Whole == tt.want && res.Stopped == Interrupted, "whole: got %v, stopped by %q", res.Whole, res.Stopped)
			})
		})
	}
}

// A run or a reading that is stopped before it starts does nothing, and ends with a result.
func TestStoppedBeforeStart(t *testing.T) {
	for _, tt := range []struct {
		name  string
		abort bool
	}{{"stop", false}, {"abort", true}} {
		t.Run("reading, "+tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := NewReading(ReadPlan{Measurement: Limits{Time: time.Minute}, Portable: true}, &tickSource{tick: time.Millisecond})
				if tt.abort {
					r.Abort()
				} else {
					r.Stop(Interrupted)
				}
				r.Start()
				res := assert.Value(r.Wait())(t)
				assert.True(t, res.Stopped == Interrupted && res.Measurement.Consumed == 0 && res.Measurement.Length() == 0,
					"stopped by %q, %d events in %v", res.Stopped, res.Measurement.Consumed, res.Measurement.Length())
			})
		})
		t.Run("run, "+tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, err := New(Plan{Schedule: Constant(1000), Measurement: Limits{Time: time.Minute}, Portable: true}, newFake(RoundRobin(1), 1, constantly(time.Millisecond)))
				assert.OK(t, err)
				if tt.abort {
					r.Abort()
				} else {
					r.Stop(Interrupted)
				}
				r.Start()
				res := assert.Value(r.Wait())(t)
				assert.True(t, res.Stopped == Interrupted && res.Measurement.Offered == 0 && res.Measurement.Sent == 0,
					"stopped by %q, offered %d, sent %d", res.Stopped, res.Measurement.Offered, res.Measurement.Sent)
			})
		})
	}
}

// TestAnswersByWhenTheyCame: the rate of answers counts those that arrived within the
// measurement, whatever they say; those that arrive in the drain count for the drain.
func TestAnswersByWhenTheyCame(t *testing.T) {
	const service = 300 * time.Millisecond
	for _, tt := range []struct {
		name        string
		outcome     Outcome
		measurement uint64 // batches
	}{
		{"taken", Outcome{}, 12},
		{"refused", Outcome{Failed: 2, Class: Rejected, Text: "no"}, 12},
		{"an answer that decides nothing", Outcome{Unknown: 2, Class: Timeout, Text: "504", Status: 504}, 12},
		{"none", Outcome{Unknown: 2, Class: Timeout, Text: "late"}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				plan := Plan{Concurrency: 4, BatchEvents: 2, Measurement: Limits{Time: time.Second}, Drain: time.Minute}
				r := fireTest(t, plan, newFake(Single(), 1, func(_ int, _ Batch, at time.Duration) (time.Duration, Outcome) {
					return at + service, tt.outcome
				}))
				drained := min(tt.measurement, 4) // the fourth of each caller
				assert.True(t, r.Measurement.Batches == 16 && r.Measurement.Answers == tt.measurement && r.Drain.Answers == drained,
					"%d batches, answered %d in the measurement and %d in the drain; want 16, %d, %d",
					r.Measurement.Batches, r.Measurement.Answers, r.Drain.Answers, tt.measurement, drained)
				assert.Equal(t, r.Measurement.AnswersPerSecond(), float64(tt.measurement), "answers a second")
			})
		})
	}
}

// TestSendsByWhenTheyLeft: the rate of what was sent counts what left within the measurement. What waits for the
// in-flight limit is sent in the drain, and counts there.
func TestSendsByWhenTheyLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plan := Plan{Schedule: Constant(100), MaxInFlight: 1, BatchEvents: 1, Measurement: Limits{Time: time.Second}, Drain: time.Minute}
		r := fireTest(t, plan, newFake(Single(), 1, func(_ int, _ Batch, at time.Duration) (time.Duration, Outcome) {
			return at + 99*time.Millisecond, Outcome{}
		}))
		m := &r.Measurement
		events, _, _ := m.SentPerSecond()
		assert.True(t, m.Sent == 100 && m.Sends == 11 && events == 11 && r.Drain.Sends == 89,
			"%d sent, %d of them in the measurement (%v/s) and %d in the drain; want 100, 11 and 89", m.Sent, m.Sends, events, r.Drain.Sends)
	})
}

// TestLastInterval: the series lasts as long as the measurement, also if nothing is due at its end: the rate of the
// last interval is not that of the moments until its last event.
func TestLastInterval(t *testing.T) {
	for _, length := range []time.Duration{3 * time.Second, 3300 * time.Millisecond, 10 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			rate := 3 / length.Seconds()
			plan := Plan{Schedule: Constant(rate), BatchEvents: 1, Interval: time.Second, Measurement: Limits{Time: length}}
			r := fireTest(t, plan, newFake(Single(), 1, constantly(time.Millisecond)))
			within := time.Duration(0)
			for i := range r.Intervals {
				iv := &r.Intervals[i]
				within += iv.Within
				assert.True(t, iv.EventsPerSecond() <= 1/min(1, iv.Within.Seconds()), "interval %d of %v: %v events/s in %v", i, length, iv.EventsPerSecond(), iv.Within)
			}
			last := &r.Intervals[len(r.Intervals)-1]
			assert.True(t, r.Measurement.Length() == length && within == length && last.End == length, "%v: the series has %v, up to %v", length, within, last.End)
		})
	}
}

// TestUnknownIsNotRefused: what may have been written before its connection was lost was not refused, whatever the lane says.
func TestUnknownIsNotRefused(t *testing.T) {
	for _, tt := range []struct {
		outcome Outcome
		class   string
	}{
		{Outcome{Failed: 2, Class: Refused, Text: "no connection"}, "refused"},
		{Outcome{Unknown: 2, Class: Refused, Text: "connection lost"}, "disconnected"},
		{Outcome{Failed: 1, Unknown: 1, Class: Refused, Text: "connection lost"}, "disconnected"},
		{Outcome{Unknown: 2, Class: Timeout, Text: "late"}, "timeout"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var seen string
			plan := Plan{Concurrency: 1, BatchEvents: 2, Measurement: Limits{Events: 4}, Observe: func(all []Outcome) { seen = all[0].Class.String() }}
			r := fireTest(t, plan, newFake(Single(), 1, func(_ int, _ Batch, at time.Duration) (time.Duration, Outcome) {
				return at + time.Millisecond, tt.outcome
			}))
			assert.True(t, len(r.Classes) == 1 && r.Classes[tt.class] == 4 && seen == tt.class,
				"%+v: classes %v, and an observer saw %s; want 4 %s", tt.outcome, r.Classes, seen, tt.class)
		})
	}
}

// TestNeverSentIsNotAnswered: events that were never written failed without an answer.
func TestNeverSentIsNotAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(Single(), 1, constantly(5*time.Millisecond))
		u := &unwritten{f, &unwrittenLane{f.lanes[0], 1}}
		r := assert.Value(Fire(t.Context(), Plan{Schedule: Constant(10), BatchEvents: 1, Measurement: Limits{Time: time.Second}, Portable: true}, u))(t)
		assert.True(t, r.Measurement.Failed == 10 && r.Measurement.Answers == 0 && r.Drain.Answers == 0,
			"%d failed, %d and %d answers; want 10, none", r.Measurement.Failed, r.Measurement.Answers, r.Drain.Answers)
	})
}

// TestAccountPhases: whatever an account remembers, it counts in the phase that a moment lies in, also after the
// ends of phases have changed.
func TestAccountPhases(t *testing.T) {
	for seed := range uint64(200) {
		dice := rand.New(rand.NewPCG(seed, 1))
		plan := Plan{WarmupEvents: 10 * (seed % 2), WarmupTime: time.Duration(seed%3) * 10, Measurement: Limits{Time: 60}}
		if seed%5 == 0 {
			plan.WarmupEvents, plan.Schedule = 0, Constant(1e9)
			plan.Steps = []Step{{Start: 0, End: 20}, {Start: 20, End: 40}, {Start: 40, End: 60}}
		}
		r := assert.Value(New(plan, &instantTarget{}))(t)
		r.start = time.Now()
		a := newAccount(len(r.phases) + 1)
		for range 300 {
			at := time.Duration(dice.IntN(100))
			if dice.IntN(50) == 0 {
				r.claim(5, at)
			}
			if dice.IntN(200) == 0 {
				r.stopAt.CompareAndSwap(int64(Never), int64(at))
				r.edition.Add(1)
			}
			got := a.at(r, at)
			assert.Must(t, got == &a.phases[r.phaseAt(at)] && a.phase == r.phaseAt(at), "seed %d: at %d in phase %d, want %d", seed, at, a.phase, r.phaseAt(at))
		}
	}
}
