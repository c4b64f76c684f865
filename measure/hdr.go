package measure

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"sync"
	"time"
)

// The V2 compressed encoding of HdrHistogram (Java's AbstractHistogram,
// encodeIntoCompressedByteBuffer): a cookie and a length, then, compressed by zlib, a
// header of 40 bytes and the counters, each a zigzag LEB128 number of at most nine
// bytes. A negative number -n is a run of n empty cells. All is big endian.
const (
	hdrCompressed = 0x1c849304 | 0x10
	hdrPlain      = 0x1c849303 | 0x10
	hdrAny        = ^uint32(0xf0) // word sizes of older writers

	hdrHead   = 40
	hdrDigits = 3
	hdrMost   = hdrHead + 9*cells // the largest size that valid text inflates to
)

// EncodeHDR returns the observations as base64 of an HdrHistogram in microseconds, V2
// compressed, as in interval logs; "" for nil. Values above Highest, for which it has
// no cell, are counted at Highest. It is safe for use concurrent with other methods
// that only read.
//
// It visits only the cells in use and reuses its buffers, since a run encodes several
// histograms a second.
func (h *Histogram) EncodeHDR() string {
	if h == nil {
		return ""
	}
	e := hdrEncoders.Get().(*hdrEncoder)
	defer hdrEncoders.Put(e)
	return e.encode(h)
}

type hdrEncoder struct {
	raw  []byte
	out  bytes.Buffer
	z    *zlib.Writer
	text []byte
}

var hdrEncoders = sync.Pool{New: func() any { return newHDREncoder(hdrLevel) }}

// hdrLevel is the zlib level. The events of a batch have the same time, so counters and the gaps between them repeat:
// searching well for that more than halves the text of usual runs. It takes longer (BenchmarkEncodeHDR) and 2 MiB, which
// a few histograms a second allow.
const hdrLevel = zlib.BestCompression

func newHDREncoder(level int) *hdrEncoder {
	e := &hdrEncoder{}
	e.z, _ = zlib.NewWriterLevel(&e.out, level) // cannot fail: the level is valid
	return e
}

func (e *hdrEncoder) encode(h *Histogram) string {
	b := append(e.raw[:0], make([]byte, hdrHead)...)
	next, last := 0, uint64(0) // the last cell also counts what is above the range
	h.eachCell(func(i int, n uint64) {
		if i == cell(topUnit) {
			last = n
			return
		}
		b = appendZeros(b, i-next)
		b = appendZigzag(b, int64(n))
		next = i + 1
	})
	if last += h.above; last > 0 {
		b = appendZeros(b, cell(topUnit)-next)
		b = appendZigzag(b, int64(last))
	}
	return e.seal(b)
}

// seal fills in the header of b, which the counters follow, and returns the text.
func (e *hdrEncoder) seal(b []byte) string {
	e.raw = b
	be := binary.BigEndian
	be.PutUint32(b[0:], hdrPlain)
	be.PutUint32(b[4:], uint32(len(b)-hdrHead))
	be.PutUint32(b[8:], 0) // normalizing index offset
	be.PutUint32(b[12:], hdrDigits)
	be.PutUint64(b[16:], 1)
	be.PutUint64(b[24:], topUnit)
	be.PutUint64(b[32:], math.Float64bits(1)) // conversion ratio

	e.out.Reset()
	e.out.Write(make([]byte, 8))
	e.z.Reset(&e.out)
	_, _ = e.z.Write(b) // cannot fail: it writes into memory
	_ = e.z.Close()
	p := e.out.Bytes()
	be.PutUint32(p[0:], hdrCompressed)
	be.PutUint32(p[4:], uint32(len(p)-8))
	e.text = base64.StdEncoding.AppendEncode(e.text[:0], p)
	return string(e.text)
}

func appendZeros(b []byte, n int) []byte {
	switch n {
	case 0:
		return b
	case 1:
		return append(b, 0)
	}
	return appendZigzag(b, -int64(n))
}

func appendZigzag(b []byte, n int64) []byte {
	u := uint64(n)<<1 ^ uint64(n>>63)
	for range 8 {
		if u < 0x80 {
			return append(b, byte(u))
		}
		b = append(b, byte(u)|0x80)
		u >>= 7
	}
	return append(b, byte(u)) // the ninth byte has eight bits of the number
}

// errHDRShort reports bytes that end within a number.
var errHDRShort = errors.New("it ends in the middle of a number")

func readZigzag(b []byte) (n int64, used int, err error) {
	var u uint64
	for i := range 9 {
		if i == len(b) {
			return 0, 0, errHDRShort
		}
		c := uint64(b[i])
		if i < 8 && c >= 0x80 {
			u |= c & 0x7f << (7 * i)
			continue
		}
		u |= c << (7 * i)
		return int64(u>>1) ^ -int64(u&1), i + 1, nil
	}
	panic("unreachable: the ninth byte is the last")
}

