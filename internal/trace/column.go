package trace

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/encoding/delta"
	"github.com/parquet-go/parquet-go/encoding/rle"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
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

	levelBuf, valueBuf, pageBuf []byte
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

// page encodes the collected values as a page.
func (c *column) page(z *zstd.Encoder) error {
	if c.rows == 0 {
		return nil
	}
	if len(c.words) > 0 && c.dataOffset == 0 {
		if err := c.dictionary(z); err != nil {
			return err
		}
	}
	body := c.pageBuf[:0]
	if c.def.optional {
		levels, err := (&rle.Encoding{BitWidth: 1}).EncodeLevels(c.levelBuf, c.levels)
		if err != nil {
			return fmt.Errorf("encode the levels of %s: %w", c.def.name, err)
		}
		c.levelBuf = levels
		body = binary.LittleEndian.AppendUint32(body, uint32(len(levels)))
		body = append(body, levels...)
	}
	encoding, err := format.DeltaBinaryPacked, error(nil)
	switch {
	case len(c.words) > 0:
		encoding = format.RLEDictionary
		width := bits.Len(uint(len(c.words) - 1))
		c.valueBuf, err = (&rle.Encoding{BitWidth: width}).EncodeInt32(c.valueBuf, c.indices)
		body = append(append(body, byte(width)), c.valueBuf...)
	case c.def.text:
		encoding = format.Plain
		body = append(body, c.plain...)
	default:
		c.valueBuf, err = (&delta.BinaryPackedEncoding{}).EncodeInt64(c.valueBuf, c.ints)
		body = append(body, c.valueBuf...)
		for _, v := range c.ints {
			c.minimum, c.maximum = min(c.minimum, v), max(c.maximum, v)
		}
	}
	if err != nil {
		return fmt.Errorf("encode %s: %w", c.def.name, err)
	}
	c.pageBuf = body
	present := len(c.ints) + len(c.indices)
	if c.def.text && len(c.words) == 0 {
		present = 0
		for _, l := range c.levels {
			present += int(l)
		}
	}
	c.total += int64(c.rows)
	c.nulls += int64(c.rows - present)
	header := format.PageHeader{Type: format.DataPage}
	header.DataPageHeader = thrift.New(format.DataPageHeader{
		NumValues: int32(c.rows), Encoding: encoding, DefinitionLevelEncoding: format.RLE, RepetitionLevelEncoding: format.RLE,
	})
	c.ints, c.indices, c.plain, c.levels, c.rows = c.ints[:0], c.indices[:0], c.plain[:0], c.levels[:0], 0
	return c.seal(z, header, body)
}

// dictionary writes the page with all words.
func (c *column) dictionary(z *zstd.Encoder) error {
	var body []byte
	for _, w := range c.words {
		body = binary.LittleEndian.AppendUint32(body, uint32(len(w)))
		body = append(body, w...)
	}
	header := format.PageHeader{Type: format.DictionaryPage}
	header.DictionaryPageHeader = thrift.New(format.DictionaryPageHeader{NumValues: int32(len(c.words)), Encoding: format.Plain})
	if err := c.seal(z, header, body); err != nil {
		return err
	}
	c.dataOffset = int64(len(c.chunk))
	return nil
}

// seal compresses a page's body and appends header and body to the chunk.
func (c *column) seal(z *zstd.Encoder, header format.PageHeader, body []byte) error {
	packed := z.EncodeAll(body, c.valueBuf[:0])
	c.valueBuf = packed
	header.UncompressedPageSize, header.CompressedPageSize = int32(len(body)), int32(len(packed))
	head, err := thrift.Marshal(&thrift.CompactProtocol{}, &header)
	if err != nil {
		return fmt.Errorf("encode the head of a page of %s: %w", c.def.name, err)
	}
	c.chunk = append(append(c.chunk, head...), packed...)
	c.uncompressed += int64(len(head) + len(body))
	return nil
}

// describe is the metadata of the column's chunk, which begins at this offset of
// the file.
func (c *column) describe(at int64) format.ColumnChunk {
	m := format.ColumnMetaData{
		Type: format.Int64, Encoding: thrift.Slice[format.Encoding]{format.DeltaBinaryPacked, format.RLE},
		PathInSchema: thrift.Slice[string]{c.def.name}, Codec: format.Zstd, NumValues: c.total,
		TotalUncompressedSize: c.uncompressed, TotalCompressedSize: int64(len(c.chunk)),
		DataPageOffset: at + c.dataOffset, Statistics: format.Statistics{NullCount: c.nulls},
	}
	switch {
	case len(c.words) > 0:
		m.Type, m.DictionaryPageOffset = format.ByteArray, at
		m.Encoding = thrift.Slice[format.Encoding]{format.RLEDictionary, format.RLE, format.Plain}
	case c.def.text:
		m.Type, m.Encoding = format.ByteArray, thrift.Slice[format.Encoding]{format.Plain, format.RLE}
	case c.minimum <= c.maximum:
		m.Statistics.MinValue = binary.LittleEndian.AppendUint64(nil, uint64(c.minimum))
		m.Statistics.MaxValue = binary.LittleEndian.AppendUint64(nil, uint64(c.maximum))
	}
	return format.ColumnChunk{FileOffset: at, MetaData: m}
}
