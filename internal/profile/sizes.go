package profile

import (
	"maps"
	"math"
	"math/bits"
	"slices"
)

// Sizes counts numbers that are not negative, such as sizes in bytes. Up to maxExact distinct
// ones it is exact; beyond that a number is known to 1/256 of itself. Its memory is bounded by
// 64 KiB. The zero value is empty.
type Sizes struct {
	n        uint64
	sum      float64
	min, max int

	buckets []uint64
	small   int            // distinct ones below linear, which have a bucket each
	exact   map[int]uint64 // the others; nil once there are too many
	inexact bool
}

// maxExact limits the distinct numbers that are counted exactly.
const maxExact = 1024

// Numbers below linear have a bucket each; above it there are linear/2 for each power of two.
const linear = 512

func bucketOf(v int) int {
	if v < linear {
		return v
	}
	e := bits.Len(uint(v)) - 9
	return linear + (e-1)*linear/2 + (v>>e - linear/2)
}

// bucketRange returns the smallest and the largest number of a bucket.
func bucketRange(i int) (low, high int) {
	if i < linear {
		return i, i
	}
	e := (i-linear)/(linear/2) + 1
	low = (linear/2 + (i-linear)%(linear/2)) << e
	return low, low + 1<<e - 1
}

// Add counts v, n times.
func (s *Sizes) Add(v int, n uint64) {
	v = max(v, 0)
	if n == 0 {
		return
	}
	if s.n == 0 || v < s.min {
		s.min = v
	}
	s.max = max(s.max, v)
	s.n += n
	s.sum += float64(v) * float64(n)
	i := bucketOf(v)
	if i >= len(s.buckets) {
		s.buckets = append(s.buckets, make([]uint64, i+1-len(s.buckets))...)
	}
	if s.buckets[i] == 0 && v < linear {
		s.small++
	}
	s.buckets[i] += n
	if v < linear || s.inexact {
		return
	}
	if s.exact == nil {
		s.exact = map[int]uint64{}
	}
	s.exact[v] += n
	if len(s.exact)+s.small > maxExact {
		s.exact, s.inexact = nil, true
	}
}

// Count is how many numbers were counted.
func (s *Sizes) Count() uint64 { return s.n }

// Sum is their sum.
func (s *Sizes) Sum() float64 { return s.sum }

// Min is the smallest, and 0 without any.
func (s *Sizes) Min() int { return s.min }

// Max is the largest, and 0 without any.
func (s *Sizes) Max() int { return s.max }

// Mean is the mean; 0 without any.
func (s *Sizes) Mean() float64 {
	if s.n == 0 {
		return 0
	}
	return s.sum / float64(s.n)
}

// Exact reports whether each number was counted by itself.
func (s *Sizes) Exact() bool { return !s.inexact }

// A step is a range of numbers, and the share of those up to its end.
type step struct {
	low, high int
	count     uint64
	share     float64
}

// steps returns the numbers that occur, in order.
func (s *Sizes) steps() []step {
	var out []step
	if !s.inexact {
		for v, n := range s.buckets[:min(len(s.buckets), linear)] {
			if n > 0 {
				out = append(out, step{low: v, high: v, count: n})
			}
		}
		for _, v := range slices.Sorted(maps.Keys(s.exact)) {
			out = append(out, step{low: v, high: v, count: s.exact[v]})
		}
	} else {
		for i, n := range s.buckets {
			if n > 0 {
				low, high := bucketRange(i)
				out = append(out, step{low: max(low, s.min), high: min(high, s.max), count: n})
			}
		}
	}
	reached := uint64(0)
	for i := range out {
		reached += out[i].count
		out[i].share = float64(reached) / float64(s.n)
	}
	return out
}

// Quantile returns the number at a share q of them, from 0 to 1.
func (s *Sizes) Quantile(q float64) int { return quantileOf(s.steps(), []float64{q})[0] }

// Quantiles returns the numbers at n+1 equal steps of probability, from the smallest to the
// largest.
func (s *Sizes) Quantiles(n int) []int {
	at := make([]float64, n+1)
	for i := range at {
		at[i] = float64(i) / float64(n)
	}
	return quantileOf(s.steps(), at)
}

// quantileOf returns the quantiles at shares in ascending order, linear within a step.
func quantileOf(steps []step, at []float64) []int {
	out := make([]int, len(at))
	if len(steps) == 0 {
		return out
	}
	i, before := 0, 0.0
	for k, q := range at {
		for i < len(steps)-1 && steps[i].share < q-1e-12 {
			before = steps[i].share
			i++
		}
		s := steps[i]
		within := 1.0
		if s.share > before {
			within = min(max((q-before)/(s.share-before), 0), 1)
		}
		out[k] = s.low + int(math.Round(within*float64(s.high-s.low)))
	}
	return out
}

// below returns the share of the numbers that are at most v.
func below(steps []step, v int) float64 {
	i, found := slices.BinarySearchFunc(steps, v, func(s step, v int) int {
		switch {
		case s.high < v:
			return -1
		case s.low > v:
			return 1
		}
		return 0
	})
	before := 0.0
	if i > 0 {
		before = steps[i-1].share
	}
	if !found {
		return before
	}
	s := steps[i]
	return before + (s.share-before)*float64(v-s.low+1)/float64(s.high-s.low+1)
}

// Distance is the Kolmogorov-Smirnov distance of two samples: the largest difference of their
// distribution functions. It is 0 if one is empty.
func (s *Sizes) Distance(o *Sizes) float64 {
	if s.n == 0 || o.n == 0 {
		return 0
	}
	return s.distance(o, 1, 1)
}

// distance is that of two distributions of which the numbers have the shares p and q; what else they
// have is smaller than any number.
func (s *Sizes) distance(o *Sizes, p, q float64) float64 {
	a, b := s.steps(), o.steps()
	most := math.Abs(p - q)
	for _, list := range [][]step{a, b} {
		for _, st := range list {
			most = max(most, math.Abs(1-p+p*below(a, st.high)-(1-q+q*below(b, st.high))))
		}
	}
	return most
}
