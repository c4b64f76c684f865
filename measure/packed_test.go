package measure

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"carronade/test/testkit/assert"
)

type packedCell struct {
	i int
	n uint64
}

func unpacked(packed []byte) (out []packedCell) {
	eachPacked(packed, func(i int, n uint64) { out = append(out, packedCell{i, n}) })
	return out
}

// Any cells with any counts come back, and the same cells make the same bytes.
func TestPackedCells(t *testing.T) {
	counts := rapid.OneOf(
		rapid.Uint64Range(1, 3), rapid.Uint64Range(1, 300), rapid.Uint64Range(1, 1<<40),
		rapid.SampledFrom([]uint64{1, math.MaxUint32, math.MaxUint32 + 1, math.MaxInt64, 1 << 63, math.MaxUint64}),
	)
	skips := rapid.OneOf(rapid.Just(0), rapid.IntRange(0, 3), rapid.IntRange(0, 2000))
	rapid.Check(t, func(t *rapid.T) {
		var want []packedCell
		w, again := newCellWriter(nil), newCellWriter(nil)
		next := 0
		for range rapid.IntRange(0, 400).Draw(t, "cells") {
			c := packedCell{next + skips.Draw(t, "skip"), counts.Draw(t, "count")}
			next = c.i + 1
			want = append(want, c)
			w.add(c.i, c.n)
			again.add(c.i, c.n)
		}
		packed := w.pack()
		if got := unpacked(packed); !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
		if string(packed) != string(again.pack()) {
			t.Fatal("the same cells make other bytes")
		}
	})
}

// What a histogram takes in the series of a run, for the kinds of times that runs have.
func TestPackedSize(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	random := func(n int, of func() float64) *Histogram {
		h := NewHistogram()
		for range n {
			h.Record(time.Duration(of() * float64(time.Millisecond)))
		}
		return h
	}
	even := NewHistogram()
	even.RecordSpan(0, 5*time.Millisecond, 20_000)
	for _, tt := range []struct {
		name string
		h    *Histogram
		most int // bytes
	}{
		{"one value", random(1, func() float64 { return 1 }), 10},
		{"one value, often", random(20_000, func() float64 { return 1 }), 12},
		{"batching", even, 1700},
		{"200 answers within a millisecond", random(200, func() float64 { return 0.3 + 0.1*rng.ExpFloat64() }), 90},
		{"20,000 events around a millisecond", random(20_000, func() float64 { return 1 + 0.1*rng.NormFloat64() }), 500},
		{"20,000 events, a wide tail", random(20_000, func() float64 { return 0.2 + 2*rng.ExpFloat64() }), 2500},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := tt.h.Compact()
			used := len(unpacked(c.packed))
			t.Logf("%d cells in %d bytes", used, len(c.packed))
			assert.True(t, len(c.packed) <= tt.most, "%d cells take %d bytes, want at most %d", used, len(c.packed), tt.most)
		})
	}
}

func BenchmarkCompact(b *testing.B) {
	h := skewed(100_000)
	b.ReportAllocs()
	size := 0
	for b.Loop() {
		size = len(h.Compact().packed)
	}
	b.ReportMetric(float64(size), "B")
}

func BenchmarkEachPacked(b *testing.B) {
	h := skewed(100_000).Compact()
	cells := 0
	for b.Loop() {
		cells = 0
		eachPacked(h.packed, func(int, uint64) { cells++ })
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(cells), "ns/cell")
}
