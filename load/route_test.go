package load

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"carronade/test/testkit/assert"
)

// movingLane is a fake whose stream has no lane for a time, then another one.
type movingLane struct {
	*fake
	noneFrom, noneUntil time.Duration // no lane in between
}

func (w *movingLane) Start(s Sink) {
	w.fake.Start(s)
	time.AfterFunc(w.noneUntil, func() { s.Ready(-1, w.noneUntil) })
}

func (w *movingLane) Route(int32) Lane {
	switch now := w.sink.Now(); {
	case now < w.noneFrom:
		return w.lanes[0]
	case now < w.noneUntil:
		return nil
	}
	return w.lanes[1]
}

func (w *movingLane) Client(int32) int { return 0 }
func (w *movingLane) Clients() int     { return 1 }

// TestStreamWithoutLane: while a stream has no leader its events queue, and that time
// is neither send delay of the generator nor service time of the system.
func TestStreamWithoutLane(t *testing.T) {
	for _, tt := range []struct {
		name     string
		overload Overload
		dropped  uint64
	}{{"queue", Queue, 0}, {"drop", Drop, 100}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(Single(), 2, constantly(time.Millisecond))
				w := &movingLane{fake: f, noneFrom: time.Second, noneUntil: 2 * time.Second}
				r := assert.Value(Fire(t.Context(), Plan{
					Schedule: Constant(100), BatchEvents: 1, MaxInFlight: 1000, Overload: tt.overload,
					Measurement: Limits{Time: 3 * time.Second}, Portable: true,
				}, w))(t)
				assert.True(t, r.Measurement.Dropped == tt.dropped && r.Measurement.Acked == 300-tt.dropped,
					"dropped %d, acked %d", r.Measurement.Dropped, r.Measurement.Acked)
				if tt.overload == Drop {
					return
				}
				assert.Equal(t, r.Measurement.Queueing.Max(), time.Second, "longest queueing")
				assert.Equal(t, r.Measurement.SendDelay.Max(), 0, "send delay")
				got, want := r.Measurement.Response.Max(), 1001*time.Millisecond
				assert.True(t, got == want, "response time %v at most, want %v", got, want)
			})
		})
	}
}

// blockedLane is a lane that accepts nothing for a time, as if its connection accepted no bytes.
type blockedLane struct {
	*fakeLane
	from, to time.Duration
	armed    bool
}

func (n *blockedLane) Fire(batches []Batch) int {
	if now := n.f.sink.Now(); now >= n.from && now < n.to {
		if !n.armed {
			n.armed = true
			time.AfterFunc(n.to-now, func() { n.f.sink.Ready(n.id, n.to) })
		}
		return 0
	}
	return n.fakeLane.Fire(batches)
}

type blockedTarget struct {
	*fake
	lane *blockedLane
}

func (n *blockedTarget) Route(int32) Lane { return n.lane }

// TestFullLane: while a lane accepts nothing, the batches wait in order, and the time
// until it may be tried again is queueing time.
func TestFullLane(t *testing.T) {
	for _, perBatch := range []int{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake(RoundRobin(2), 1, constantly(time.Millisecond))
			n := &blockedTarget{f, &blockedLane{fakeLane: f.lanes[0], from: 500 * time.Millisecond, to: 800 * time.Millisecond}}
			r := assert.Value(Fire(t.Context(), Plan{
				Schedule: Constant(1000), BatchEvents: perBatch, MaxInFlight: 1000,
				Measurement: Limits{Time: time.Second}, Portable: true,
			}, n))(t)
			assert.Equal(t, r.Measurement.Acked, 1000, "acked")
			assert.Equal(t, r.Measurement.SendDelay.Max(), 0, "send delay")
			assert.Equal(t, r.Measurement.Queueing.Max(), 300*time.Millisecond, "longest queueing")
			// Queued batches keep growing if their size is not fixed.
			assert.True(t, perBatch != 0 || r.Measurement.Batches <= 710, "%d batches: queued batches did not grow", r.Measurement.Batches)
		})
	}
}

// A turningTarget moves its stream to the other of two lanes every ten milliseconds. The old
// one accepts nothing for five before that, and then reports that it may be tried again.
type turningTarget struct {
	*fake
	moving [2]turningLane
}

type turningLane struct {
	*fakeLane
	armed bool
}

const (
	turn   = 10 * time.Millisecond
	refuse = 5 * time.Millisecond
)

func (w *turningTarget) Route(int32) Lane { return &w.moving[(w.sink.Now()+turn-refuse)/turn%2] }

