package load

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"carronade/measure"
	"carronade/test/testkit/assert"
)

// newTestMix makes a mix of fakes.
func newTestMix(t testing.TB, weights []float64, fakes ...*fake) *Mix {
	t.Helper()
	var parts []Part
	for i, w := range weights {
		parts = append(parts, Part{Name: fmt.Sprint("part ", i), Weight: w, Target: fakes[i]})
	}
	m := assert.Value(NewMix(parts))(t)
	return m
}

// allTarget has a part's every capability, allLane a lane's.
type (
	allTarget struct{ *fake }
	allLane   struct{ Lane }
)

func (a allTarget) Route(stream int32) Lane { return allLane{a.fake.Route(stream)} }
func (a allTarget) Capabilities() TargetCapabilities {
	return TargetCapabilities{
		Shares: true, Events: 1, Stamped: true, Poller: struct{ Poller }{},
		Connections: func() int { return 2 }, Connected: func() (int, bool) { return 1, true }, Pending: func() []string { return []string{"all"} },
		LogOf:           func(int32) int32 { return 0 },
		AppendKey:       func(dst []byte, stream int32, _ uint64) ([]byte, bool) { return append(dst, byte('0'+stream)), true },
		AppendKeyHashes: func([]uint64, *Batch) []uint64 { return nil },
	}
}

func (allLane) Capabilities() LaneCapabilities {
	return LaneCapabilities{BatchGroup: func(stream int32, _ uint64, _ int) int { return int(stream) }, Prepare: func() {}}
}

// TestMixCapabilities: what a part can do, a mix can too, except what has no meaning for several parts.
func TestMixCapabilities(t *testing.T) {
	lacking := func(of any) (names []string) {
		for f, v := range reflect.ValueOf(of).Fields() {
			if v.IsZero() {
				names = append(names, f.Name)
			}
		}
		return names
	}
	all := func() Target { return allTarget{newFake(Single(), 1, constantly(0))} }
	m := assert.Value(NewMix([]Part{{Weight: 1, Target: all()}, {Name: "b", Weight: 1, Target: all()}}))(t)
	can := m.Capabilities()
	assert.Same(t, lacking(can), []string{"Shares", "OwnBatching", "Events", "LogOf", "Stamped", "AppendKeyHashes"})
	n, known := can.Connected()
	key, _ := can.AppendKey(nil, 1, 0)
	assert.Same(t, []any{can.Connections(), n, known, can.Pending(), string(key)}, []any{4, 2, true, []string{": all", "b: all"}, "0"})
	lane := m.Route(1).Capabilities()
	assert.Same(t, lacking(lane), []string(nil))
	assert.Equal(t, lane.BatchGroup(1, 0, 1), 0, "the stream's number in its part")
}

// A firing is one batch as a fake's lane received it.
type firing struct {
	part   int
	events int32
}

// firings records the batches of all parts in the order in which they were fired.
type firings struct {
	mu  sync.Mutex
	all []firing
}

func (f *firings) answer(part int, after func(Batch) time.Duration) func(int, Batch, time.Duration) (time.Duration, Outcome) {
	return func(_ int, b Batch, at time.Duration) (time.Duration, Outcome) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.all = append(f.all, firing{part, b.Events})
		return at + after(b), Outcome{Read: 3}
	}
}

