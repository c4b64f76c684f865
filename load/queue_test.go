package load

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

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

// TestHeap: streams leave the heap in the order of their times, whatever was pushed meanwhile.
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
