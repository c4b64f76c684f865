package ledger

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

// TestCovers compares covers with plain sets of offsets.
func TestCovers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// Most special cases are at the ends of words and of the window.
		base := rapid.SampledFrom([]int32{0, 60, windowSize - 200}).Draw(t, "base")
		fill := func(label string) (c cover, set map[int32]bool) {
			set = map[int32]bool{}
			end := base
			for range rapid.IntRange(0, 6).Draw(t, label) {
				lo := end
				if rapid.Bool().Draw(t, "gap") {
					lo += rapid.Int32Range(0, 70).Draw(t, "gap of")
				}
				lo = min(lo, windowSize-1)
				hi := lo + rapid.Int32Range(1, 100).Draw(t, "n")
				c.add(lo, hi)
				for i := lo; i < hi; i++ {
					set[i] = true
				}
				if end = hi; end >= windowSize {
					break
				}
			}
			return c, set
		}
		a, inA := fill("a")
		b, inB := fill("b")
		limit := int64(base) + rapid.Int64Range(-100, 600).Draw(t, "limit")
		if limit > windowSize {
			limit = everything
		}
		var want, got [4]uint64
		for i := range int32(windowSize + 200) {
			switch {
			case int64(i) >= limit:
				if inA[i] {
					want[3]++
				}
			case inA[i] && inB[i]:
				want[2]++
			case inA[i]:
				want[0]++
			case inB[i]:
				want[1]++
			}
		}
		got[0], got[1], got[2], got[3] = compare(&a, &b, limit)
		assert.Must(t, got == want, "only a, only b, both, beyond: %v, want %v", got, want)

		lo, hi := base, min(base+500, windowSize)
		spanned := map[int32]bool{}
		for _, s := range a.spans(lo, hi) {
			for i := s.lo; i < s.hi; i++ {
				spanned[int32(i)] = true
			}
		}
		for i := lo; i < hi; i++ {
			if spanned[i] != inA[i] {
				t.Fatalf("spans have offset %d: %v, want %v", i, spanned[i], inA[i])
			}
		}
	})
}

func TestRanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r ranges
		set := map[uint64]bool{}
		for range rapid.IntRange(0, 20).Draw(t, "n") {
			lo := rapid.Uint64Range(0, 100).Draw(t, "lo")
			hi := lo + rapid.Uint64Range(0, 20).Draw(t, "length")
			r.add(lo, hi)
			for i := lo; i < hi; i++ {
				set[i] = true
			}
		}
		for i := 1; i < len(r.spans); i++ {
			assert.Must(t, r.spans[i].lo > r.spans[i-1].hi, "spans touch: %v", r.spans)
		}
		lo := rapid.Uint64Range(0, 110).Draw(t, "from")
		hi := lo + rapid.Uint64Range(0, 40).Draw(t, "to")
		in, out := r.cut(lo, hi)
		got := map[uint64]bool{}
		for _, s := range in {
			for i := s.lo; i < s.hi; i++ {
				got[i] = true
			}
		}
		for i := lo; i < hi; i++ {
			if got[i] != set[i] {
				t.Fatalf("%d is in: %v, want %v", i, got[i], set[i])
			}
		}
		assert.Must(t, length(in)+length(out) == hi-lo && r.count(lo, hi) == length(in), "%v and %v are not [%d, %d)", in, out, lo, hi)
	})
}

// TestUnreadSums stops reading in the middle of a window that keeps only sums, after
// losses, and removes the beginning of the log.
func TestUnreadSums(t *testing.T) {
	const n = 2*windowSize + 1000
	l := New(Config{Logs: 1, LogOf: sameLog})
	for i := range int64(n) {
		l.Fired([]load.Outcome{ack(uint64(i), 1, i, uint32(i+1))})
	}
	l.logs[0].foldAll(len(l.logs[0].windows))
	// The first window is not read, of the second all up to 1000 except one event, and nothing of the third.
	for i := int64(windowSize); i < windowSize+1000; i++ {
		if i != windowSize+500 {
			l.Arrived([]load.Arrival{piece1(i, 1, uint32(i+1))})
		}
	}
	want := measure.Ledger{Acked: n, Read: 999, Lost: windowSize + 1, Unread: n - windowSize - 1000, Inexact: 999}
	assert.Same(t, totals(l.Verdict(nil, nil)), want, "lost")
	for _, end := range []int64{windowSize - 7, windowSize, windowSize + 600} {
		l.Removed(0, 0, end)
		want.Removed = uint64(min(end, windowSize))
		if end > windowSize+500 {
			want.Removed++
		}
		want.Lost, want.Unread = windowSize+1-want.Removed, n-windowSize-1000+want.Removed
		assert.Same(t, totals(l.Verdict(nil, nil)), want, "removed up to %d", end)
	}
}

