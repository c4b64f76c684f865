package trace

import (
	"encoding/binary"
)

// This file has the structures of the footer and of the heads of pages
// (https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift).

// The enumerations, as far as they are used.
const (
	typeInt64     = 2
	typeByteArray = 6

	required = 0
	optional = 1

	utf8 = 0

	plainEncoding      = 0
	rleEncoding        = 3
	deltaEncoding      = 5
	dictionaryEncoding = 8

	zstdCodec = 6

	dataPage       = 0
	dictionaryPage = 2
)

// A keyValue is an entry of the file's metadata.
type keyValue struct{ key, value string }

// schema appends the fields of the columns to the footer.
func (c *compact) schema() {
	c.list(2, structField, 1+len(columns))
	c.begin()
	c.text(4, "trace")
	c.integer(5, int32Field, colCount)
	c.end()
	for i := range columns {
		def := &columns[i]
		c.begin()
		kind, repetition := int64(typeInt64), int64(required)
		if def.text {
			kind = typeByteArray
		}
		if def.optional {
			repetition = optional
		}
		c.integer(1, int32Field, kind)
		c.integer(3, int32Field, repetition)
		c.text(4, def.name)
		if def.text {
			c.integer(6, int32Field, utf8)
			c.structure(10)
			c.structure(1) // of no fields: a text
			c.end()
			c.end()
		}
		c.end()
	}
}

// encodeFooter returns the footer of a file of n row groups, which are encoded already, with
// its length and the magic number.
func encodeFooter(groups []byte, n int, rows int64, about []keyValue) []byte {
	c := compact{b: make([]byte, 0, len(groups)+4096)}
	c.begin()
	c.integer(1, int32Field, 2) // the version of the format
	c.schema()
	c.integer(3, int64Field, rows)
	c.list(4, structField, n)
	c.b = append(c.b, groups...)
	c.list(5, structField, len(about))
	for _, kv := range about {
		c.begin()
		c.text(1, kv.key)
		c.text(2, kv.value)
		c.end()
	}
	c.text(6, "carronade")
	c.list(7, structField, len(columns))
	for range columns { // each has the order of its type
		c.begin()
		c.structure(1)
		c.end()
		c.end()
	}
	c.end()
	c.b = binary.LittleEndian.AppendUint32(c.b, uint32(len(c.b)))
	return append(c.b, magic...)
}

// group appends a row group, whose columns begin at this offset of the file.
func (c *compact) group(cols []*column, rows, at int64, ordinal int) {
	c.begin()
	c.list(1, structField, len(cols))
	packed, unpacked := int64(0), int64(0)
	for _, col := range cols {
		c.chunk(col, at+packed)
		packed += int64(len(col.chunk))
		unpacked += col.uncompressed
	}
	c.integer(2, int64Field, unpacked)
	c.integer(3, int64Field, rows)
	c.integer(5, int64Field, at)
	c.integer(6, int64Field, packed)
	c.integer(7, int16Field, int64(ordinal))
	c.end()
}

// chunk appends what a row group has of a column, which begins at this offset of the file.
func (c *compact) chunk(col *column, at int64) {
	kind, encodings := int64(typeInt64), []int64{deltaEncoding, rleEncoding}
	switch {
	case len(col.words) > 0:
		kind, encodings = typeByteArray, []int64{dictionaryEncoding, rleEncoding, plainEncoding}
	case col.def.text:
		kind, encodings = typeByteArray, []int64{plainEncoding, rleEncoding}
	}
	c.begin()
	c.integer(2, int64Field, at)
	c.structure(3)
	c.integer(1, int32Field, kind)
	c.list(2, int32Field, len(encodings))
	for _, e := range encodings {
		c.b = binary.AppendVarint(c.b, e)
	}
	c.list(3, bytesField, 1)
	c.value(col.def.name)
	c.integer(4, int32Field, zstdCodec)
	c.integer(5, int64Field, col.total)
	c.integer(6, int64Field, col.uncompressed)
	c.integer(7, int64Field, int64(len(col.chunk)))
	c.integer(9, int64Field, at+col.dataOffset)
	if len(col.words) > 0 {
		c.integer(11, int64Field, at)
	}
	c.structure(12)
	c.integer(3, int64Field, col.nulls)
	if kind == typeInt64 && col.minimum <= col.maximum {
		c.bound(5, col.maximum)
		c.bound(6, col.minimum)
	}
	c.end()
	c.end()
	c.end()
}

// bound appends the least or the most value of a column.
func (c *compact) bound(id byte, v int64) {
	c.field(id, bytesField)
	c.b = binary.AppendUvarint(c.b, 8)
	c.b = binary.LittleEndian.AppendUint64(c.b, uint64(v))
}

// page appends the head of a page.
func (c *compact) page(kind, unpacked, packed, values, encoding int64) {
	c.begin()
	c.integer(1, int32Field, kind)
	c.integer(2, int32Field, unpacked)
	c.integer(3, int32Field, packed)
	if kind == dictionaryPage {
		c.structure(7)
	} else {
		c.structure(5)
	}
	c.integer(1, int32Field, values)
	c.integer(2, int32Field, encoding)
	if kind == dataPage {
		c.integer(3, int32Field, rleEncoding) // of definition levels
		c.integer(4, int32Field, rleEncoding) // of repetition levels
		c.structure(5)                        // statistics: those of the row group count
		c.integer(3, int64Field, 0)
		c.end()
	}
	c.end()
	c.end()
}
