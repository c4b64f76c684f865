package measure

import (
	"math"
	"math/bits"
	"time"
)

// Range of a Histogram. Values outside it are counted separately.
const (
	Lowest  = time.Microsecond // the unit; Below counts shorter values
	Highest = time.Hour        // Above counts longer values

	// Over is returned for a percentile among the values above Highest: it is only
	// known to be more than an hour.
	Over = Highest + 1
)

// The geometry of an HdrHistogram of 1 us to 1 h with three significant digits
// (http://hdrhistogram.org; Java's AbstractHistogram.init): values up to 2,047 us have
// a cell each, and each power of two above is divided into 1,024 cells, so that the
// width of a cell is at most a thousandth of its values.
const (
	subBits = 11 // 2^11 is the first power of two of at least 2*10^3
	half    = 1 << (subBits - 1)
	octaves = 22 // the least n with 2^(subBits+n-1) us > 1 h
	cells   = (octaves + 1) * half
	topUnit = uint64(Highest / Lowest)
)

// A Histogram counts durations in the cells of an HdrHistogram (1 us to 1 h, three
// significant digits), and keeps count, sum, minimum and maximum exactly, to the
// nanosecond. A value is rounded up to a microsecond before it is counted in a cell, so
// that a percentile read from a cell is never too small.
//
// It is not safe for concurrent use: no method may run at the same time as one that
// changes it. Its methods do not fail; values out of range are counted (Below, Above)
// and included in count, sum, extremes and percentiles.
//
// The counters take 188 KB, allocated at the first Record or Merge. Compact returns a
// copy of some hundred bytes to a KB or two for the series, which should rarely be written
// to.
type Histogram struct {
	dense  []uint64 // all cells; nil while empty or packed
	packed []byte   // see packed.go; nil unless compact, immutable

	count        uint64
	sumLo, sumHi uint64 // ns, 128 bits: a week of ten million values/s of one second each exceeds 2^64 ns
	min, max     time.Duration
	below, above uint64
}

// NewHistogram returns an empty histogram.
func NewHistogram() *Histogram { return &Histogram{min: math.MaxInt64} }

// cell returns the index of the cell for us microseconds, which may lie beyond the last
// cell.
func cell(us uint64) int {
	shift := bits.Len64(us|(1<<subBits-1)) - subBits
	return shift<<(subBits-1) + int(us>>shift)
}

// cellTop returns the largest integer of microseconds that counts in cell i (HDR's
// "highest equivalent value"). The last cell ends with the range.
func cellTop(i int) uint64 {
	if i < 2*half {
		return uint64(i)
	}
	shift := i>>(subBits-1) - 1
	sub := uint64(i&(half-1) | half)
	return min((sub+1)<<shift-1, topUnit)
}

// units returns d in microseconds, rounded up. d is not negative.
func units(d time.Duration) uint64 {
	return (uint64(d) + uint64(Lowest) - 1) / uint64(Lowest)
}

// Record counts one duration. A negative one, which only a faulty clock produces,
// counts as zero.
func (h *Histogram) Record(d time.Duration) {
	// The hot path has one comparison for all values out of range, including negative
	// ones (they wrap around), and one for the missing counters of a new histogram,
	// which also saves the bounds check. It makes no allocation and no call.
	i := cell(units(d))
	if uint64(d)-uint64(Lowest) > uint64(Highest-Lowest) || i >= len(h.dense) {
		h.record(d, 1)
		return
	}
	h.dense[i]++
	h.count++
	var carry uint64
	h.sumLo, carry = bits.Add64(h.sumLo, uint64(d), 0)
	h.sumHi += carry
	if d < h.min {
		h.min = d
	}
	if d > h.max {
		h.max = d
	}
}

// RecordN counts n durations of the same length.
func (h *Histogram) RecordN(d time.Duration, n uint64) { h.record(d, n) }

func (h *Histogram) record(d time.Duration, n uint64) {
	if n == 0 {
		return
	}
	d = max(d, 0)
	h.unpack()
	us := units(d)
	switch {
	case us > topUnit:
		h.above += n
	default:
		h.dense[cell(us)] += n
		if d < Lowest {
			h.below += n
		}
	}
	hi, lo := bits.Mul64(uint64(d), n)
	h.add(n, hi, lo, d, d)
}

