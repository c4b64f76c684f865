package load

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"carronade/measure"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

func TestIndexSet(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var s indexSet
	want := map[int]bool{}
	for range 10_000 {
		i := rnd.IntN(300)
		if rnd.IntN(2) == 0 {
			s.add(i)
			want[i] = true
		} else if i < len(s)*64 {
			s.remove(i)
			delete(want, i)
		}
		var got, all []int
		from := rnd.IntN(330)
		for k := s.next(from); k >= 0; k = s.next(k + 1) {
			got = append(got, k)
		}
		for k := from; k < 330; k++ {
			if want[k] {
				all = append(all, k)
			}
		}
		assert.Must(t, slices.Equal(got, all), "from %d on there are %v, want %v", from, got, all)
	}
}

// TestHeap: streams leave the heap in the order of their times, whatever was pushed in between.
func TestHeap(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	var h heap
	var want []time.Duration
	for step := range 20_000 {
		if rnd.IntN(1000) > step%1000 { // it grows, and becomes empty, again and again
			s := &stream{ready: time.Duration(rnd.IntN(1000))}
			h.push(s)
			at, _ := slices.BinarySearch(want, s.ready)
			want = slices.Insert(want, at, s.ready)
		} else if len(want) > 0 {
			assert.Must(t, h[0].ready == want[0], "step %d: %v is on top, want %v", step, h[0].ready, want[0])
			got := h.pop()
			assert.Must(t, got.ready == want[0], "step %d: got %v, want %v", step, got.ready, want[0])
			want = want[1:]
		}
	}
}

// However many slots a bound has, and however many events were sent, a lane with little in flight keeps few
// entries. Ten thousand lanes would otherwise take more memory with each event.
func TestSlotsStayFew(t *testing.T) {
	for _, tt := range []struct {
		name   string
		plan   Plan
		shared bool
	}{
		{name: "single events", plan: Plan{BatchEvents: 1}},
		{name: "batches that fill", plan: Plan{Linger: 20 * time.Millisecond}},
		{name: "shared lanes", plan: Plan{BatchEvents: 1}, shared: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(RoundRobin(2), 2, func(_ int, _ Batch, at time.Duration) (time.Duration, Outcome) {
					return at + 25*time.Millisecond, Outcome{}
				})
				p := tt.plan
				p.Schedule, p.MaxInFlight, p.Threads, p.Portable = Constant(200), 1000, 1, true
				p.Measurement = Limits{Time: 30 * time.Second}
				var target Target = f
				if tt.shared {
					target = sharingTarget{f}
				}
				r := assert.Value(New(p, target))(t)
				r.Start()
				assert.Value(r.Wait())(t)
				lanes := 0
				for _, th := range r.threads {
					for _, ls := range th.lanes {
						lanes++
						got, most := len(ls.slots.ring), 16
						assert.True(t, got <= most, "lane %d has room for %d entries, want at most %d", ls.index, got, most)
						assert.Equal(t, ls.slots.n, p.MaxInFlight, "lane %d slots", ls.index)
					}
				}
				assert.Equal(t, lanes, 2, "lanes")
			})
		})
	}
}

// A countedLane counts what is fired until it is written.
type countedLane struct {
	*fakeLane
	unwritten, most *int // over all lanes
}

func (l countedLane) Fire(batches []Batch) int {
	taken := l.fakeLane.Fire(batches)
	*l.unwritten += taken
	*l.most = max(*l.most, *l.unwritten)
	return taken
}

func (l countedLane) Flush() { *l.unwritten = 0 }

// A countedTarget has counted lanes.
type countedTarget struct {
	sharingTarget
	unwritten, most int
}

func (c *countedTarget) Route(s int32) Lane {
	return countedLane{c.lanes[c.Client(s)], &c.unwritten, &c.most}
}

