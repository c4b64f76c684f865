package load

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"carronade/measure"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// A firedBatch is what is the same wherever a batch is fired.
type firedBatch struct {
	stream         int32
	first          uint64
	events         int32
	due, end, sent time.Duration
}

// portions divides clients among a number of generators at random; some may get none.
func portions(rng *rand.Rand, clients, generators int) []Portion {
	cuts := []int{0, clients}
	for range generators - 1 {
		cuts = append(cuts, rng.IntN(clients+1))
	}
	slices.Sort(cuts)
	var all []Portion
	for i := range generators {
		if cuts[i] < cuts[i+1] {
			all = append(all, Portion{From: cuts[i], To: cuts[i+1]})
		}
	}
	return all
}

// TestPortions: what several generators fire together is, event for event, what one fires
// that has all clients, for every shape; and their merged result equals its result.
func TestPortions(t *testing.T) {
	testkit.Need(t, "some seconds")
	shapes := []string{
		"constant(3k/s):2s", "steps(500/s:700ms,2k/s:700ms,1k/s:700ms)", "ramp(0/s,4k/s,2s)", "sine(1k/s,900/s,700ms):2s",
		"burst(200,300ms):2s", "poisson(2k/s):2s", "constant(100/s):1s+ramp(100/s,3k/s,1s)",
	}
	rapid.Check(t, func(rt *rapid.T) {
		shape := rapid.SampledFrom(shapes).Draw(rt, "shape")
		clients := rapid.IntRange(1, 64).Draw(rt, "clients")
		streams := clients * rapid.IntRange(1, 3).Draw(rt, "streams of each")
		generators := rapid.SampledFrom([]int{1, 2, 3, 5, 9, 64}).Draw(rt, "generators")
		seed := rapid.Uint64().Draw(rt, "seed")
		limit := rapid.SampledFrom([]uint64{0, 777}).Draw(rt, "events")
		warm := rapid.SampledFrom([]time.Duration{0, 333 * time.Millisecond}).Draw(rt, "warm-up")
		schedule := assert.Value(ParseShapeSeed(shape, seed))(t)
		partitioner := RoundRobin(streams)
		if rapid.Bool().Draw(rt, "by key") {
			rng := rand.New(rand.NewPCG(seed, 2))
			cycle := make([]int32, 500)
			for i := range cycle {
				cycle[i] = int32(rng.IntN(streams))
			}
			partitioner = Sequence(cycle, streams)
		}
		plan := Plan{
			Schedule: schedule, BatchEvents: 1, MaxInFlight: 1 << 20, Portable: true, Interval: 250 * time.Millisecond,
			WarmupTime: warm, Measurement: Limits{Events: limit}, Drain: time.Minute,
		}
		if st, ok := schedule.(Stepped); ok && warm == 0 {
			plan.Steps = st.Steps()
		}
		var faults []string
		synctest.Test(t, func(t *testing.T) {
			fire := func(p Portion, fired *[]firedBatch, mu *sync.Mutex) *Result {
				own := plan
				own.Portion = p
				own.Observe = func(out []Outcome) {
					mu.Lock()
					defer mu.Unlock()
					for _, o := range out {
						*fired = append(*fired, firedBatch{o.Stream, o.First, o.Events, o.DueFirst, o.DueLast, o.Sent})
					}
				}
				f := newFake(partitioner, clients, func(_ int, b Batch, at time.Duration) (time.Duration, Outcome) {
					return at + time.Duration(1+(b.First+uint64(b.Stream))%7)*time.Millisecond, Outcome{}
				})
				res, err := Fire(t.Context(), own, f)
				if err != nil {
					faults = append(faults, err.Error())
				}
				return res
			}
			var one, together []firedBatch
			var mu sync.Mutex
			whole := fire(Portion{}, &one, &mu)
			parts := portions(rand.New(rand.NewPCG(seed, 1)), clients, generators)
			results := make([]*Result, len(parts))
			names := make([]string, len(parts))
			var all sync.WaitGroup
			for i, p := range parts {
				names[i] = fmt.Sprint(i)
				all.Go(func() { results[i] = fire(p, &together, &mu) })
			}
			all.Wait()
			sortFired(one)
			sortFired(together)
			if !slices.Equal(one, together) {
				faults = append(faults, fmt.Sprintf("%d generators fired %d batches, one fires %d: not the same", len(parts), len(together), len(one)))
			}
			faults = append(faults, differences(whole, Merge(names, results))...)
		})
		if len(faults) > 0 {
			rt.Fatal(faults)
		}
	})
}

func sortFired(b []firedBatch) {
	slices.SortFunc(b, func(a, b firedBatch) int {
		return cmp.Or(cmp.Compare(a.stream, b.stream), cmp.Compare(a.first, b.first))
	})
}

