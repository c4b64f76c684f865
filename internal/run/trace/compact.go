package trace

import "encoding/binary"

// A compact appends structures in Thrift's compact protocol, which the footer and the heads
// of pages have
// (https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md).
// What a structure has is given by the numbers of its fields, which rise.
type compact struct {
	b    []byte
	last []byte // the last field of each structure that is open
}

// The types of fields.
const (
	int16Field  = 4
	int32Field  = 5
	int64Field  = 6
	bytesField  = 8
	listField   = 9
	structField = 12
)

// begin begins a structure, as a value of a list or of a field.
func (c *compact) begin() { c.last = append(c.last, 0) }

// end ends the structure that was begun last.
func (c *compact) end() {
	c.b = append(c.b, 0)
	c.last = c.last[:len(c.last)-1]
}

// field begins a field, less than 16 above the one before.
func (c *compact) field(id, kind byte) {
	last := &c.last[len(c.last)-1]
	c.b = append(c.b, (id-*last)<<4|kind)
	*last = id
}

// integer appends a field of one of the types of integers.
func (c *compact) integer(id, kind byte, v int64) {
	c.field(id, kind)
	c.b = binary.AppendVarint(c.b, v)
}

// text appends a field of a text.
func (c *compact) text(id byte, v string) {
	c.field(id, bytesField)
	c.value(v)
}

// value appends a text as a value of a list.
func (c *compact) value(v string) {
	c.b = binary.AppendUvarint(c.b, uint64(len(v)))
	c.b = append(c.b, v...)
}

// list begins a field with a list of n values.
func (c *compact) list(id, kind byte, n int) {
	c.field(id, listField)
	if n < 15 {
		c.b = append(c.b, byte(n)<<4|kind)
		return
	}
	c.b = append(c.b, 0xf0|kind)
	c.b = binary.AppendUvarint(c.b, uint64(n))
}

// structure appends a field of a structure.
func (c *compact) structure(id byte) {
	c.field(id, structField)
	c.begin()
}