// TestLateInPieces: a thread with very many events due fires them in pieces, each of which
// it writes before the next, and none of them later.
func TestLateInPieces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := testkit.Cases(3, 1)*leastAtOnce + 5
		late := 0
		f := newFake(RoundRobin(2), 2, func(_ int, s Batch, at time.Duration) (time.Duration, Outcome) {
			if at != s.DueFirst {
				late++
			}
			return at + 20*time.Millisecond, Outcome{}
		})
		c := &countedTarget{sharingTarget: sharingTarget{f}}
		res := assert.Value(Fire(t.Context(), Plan{
			Schedule: Burst(uint64(events), time.Minute), BatchEvents: 1, MaxInFlight: events, Overload: Drop, Threads: 1,
			Measurement: Limits{Time: time.Second}, Portable: true,
		}, c))(t)
		assert.True(t, res.Measurement.Acked == uint64(events) && late <= 0,
			"%d acked, %d sent late; want %d, 0", res.Measurement.Acked, late, events)
		assert.Equal(t, c.most, leastAtOnce, "most that were fired and not written")
	})
}

// Batches are counted and timed the same in batch groups and one by one, and the bound applies to both.
func TestBatchGroupsDoNotMatter(t *testing.T) {
	testkit.Need(t, "some seconds")
	for _, tt := range []struct {
		name string
		plan Plan
	}{
		{"the bound allows 100", Plan{BatchEvents: 1, MaxInFlight: 100, Measurement: Limits{Events: 10_000}}},
		{"three events each, and one left over", Plan{BatchEvents: 3, MaxInFlight: 100, Measurement: Limits{Events: 10_000}}},
		{"a warm-up that ends in a batch group", Plan{BatchEvents: 1, MaxInFlight: 100, WarmupEvents: 1234, Measurement: Limits{Events: 10_000}}},
		{"concurrency", Plan{BatchEvents: 1, Concurrency: 100, Measurement: Limits{Events: 10_000}}},
		{"by time", Plan{BatchEvents: 1, MaxInFlight: 100, WarmupTime: time.Second, Measurement: Limits{Time: time.Second}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fire := func(groups int) (res *Result, most int) {
				synctest.Test(t, func(t *testing.T) {
					f := newFake(Single(), 1, constantly(3*time.Millisecond))
					f.groups = groups
					f.answer = func(_ int, _ Batch, at time.Duration) (time.Duration, Outcome) {
						f.lanes[0].mu.Lock()
						most = max(most, len(f.lanes[0].open)+1)
						f.lanes[0].mu.Unlock()
						return at + 3*time.Millisecond, Outcome{}
					}
					res = fireTest(t, tt.plan, f)
				})
				return res, most
			}
			want, _ := fire(0)
			got, most := fire(64)
			assert.Equal(t, most, 100, "at most batches in flight")
			assert.Same(t, got.Measurement.Counts, want.Measurement.Counts, "counts, one by one and in batch groups")
			assert.Same(t, got.Warmup.Counts, want.Warmup.Counts, "warm-up, one by one and in batch groups")
			assert.True(t, got.Measurement.Service.Equal(want.Measurement.Service), "service times differ")
			assert.Equal(t, got.Measurement.InFlight, want.Measurement.InFlight, "in flight")
		})
	}
}

func TestSlots(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s slots
		n := rapid.IntRange(0, 40).Draw(t, "slots")
		s.fill(n, 5)
		want := make([]time.Duration, n)
		for i := range want {
			want[i] = 5
		}
		now := time.Duration(5)
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			k := rapid.IntRange(1, 20).Draw(t, "n")
			if rapid.IntRange(0, 3).Draw(t, "join") == 0 {
				ready := now - time.Duration(rapid.IntRange(0, 3).Draw(t, "ago"))
				s.join(ready)
				old := 0
				for old < len(want) && want[old] <= ready {
					old++
				}
				for i := range old {
					want[i] = want[old-1]
				}
				if used := 1 + len(want) - old; s.used > used {
					t.Fatalf("%d entries, want at most %d", s.used, used)
				}
			} else if rapid.Bool().Draw(t, "push") {
				now += time.Duration(rapid.IntRange(0, 1).Draw(t, "later"))
				s.push(now, k)
				for range k {
					want = append(want, now)
				}
			} else if k <= len(want) {
				if got := s.pop(k); got != want[0] {
					t.Fatalf("pop(%d) is %v, want %v", k, got, want[0])
				}
				want = want[k:]
			}
			assert.Must(t, s.n == len(want), "%d slots, want %d", s.n, len(want))
			free := s.iterate()
			for i := range want {
				if got := free.next(); got != want[i] {
					t.Fatalf("slot %d became free at %v, want %v", i, got, want[i])
				}
			}
		}
	})
}

func TestStatuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(Single(), 1, func(_ int, s Batch, at time.Duration) (time.Duration, Outcome) {
			o := Outcome{Status: 202}
			if s.Seq%4 == 0 {
				o = Outcome{Status: 503, Failed: s.Events, Class: Throttled, Text: "full"}
			}
			return at + 10*time.Millisecond, o
		})
		res := fireTest(t, Plan{Schedule: Constant(100), BatchEvents: 5, Measurement: Limits{Time: 3 * time.Second}}, f)
		want := measure.Statuses{{Code: 202, Batches: 45, Events: 225}, {Code: 503, Batches: 15, Events: 75}}
		assert.Same(t, res.Measurement.Statuses, want)
		var sum measure.Statuses
		var failed measure.Classes
		for _, iv := range res.Intervals {
			sum.Merge(iv.Statuses)
			failed.Merge(iv.Classes)
		}
		assert.Same(t, failed, measure.Classes{{Class: Throttled.String(), Events: 75, Batches: 15}}, "failures of the series")
		assert.Same(t, sum, want, "the series does not add up to the measurement")
	})
}

// TestTraceLeavesBatchGroups: Trace receives every batch, and batches are still fired
// in batch groups; with Observe they are fired one by one.
func TestTraceLeavesBatchGroups(t *testing.T) {
	const events = 10_000
	for _, tt := range []struct {
		name            string
		observe, groups bool
	}{{"trace", false, true}, {"trace and observe", true, false}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(Single(), 1, constantly(3*time.Millisecond))
				f.groups = 64
				f.answer = func(_ int, _ Batch, at time.Duration) (time.Duration, Outcome) {
					return at + 3*time.Millisecond, Outcome{}
				}
				plan := Plan{BatchEvents: 1, MaxInFlight: 100, Measurement: Limits{Events: events}}
				batches, calls, most := 0, 0, 0
				plan.Trace = func(thread int, out []Outcome) {
					assert.Equal(t, thread, 0, "thread")
					calls++
					for i := range out {
						batches += out[i].count()
						most = max(most, out[i].count())
					}
				}
				if tt.observe {
					plan.Observe = func([]Outcome) {}
				}
				fireTest(t, plan, f)
				assert.Equal(t, batches, events, "batches traced")
				assert.Equal(t, most > 1, tt.groups, "whether batches came in groups, of %d at most", most)
			})
		})
	}
}

// A fakeFollower completes each read after a time, as an answer says.
type fakeFollower struct {
	takes  time.Duration
	answer func(o *Outcome)
	now    func() time.Duration
	done   func([]Outcome)
	mu     sync.Mutex
	most   int // reads at a time
	at     int
	began  []time.Duration
	open   map[uint64]Outcome
	// Reads from the event stuckAt on end only when the follower is stopped; 0: none.
	stuckAt uint64
}

func (*fakeFollower) Logs() []string { return []string{"log-0"} }

func (f *fakeFollower) Start(now func() time.Duration, done func([]Outcome)) {
	f.now, f.done, f.open = now, done, map[uint64]Outcome{}
}

func (f *fakeFollower) Read(sent []Outcome) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, o := range sent {
		f.at++
		f.most = max(f.most, f.at)
		o.Sent, o.Acked, o.Failed, o.Unknown = f.now(), o.Events, 0, 0
		f.began = append(f.began, o.Sent)
		f.open[o.Seq] = o
		if f.stuckAt > 0 && o.First >= f.stuckAt {
			continue
		}
		time.AfterFunc(f.takes, func() {
			f.mu.Lock()
			now, open := f.open[o.Seq]
			delete(f.open, o.Seq)
			f.at--
			f.mu.Unlock()
			if !open || now.First != o.First {
				return
			}
			o.Done = f.now()
			if f.answer != nil {
				f.answer(&o)
			}
			f.done([]Outcome{o})
		})
	}
}

