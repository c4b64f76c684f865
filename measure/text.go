package measure

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
	"time"
)

// textVersion is the first byte of an encoded histogram. It changes with the cells: two
// programs that agree on it can add their histograms.
const textVersion = 1

// Layout names the cells of histograms. Histograms of one layout can be added.
const Layout = "hdr-1us-1h-3/1"

// MarshalText encodes the histogram exactly, in a few bytes for each cell in use.
// EncodeHDR is for other programs and keeps less: not the sum, nor the exact extremes.
func (h *Histogram) MarshalText() ([]byte, error) {
	b := []byte{textVersion}
	low := h.min
	if h.count == 0 {
		low = 0
	}
	for _, n := range []uint64{h.count, h.below, h.above, h.sumHi, h.sumLo, uint64(low), uint64(h.max)} {
		b = binary.AppendUvarint(b, n)
	}
	next := 0
	h.eachCell(func(i int, n uint64) { // (cells skipped, count)
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(i-next)), n)
		next = i + 1
	})
	return base64.RawStdEncoding.AppendEncode(nil, b), nil
}

// errText is the error of a text that no histogram encodes to.
var errText = errors.New("not an encoded histogram")

// UnmarshalText replaces the histogram by an encoded one, which is compact. It accepts
// only what MarshalText writes.
func (h *Histogram) UnmarshalText(text []byte) error {
	b, err := base64.RawStdEncoding.AppendDecode(nil, text)
	if err != nil || len(b) == 0 || b[0] != textVersion {
		return errText
	}
	b = b[1:]
	var head [7]uint64
	for i := range head {
		n, k := binary.Uvarint(b)
		if k <= 0 {
			return errText
		}
		head[i], b = n, b[k:]
	}
	out := Histogram{
		count: head[0], below: head[1], above: head[2], sumHi: head[3], sumLo: head[4],
		min: time.Duration(head[5]), max: time.Duration(head[6]),
	}
	if out.count == 0 {
		out.min = math.MaxInt64
	}
	if !out.takeCells(b) {
		return errText
	}
	*h = out
	return nil
}

// takeCells packs the cells in b, which are (cells skipped, count) as uvarints. It reports
// whether they are valid, lie between the extremes, and add up to the count.
func (h *Histogram) takeCells(b []byte) bool {
	if h.min < 0 || h.max < 0 || h.below > h.count || h.count > 0 && h.min > h.max {
		return false
	}
	w := newCellWriter(make([]byte, 0, len(b)))
	lo, hi := h.span()
	sum, next := h.above, 0
	for len(b) > 0 {
		skip, k := binary.Uvarint(b)
		if k <= 0 || skip >= cells || next+int(skip) < lo || next+int(skip) >= hi {
			return false
		}
		n, l := binary.Uvarint(b[k:])
		if l <= 0 || n == 0 {
			return false
		}
		b = b[k+l:]
		w.add(next+int(skip), n)
		next += int(skip) + 1
		var carry uint64
		if sum, carry = bits.Add64(sum, n, 0); carry > 0 {
			return false
		}
	}
	h.packed = w.pack()
	return sum == h.count
}
