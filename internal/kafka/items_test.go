package kafka

import (
	"testing"

	"carronade/test/testkit/assert"

	"pgregory.net/rapid"
)

// TestItems: the items of a list have the order in which they were added, and come
// again if they are recycled.
func TestItems(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		type item struct {
			part   int32
			offset int64
		}
		list := &items{recycle: rapid.Bool().Draw(t, "recycle")}
		var want []item
		for range rapid.IntRange(0, 20).Draw(t, "spans") {
			part, from := rapid.Int32Range(0, 3).Draw(t, "partition"), rapid.Int64Range(0, 40).Draw(t, "offset")
			n := rapid.Uint64Range(0, 5).Draw(t, "items")
			list.add(part, from, n)
			for i := range n {
				want = append(want, item{part, from + int64(i)})
			}
		}
		for n := range uint64(len(want)) {
			part, offset, left := list.at(n)
			if left == 0 || (item{part, offset}) != want[n] {
				t.Fatalf("item %d is offset %d of partition %d, with %d left; want %+v", n, offset, part, left, want[n])
			}
			for i := range min(left, len(want)-int(n)) {
				if next := want[int(n)+i]; next != (item{part, offset + int64(i)}) {
					t.Fatalf("item %d, %d after item %d, is %+v", int(n)+i, i, n, next)
				}
			}
		}
		_, _, left := list.at(uint64(len(want)))
		if again := list.recycle && len(want) > 0; (left > 0) != again {
			t.Fatalf("after the last of %d items there are %d, recycled %v", len(want), left, list.recycle)
		}
	})
}

// TestWholeTopic: every record between the starts and the ends is one item.
func TestWholeTopic(t *testing.T) {
	t.Parallel()
	starts, ends := []int64{0, 100, 7, 5000}, []int64{3000, 100, 8, 9000}
	list := wholeTopic(starts, ends, false)
	assert.Must(t, list.n == 3000+1+4000, "%d items, want 7001", list.n)
	seen := map[[2]int64]bool{}
	turns, last := 0, int32(-1)
	for n := range list.n {
		part, offset, _ := list.at(n)
		assert.Must(t, offset >= starts[part] && offset < ends[part] && !seen[[2]int64{int64(part), offset}],
			"item %d is offset %d of partition %d, again or outside", n, offset, part)
		seen[[2]int64{int64(part), offset}] = true
		if part != last {
			turns, last = turns+1, part
		}
	}
	assert.True(t, turns >= 6, "the partitions took %d turns: they should alternate", turns)
}