func TestUnreadStamps(t *testing.T) {
	l := one(true, 0)
	l.Fired([]load.Outcome{ack(0, 10, 100, 0)})
	a := piece1(100, 4, 0)
	for i := range 4 {
		a.Stamps = append(a.Stamps, load.Stamp{Run: thisRun, Index: uint64(i), Offset: 100 + int64(i)})
	}
	l.Arrived([]load.Arrival{a})
	want := measure.Ledger{Acked: 10, Read: 4, Unread: 6}
	assert.Same(t, totals(l.Verdict(nil, nil)), want, "unread")
	want.Complete, want.Lost, want.Unread = true, 6, 0
	assert.Same(t, totals(l.Verdict(whole(l, true), nil)), want, "lost")
	l.Removed(0, 100, 101)
	want.Lost, want.Unread, want.Removed = 5, 1, 1
	assert.Same(t, totals(l.Verdict(whole(l, true), nil)), want, "deleted")
}

// TestInterleavedStreams delays a log of two streams until the rest is compressed to one entry of each, and
// lets it continue: the order must not depend on where those entries begin.
func TestInterleavedStreams(t *testing.T) {
	l := New(Config{Logs: 1, LogOf: sameLog})
	g := &l.logs[0]
	g.compressMin, g.compressAt = 10, 10
	g.inOrder = false
	fire := func(i int64, stream int32, first uint64) {
		o := ack(first, 1, i, uint32(i+1))
		o.Stream = stream
		l.Fired([]load.Outcome{o})
	}
	const n = 100
	for i := range int64(n) {
		l.Arrived([]load.Arrival{piece1(i, 1, uint32(i+1))})
	}
	for i := int64(1); i < n; i++ {
		fire(i, int32(i%2), uint64(10+i/2))
	}
	assert.Must(t, g.entries <= 20, "%d entries are left of %d: nothing is interleaved", g.entries, n)
	fire(0, 0, 5)
	// The last one comes after all others of its stream in the log.
	l.Arrived([]load.Arrival{piece1(n, 1, n+1), piece1(n+1, 1, n+2)})
	fire(n, 1, 9)
	fire(n+1, 1, 1000)
	want := measure.Ledger{Complete: true, Acked: n + 2, Read: n + 2, Reordered: 1}
	assert.Same(t, totals(l.Verdict(whole(l, true), nil)), want)
}

// TestAfterDecisions recreates a log: events that come after everything so far are in order; for others the order is not known.
func TestAfterDecisions(t *testing.T) {
	l := New(Config{Logs: 1, LogOf: sameLog})
	for i := range int64(10) {
		l.Fired([]load.Outcome{ack(uint64(i), 1, i, uint32(i+1))})
		l.Arrived([]load.Arrival{piece1(i, 1, uint32(i+1))})
	}
	l.Fired([]load.Outcome{ack(10, 1, 0, 50), ack(4, 1, 1, 51), ack(11, 1, 2, 52)})
	l.Arrived([]load.Arrival{piece1(0, 1, 50), piece1(1, 1, 51), piece1(2, 1, 52)})
	want := measure.Ledger{Complete: true, Acked: 13, Read: 13, Inexact: 1}
	assert.Same(t, totals(l.Verdict(whole(l, true), nil)), want)
}

// TestSkippedHoles reads in order past holes and a lost piece, with the answers of
// several windows waiting beyond: these must not be removed with the decided entries.
func TestSkippedHoles(t *testing.T) {
	l := New(Config{Logs: 1, LogOf: sameLog})
	g := &l.logs[0]
	g.compressMin, g.compressAt = 10, 10
	const step, n = 1000, 200 // six windows
	place := func(i int64) int64 { return i*step + 7*(1+i/5) }
	for i := range int64(n) {
		l.Fired([]load.Outcome{ack(uint64(i)*step, step, place(i), uint32(i+1))})
	}
	for i := range int64(n) {
		if i != 3 {
			l.Arrived([]load.Arrival{piece1(place(i), step, uint32(i+1))})
		}
	}
	assert.True(t, g.next >= (n-20)*step, "decided only up to %d of %d", g.next, n*step)
	want := measure.Ledger{Complete: true, Acked: n * step, Read: (n - 1) * step, Lost: step}
	assert.Same(t, totals(l.Verdict(whole(l, true), nil)), want)
}