// differences lists what differs between the result of one generator and a merged one.
func differences(one, merged *Result) (faults []string) {
	a, b := &one.Measurement, &merged.Measurement
	if a.Counts != b.Counts || one.Warmup.Counts != merged.Warmup.Counts || a.Start != b.Start || a.Arrived != b.Arrived {
		faults = append(faults, fmt.Sprintf("merged %+v from %v, one %+v from %v", b.Counts, b.Start, a.Counts, a.Start))
	}
	if !a.Response.Equal(b.Response) || !a.Service.Equal(b.Service) || !a.Lower.Response.Equal(b.Lower.Response) || !a.SendDelay.Equal(b.SendDelay) {
		faults = append(faults, "the histograms differ")
	}
	if len(one.Steps) != len(merged.Steps) {
		faults = append(faults, fmt.Sprintf("%d steps, one generator has %d", len(merged.Steps), len(one.Steps)))
	}
	for i := range min(len(one.Steps), len(merged.Steps)) {
		if one.Steps[i].Counts != merged.Steps[i].Counts || !one.Steps[i].Response.Equal(merged.Steps[i].Response) {
			faults = append(faults, "step "+one.Steps[i].Name+" differs")
		}
	}
	counts := func(r *Result) (all []string) {
		for _, iv := range mergeIntervals([][]measure.Interval{r.Intervals}) { // one with two steps has two rows
			all = append(all, fmt.Sprintf("%s %v: %+v %d", iv.Phase, iv.Start, iv.Counts, iv.Response.Count()))
		}
		return all
	}
	if x, y := counts(one), counts(merged); !slices.Equal(x, y) {
		faults = append(faults, fmt.Sprintf("intervals\n%v\nof one generator\n%v", y, x))
	}
	return faults
}

// Nothing is sent once the lease is over, not even what was due before, and the identities hold.
func TestLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lease atomic.Int64
		lease.Store(int64(time.Second))
		var mu sync.Mutex
		var last time.Duration
		f := newFake(RoundRobin(2), 2, func(_ int, _ Batch, at time.Duration) (time.Duration, Outcome) {
			mu.Lock()
			defer mu.Unlock()
			last = max(last, at)
			return at + time.Millisecond, Outcome{}
		})
		r := assert.Value(New(Plan{Schedule: Constant(1000), Measurement: Limits{Time: 5 * time.Second}, Lease: &lease, Portable: true}, f))(t)
		r.Start()
		time.Sleep(900 * time.Millisecond)
		lease.Store(int64(2 * time.Second)) // renewed
		res := assert.Value(r.Wait())(t)
		assert.True(t, res.Stopped == ByLease && last < 2*time.Second && last >= 1900*time.Millisecond,
			"stopped by %q, sent last at %v: want %q, just before 2s", res.Stopped, last, ByLease)
	})
}

// TestStartAt: a run starts when its plan says, and its times count from there.
func TestStartAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := time.Now().Add(3 * time.Second)
		var first time.Time
		f := newFake(Single(), 1, func(_ int, _ Batch, now time.Duration) (time.Duration, Outcome) {
			if first.IsZero() {
				first = time.Now()
			}
			return now + time.Millisecond, Outcome{}
		})
		res := assert.Value(Fire(t.Context(), Plan{Schedule: Constant(100), StartAt: at, Measurement: Limits{Time: time.Second}, Portable: true}, f))(t)
		assert.True(t, first.Equal(at) && res.Measurement.Sent == 100,
			"the first event was sent %v after the start, %d in all", first.Sub(at), res.Measurement.Sent)
	})
}

// sharingTarget is a fake whose lanes send the events of every stream.
type sharingTarget struct{ *fake }

func (sharingTarget) Capabilities() TargetCapabilities { return TargetCapabilities{Shares: true} }

// TestFirstFreeLane: one connection answers its first batch after a second, the other
// at once. If events have no order, no other event waits for the slow answer.
func TestFirstFreeLane(t *testing.T) {
	const slow = 1005 * time.Millisecond // no event is due when it answers
	for _, tt := range []struct {
		name     string
		shared   bool
		overload Overload
		late     uint64 // the event with the slow answer, and those that waited for it
		dropped  uint64
	}{
		{"queue, shared", true, Queue, 1, 0},
		{"queue, each its own", false, Queue, 53, 0},
		{"drop, shared", true, Drop, 1, 0},
		{"drop, each its own", false, Drop, 1, 50},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				first := true
				f := newFake(RoundRobin(2), 2, func(_ int, _ Batch, at time.Duration) (time.Duration, Outcome) {
					if first {
						first = false
						return at + slow, Outcome{}
					}
					return at + time.Millisecond, Outcome{}
				})
				var target Target = f
				if tt.shared {
					target = sharingTarget{f}
				}
				used := [2]int{}
				var late uint64
				r := assert.Value(Fire(t.Context(), Plan{
					Schedule: Constant(100), BatchEvents: 1, MaxInFlight: 1, Overload: tt.overload, Threads: 1,
					Measurement: Limits{Time: 2 * time.Second}, Portable: true,
					Observe: func(out []Outcome) {
						for _, o := range out {
							used[o.Lane]++
							if o.Done-o.DueFirst > 5*time.Millisecond {
								late++
							}
						}
					},
				}, target))(t)
				assert.True(t, late == tt.late && r.Measurement.Dropped == tt.dropped && r.Measurement.Acked == 200-tt.dropped,
					"%d late, %d dropped, %d acked; want %d, %d, %d",
					late, r.Measurement.Dropped, r.Measurement.Acked, tt.late, tt.dropped, 200-tt.dropped)
				assert.True(t, used[0] != 0 && used[1] != 0, "batches by connection: %d; want both used", used)
			})
		})
	}
}