func (l *turningLane) Fire(batches []Batch) int {
	if rest := l.f.sink.Now() % turn; rest < refuse {
		if !l.armed {
			l.armed = true
			time.AfterFunc(refuse-rest, func() { l.armed = false; l.f.sink.Ready(l.id, l.f.sink.Now()) })
		}
		return 0
	}
	return l.fakeLane.Fire(batches)
}

// TestMovedStream: a stream that waits at a full lane and moves to another one is fired at once, also
// if that lane had its turn in this round. The time at the full lane is queueing time.
func TestMovedStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &turningTarget{fake: newFake(Single(), 2, constantly(time.Millisecond))}
		w.moving = [2]turningLane{{fakeLane: w.lanes[0]}, {fakeLane: w.lanes[1]}}
		r := assert.Value(Fire(t.Context(), Plan{
			Schedule: Constant(100), BatchEvents: 1, MaxInFlight: 1000,
			Measurement: Limits{Time: time.Second}, Portable: true,
		}, w))(t)
		m := &r.Measurement
		assert.Equal(t, m.Acked, 100, "acked")
		got, want := m.Response.Max(), refuse+time.Millisecond
		assert.True(t, got == want, "response time %v at most, want %v", got, want)
		assert.Equal(t, m.Queueing.Max(), refuse, "longest queueing")
		assert.Equal(t, m.SendDelay.Max(), 0, "send delay")
	})
}

// TestBuffer: with a buffer, overload begins when it is full and not before.
func TestBuffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(Single(), 1, frozen(time.Second))
		r := assert.Value(Fire(t.Context(), Plan{
			Schedule: Constant(200), BatchEvents: 1, MaxInFlight: 1, Overload: Drop, BufferBytes: 500, EventBytes: 10,
			Measurement: Limits{Time: 3 * time.Second}, Portable: true,
		}, f))(t)
		// 100 events are due while the one in flight is frozen; 50 of them fit.
		d := r.Measurement.Dropped
		assert.True(t, d >= 50 && d <= 52, "dropped %d, want about the 50 that do not fit into the buffer", d)
	})
}

// The buffer is shared evenly, and a full lane is checked again when the share of one stream is full.
func TestBufferOfStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(RoundRobin(4), 1, frozen(time.Second))
		r := assert.Value(Fire(t.Context(), Plan{
			Schedule: Ramp(100, 300, 3*time.Second), BatchEvents: 1, MaxInFlight: 1, Overload: Drop, BufferBytes: 500, EventBytes: 10,
			Measurement: Limits{Time: 3 * time.Second}, Portable: true,
		}, f))(t)
		// From 1 s to 1.5 s 92 events are due while one is frozen; each of four streams has room for 12.5.
		d := r.Measurement.Dropped
		assert.True(t, d >= 38 && d <= 44, "dropped %d, want about the 42 that do not fit into the buffer", d)
		m := &r.Measurement
		assert.Equal(t, m.Acked+m.Dropped+m.Failed+m.Unknown+m.Unsent, 600, "events accounted for")
	})
}

func TestBlocks(t *testing.T) {
	for _, tt := range []struct {
		name        string
		partitioner Partitioner
		stream      int32
		k, want     uint64
		streams     int
	}{
		{"single", Single(), 0, 12345, 12345, 1},
		{"round robin, first", RoundRobin(12), 3, 0, 3, 12},
		{"round robin, later", RoundRobin(12), 3, 10, 123, 12},
		{"blocks, within", Blocks(4, 100), 1, 99, 199, 4},
		{"blocks, next round", Blocks(4, 100), 1, 100, 500, 4},
		{"beyond all numbers", RoundRobin(3), 1, math.MaxUint64, math.MaxUint64, 3},
	} {
		assert.Equal(t, tt.partitioner.Event(tt.stream, tt.k), tt.want, "%s: Event(%d, %d)", tt.name, tt.stream, tt.k)
		assert.Equal(t, tt.partitioner.Streams(), tt.streams, "%s: streams", tt.name)
	}
}

func TestBlocksPartition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.IntRange(1, 40).Draw(t, "streams")
		n := rapid.Uint64Range(1, 50).Draw(t, "block")
		checkPartitioner(t, Blocks(s, n))
	})
}