// An acked piece whose window keeps only sums, and which is found in another window, is
// not lost: its stamps show that it is one of those that were acked there.
func TestFoundInAnotherWindowIsNotLost(t *testing.T) {
	l := New(Config{Logs: 1, LogOf: func(int32) int32 { return 0 }, RunID: thisRun, Stamped: true})
	l.Fired([]load.Outcome{{Batch: load.Batch{Events: 3}, Acked: 3, Sum: 9, Place: windowSize - 3}})
	g := &l.logs[0]
	g.fold(g.windows[0])
	a := load.Arrival{Base: windowSize, Events: 3, Sum: 9, ProducerID: -1}
	for i := range a.Events {
		a.Stamps = append(a.Stamps, load.Stamp{Run: thisRun, Index: uint64(i), Offset: windowSize + int64(i)})
	}
	l.Arrived([]load.Arrival{a})
	v := l.Verdict(whole(l, true), nil)
	assert.True(t, v.Lost == 0 && v.Inexact >= 3 && v.Recovered == 0, "verdict %+v; want nothing lost, and 3 inexact", v)
}

// A piece that was sent but dropped because memory was short may be the one that was
// read and cannot be identified: events after it may then be late.
func TestNoOrderIsClaimedAfterDroppedPieces(t *testing.T) {
	piece := func(first uint64, sum uint32) load.Outcome {
		return load.Outcome{Batch: load.Batch{First: first, Events: 2}, Unknown: 2, Sum: sum, Place: -1}
	}
	read := func(base int64, sum uint32) load.Arrival {
		return load.Arrival{Base: base, Events: 2, Sum: sum, ProducerID: -1}
	}
	for _, tt := range []struct {
		name           string
		dropped, known uint64 // first indices
		want           uint64 // inexact
	}{{"smaller", 0, 2, 2}, {"larger", 2, 0, 4}} {
		t.Run(tt.name, func(t *testing.T) {
			l := New(Config{Logs: 1, LogOf: func(int32) int32 { return 0 }})
			g := &l.logs[0]
			g.fired(new(piece(tt.known, 8)))
			l.used.Add(2 * l.limit)
			g.fired(new(piece(tt.dropped, 9)))
			l.used.Add(-2 * l.limit)
			l.Arrived([]load.Arrival{read(0, 9), read(2, 8)})
			v := l.Verdict(whole(l, true), nil)
			assert.True(t, v.Inexact == tt.want && v.Recovered == 2 && v.Reordered == 0, "verdict %+v; want %d inexact, and 2 recovered", v, tt.want)
		})
	}
}

// A history has at least as many of the newest keys as it should, hardly more, and takes some five bytes for each.
func TestHistory(t *testing.T) {
	for _, most := range []int{256, 1000, 20_000} {
		l := one(false, int64(most)*64)
		g := &l.logs[0]
		assert.Must(t, g.history.max == most, "it remembers %d keys, want %d", g.history.max, most)
		nth := func(i int) key { return key{uint32(i) * 2654435761, int32(i%120 + 1)} }
		for i := range 3 * most {
			g.remember(nth(i))
			newest, have := i, 0
			if i%97 > 0 && i < 3*most-1 {
				continue
			}
			for b := len(g.history.blocks) - 1; b >= 0; b-- {
				var keys []key
				g.history.blocks[b].each(func(k key) { keys = append(keys, k) })
				for at := len(keys) - 1; at >= 0; at-- {
					assert.Must(t, keys[at] == nth(newest), "after %d: key %d is %v, want %v", i, newest, keys[at], nth(newest))
					newest--
					have++
				}
			}
			if size := g.history.blockKeys(); have < min(i+1, most) || have > most+2*size || g.history.evicted != (have <= i) {
				t.Fatalf("after %d: %d keys, want %d and at most %d more; evicted: %v", i, have, most, 2*size, g.history.evicted)
			}
		}
		bytes := 0
		for _, b := range g.history.blocks {
			bytes += cap(b.data)
		}
		assert.True(t, int64(bytes) == g.bytes && bytes <= 6*most+2*6*g.history.blockKeys(),
			"%d keys take %d bytes, and %d are counted", most, bytes, g.bytes)
	}
}

// Keys of any number of events are found again.
func TestHistoryOfLargePieces(t *testing.T) {
	l := one(false, 1<<20)
	g := &l.logs[0]
	want := []key{{0, 1}, {math.MaxUint32, math.MaxInt32}, {7, 127}, {7, 128}, {8, 1 << 20}}
	for _, k := range want {
		g.remember(k)
	}
	i := 0
	g.history.blocks[0].each(func(k key) { assert.Equal(t, k, want[i], "key %d", i); i++ })
	assert.Equal(t, i, len(want), "keys")
}
