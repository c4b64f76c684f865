package load

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"carronade/test/testkit/assert"
)

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
		t.Run(tt.name, func(t *testing.T) {
			assert.Equal(t, tt.partitioner.Event(tt.stream, tt.k), tt.want, "Event(%d, %d)", tt.stream, tt.k)
			assert.Equal(t, tt.partitioner.Streams(), tt.streams, "streams")
		})
	}
}

func TestBlocksPartition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.IntRange(1, 40).Draw(t, "streams")
		n := rapid.Uint64Range(1, 50).Draw(t, "block")
		checkPartitioner(t, Blocks(s, n))
	})
}

// checkPartitioner checks that every event of a random window belongs to exactly one
// stream, and that Event and Before agree.
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
			if e < from || e >= from+window {
				t.Fatalf("event %d of stream %d is %d, outside [%d, %d)", k, s, e, from, from+window)
			}
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
	if before != from {
		t.Fatalf("%d of the first %d events divided", before, from)
	}
	if len(owner) != window {
		t.Fatalf("%d events of a window of %d divided", len(owner), window)
	}
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
		t.Run(tt.name, func(t *testing.T) { assert.Same(t, wholeShares(tt.weights), tt.want) })
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
