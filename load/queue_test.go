package load

import (
	"math/rand/v2"
	"slices"
	"testing"
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
		if !slices.Equal(got, all) {
			t.Fatalf("from %d on there are %v, want %v", from, got, all)
		}
	}
}