// TestSharesOfAMix: without a schedule, two parts have their shares over any part of a
// run to within a batch, although one answers much later than the other.
func TestSharesOfAMix(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		weights := []float64{float64(rapid.IntRange(1, 99).Draw(rt, "weight")), float64(rapid.IntRange(1, 99).Draw(rt, "other weight"))}
		plan := Plan{
			Concurrency: rapid.SampledFrom([]int{0, 1, 2, 7}).Draw(rt, "concurrency"),
			BatchEvents: rapid.SampledFrom([]int{0, 1, 5}).Draw(rt, "events per batch"),
			Threads:     1, Measurement: Limits{Events: 3000}, Drain: time.Minute, Portable: true,
		}
		rooms := []int{rapid.IntRange(1, 20).Draw(rt, "room"), rapid.IntRange(1, 20).Draw(rt, "other room")}
		seed := rapid.Uint64().Draw(rt, "seed")
		var faults []string
		synctest.Test(t, func(t *testing.T) {
			var fired firings
			rng := rand.New(rand.NewPCG(seed, 1))
			var fakes []*fake
			for i := range weights {
				f := newFake(RoundRobin(1+rng.IntN(3)), 1, fired.answer(i, func(Batch) time.Duration {
					return time.Duration(1+rng.IntN(1+i*50)) * time.Millisecond
				}))
				f.room = rooms[i]
				fakes = append(fakes, f)
			}
			res, err := Fire(t.Context(), plan, newTestMix(t, weights, fakes...))
			if err != nil {
				faults = append(faults, err.Error())
			}
			var sum, bytes uint64
			for _, p := range res.Parts {
				sum, bytes = sum+p.Sent, bytes+p.SendBytes
			}
			if bytes != res.Measurement.SendBytes || bytes == 0 {
				faults = append(faults, fmt.Sprintf("the parts sent and read %d of %d bytes", bytes, res.Measurement.SendBytes))
			}
			if sum != res.Measurement.Sent || sum != 3000 {
				faults = append(faults, fmt.Sprintf("the parts sent %d of %d", sum, res.Measurement.Sent))
			}
			faults = append(faults, fired.check(weights)...)
		})
		for _, f := range faults {
			rt.Error(f)
		}
	})
}

// check checks the share of the first part over any part of a run.
func (f *firings) check(weights []float64) (faults []string) {
	share := weights[0] / (weights[0] + weights[1])
	batch := float64(slices.MaxFunc(f.all, func(a, b firing) int { return int(a.events - b.events) }).events)
	var low, high, ahead float64 // of what the first part has more than its share
	for i, b := range f.all {
		if b.part == 0 {
			ahead += float64(b.events)
		}
		ahead -= share * float64(b.events)
		low, high = min(low, ahead), max(high, ahead)
		if high-low > batch+1e-6 {
			return []string{fmt.Sprintf("up to batch %d of %d, the first part was %v behind its share and %v ahead; a batch is %v", i, len(f.all), low, high, batch)}
		}
	}
	return nil
}

// TestMixOfThreeOnThreads: on several threads, every part has its share to within a
// batch of each, and the threads do not wait for each other for ever.
func TestMixOfThreeOnThreads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		weights := []float64{1, 3, 6}
		var fakes []*fake
		for i := range weights {
			fakes = append(fakes, newFake(RoundRobin(8), 1+i, constantly(time.Duration(i+1)*time.Millisecond)))
		}
		res := assert.Value(Fire(t.Context(), Plan{
			Concurrency: 9, BatchEvents: 4, Threads: 3, Measurement: Limits{Events: 40_000}, Portable: true,
		}, newTestMix(t, weights, fakes...)))(t)
		for i, want := range []float64{4000, 12_000, 24_000} {
			got := float64(res.Parts[i].Sent)
			assert.True(t, math.Abs(got-want) <= 3*4, "part %d sent %v, want %v", i, got, want)
		}
	})
}

// TestScheduledMix: a schedule's events are divided exactly, and the parts add up to
// the run, also while batches fail, are dropped or are never answered.
func TestScheduledMix(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := newFake(RoundRobin(2), 2, func(_ int, b Batch, at time.Duration) (time.Duration, Outcome) {
			switch b.Seq % 7 {
			case 0:
				return at + time.Millisecond, Outcome{Failed: b.Events, Class: Rejected, Text: "no"}
			case 1:
				return Never, Outcome{}
			}
			return at + 30*time.Millisecond, Outcome{}
		})
		res := assert.Value(Fire(t.Context(), Plan{
			Schedule: Constant(1000), BatchEvents: 1, MaxInFlight: 20, Overload: Drop, WarmupTime: time.Second,
			Measurement: Limits{Time: 3 * time.Second}, Drain: 100 * time.Millisecond, Portable: true,
		}, newTestMix(t, []float64{2, 8, 0}, newFake(RoundRobin(3), 1, constantly(time.Millisecond)), slow, newFake(Single(), 1, constantly(time.Millisecond)))))(t)
		var sum measure.Counts
		for i, want := range []uint64{600, 2400, 0} {
			p := res.Parts[i]
			sum.Add(p.Counts)
			assert.Equal(t, p.Offered, want, "events offered to part %d", i)
		}
		whole := res.Measurement.Counts
		sum.WireBytes = whole.WireBytes
		assert.Equal(t, sum, whole, "sum of the parts, and the run")
		if p := res.Parts[0]; p.Acked != 600 || p.Response.Max() > 2*time.Millisecond || p.InFlight < 0.19 || p.InFlight > 0.21 {
			t.Errorf("the first part: %d acked within %v, %.2f in flight; want 600 within 1ms, 0.2 in flight", p.Acked, p.Response.Max(), p.InFlight)
		}
		if p := res.Parts[1]; p.Classes["rejected"] == 0 || len(res.Parts[0].Classes) > 0 {
			t.Errorf("failures by part: %v, %v", res.Parts[0].Classes, p.Classes)
		}
	})
}

