package ledger

import (
	"math"
	"testing"

	"carronade/test/testkit/assert"
)

// A history has at least as many of the newest keys as it should, hardly more, and takes some five bytes
// for each.
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
	g.history.blocks[0].each(func(k key) {
		assert.Equal(t, k, want[i], "key %d", i)
		i++
	})
	assert.Equal(t, i, len(want), "keys")
}
