package measure

import (
	"math"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Compact returns a copy that keeps only the cells in use, in some bits each: 188 KB
// shrink to a KB or less. Every method works on it; those that add observations
// expand it again.
func (h *Histogram) Compact() *Histogram {
	if h == nil {
		return nil
	}
	c := *h
	c.dense = nil
	if h.dense == nil {
		return &c // packed cells are immutable, so copies may share them
	}
	w := newCellWriter(make([]byte, 0, 1024))
	h.eachCell(w.add)
	c.packed = w.pack()
	return &c
}

// mergeCompact returns the observations of both, compactly; nil when both are nil. It
// reads the packed cells directly: a long run joins intervals all the time, and
// expanding their cells would be 188 KB of garbage for each.
func mergeCompact(a, b *Histogram) *Histogram {
	switch {
	case a == nil && b == nil:
		return nil
	case a.Count() == 0 && b.Count() == 0:
		return NewHistogram()
	case a.Count() == 0:
		return b.Compact()
	case b.Count() == 0:
		return a.Compact()
	}
	a, b = a.Compact(), b.Compact()
	out := &Histogram{min: a.min, max: a.max, count: a.count, sumLo: a.sumLo, sumHi: a.sumHi, below: a.below + b.below, above: a.above + b.above}
	out.add(b.count, b.sumHi, b.sumLo, b.min, b.max)
	w := newCellWriter(make([]byte, 0, len(a.packed)+len(b.packed)))
	x, y := newCellReader(a.packed), newCellReader(b.packed)
	for !x.end || !y.end {
		switch {
		case x.end || !y.end && y.cell < x.cell:
			w.add(y.cell, y.count)
			y.step()
		case !y.end && y.cell == x.cell:
			w.add(x.cell, x.count+y.count)
			x.step()
			y.step()
		default:
			w.add(x.cell, x.count)
			x.step()
		}
	}
	out.packed = w.pack()
	return out
}

// unpack expands the histogram to all cells.
func (h *Histogram) unpack() {
	if h.dense != nil {
		return
	}
	h.dense = make([]uint64, cells)
	eachPacked(h.packed, func(i int, n uint64) { h.dense[i] += n })
	h.packed = nil
	if h.count == 0 {
		h.min = math.MaxInt64 // the zero Histogram is empty, too
	}
}

// ToHDR returns the observations as an HdrHistogram in microseconds, for encoding.
// Values above Highest, for which it has no cell, are counted at Highest, so that both
// have the same count.
func (h *Histogram) ToHDR() *hdrhistogram.Histogram {
	out := hdrhistogram.New(1, int64(topUnit), 3)
	if h == nil {
		return out
	}
	h.eachCell(func(i int, n uint64) {
		_ = out.RecordValues(int64(cellTop(i)), int64(n)) // cannot fail: both have the same cells
	})
	if h.above > 0 {
		_ = out.RecordValues(int64(topUnit), int64(h.above))
	}
	return out
}