// add adds exact count, sum and extremes.
func (h *Histogram) add(n, sumHi, sumLo uint64, low, high time.Duration) {
	h.count += n
	var carry uint64
	h.sumLo, carry = bits.Add64(h.sumLo, sumLo, 0)
	h.sumHi, _ = bits.Add64(h.sumHi, sumHi, carry)
	h.min = min(h.min, low)
	h.max = max(h.max, high)
}

// RecordSpan counts n durations that lie evenly between from and to, both included (n =
// 1: only from): the response times of a batch whose events were due at a constant
// rate. It costs one step per cell between from and to instead of one per event. The
// order of from and to does not matter.
func (h *Histogram) RecordSpan(from, to time.Duration, n uint64) {
	from, to = max(from, 0), max(to, 0)
	if from > to {
		from, to = to, from
	}
	if n <= 2 || from == to {
		if n > 0 {
			h.record(from, (n+1)/2)
			h.record(to, n/2)
		}
		return
	}
	h.unpack()

	// The values are from + i*length/(n-1), i = 0..n-1, so the number of them
	// up to x is floor((x-from)*(n-1)/length) + 1. The product takes 128 bits.
	length, steps := uint64(to-from), n-1
	upTo := func(x time.Duration) uint64 {
		switch {
		case x < from:
			return 0
		case x >= to:
			return n
		}
		hi, lo := bits.Mul64(uint64(x-from), steps)
		q, _ := bits.Div64(hi, lo, length)
		return q + 1
	}

	counted := uint64(0)
	if from < Lowest {
		h.below += upTo(Lowest - 1)
	}
	last := min(units(to), topUnit)
	for us := units(from); us <= last; {
		i := cell(us)
		top := cellTop(i)
		c := upTo(time.Duration(top) * Lowest)
		h.dense[i] += c - counted
		counted = c
		us = top + 1
	}
	h.above += n - counted

	// Their sum is n*(from+to)/2; the half nanosecond that may be lost is below the
	// resolution of clocks.
	hi, lo := bits.Mul64(n, uint64(from)+uint64(to))
	h.add(n, hi>>1, hi<<63|lo>>1, from, to)
}

// Merge adds o's observations to h. o is not changed; nil adds nothing.
func (h *Histogram) Merge(o *Histogram) {
	if o == nil || o.count == 0 {
		return
	}
	h.unpack()
	o.eachCell(func(i int, n uint64) { h.dense[i] += n })
	h.below += o.below
	h.above += o.above
	h.add(o.count, o.sumHi, o.sumLo, o.min, o.max)
}

// Reset removes all values and keeps the memory.
func (h *Histogram) Reset() {
	if h.count > 0 && h.dense != nil {
		lo, hi := h.span()
		clear(h.dense[lo:hi])
	}
	*h = Histogram{dense: h.dense, min: math.MaxInt64}
}

// Clone returns an independent copy.
func (h *Histogram) Clone() *Histogram {
	c := NewHistogram()
	c.Merge(h)
	return c
}

// span returns the range of cells that may be nonzero. Minimum and maximum are exact,
// so recording need not keep it up to date.
func (h *Histogram) span() (lo, hi int) {
	if h.count == 0 {
		return 0, 0
	}
	return min(cell(units(h.min)), cells), min(cell(units(h.max))+1, cells)
}

// eachCell calls f with every nonzero cell, in ascending order.
func (h *Histogram) eachCell(f func(i int, n uint64)) {
	if h.dense == nil {
		eachPacked(h.packed, f)
		return
	}
	lo, hi := h.span()
	for i, n := range h.dense[lo:hi] {
		if n != 0 {
			f(lo+i, n)
		}
	}
}