// When a part has nothing left to send, the run ends, because the shares cannot be kept.
func TestMixEndsWithItems(t *testing.T) {
	for _, plan := range []Plan{{Concurrency: 4}, {Schedule: Constant(1000)}} {
		synctest.Test(t, func(t *testing.T) {
			g := NewGate()
			g.Add(80)
			g.Close()
			m := assert.Value(NewMix([]Part{
				{Name: "write", Weight: 1, Target: newFake(Single(), 1, constantly(time.Millisecond))},
				{Name: "read", Weight: 4, Target: newFake(Single(), 1, constantly(time.Millisecond)), Gate: g},
			}))(t)
			plan.BatchEvents, plan.Portable = 1, true
			time.AfterFunc(time.Hour, func() { panic("the run does not end") })
			res := assert.Value(Fire(t.Context(), plan, m))(t)
			if res.Stopped != ByFeed || res.Parts[1].Acked != 80 || res.Parts[0].Acked < 19 || res.Parts[0].Acked > 21 {
				t.Errorf("stopped by %q with %d and %d acked, want %q with 20 and 80", res.Stopped, res.Parts[0].Acked, res.Parts[1].Acked, ByFeed)
			}
		})
	}
}

func TestMixPartition(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var parts []Part
		for i := range rapid.IntRange(1, 4).Draw(rt, "parts") {
			parts = append(parts, Part{
				Name: fmt.Sprint(i), Weight: rapid.Float64Range(0.01, 3).Draw(rt, "weight"),
				Target: newFake(RoundRobin(rapid.IntRange(1, 5).Draw(rt, "streams")), 1, nil),
			})
		}
		m := assert.Value(NewMix(parts))(rt)
		checkPartitioner(rt, m.Partitioner())
	})
}

func TestMixRefuses(t *testing.T) {
	f := newFake(Single(), 1, nil)
	for name, weights := range map[string][]float64{"no weight": {0, 0}, "a negative one": {1, -1}, "not a number": {math.NaN(), 1}, "too large": {math.MaxFloat64, math.MaxFloat64}} {
		_, err := NewMix([]Part{{Weight: weights[0], Target: f}, {Weight: weights[1], Target: f}})
		assert.True(t, err != nil, "%s: no error", name)
	}
}

// BenchmarkMix measures the engine's cost per batch of a mix: compare BenchmarkBatch.
func BenchmarkMix(b *testing.B) {
	for name, plan := range map[string]Plan{
		"closed loop, one event": {Concurrency: 256, BatchEvents: 1},
		"open loop, one event":   {Schedule: Constant(1e12), BatchEvents: 1, MaxInFlight: 256},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			m, err := NewMix([]Part{{Name: "a", Weight: 20, Target: &instantTarget{room: 1}}, {Name: "b", Weight: 80, Target: &instantTarget{room: 1}}})
			assert.OK(b, err)
			plan.Measurement = Limits{Events: uint64(b.N)}
			start := time.Now()
			r := assert.Value(Fire(b.Context(), plan, m))(b)
			b.ReportMetric(float64(r.Measurement.Acked)/time.Since(start).Seconds()/1e6, "Mevents/s")
		})
	}
}

