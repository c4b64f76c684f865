package riemannload

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"carronade/measure"
)

// A reservoir is the sample from which Yammer's timers compute percentiles: a
// forward-decaying sample (G. Cormode et al., 2009) of 1,028 values, mostly from
// about the last five minutes.
type reservoir struct {
	priorityHeap priorityHeap
	r            *rand.Rand
}

const (
	reservoirSize  = 1028
	reservoirAlpha = 0.015 // per second
)

func newReservoir() *reservoir { return &reservoir{r: rand.New(rand.NewPCG(1, 2))} }

// add offers all values of a histogram, as of their interval's end.
func (s *reservoir) add(h *measure.Histogram, at time.Duration) {
	weight := reservoirAlpha * at.Seconds()
	h.EachBucket(func(top time.Duration, n uint64) {
		for range n {
			// The logarithm of e^(alpha t) / u, which does not overflow within a
			// week.
			v := sampled{priority: weight - math.Log(1-s.r.Float64()), value: min(top, h.Max())}
			switch {
			case len(s.priorityHeap) < reservoirSize:
				heap.Push(&s.priorityHeap, v)
			case v.priority > s.priorityHeap[0].priority:
				s.priorityHeap[0] = v
				heap.Fix(&s.priorityHeap, 0)
			}
		}
	})
}

// quantile interpolates between the values around q*(n+1), as Yammer's snapshot
// does.
func (s *reservoir) quantile(q float64) time.Duration {
	n := len(s.priorityHeap)
	if n == 0 {
		return 0
	}
	values := make([]time.Duration, n)
	for i, k := range s.priorityHeap {
		values[i] = k.value
	}
	slices.Sort(values)
	switch pos := q * float64(n+1); {
	case pos < 1:
		return values[0]
	case pos >= float64(n):
		return values[n-1]
	default:
		low, high := values[int(pos)-1], values[int(pos)]
		return low + time.Duration((pos-math.Floor(pos))*float64(high-low))
	}
}

// A sampled is a value in the sample.
type sampled struct {
	priority float64
	value    time.Duration
}

// A priorityHeap is a heap whose first element has the lowest priority.
type priorityHeap []sampled

func (h priorityHeap) Len() int           { return len(h) }
func (h priorityHeap) Less(i, j int) bool { return h[i].priority < h[j].priority }
func (h priorityHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *priorityHeap) Push(v any)        { *h = append(*h, v.(sampled)) }
func (h *priorityHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