// DecodeHDR decodes what EncodeHDR or another writer of V2 compressed HdrHistograms
// wrote with this geometry: 1 us to 1 h, three significant digits. The encoding
// contains only cells. Minimum and maximum are therefore the ends of their cells, so
// that the maximum is never understated, and the sum is that of the cells' middles;
// Refine corrects them. The result is compact.
func DecodeHDR(text string) (*Histogram, error) {
	b, err := inflateHDR(text)
	if err != nil {
		return nil, fmt.Errorf("decode an HdrHistogram: %w", err)
	}
	h := NewHistogram()
	w := newCellWriter(make([]byte, 0, len(b)))
	at := 0 // the current cell
	for b = b[hdrHead:]; len(b) > 0; {
		n, used, err := readZigzag(b)
		if err != nil {
			return nil, fmt.Errorf("decode an HdrHistogram: %w", err)
		}
		b = b[used:]
		switch {
		case n < 0:
			if n < -int64(cells) || at-int(n) > cells {
				return nil, errors.New("decode an HdrHistogram: more empty cells than it has cells")
			}
			at -= int(n)
			continue
		case at > cell(topUnit):
			return nil, errors.New("decode an HdrHistogram: a count beyond its range")
		case n > 0:
			if h.count+uint64(n) > math.MaxInt64 {
				return nil, errors.New("decode an HdrHistogram: more observations than can be counted")
			}
			w.add(at, uint64(n))
			h.addCell(at, uint64(n))
		}
		at++
	}
	h.packed = w.pack()
	return h, nil
}

// addCell adds the count, sum and extremes that a cell implies.
func (h *Histogram) addCell(i int, n uint64) {
	top, bottom := time.Duration(cellTop(i))*Lowest, time.Duration(0)
	if i > 0 {
		bottom = time.Duration(cellTop(i-1)) * Lowest
	}
	hi, lo := bits.Mul64(uint64(bottom+top)/2, n)
	// The smallest possible value is above bottom, which belongs to the previous cell.
	h.add(n, hi, lo, min(bottom+1, top), top)
}

// inflateHDR returns the header and the counters.
func inflateHDR(text string) ([]byte, error) {
	p, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, err
	}
	be := binary.BigEndian
	if len(p) < 8 || be.Uint32(p)&hdrAny != hdrCompressed&hdrAny {
		return nil, errors.New("it is not in V2 compressed form")
	}
	n := be.Uint32(p[4:])
	if uint64(n) > uint64(len(p)-8) {
		return nil, errors.New("it is truncated")
	}
	p = p[8 : 8+n]
	b, err := unzip(p, hdrMost+1)
	if err != nil {
		return nil, err
	}
	switch {
	case len(b) < hdrHead || len(b) > hdrMost || be.Uint32(b)&hdrAny != hdrPlain&hdrAny || uint64(be.Uint32(b[4:])) != uint64(len(b)-hdrHead):
		return nil, errors.New("its content is not in V2 form")
	case be.Uint32(b[12:]) != hdrDigits || be.Uint64(b[16:]) != 1 || be.Uint64(b[24:]) != topUnit:
		return nil, fmt.Errorf("its range is %d to %d with %d digits, and not 1 us to 1 h with three",
			be.Uint64(b[16:]), be.Uint64(b[24:]), be.Uint32(b[12:]))
	}
	return b, nil
}

// hdrReaders reuses zlib readers, whose windows take tens of KB: report pages decode
// thousands of histograms.
var hdrReaders sync.Pool

// unzip inflates p to at most the given number of bytes.
func unzip(p []byte, most int64) ([]byte, error) {
	z, _ := hdrReaders.Get().(io.ReadCloser)
	if z == nil {
		var err error
		if z, err = zlib.NewReader(bytes.NewReader(p)); err != nil {
			return nil, err
		}
	} else if err := z.(zlib.Resetter).Reset(bytes.NewReader(p), nil); err != nil {
		hdrReaders.Put(z)
		return nil, err
	}
	defer hdrReaders.Put(z)
	out := bytes.NewBuffer(make([]byte, 0, 4*len(p)))
	_, err := io.Copy(out, io.LimitReader(z, most))
	return out.Bytes(), err
}

// Refine sets what the encoding of a decoded histogram does not contain, from a summary
// of the same observations: minimum, maximum and mean, and how many were out of range.
// It ignores a summary with another count, which is of other observations.
func (h *Histogram) Refine(s *Summary) {
	if h == nil || s == nil || s.Count != h.count || s.Count == 0 {
		return
	}
	h.min, h.max = nanos(s.Min), nanos(s.Max)
	// The mean is known to the nanosecond; a fraction of one would be noise.
	h.sumHi, h.sumLo = bits.Mul64(uint64(nanos(s.Mean)), h.count)
	h.below = s.Below
	if s.Above > 0 {
		h.unpack()
		above := min(s.Above, h.dense[cell(topUnit)])
		h.dense[cell(topUnit)] -= above
		h.above = above
	}
}

// nanos is the inverse of Micros. It accepts any number.
func nanos(us float64) time.Duration {
	ns := math.Round(us * 1e3)
	if !(ns > 0) {
		return 0
	}
	if ns >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(ns)
}
