package measure

import (
	"encoding/binary"
	"math"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Compact returns a copy that keeps only the cells in use, in a few bytes each: 188 KB
// shrink to some KB or less. Every method works on it; those that add observations
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
	buf := make([]byte, 0, 256)
	next := 0
	h.eachCell(func(i int, n uint64) {
		buf = binary.AppendUvarint(buf, uint64(i-next))
		buf = binary.AppendUvarint(buf, n)
		next = i + 1
	})
	c.packed = append(make([]byte, 0, len(buf)), buf...) // without spare capacity: there are thousands of these
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
	buf := make([]byte, 0, len(a.packed)+len(b.packed))
	x, y := newPackedReader(a.packed), newPackedReader(b.packed)
	next := 0
	for !x.end || !y.end {
		i, n := x.cell, x.count
		switch {
		case x.end || !y.end && y.cell < x.cell:
			i, n = y.cell, y.count
			y.step()
		case !y.end && y.cell == x.cell:
			n += y.count
			x.step()
			y.step()
		default:
			x.step()
		}
		buf = binary.AppendUvarint(buf, uint64(i-next))
		buf = binary.AppendUvarint(buf, n)
		next = i + 1
	}
	out.packed = append(make([]byte, 0, len(buf)), buf...)
	return out
}

// A packedReader steps through packed cells.
type packedReader struct {
	rest  []byte
	cell  int
	count uint64
	end   bool
}

// newPackedReader returns a reader at the first cell.
func newPackedReader(packed []byte) *packedReader {
	w := &packedReader{rest: packed, cell: -1}
	w.step()
	return w
}

func (w *packedReader) step() {
	if w.end = len(w.rest) == 0; w.end {
		return
	}
	skip, k := binary.Uvarint(w.rest)
	n, l := binary.Uvarint(w.rest[k:])
	w.rest = w.rest[k+l:]
	w.cell, w.count = w.cell+1+int(skip), n
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

// eachPacked calls f with every cell packed by Compact.
func eachPacked(p []byte, f func(i int, n uint64)) {
	next := 0
	for len(p) > 0 {
		skip, k := binary.Uvarint(p)
		n, l := binary.Uvarint(p[k:])
		p = p[k+l:]
		i := next + int(skip)
		f(i, n)
		next = i + 1
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
