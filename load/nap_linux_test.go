package load

import (
	"math"
	"runtime"
	"runtime/metrics"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"carronade/test/testkit/assert"
)

// asyncTarget is a target of one lane that answers at once, from another goroutine, and counts how often it
// is written to. Its threads keep minSleep, as those with precise waits do, also in virtual time.
type asyncTarget struct {
	sink    Sink
	work    chan []Outcome
	out     []Outcome
	flushes int
	wg      sync.WaitGroup
}

func (f *asyncTarget) Partitioner() Partitioner         { return RoundRobin(1) }
func (f *asyncTarget) Client(int32) int                 { return 0 }
func (f *asyncTarget) Clients() int                     { return 1 }
func (f *asyncTarget) Route(int32) Lane                 { return asyncLane{f} }
func (f *asyncTarget) Wire() (uint64, uint64)           { return 0, 0 }
func (f *asyncTarget) ID() int                          { return 0 }
func (f *asyncTarget) Room(int32, uint64) int           { return 1 }
func (f *asyncTarget) Capabilities() TargetCapabilities { return TargetCapabilities{} }

// asyncLane is its lane.
type asyncLane struct{ *asyncTarget }

func (asyncLane) Capabilities() LaneCapabilities { return LaneCapabilities{} }

func (f *asyncTarget) Start(s Sink) {
	for _, t := range s.(*Run).threads {
		t.minSleep = minSleep
	}
	f.sink, f.work = s, make(chan []Outcome, 1<<16)
	f.wg.Go(func() {
		for out := range f.work {
			for i := range out {
				out[i].Done = s.Now()
			}
			s.Complete(out)
		}
	})
}

func (f *asyncTarget) Fire(batches []Batch) int {
	for i := range batches {
		f.out = append(f.out, Outcome{Batch: batches[i], Sent: f.sink.Now(), Acked: batches[i].Events, Place: -1})
	}
	return len(batches)
}

func (f *asyncTarget) Flush() {
	f.flushes++
	f.work <- f.out
	f.out = nil
}

func (f *asyncTarget) Close() error {
	close(f.work)
	f.wg.Wait()
	return nil
}

// Events closer together than minSleep are fired together, and those of a low rate separately.
func TestMinSleep(t *testing.T) {
	const length = 300 * time.Millisecond
	for _, tt := range []struct {
		name        string
		rate        float64
		least, most int // flushes
	}{{"close", 100_000, 1, int(length/minSleep) + 1}, {"far apart", 500, 150, 150}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &asyncTarget{}
				r := assert.Value(New(Plan{Schedule: Constant(tt.rate), BatchEvents: 1, MaxInFlight: 10_000, Measurement: Limits{Time: length}, Portable: true}, f))(t)
				r.Start()
				res := assert.Value(r.Wait())(t)
				want := uint64(tt.rate * length.Seconds())
				h := res.Measurement
				assert.True(t, h.Acked == want && h.Dropped+h.Unsent == 0, "%+v, want %d acked", h.Counts, want)
				assert.True(t, f.flushes >= tt.least && f.flushes <= tt.most,
					"%d writes for %d events, want %d to %d", f.flushes, want, tt.least, tt.most)
			})
		})
	}
}

// Answers end a wait for the bound at once, and otherwise wait for the end of a minSleep: with a minSleep in
// between, one batch in flight could reach at most 10,000 a second.
func TestAnswersEndAWaitForTheBound(t *testing.T) {
	for _, tt := range []struct {
		name                             string
		length                           time.Duration
		blocked, filled, sleeps, napping bool
	}{
		{"events closer than minSleep", minSleep / 2, false, false, true, true},
		{"with an answer", minSleep / 2, false, true, true, true},
		{"far apart", 10 * minSleep, false, false, true, false},
		{"far apart, with an answer", 10 * minSleep, false, true, false, false},
		{"full", minSleep / 2, true, false, true, false},
		{"full, with an answer", minSleep / 2, true, true, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			th := &thread{minSleep: minSleep, lanes: []*laneState{{}, {}}}
			if tt.blocked {
				th.block(th.lanes[1], 0)
			}
			th.inbox.filled.Store(tt.filled)
			assert.Equal(t, th.prepareSleep(tt.length, !th.wantsRoom()), tt.sleeps, "it sleeps")
			assert.Equal(t, th.shortSleep.Load(), tt.napping, "answers wait")
		})
	}
}

// BenchmarkCollectorPauses is how long the collector stops the world while threads wait as sending threads do, in system calls
// that keep their processor: it has to interrupt them by signals. An iteration is a collection, with garbage made at the same time.
func BenchmarkCollectorPauses(b *testing.B) {
	for _, length := range []time.Duration{0, time.Millisecond, 5 * time.Millisecond} {
		for _, threads := range []int{1, 4} {
			if length == 0 && threads > 1 {
				continue
			}
			name := "no waits"
			if length > 0 {
				name = strconv.Itoa(threads) + " threads in waits of " + length.String()
			}
			b.Run(name, func(b *testing.B) {
				var stop atomic.Bool
				var waiting sync.WaitGroup
				start := time.Now()
				if length > 0 {
					addProcs(threads)
					defer addProcs(-threads)
					for range threads {
						waiting.Go(func() {
							w := newPreciseWaiter(start)
							w.prepare()
							defer w.close()
							for !stop.Load() {
								w.wait(time.Since(start)+length, true, false)
							}
						})
					}
				}
				before := pauses()
				var kept [][]byte
				for b.Loop() {
					kept = kept[:0]
					for range 1000 {
						kept = append(kept, make([]byte, 4<<10))
					}
					runtime.GC()
				}
				after := pauses()
				stop.Store(true)
				waiting.Wait()
				var all uint64
				for i := range after.Counts {
					after.Counts[i] -= before.Counts[i]
					all += after.Counts[i]
				}
				quantile := func(q float64) float64 {
					seen := uint64(0)
					for i, n := range after.Counts {
						if seen += n; float64(seen) >= q*float64(all) && n > 0 {
							return after.Buckets[i] * 1e6
						}
					}
					return math.NaN()
				}
				b.ReportMetric(quantile(0.5), "p50-us")
				b.ReportMetric(quantile(0.99), "p99-us")
				b.ReportMetric(quantile(1), "max-us")
			})
		}
	}
}

// pauses are those of the collector so far.
func pauses() *metrics.Float64Histogram {
	s := []metrics.Sample{{Name: "/sched/pauses/total/gc:seconds"}}
	metrics.Read(s)
	return s[0].Value.Float64Histogram()
}
