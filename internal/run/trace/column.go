package trace

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/klauspost/compress/zstd"
)

// A column collects the values of one column: those of the current page, and the
// encoded and compressed pages of the row group. It is owned by the writer.
// Integers are stored as differences (DELTA_BINARY_PACKED): times and indices rise
// by small steps, and constant values take almost no space. Text with few values is
// stored as dictionary indices (RLE_DICTIONARY), other text as plain text.
type column struct {
	def   *definition
	words []string // of the dictionary

	ints    []int64 // non-null values of the page
	indices []int32 // or these
	plain   []byte  // or these
	levels  []byte  // optional columns: 1 for a non-null value
	rows    int

	chunk        []byte // encoded pages so far
	uncompressed int64  // size of chunk before compression
	total        int64  // rows in chunk
	nulls        int64
	minimum      int64
	maximum      int64
	dataOffset   int64 // of the first data page in the chunk
}

func newColumn(def *definition, words []string) *column {
	c := &column{def: def, words: words}
	c.clear()
	return c
}

func (c *column) clear() {
	c.chunk, c.uncompressed, c.total, c.nulls, c.dataOffset = c.chunk[:0], 0, 0, 0, 0
	c.minimum, c.maximum = math.MaxInt64, math.MinInt64
}

// put adds an integer.
func (c *column) put(v int64) {
	c.ints = append(c.ints, v)
	c.rows++
}

// putIf adds an integer to an optional column; a negative one is null.
func (c *column) putIf(v int64) {
	c.rows++
	if v < 0 {
		c.levels = append(c.levels, 0)
		return
	}
	c.levels = append(c.levels, 1)
	c.ints = append(c.ints, v)
}

// word adds an index into the dictionary; a negative one is null.
func (c *column) word(index int32) {
	c.rows++
	if c.def.optional {
		if index < 0 {
			c.levels = append(c.levels, 0)
			return
		}
		c.levels = append(c.levels, 1)
	}
	c.indices = append(c.indices, index)
}

// text adds a text; nil is null.
func (c *column) text(v []byte) {
	c.rows++
	if v == nil {
		c.levels = append(c.levels, 0)
		return
	}
	c.levels = append(c.levels, 1)
	c.plain = binary.LittleEndian.AppendUint32(c.plain, uint32(len(v)))
	c.plain = append(c.plain, v...)
}

// A scratch is what encodes and compresses the pages of all columns.
type scratch struct {
	z            *zstd.Encoder
	body, packed []byte
	head         compact
}

// page encodes the collected values as a page.
func (c *column) page(s *scratch) {
	if c.rows == 0 {
		return
	}
	if len(c.words) > 0 && c.dataOffset == 0 {
		c.dictionary(s)
	}
	body, present := s.body[:0], c.rows
	if c.def.optional {
		body = appendRuns(append(body, 0, 0, 0, 0), c.levels, 1, levelsEnd)
		binary.LittleEndian.PutUint32(body, uint32(len(body)-4))
		present = bytes.Count(c.levels, []byte{1})
	}
	encoding := int64(deltaEncoding)
	switch {
	case len(c.words) > 0:
		encoding = dictionaryEncoding
		width := bits.Len(uint(len(c.words) - 1))
		body = appendRuns(append(body, byte(width)), c.indices, width, indicesEnd)
	case c.def.text:
		encoding = plainEncoding
		body = append(body, c.plain...)
	default:
		var least, most int64
		body, least, most = appendDeltas(body, c.ints)
		c.minimum, c.maximum = min(c.minimum, least), max(c.maximum, most)
	}
	s.body = body
	c.total += int64(c.rows)
	c.nulls += int64(c.rows - present)
	c.seal(s, dataPage, c.rows, encoding)
	c.ints, c.indices, c.plain, c.levels, c.rows = c.ints[:0], c.indices[:0], c.plain[:0], c.levels[:0], 0
}

// dictionary writes the page with all words.
func (c *column) dictionary(s *scratch) {
	s.body = s.body[:0]
	for _, w := range c.words {
		s.body = binary.LittleEndian.AppendUint32(s.body, uint32(len(w)))
		s.body = append(s.body, w...)
	}
	c.seal(s, dictionaryPage, len(c.words), plainEncoding)
	c.dataOffset = int64(len(c.chunk))
}

// seal compresses the body of a page, and appends its head and body to the chunk.
func (c *column) seal(s *scratch, kind int64, values int, encoding int64) {
	s.packed = s.z.EncodeAll(s.body, s.packed[:0])
	s.head.b = s.head.b[:0]
	s.head.page(kind, int64(len(s.body)), int64(len(s.packed)), int64(values), encoding)
	c.chunk = append(append(c.chunk, s.head.b...), s.packed...)
	c.uncompressed += int64(len(s.head.b) + len(s.body))
}