func (*fakeFollower) Pending() []string { return nil }

func (f *fakeFollower) Stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, o := range f.open {
		o.Done, o.Acked, o.Unknown, o.Class = f.now(), 0, o.Events, Canceled
		f.done([]Outcome{o})
	}
	clear(f.open)
}

// fireStage runs a plan with a second stage.
func fireStage(t *testing.T, plan Plan, stage StagePlan, of *fakeFollower, target Target) (*Result, StageResult) {
	t.Helper()
	plan.Portable = true
	s := NewStage(stage, of, &plan)
	plan.Completed = func() { s.CatchUp(time.Second, nil) }
	r := assert.Value(New(plan, target))(t)
	s.Start(r)
	r.Start()
	res := assert.Value(r.Wait())(t)
	return res, s.Result(res)
}

// TestStage: each acked batch is read once, when it has been acked for the delay, and
// counts from its due time; failed ones are not read.
func TestStage(t *testing.T) {
	for _, delay := range []time.Duration{0, 20 * time.Second} {
		t.Run(fmt.Sprint(delay), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := 0
				f := newFake(Single(), 1, func(_ int, s Batch, at time.Duration) (time.Duration, Outcome) {
					if n++; n%10 == 0 {
						return at + time.Millisecond, Outcome{Failed: 1, Class: Rejected, Text: "no"}
					}
					return at + time.Millisecond, Outcome{}
				})
				var sent []time.Duration
				of := &fakeFollower{takes: 30 * time.Millisecond}
				plan := Plan{Schedule: Constant(1000), BatchEvents: 1, MaxInFlight: 100, Measurement: Limits{Events: 500}}
				stage := StagePlan{Name: "read", Delay: delay, Done: func(o, _ *Outcome) { sent = append(sent, o.Done+delay) }}
				res, got := fireStage(t, plan, stage, of, f)
				diff := cmp.Diff(sent, of.began)
				assert.True(t, diff == "" && len(sent) == 450, "%d reads; when reads began:\n%s", len(sent), diff)
				c := got.Counts
				assert.True(t, c.Offered == 450 && c.Sent == 450 && c.Acked == 450 && got.Unread+got.Missed == 0 && res.Measurement.Consumed == 450,
					"counts %+v, unread %d, missed %d, consumed %d", c, got.Unread, got.Missed, res.Measurement.Consumed)
				want := delay + 31*time.Millisecond
				if h := res.Measurement.EndToEnd; h.Count() != 450 || h.Min() > want || h.Max() < want || h.Max() > want+want/100 {
					t.Errorf("end to end %v to %v of %d, want %v of 450", h.Min(), h.Max(), h.Count(), want)
				}
				h := got.Set.Response
				assert.True(t, h.Count() == 450 && h.Max() >= 30*time.Millisecond && h.Max() <= 31*time.Millisecond, "response of reads up to %v, of %d", h.Max(), h.Count())
				assert.Equal(t, got.Set.SendDelay.Max(), 0, "reads that began late")
			})
		})
	}
}

// The number of reads in flight has a limit, and waiting for one of them is not the generator's delay.
func TestStageInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := &fakeFollower{takes: 10 * time.Millisecond}
		plan := Plan{Schedule: Constant(1000), BatchEvents: 1, MaxInFlight: 100, Measurement: Limits{Events: 100}}
		_, got := fireStage(t, plan, StagePlan{MaxInFlight: 2}, of, newFake(Single(), 1, constantly(time.Millisecond)))
		assert.True(t, of.most == 2 && got.Acked == 100, "%d reads at a time, %d read", of.most, got.Acked)
		late, response := got.Set.SendDelay.Max(), got.Set.Response.Max()
		assert.True(t, late == 0 && response >= 300*time.Millisecond, "late %v, response %v", late, response)
	})
}