// Each part has the events that its own schedule has, on time, also if another is slow.
func TestSchedulesOfAMix(t *testing.T) {
	for _, tt := range []struct {
		name  string
		plan  Plan
		want  [2]uint64
		until time.Duration
	}{
		{"time", Plan{Measurement: Limits{Time: time.Second}}, [2]uint64{1000, 500}, time.Second},
		{"warm-up", Plan{WarmupTime: 300 * time.Millisecond, Measurement: Limits{Time: time.Second}}, [2]uint64{1000, 500}, 1300 * time.Millisecond},
		{"number", Plan{Measurement: Limits{Events: 350}}, [2]uint64{201, 149}, 200 * time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				steady := newFake(RoundRobin(3), 1, constantly(time.Millisecond))
				bursts := newFake(Single(), 1, constantly(50*time.Millisecond))
				m := assert.Value(NewMix([]Part{
					{Name: "steady", Schedule: Constant(1000), Target: steady},
					{Name: "bursts", Schedule: Burst(100, 200*time.Millisecond), Target: bursts},
				}))(t)
				plan := tt.plan
				plan.Schedule, plan.MaxInFlight, plan.BatchEvents, plan.Portable = Constant(1), 1000, 1, true
				res := assert.Value(Fire(t.Context(), plan, m))(t)
				for i, p := range res.Parts {
					assert.True(t, p.Offered == tt.want[i] && p.Acked == tt.want[i],
						"%s: offered %d, acked %d, want %d", p.Name, p.Offered, p.Acked, tt.want[i])
					assert.Equal(t, p.SendDelay.Max(), 0, "%s: how late", p.Name)
				}
				assert.True(t, res.Measurement.Offered == tt.want[0]+tt.want[1] && res.Measurement.End <= tt.until+60*time.Millisecond,
					"%d offered, the measurement ended at %v", res.Measurement.Offered, res.Measurement.End)
				least, most := res.Parts[1].Response.Min(), res.Parts[1].Response.Max()
				assert.True(t, least >= 49*time.Millisecond && most <= 51*time.Millisecond, "response of the bursts from %v to %v", least, most)
			})
		})
	}
	target := newFake(Single(), 1, constantly(0))
	_, err := NewMix([]Part{{Weight: 1, Schedule: Constant(1), Target: target}, {Weight: 1, Target: target}})
	assert.True(t, err != nil, "a schedule for one part of two is accepted")
}

// connectedTarget is a fake that takes a third of a second to start its connections.
type connectedTarget struct {
	*fake
	began time.Duration // when it was started
	ready func()        // then
}

func (c *connectedTarget) Capabilities() TargetCapabilities {
	return TargetCapabilities{Connections: c.Clients}
}

func (c *connectedTarget) Start(s Sink) {
	c.fake.Start(s)
	c.began = s.Now()
	time.Sleep(300 * time.Millisecond)
	s.Ready(-1, s.Now())
	if c.ready != nil {
		c.ready()
	}
}

// TestLead: connections take time to start, and the first event is not late for it.
func TestLead(t *testing.T) {
	const clients = 10_000
	for _, tt := range []struct {
		name  string
		start time.Duration // StartAt, from now on; 0: none
	}{{"at once", 0}, {"at a time", 3 * time.Second}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &connectedTarget{fake: newFake(RoundRobin(clients), clients, func(_ int, _ Batch, at time.Duration) (time.Duration, Outcome) {
					return at + time.Millisecond, Outcome{}
				})}
				plan := Plan{Schedule: Constant(1000), BatchEvents: 1, Threads: 1, Measurement: Limits{Time: time.Second}, Portable: true}
				if tt.start > 0 {
					plan.StartAt = time.Now().Add(tt.start)
				}
				r := assert.Value(Fire(t.Context(), plan, f))(t)
				want := -clients * leadPerConnection
				assert.True(t, f.began == want, "the target was started at %v, want %v", f.began, want)
				if m := r.Measurement; m.Acked != 1000 || m.SendDelay.Max() > 0 || m.Response.Max() > time.Millisecond+time.Microsecond*20 {
					t.Errorf("%d acked, send delay up to %v, response up to %v", m.Acked, m.SendDelay.Max(), m.Response.Max())
				}
			})
		})
	}
}

// TestLeadStopped: a run that is stopped or aborted before its time 0 sends nothing.
func TestLeadStopped(t *testing.T) {
	for name, stop := range map[string]func(r *Run){"stop": func(r *Run) { r.Stop(Interrupted) }, "abort": func(r *Run) { r.Abort() }} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &connectedTarget{fake: newFake(RoundRobin(10_000), 10_000, nil)}
				r := assert.Value(New(Plan{Schedule: Constant(1000), Threads: 1, Measurement: Limits{Time: time.Second}, Portable: true}, f))(t)
				f.ready = func() { stop(r) }
				r.Start()
				res, err := r.Wait()
				assert.True(t, err == nil && res.Measurement.Sent == 0 && res.Stopped == Interrupted,
					"%d sent, stopped: %s, %v", res.Measurement.Sent, res.Stopped, err)
			})
		})
	}
}

