package load

import (
	"math"
	"testing"

	"carronade/test/testkit/assert"

	"pgregory.net/rapid"
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
