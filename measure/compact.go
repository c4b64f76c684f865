package measure

import (
	"encoding/binary"
	"math"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Compact returns a copy that keeps only the cells in use, one to a few bytes
// each: 188 KB shrink to some KB or less. Every method works on it; those that
// add observations make it large again.
func (h *Histogram) Compact() *Histogram {
	if h == nil {
		return nil
	}
	c := *h
	c.dense = nil
	if h.dense == nil {
		return &c // packed cells are never changed, only let go of, so copies share them
	}
	buf := make([]byte, 0, 256)
	next := 0
	h.eachCell(func(i int, n uint64) {
		buf = binary.AppendUvarint(buf, uint64(i-next))
		buf = binary.AppendUvarint(buf, n)
		next = i + 1
	})
	c.packed = append(make([]byte, 0, len(buf)), buf...) // no spare room: there are thousands of these
	return &c
}

// unpack makes room for every cell.
func (h *Histogram) unpack() {
	if h.dense != nil {
		return
	}
	h.dense = make([]uint64, cells)
	eachPacked(h.packed, func(i int, n uint64) { h.dense[i] += n })
	h.packed = nil
	if h.count == 0 {
		h.min = math.MaxInt64 // the zero Histogram is an empty one as well
	}
}

// eachPacked calls f with every cell that Compact wrote.
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

// ToHDR returns the observations as an HdrHistogram in microseconds, for
// encoding. Values above Highest, for which it has no cell, are counted at
// Highest, so that its count is the histogram's.
func (h *Histogram) ToHDR() *hdrhistogram.Histogram {
	out := hdrhistogram.New(1, int64(topUnit), 3)
	if h == nil {
		return out
	}
	h.eachCell(func(i int, n uint64) {
		_ = out.RecordValues(int64(cellTop(i)), int64(n)) // the geometry is the same: every cell is in range
	})
	if h.above > 0 {
		_ = out.RecordValues(int64(topUnit), int64(h.above))
	}
	return out
}