// A preparedLane notes when it was prepared.
type preparedLane struct {
	*fakeLane
	prepared []time.Duration
	takes    time.Duration // to be prepared
}

func (l *preparedLane) Capabilities() LaneCapabilities {
	return LaneCapabilities{Prepare: func() { l.prepared = append(l.prepared, l.f.sink.Now()); time.Sleep(l.takes) }}
}

// preparedTarget has lanes that can be prepared.
type preparedTarget struct {
	*connectedTarget
	shares bool
	lanes  []*preparedLane
}

func (p *preparedTarget) Route(s int32) Lane { return p.lanes[p.Client(s)] }

func (p *preparedTarget) Capabilities() TargetCapabilities {
	return TargetCapabilities{Connections: p.Clients, Shares: p.shares}
}

// TestPrepare: each of many lanes is prepared once, before time 0; of few, none.
func TestPrepare(t *testing.T) {
	for _, tt := range []struct {
		name     string
		clients  int
		shares   bool
		prepared int // each lane
	}{
		{"many", 10_000, false, 1},
		{"many that share", 10_000, true, 1},
		{"few", manyConnections - 1, false, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(RoundRobin(2*tt.clients), tt.clients, func(_ int, _ Batch, at time.Duration) (time.Duration, Outcome) {
					return at + time.Millisecond, Outcome{}
				})
				p := &preparedTarget{connectedTarget: &connectedTarget{fake: f}, shares: tt.shares}
				for _, l := range f.lanes {
					p.lanes = append(p.lanes, &preparedLane{fakeLane: l})
				}
				r, err := Fire(t.Context(), Plan{Schedule: Constant(1000), BatchEvents: 1, Threads: 2, Measurement: Limits{Time: time.Second}, Portable: true}, p)
				assert.Must(t, err == nil && r.Measurement.Acked == 1000, "%d acked, %v", r.Measurement.Acked, err)
				for i, l := range p.lanes {
					assert.Must(t, len(l.prepared) == tt.prepared && (tt.prepared <= 0 || l.prepared[0] < 0),
						"lane %d was prepared at %v, want %d times before 0", i, l.prepared, tt.prepared)
				}
			})
		})
	}
}

// A fakeMemory has a size, and takes a time to be collected.
type fakeMemory struct {
	bytes uint64
	takes time.Duration
	run   *Run
	began []time.Duration // when its collections began
}

func (h *fakeMemory) size() uint64 { return h.bytes }

func (h *fakeMemory) collect() {
	h.began = append(h.began, h.run.Now())
	time.Sleep(h.takes)
}

// TestCollectEarly: before time 0 of a run with many connections the heap is collected once, if
// that fits; and what begins with time 0 waits neither for a collection nor for a lane.
func TestCollectEarly(t *testing.T) {
	const (
		clients   = 10_000 // a lead of 800 ms, of which the connections take 300
		connected = 300*time.Millisecond - clients*leadPerConnection
	)
	for _, tt := range []struct {
		name      string
		clients   int
		bytes     uint64
		takes     time.Duration // the collection
		prepares  time.Duration // each lane of the first 10 takes to be prepared
		collected []time.Duration
	}{
		{name: "fits", clients: clients, bytes: 200 << 20, takes: 200 * time.Millisecond, collected: []time.Duration{connected}},
		{name: "too large", clients: clients, bytes: 500 << 20},
		{name: "slower than estimated", clients: clients, bytes: 200 << 20, takes: time.Second, collected: []time.Duration{connected}},
		{name: "just fits after the lanes", clients: clients, bytes: 200 << 20, prepares: 29 * time.Millisecond, collected: []time.Duration{connected + 290*time.Millisecond}},
		{name: "too late after the lanes", clients: clients, bytes: 200 << 20, prepares: 30 * time.Millisecond},
		{name: "lanes later than time 0", clients: clients, bytes: 1 << 20, prepares: 100 * time.Millisecond},
		{name: "few", clients: manyConnections - 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(RoundRobin(tt.clients), tt.clients, func(_ int, _ Batch, at time.Duration) (time.Duration, Outcome) {
					return at + time.Millisecond, Outcome{}
				})
				p := &preparedTarget{connectedTarget: &connectedTarget{fake: f}}
				for i, l := range f.lanes {
					p.lanes = append(p.lanes, &preparedLane{fakeLane: l})
					if i < 10 {
						p.lanes[i].takes = tt.prepares
					}
				}
				r := assert.Value(New(Plan{Schedule: Constant(1000), BatchEvents: 1, Threads: 1, Measurement: Limits{Time: time.Second}, Portable: true}, p))(t)
				h := &fakeMemory{bytes: tt.bytes, takes: tt.takes, run: r}
				r.memory = h
				r.Start()
				want := time.Duration(0)
				if tt.clients < manyConnections {
					want = 300 * time.Millisecond // without a lead, time 0 comes before the connections
				}
				assert.Equal(t, r.Now(), want, "when the start returned")
				assert.Value(r.Wait())(t)
				synctest.Wait()
				assert.True(t, slices.Equal(h.began, tt.collected), "collections began at %v, want %v", h.began, tt.collected)
			})
		})
	}
}

