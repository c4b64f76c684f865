package measure

import (
	"math"
	"math/bits"
)

// LeastOf returns a histogram of which each percentile is the least of those of hs. Its
// count is that of the first, its mean the least of their means. Empty histograms are
// ignored; if all are empty, the result is empty. hs are not changed.
func LeastOf(hs ...*Histogram) *Histogram {
	least := NewHistogram()
	least.unpack()
	var total uint64 // count of the first that is not empty
	cum := make([]uint64, cells)
	mean := math.Inf(1)
	for _, h := range hs {
		n := h.Count()
		if n == 0 {
			continue
		}
		if total == 0 {
			total = n
			least.max = h.max
		}
		// For the least percentile, take the largest share of values up to a cell.
		next, seen := 0, uint64(0)
		reach := func(until int) {
			share := scaled(seen, total, n)
			for ; next < until; next++ {
				cum[next] = max(cum[next], share)
			}
		}
		h.eachCell(func(i int, c uint64) {
			reach(i)
			seen += c
		})
		reach(cells)
		least.min, least.max = min(least.min, h.min), min(least.max, h.max)
		least.below = max(least.below, scaled(h.below, total, n))
		mean = min(mean, h.mean())
	}
	if total == 0 {
		return NewHistogram()
	}
	before := uint64(0)
	for i, c := range cum {
		least.dense[i] = c - before
		before = c
	}
	least.count, least.above = total, total-before
	integer := uint64(mean)
	least.sumHi, least.sumLo = bits.Mul64(integer, total)
	var carry uint64
	least.sumLo, carry = bits.Add64(least.sumLo, uint64((mean-float64(integer))*float64(total)), 0)
	least.sumHi += carry
	return least
}

// scaled returns part/of of total, rounded down.
func scaled(part, total, of uint64) uint64 {
	if total == of {
		return part
	}
	hi, lo := bits.Mul64(part, total)
	q, _ := bits.Div64(hi, lo, of)
	return q
}
