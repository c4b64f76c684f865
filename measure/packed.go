package measure

import (
	"encoding/binary"
	"math/bits"
)

// The packed form of a histogram's cells is a string of bits. Each cell in use has two
// numbers: how many cells were skipped before it, and the difference between its count
// and the one expected from the counts before it. Neighbouring counts are similar, so
// both numbers are small. They are written as Rice codes, whose parameter follows the
// size of the numbers before. A cell takes some five bits while it counts a few dozen
// values. The same cells always make the same bytes.
//
// The last byte is filled with ones, which begin no complete code. Packed cells are made
// here only: what comes from elsewhere is decoded, checked and packed.

// riceEscape is how many ones begin a number that is too large for its parameter; its
// length in bits and its bits follow.
const riceEscape = 24

// A rice follows the size of the numbers of one kind.
type rice struct{ sum, n uint64 }

// parameter returns how many low bits are written as they are: the least k with which the
// mean of the numbers before is at most 2^k.
func (r *rice) parameter() uint {
	k := max(bits.Len64(r.sum)-bits.Len64(r.n), 0)
	if r.n<<k < r.sum {
		k++
	}
	return uint(min(k, 32))
}

// add takes in the next number, which was coded with parameter k. A single large one does
// not count in full.
func (r *rice) add(v uint64, k uint) {
	r.sum += min(v, 8<<k)
	if r.n++; r.n == 16 {
		r.sum, r.n = r.sum/2, r.n/2
	}
}

// A cellModel is what the codes of the next cell depend on. Reader and writer go through
// the same states.
type cellModel struct {
	next   int    // the cell after the newest
	expect uint64 // the next count
	skips  rice
	diffs  rice
}

func newCellModel() cellModel {
	return cellModel{skips: rice{n: 1}, diffs: rice{sum: 4, n: 1}}
}

// follow takes in a cell, which was coded with the given numbers and parameters.
func (m *cellModel) follow(i int, n, skip, diff uint64, ks, kd uint) {
	if m.next > 0 { // the first skip is the distance from zero, and like no other
		m.skips.add(skip, ks)
	}
	m.diffs.add(diff, kd)
	m.next = i + 1
	m.expect = m.expect/2 + n/2 + m.expect&n&1
}

// A cellWriter packs cells. Its zero value is not ready; see newCellWriter.
type cellWriter struct {
	cellModel
	buf  []byte
	acc  uint64 // the newest bits, the first one highest
	used uint   // number of bits in acc, at most 7 between calls
}

// newCellWriter returns a writer that appends to buf.
func newCellWriter(buf []byte) cellWriter { return cellWriter{cellModel: newCellModel(), buf: buf} }

// add appends a cell. Cells come in ascending order, with counts above zero.
func (w *cellWriter) add(i int, n uint64) {
	skip, diff := uint64(i-w.next), zigzag(n-w.expect)
	ks, kd := w.skips.parameter(), w.diffs.parameter()
	w.number(skip, ks)
	w.number(diff, kd)
	w.follow(i, n, skip, diff, ks, kd)
}

func (w *cellWriter) number(v uint64, k uint) {
	if q := v >> k; q < riceEscape {
		w.bits(1<<(q+1)-2, uint(q)+1) // q ones and a zero
		w.bits(v&(1<<k-1), k)
		return
	}
	w.bits(1<<riceEscape-1, riceEscape)
	n := uint(bits.Len64(v))
	w.bits(uint64(n-1), 6)
	if n > 32 {
		w.bits(v>>32, n-32)
		v, n = v&(1<<32-1), 32
	}
	w.bits(v, n)
}

// bits appends the n low bits of v, at most 32, above which v has none.
func (w *cellWriter) bits(v uint64, n uint) {
	w.acc |= v << (64 - w.used - n) // a shift by 64 gives zero
	for w.used += n; w.used >= 8; w.used -= 8 {
		w.buf = append(w.buf, byte(w.acc>>56))
		w.acc <<= 8
	}
}

// pack returns the bytes in a slice without spare capacity, since there are thousands of
// these; nil for none. The writer is not used afterwards.
func (w *cellWriter) pack() []byte {
	if w.used > 0 {
		w.bits(1<<(8-w.used)-1, 8-w.used)
	}
	if len(w.buf) == 0 {
		return nil
	}
	return append(make([]byte, 0, len(w.buf)), w.buf...)
}

// A cellReader steps through packed cells.
type cellReader struct {
	cellModel
	rest []byte
	acc  uint64 // the next bits, the first one highest; below them zeros
	left uint   // number of bits in acc

	cell  int
	count uint64
	end   bool
}

// newCellReader returns a reader at the first cell.
func newCellReader(packed []byte) cellReader {
	r := cellReader{cellModel: newCellModel(), rest: packed}
	r.step()
	return r
}

// step goes to the next cell, or to the end.
func (r *cellReader) step() {
	ks, kd := r.skips.parameter(), r.diffs.parameter()
	skip, ok := r.number(ks)
	if !ok {
		r.end = true
		return
	}
	diff, _ := r.number(kd)
	r.cell = r.next + int(skip)
	r.count = r.expect + unzigzag(diff)
	r.follow(r.cell, r.count, skip, diff, ks, kd)
}

// number reads a number; false at the end.
func (r *cellReader) number(k uint) (uint64, bool) {
	r.fill()
	q := uint(bits.LeadingZeros64(^r.acc))
	switch {
	case q >= r.left && r.left < riceEscape:
		return 0, false
	case q < riceEscape:
		r.drop(q + 1)
		return uint64(q)<<k | r.bits(k), true
	}
	r.drop(riceEscape)
	n := uint(r.bits(6)) + 1
	if n > 32 {
		high := r.bits(n - 32)
		return high<<32 | r.bits(32), true
	}
	return r.bits(n), true
}

// bits reads n bits, at most 32.
func (r *cellReader) bits(n uint) uint64 {
	if r.left < n {
		r.fill()
	}
	v := r.acc >> (64 - n) // a shift by 64 gives zero
	r.drop(n)
	return v
}

func (r *cellReader) drop(n uint) {
	r.acc <<= n
	r.left -= n
}

// fill fills acc up to at least 57 bits, if there are as many.
func (r *cellReader) fill() {
	if r.left > 56 {
		return
	}
	if len(r.rest) >= 8 {
		n := (64 - r.left) / 8 // whole bytes
		r.acc |= binary.BigEndian.Uint64(r.rest) >> (64 - 8*n) << (64 - 8*n) >> r.left
		r.rest = r.rest[n:]
		r.left += 8 * n
		return
	}
	for ; r.left <= 56 && len(r.rest) > 0; r.left += 8 {
		r.acc |= uint64(r.rest[0]) << (56 - r.left)
		r.rest = r.rest[1:]
	}
}

// eachPacked calls f with every packed cell.
func eachPacked(packed []byte, f func(i int, n uint64)) {
	for r := newCellReader(packed); !r.end; r.step() {
		f(r.cell, r.count)
	}
}

// zigzag maps a difference, which may wrap around, to a number that is small if the
// difference is, of either sign.
func zigzag(d uint64) uint64 { return d<<1 ^ uint64(int64(d)>>63) }

func unzigzag(u uint64) uint64 { return u>>1 ^ -(u & 1) }