// TestStageQueue: sending waits while as many events wait to be read as the queue holds.
func TestStageQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := &fakeFollower{takes: 10 * time.Millisecond}
		plan := Plan{BatchEvents: 1, MaxInFlight: 100, Measurement: Limits{Events: 100}}
		res, got := fireStage(t, plan, StagePlan{MaxInFlight: 1, Queue: 5}, of, newFake(Single(), 1, constantly(time.Millisecond)))
		assert.True(t, got.Acked == 100 && res.Measurement.InFlightPeak <= 5 && res.Measurement.Length() >= 900*time.Millisecond,
			"%d read, %d in flight at most, sent in %v", got.Acked, res.Measurement.InFlightPeak, res.Measurement.Length())
	})
}

// Events that could not be read, were not read in time or have no place are counted apart.
func TestStageFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := &fakeFollower{takes: time.Millisecond, answer: func(o *Outcome) {
			if o.First%10 == 3 {
				o.Acked, o.Failed, o.Class, o.Text = 0, o.Events, Rejected, "deleted"
			}
		}, stuckAt: 90}
		plan := Plan{Schedule: Constant(1000), BatchEvents: 1, MaxInFlight: 100, Measurement: Limits{Events: 100}}
		f := newFake(Single(), 1, constantly(0))
		f.unplaced = 5
		_, got := fireStage(t, plan, StagePlan{MaxInFlight: 1}, of, f)
		assert.True(t, got.Missed == 5 && got.Classes["rejected"] == 8 && got.Unknown == 1 && got.Acked == 77 && got.Unread == 9 && got.Unsent == 9 && got.Text == "deleted",
			"missed %d, classes %v, read %d, unread %d, unsent %d, text %q", got.Missed, got.Classes, got.Acked, got.Unread, got.Unsent, got.Text)
	})
}

// What an event waits because the queue of reads is full is not the generator's delay.
func TestStageWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := &fakeFollower{takes: 10 * time.Millisecond}
		plan := Plan{Schedule: Constant(1000), BatchEvents: 1, MaxInFlight: 100, Measurement: Limits{Events: 500}}
		res, got := fireStage(t, plan, StagePlan{MaxInFlight: 5, Queue: 10}, of, newFake(Single(), 1, constantly(time.Millisecond)))
		m := &res.Measurement
		assert.True(t, got.Acked == 500 && m.Response.Max() >= 400*time.Millisecond,
			"%d read, response up to %v", got.Acked, m.Response.Max())
		late := m.SendDelay.Max()
		assert.True(t, late <= time.Millisecond, "sent %v late", late)
		if lower := m.Lower.Response; lower != nil && lower.Max() < m.Response.Max()-time.Millisecond {
			t.Errorf("response up to %v, its lower bound up to %v", m.Response.Max(), lower.Max())
		}
	})
}

// TestStageGivenUp: when waiting for reads ends early, no read begins or is counted later.
func TestStageGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := &fakeFollower{takes: 300 * time.Millisecond}
		plan := Plan{Schedule: Constant(1000), BatchEvents: 1, MaxInFlight: 100, Measurement: Limits{Events: 500}, Portable: true}
		s := NewStage(StagePlan{MaxInFlight: 50}, of, &plan)
		cancel := make(chan struct{})
		close(cancel)
		plan.Completed = func() { s.CatchUp(time.Hour, cancel) }
		r := assert.Value(New(plan, newFake(Single(), 1, constantly(time.Millisecond))))(t)
		s.Start(r)
		r.Start()
		res := assert.Value(r.Wait())(t)
		time.Sleep(time.Minute)
		got := s.Result(res)
		assert.True(t, got.Acked == res.Measurement.Consumed && res.Measurement.EndToEnd.Count() == got.Acked &&
			got.Acked+got.Unknown+got.Unread == 500 && got.Unread > 0,
			"%d read, %d consumed, %d end-to-end times, %d without an answer, %d unread",
			got.Acked, res.Measurement.Consumed, res.Measurement.EndToEnd.Count(), got.Unknown, got.Unread)
	})
}
