package parquettest

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// The encodings.
const (
	plainEncoding      = 0
	deltaEncoding      = 5
	dictionaryEncoding = 8
)

// decompressor is that of all pages.
var decompressor = sync.OnceValue(func() *zstd.Decoder {
	z, err := zstd.NewReader(nil)
	check(err == nil, "zstd")
	return z
})

// A reader reads the pages that a row group has of a column.
type reader struct {
	column *Column
	meta   structure
	at     int64
	chunk  []byte
	words  []string
}

// read reads all pages, which have this many rows.
func (r *reader) read(rows int64) {
	c, first, unpacked := r.column, len(r.column.Null), 0
	check(r.meta.integer(5) == rows && r.meta.list(3)[0] == c.Name, "the rows or the name of a column")
	for left := r.chunk; len(left) > 0; {
		d := &decoder{b: left}
		page := d.structure()
		packed := int(page.integer(3))
		body, err := decompressor().DecodeAll(d.b[:packed], nil)
		check(err == nil && len(body) == int(page.integer(2)), "the size of a page")
		unpacked += len(left) - len(d.b) + len(body)
		if page.integer(1) == 2 {
			dictionary := page[7].(structure)
			check(r.meta.integer(11) == r.at && len(left) == len(r.chunk) && dictionary.integer(2) == plainEncoding, "the dictionary's page")
			r.words = texts(body, int(dictionary.integer(1)))
			left = d.b[packed:]
			check(r.meta.integer(9) == r.at+int64(len(r.chunk)-len(left)), "the place of the first page")
			continue
		}
		head := page[5].(structure)
		check(c.Text && r.words != nil || r.meta.integer(9) == r.at, "the place of the first page")
		r.page(head, body)
		left = d.b[packed:]
	}
	check(int64(len(c.Null)-first) == rows && r.meta.integer(6) == int64(unpacked), "the size of a column")
	r.statistics(first)
}

// statistics checks those of the row group.
func (r *reader) statistics(first int) {
	s, nulls := r.meta[12].(structure), int64(0)
	var present []int64
	for i, null := range r.column.Null[first:] {
		if null {
			nulls++
		} else if !r.column.Text {
			present = append(present, r.column.Ints[first+i])
		}
	}
	check(s.integer(3) == nulls, "the number of nulls")
	if len(present) == 0 {
		check(s[5] == nil && s[6] == nil, "bounds of no values")
		return
	}
	bound := func(id byte) int64 { return int64(binary.LittleEndian.Uint64([]byte(s.text(id)))) }
	check(bound(5) == slices.Max(present) && bound(6) == slices.Min(present), "the bounds")
}

// page reads a page of values.
func (r *reader) page(head structure, body []byte) {
	c, rows := r.column, int(head.integer(1))
	levels := slices.Repeat([]int64{1}, rows)
	present := rows
	if c.optional {
		n := 4 + binary.LittleEndian.Uint32(body)
		levels, body, present = runs(body[4:n], rows, 1), body[n:], 0
		for _, l := range levels {
			present += int(l)
		}
	}
	var ints []int64
	var words []string
	switch head.integer(2) {
	case plainEncoding:
		words = texts(body, present)
	case dictionaryEncoding:
		check(int(body[0]) == bits.Len(uint(len(r.words)-1)), "the width of indices")
		for _, i := range runs(body[1:], present, int(body[0])) {
			words = append(words, r.words[i])
		}
	default:
		check(head.integer(2) == deltaEncoding, "an encoding")
		ints = deltas(body, present)
	}
	for _, l := range levels {
		c.Null = append(c.Null, l == 0)
		text, number := "", int64(0)
		switch {
		case l == 0:
		case c.Text:
			text, words = words[0], words[1:]
		default:
			number, ints = ints[0], ints[1:]
		}
		if c.Text {
			c.Texts = append(c.Texts, text)
		} else {
			c.Ints = append(c.Ints, number)
		}
	}
}

// texts reads n texts, each with its length before it.
func texts(b []byte, n int) (out []string) {
	for range n {
		size := binary.LittleEndian.Uint32(b)
		out, b = append(out, string(b[4:4+size])), b[4+size:]
	}
	check(len(b) == 0, "bytes after texts")
	return out
}

// runs reads n values as RLE.
func runs(b []byte, n, width int) []int64 {
	d := &decoder{b: b}
	out := []int64{}
	for len(out) < n {
		head := int(d.uvarint())
		if head&1 == 1 {
			out = append(out, unpack(d.take(head>>1*width), width)...)
			continue
		}
		v := [8]byte{}
		copy(v[:], d.take((width+7)/8))
		out = append(out, slices.Repeat([]int64{int64(binary.LittleEndian.Uint64(v[:]))}, head>>1)...)
	}
	check(len(out) == n && len(d.b) == 0, "the number of values")
	return out
}

// unpack reads values of this many bits.
func unpack(b []byte, width int) (out []int64) {
	for at := 0; at < 8*len(b); at += width {
		v := int64(0)
		for i := range width {
			v |= int64(b[(at+i)/8]>>((at+i)%8)&1) << i
		}
		out = append(out, v)
	}
	return out
}

// deltas reads n integers as DELTA_BINARY_PACKED.
func deltas(b []byte, n int) (out []int64) {
	d := &decoder{b: b}
	block, groups, total := int(d.uvarint()), int(d.uvarint()), int(d.uvarint())
	check(total == n && block%groups == 0, "the number of integers")
	last := d.varint()
	for out = append(out, last); len(out) < n; {
		low := d.varint()
		for _, width := range d.take(groups) {
			over := make([]int64, block/groups)
			if width > 0 && len(out) < n {
				over = unpack(d.take(len(over)*int(width)/8), int(width))
			}
			for _, v := range over[:min(len(over), n-len(out))] {
				last += low + v
				out = append(out, last)
			}
		}
	}
	check(len(d.b) == 0, "bytes after integers")
	return out[:n]
}