// TestNoFreeLane: while every connection waits for an answer, due events wait for the
// first of them. The system causes that delay, not the generator.
func TestNoFreeLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(RoundRobin(2), 2, constantly(30*time.Millisecond)) // two at a time: 66 a second
		r := assert.Value(Fire(t.Context(), Plan{
			Schedule: Constant(100), BatchEvents: 1, MaxInFlight: 1, Threads: 1, Measurement: Limits{Time: 3 * time.Second}, Drain: time.Minute, Portable: true,
		}, sharingTarget{f}))(t)
		// The last is due at 2.99 s, and 300 take 150 rounds of 30 ms: 4.5 s.
		if got := r.Measurement.Queueing.Max(); got < 1400*time.Millisecond || got > 1600*time.Millisecond {
			t.Errorf("the longest queueing time is %v, want about 1.5 s", got)
		}
		got := r.Measurement.SendDelay.Max()
		assert.True(t, got <= time.Millisecond, "a send delay of %v, want none", got)
	})
}

// TestManyLanes: also with thousands of lanes, each gets as much as the others and no batch waits.
func TestManyLanes(t *testing.T) {
	for _, lanes := range []int{3, 2000} {
		synctest.Test(t, func(t *testing.T) {
			fired := make([]int, lanes)
			f := newFake(RoundRobin(lanes), lanes, func(lane int, _ Batch, at time.Duration) (time.Duration, Outcome) {
				fired[lane]++
				return at + 5*time.Millisecond, Outcome{}
			})
			r := assert.Value(Fire(t.Context(), Plan{
				Schedule: Constant(float64(lanes)), BatchEvents: 1, MaxInFlight: 2, Threads: 1, Measurement: Limits{Time: 3 * time.Second}, Portable: true,
			}, sharingTarget{f}))(t)
			got := r.Measurement.Queueing.Max()
			assert.True(t, got == 0 && r.Measurement.Acked == 3*uint64(lanes), "%d lanes: %d acked, queueing took %v at most", lanes, r.Measurement.Acked, got)
			for lane, n := range fired {
				assert.Must(t, n == 3, "%d lanes: lane %d got %d batches, want 3", lanes, lane, n)
			}
		})
	}
}

// A pausingLane pauses the thread once, while it fires the event with a number, and counts the batches of each write.
type pausingLane struct {
	*fakeLane
	t *pausingTarget
}

type pausingTarget struct {
	sharingTarget
	pausedBy  Batch
	unwritten map[int]int // batches by lane
	writes    []write
}

type write struct {
	at      time.Duration
	batches int
}

func (p *pausingTarget) Route(s int32) Lane { return pausingLane{p.lanes[p.Client(s)], p} }

func (l pausingLane) Fire(batches []Batch) int {
	for _, b := range batches {
		if b.Stream == l.t.pausedBy.Stream && b.First == l.t.pausedBy.First {
			time.Sleep(20 * time.Millisecond)
		}
	}
	l.t.unwritten[l.id] += len(batches)
	return l.fakeLane.Fire(batches)
}

func (l pausingLane) Flush() {
	l.t.writes = append(l.t.writes, write{l.f.sink.Now(), l.t.unwritten[l.id]})
	l.t.unwritten[l.id] = 0
}

// TestLateTogether: a punctual thread with many lanes writes each of the batches that are due
// together by itself. A late one writes several on a lane, until it has caught up.
func TestLateTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lanes, rate, paused = 400, 4_000, 500 * time.Millisecond
		p := &pausingTarget{sharingTarget: sharingTarget{newFake(RoundRobin(lanes), lanes, constantly(100*time.Microsecond))}, unwritten: map[int]int{}}
		p.pausedBy = Batch{Stream: 0, First: uint64(rate * paused.Seconds() / lanes)}
		r := assert.Value(Fire(t.Context(), Plan{
			Schedule: Burst(20, 5*time.Millisecond), BatchEvents: 1, MaxInFlight: 2 * mostTogether, Threads: 1,
			Measurement: Limits{Time: time.Second}, Portable: true,
		}, p))(t)
		assert.Equal(t, r.Measurement.Acked, rate, "acked")
		late, written := 0, 0
		for _, w := range p.writes {
			written += w.batches
			switch during := w.at >= paused && w.at < paused+25*time.Millisecond; {
			case during:
				late = max(late, w.batches)
			case w.batches != 1:
				t.Errorf("at %v a write had %d batches, want 1", w.at, w.batches)
			}
		}
		assert.True(t, late == mostTogether && written == rate,
			"a late write had at most %d batches, %d in all; want %d, %d", late, written, mostTogether, rate)
	})
}