// EachBucket calls f with every nonempty cell, in ascending order: its largest value
// and its count. Values above Highest come last, as Over.
func (h *Histogram) EachBucket(f func(top time.Duration, n uint64)) {
	if h == nil {
		return
	}
	h.eachCell(func(i int, n uint64) { f(time.Duration(cellTop(i))*Lowest, n) })
	if h.above > 0 {
		f(Over, h.above)
	}
}

// Count returns how many durations were counted, including those out of range; 0 for a
// nil histogram.
func (h *Histogram) Count() uint64 {
	if h == nil {
		return 0
	}
	return h.count
}

// Below returns how many were shorter than Lowest. They are also counted in the bottom
// cells.
func (h *Histogram) Below() uint64 {
	if h == nil {
		return 0
	}
	return h.below
}

// Above returns how many were longer than Highest.
func (h *Histogram) Above() uint64 {
	if h == nil {
		return 0
	}
	return h.above
}

// Min returns the shortest duration, exactly; 0 if nothing was counted.
func (h *Histogram) Min() time.Duration {
	if h.Count() == 0 {
		return 0
	}
	return h.min
}

// Max returns the longest duration, exactly; 0 if nothing was counted.
func (h *Histogram) Max() time.Duration {
	if h.Count() == 0 {
		return 0
	}
	return h.max
}

// Sum returns the sum in nanoseconds. It is kept in 128 bits and exact until its
// conversion to a float.
func (h *Histogram) Sum() float64 {
	if h.Count() == 0 {
		return 0
	}
	return float64(h.sumHi)*(1<<64) + float64(h.sumLo)
}

// Mean returns the mean, rounded to the nanosecond; 0 if nothing was counted.
func (h *Histogram) Mean() time.Duration { return time.Duration(math.Round(h.mean())) }

// mean returns the mean in nanoseconds.
func (h *Histogram) mean() float64 {
	if h.Count() == 0 {
		return 0
	}
	if h.sumHi == 0 {
		// Quotient and remainder separately, so that the mean of a long run stays exact
		// to the nanosecond.
		return float64(h.sumLo/h.count) + float64(h.sumLo%h.count)/float64(h.count)
	}
	return h.Sum() / float64(h.count)
}

// rank returns the rank, counted from 1 in ascending order, of percentile p of n
// observations: the nearest rank, ceil(p/100*n), as in Java's HdrHistogram. The product
// is first lowered by some units in its last place; otherwise 99.9 % of 1,000 would be
// the 1,000th and not the 999th.
func rank(p float64, n uint64) uint64 {
	want := p / 100 * float64(n)
	r := math.Ceil(want - want*1e-14)
	switch {
	case !(r >= 1):
		return 1
	case r >= float64(n):
		return n
	}
	return uint64(r)
}

// Percentile returns the value that p percent of the durations do not exceed: the top
// of the cell that contains the nearest rank, at most Max, or Over. It returns 0 if
// nothing was counted.
func (h *Histogram) Percentile(p float64) time.Duration {
	if h.Count() == 0 {
		return 0
	}
	var left [1]time.Duration
	h.percentiles([]float64{p}, h.count, left[:])
	return left[0]
}

// percentiles fills out with the values at ps, which ascend, in one pass. of is the
// total number of observations. h may lack some that are larger than all of its own:
// percentiles among those are left unchanged in out.
func (h *Histogram) percentiles(ps []float64, of uint64, out []time.Duration) {
	k, seen := 0, uint64(0)
	h.EachBucket(func(top time.Duration, n uint64) {
		seen += n
		for k < len(ps) && rank(ps[k], of) <= seen {
			// The exact maximum may be below the top of its cell.
			out[k] = min(top, max(h.max, 0))
			k++
		}
	})
}

// Equal reports whether h and o contain the same observations, as far as histograms
// distinguish them. Nil is equal only to nil.
func (h *Histogram) Equal(o *Histogram) bool {
	if h == nil || o == nil {
		return h == o
	}
	if h.count != o.count || h.sumHi != o.sumHi || h.sumLo != o.sumLo || h.below != o.below ||
		h.above != o.above || h.Min() != o.Min() || h.Max() != o.Max() {
		return false
	}
	a, b := h.Compact(), o.Compact()
	return string(a.packed) == string(b.packed)
}