// checkPartitioner checks that every event of a random window belongs to exactly one stream, and that Event and Before agree.
func checkPartitioner(t *rapid.T, d Partitioner) {
	t.Helper()
	from := rapid.OneOf(rapid.Uint64Range(0, 5000), rapid.Uint64Range(0, 1<<40)).Draw(t, "from")
	const window = 300
	owner := map[uint64]int32{}
	var before uint64
	for s := range int32(d.Streams()) {
		lo, hi := d.Before(s, from), d.Before(s, from+window)
		before += lo
		for k := lo; k < hi; k++ {
			e := d.Event(s, k)
			assert.Must(t, e >= from && e < from+window, "event %d of stream %d is %d, outside [%d, %d)", k, s, e, from, from+window)
			if other, taken := owner[e]; taken {
				t.Fatalf("event %d belongs to streams %d and %d", e, other, s)
			}
			owner[e] = s
			if got := d.Before(s, e); got != k {
				t.Fatalf("Before(%d, %d) = %d, but that event is number %d of the stream", s, e, got, k)
			}
			if got := d.Before(s, e+1); got != k+1 {
				t.Fatalf("Before(%d, %d) = %d, want %d", s, e+1, got, k+1)
			}
		}
	}
	assert.Must(t, before == from, "%d of the first %d events divided", before, from)
	assert.Must(t, len(owner) == window, "%d events of a window of %d divided", len(owner), window)
}

func TestSequencePartition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.IntRange(1, 12).Draw(t, "streams")
		cycle := rapid.SliceOfN(rapid.Int32Range(0, int32(s-1)), 1, 200).Draw(t, "cycle")
		checkPartitioner(t, Sequence(cycle, s))
	})
}

func TestSequence(t *testing.T) {
	d := Sequence([]int32{2, 0, 2, 2}, 4)
	var got []uint64
	for k := range uint64(5) {
		got = append(got, d.Event(2, k))
	}
	assert.Same(t, got, []uint64{0, 2, 3, 4, 6})
	assert.Equal(t, d.Event(1, 0), math.MaxUint64, "event of a stream outside the cycle")
	assert.Equal(t, d.Before(1, 100), 0, "a stream outside the cycle events")
	assert.Equal(t, d.Event(0, math.MaxUint64), math.MaxUint64, "an event beyond all numbers")
}

func TestWholeShares(t *testing.T) {
	for _, tt := range []struct {
		name    string
		weights []float64
		want    []int
	}{
		{"percent", []float64{0.7, 0.3}, []int{7, 3}},
		{"thirds", []float64{1. / 3, 2. / 3}, []int{1, 2}},
		{"equal", []float64{5, 5, 5}, []int{1, 1, 1}},
		{"one has none", []float64{0, 4, 2}, []int{0, 2, 1}},
		{"hardly any", []float64{1e-9, 1}, []int{1, 65536}},
		{"no ratio", []float64{math.Pi, math.E}, []int{35135, 30401}},
		{"tiny numbers", []float64{1e-300, 3e-300}, []int{16384, 49152}},
	} {
		assert.Same(t, wholeShares(tt.weights), tt.want, tt.name)
	}
}

func TestWeightedIsSpread(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.Map(rapid.IntRange(1, 100), func(i int) float64 { return float64(i) / 10 }), 1, 10).Draw(t, "weights")
		d := Weighted(weights)
		checkPartitioner(t, d)
		var sum float64
		for _, w := range weights {
			sum += w
		}
		n := rapid.Uint64Range(0, 100_000).Draw(t, "n")
		for i, w := range weights {
			got, want := float64(d.Before(int32(i), n)), float64(n)*w/sum
			if math.Abs(got-want) > float64(len(weights)) {
				t.Fatalf("stream %d has %v of the first %d events, want about %v", i, got, n, want)
			}
		}
	})
}

func TestPartitionersPanic(t *testing.T) {
	for _, tt := range []struct {
		name string
		make func()
	}{
		{"no streams", func() { RoundRobin(0) }},
		{"no block", func() { Blocks(1, 0) }},
		{"no cycle", func() { Sequence(nil, 3) }},
		{"a stream below none", func() { Sequence([]int32{0, -1}, 3) }},
		{"a stream too many", func() { Sequence([]int32{0, 3}, 3) }},
		{"no weights", func() { Weighted(nil) }},
		{"only zero weights", func() { Weighted([]float64{0, 0}) }},
		{"a negative weight", func() { Weighted([]float64{1, -1}) }},
		{"not a number", func() { Weighted([]float64{math.NaN()}) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			defer func() { assert.True(t, recover() != nil, "no panic") }()
			tt.make()
		})
	}
}
