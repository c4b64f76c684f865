package load

import (
	"slices"
	"time"
)

// Frozen is when a process did not run: its newest freezes, in order.
type Frozen []freeze

type freeze struct{ from, to time.Duration }

// Add adds the newest freeze, and forgets the oldest if there are very many.
func (f *Frozen) Add(from, to time.Duration) {
	*f = append(*f, freeze{from, to})
	*f = slices.Delete(*f, 0, max(0, len(*f)-mostFreezes))
}

// Within returns how much of a span the process did not run.
func (f Frozen) Within(from, to time.Duration) (sum time.Duration) {
	for i := len(f) - 1; i >= 0 && f[i].to > from; i-- {
		sum += max(0, min(to, f[i].to)-max(from, f[i].from))
	}
	return sum
}

// Each calls a function with the freezes in order.
func (f Frozen) Each(do func(from, to time.Duration)) {
	for _, one := range f {
		do(one.from, one.to)
	}
}
