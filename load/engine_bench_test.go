package load

import (
	"testing"
	"time"

	"carronade/test/testkit/assert"
)

// instantTarget is a target that answers at once, so that only the engine takes time.
type instantTarget struct {
	sink Sink
	out  []Outcome
	room int
	most int // batches of a batch group
}

func (n *instantTarget) Partitioner() Partitioner         { return Single() }
func (n *instantTarget) Client(int32) int                 { return 0 }
func (n *instantTarget) Clients() int                     { return 1 }
func (n *instantTarget) Start(s Sink)                     { n.sink = s }
func (n *instantTarget) Route(int32) Lane                 { return instantLane{n} }
func (n *instantTarget) Wire() (written, read uint64)     { return 0, 0 }
func (n *instantTarget) ID() int                          { return 0 }
func (n *instantTarget) Room(int32, uint64) int           { return n.room }
func (n *instantTarget) Close() error                     { return nil }
func (n *instantTarget) Capabilities() TargetCapabilities { return TargetCapabilities{} }

// instantLane is its lane.
type instantLane struct{ *instantTarget }

func (l instantLane) Capabilities() LaneCapabilities {
	return LaneCapabilities{BatchGroup: func(int32, uint64, int) int { return l.most }}
}

func (n *instantTarget) Fire(batches []Batch) int {
	now := n.sink.Now()
	for i := range batches {
		batches[i].Bytes = 100
		n.out = append(n.out, Outcome{Batch: batches[i], Sent: now, Done: now, Acked: batches[i].Events, Place: -1})
	}
	return len(batches)
}

func (n *instantTarget) Flush() {
	n.sink.Complete(n.out)
	n.out = n.out[:0]
}

// BenchmarkBatch measures the engine's cost per batch: composed, fired, completed and recorded on every clock.
func BenchmarkBatch(b *testing.B) {
	for _, bb := range []struct {
		name       string
		plan       Plan
		room, most int
	}{
		{"full speed, one event", Plan{BatchEvents: 1, MaxInFlight: 256}, 1, 0},
		{"full speed, one event, in batch groups", Plan{BatchEvents: 1, MaxInFlight: 256}, 1, 128},
		{"open loop, one event", Plan{Schedule: Constant(1e12), BatchEvents: 1, MaxInFlight: 256}, 1, 0},
		{"open loop, 1000 events", Plan{Schedule: Constant(1e12), MaxInFlight: 5}, 1000, 0},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			bb.plan.Measurement = Limits{Events: uint64(b.N * bb.room)}
			start := time.Now()
			r := assert.Value(Fire(b.Context(), bb.plan, &instantTarget{room: bb.room, most: bb.most}))(b)
			b.ReportMetric(float64(r.Measurement.Acked)/time.Since(start).Seconds()/1e6, "Mevents/s")
		})
	}
}

// BenchmarkDropQueued measures a check of a full lane while thousands of streams have
// events waiting that still fit into the buffer.
func BenchmarkDropQueued(b *testing.B) {
	const streams = 4096
	for _, s := range []struct {
		name string
		of   Schedule
	}{{"constant", Constant(1e6)}, {"sine", Sine(1e6, 5e5, time.Minute)}} {
		b.Run(s.name, func(b *testing.B) {
			f := newFake(RoundRobin(streams), 1, nil)
			r, err := New(Plan{Schedule: s.of, BatchEvents: 1, MaxInFlight: 1, Overload: Drop, BufferBytes: 1 << 30, EventBytes: 100, Measurement: Limits{Time: time.Hour}}, f)
			assert.OK(b, err)
			t := newThread(r, 0, 1)
			ls := &laneState{Lane: f.lanes[0], queue: &backlog{}, full: true}
			t.setLane(0, ls)
			t.lanes = append(t.lanes, ls)
			for i := range int32(streams) {
				s := &stream{id: i, end: 1 << 40}
				s.ready = t.readyAt(s)
				t.enqueue(s, 0)
			}
			now := time.Second
			b.ReportAllocs()
			for b.Loop() {
				if now += time.Microsecond; now == 2*time.Second {
					now = time.Second // before the buffer is full
				}
				t.drop(ls.queue, now)
			}
			assert.Must(b, ls.queue.n == streams, "%d streams wait, want %d", ls.queue.n, streams)
		})
	}
}

var sinkDuration time.Duration

func BenchmarkSchedule(b *testing.B) {
	steps := make([]Step, 20)
	for i := range steps {
		steps[i] = Step{Rate: float64(i+1) * 1e5, End: time.Minute}
	}
	for _, s := range []struct {
		name string
		s    Schedule
	}{
		{"constant", Constant(1e6)},
		{"constant fraction", Constant(33.333)},
		{"ramp", Ramp(1e3, 1e6, time.Hour)},
		{"steps", Steps(steps)},
		{"sine", Sine(1e6, 5e5, time.Minute)},
		{"burst", Burst(1000, time.Millisecond)},
		{"poisson", Poisson(1e6, 1)},
		{"joined", Joined(Until(Constant(1e6), time.Minute), Constant(2e6))},
	} {
		b.Run("due/"+s.name, func(b *testing.B) {
			b.ReportAllocs()
			var n uint64
			for b.Loop() {
				n = (n + 1) % 10_000_000
				sinkDuration += s.s.Due(n)
			}
		})
		b.Run("count/"+s.name, func(b *testing.B) {
			b.ReportAllocs()
			var t time.Duration
			for b.Loop() {
				t = (t + 977) % (10 * time.Second)
				sinkDuration += time.Duration(s.s.Count(t))
			}
		})
	}
}