// TestMemorySize: the size of the process's heap counts what is live.
func TestMemorySize(t *testing.T) {
	const bytes = 32 << 20
	b := make([]byte, bytes)
	got := (goMemory{}).size()
	assert.True(t, got >= bytes, "%d bytes, and %d are live", got, bytes)
	runtime.KeepAlive(b)
}

// A wait is never too short, and the number of waits follows from the times.
func TestLateness(t *testing.T) {
	const wait, span = time.Millisecond, 20 * time.Millisecond
	late := Lateness(t.Context(), wait, span)
	assert.True(t, len(late) != 0 && len(late) <= int(span/wait) && late[0] >= 0 && slices.IsSorted(late), "got %v", late)
	ended, end := context.WithCancel(t.Context())
	end()
	got := Lateness(ended, wait, span)
	assert.True(t, len(got) == 0, "an ended context: got %v", got)
}

// TestLaneHeap: whatever happens to lanes, the one on top is as a search finds it.
func TestLaneHeap(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	const most = 4
	th := &thread{run: &Run{}, shared: &backlog{}}
	for i := range 50 {
		ls := &laneState{index: i}
		ls.slots.fill(most, 0)
		th.lanes = append(th.lanes, ls)
		th.freest.add()
		th.updateRank(ls)
	}
	turns := make([]int, len(th.lanes))
	// better reports whether a lane comes before another.
	better := func(a, b *laneState) bool {
		if a.slots.n != b.slots.n {
			return a.slots.n > b.slots.n
		}
		sa, sb := a.slots.iterate(), b.slots.iterate()
		fa, fb := max(a.roomSince, sa.next()), max(b.roomSince, sb.next())
		if fa != fb {
			return fa < fb
		}
		if a, b := turns[a.index], turns[b.index]; a != b {
			return a < b
		}
		return a.index < b.index
	}
	for step := range 20_000 {
		now := time.Duration(step / 3)
		ls := th.lanes[rnd.IntN(len(th.lanes))]
		switch rnd.IntN(6) {
		case 0:
			ls.full = true
		case 1:
			ls.full, ls.roomSince = false, now
		case 2:
			if ls.refire == nil {
				ls.refire = make([]Batch, 1)
			} else {
				ls.refire = nil
			}
		case 3:
			if ls.slots.n < most {
				ls.slots.push(now, 1)
			}
		default:
			if top := th.freest.top(); top >= 0 {
				ls = th.lanes[top]
				ls.slots.pop(1)
				turns[top] = step + 1
				th.rankFired(ls)
			}
		}
		th.updateRank(ls)
		var want *laneState
		for _, ls := range th.lanes {
			if !ls.full && len(ls.refire) == 0 && ls.slots.n > 0 && (want == nil || better(ls, want)) {
				want = ls
			}
		}
		got := (*laneState)(nil)
		if top := th.freest.top(); top >= 0 {
			got = th.lanes[top]
		}
		assert.Must(t, got == want, "step %d: %+v is on top, want %+v", step, got, want)
	}
}
