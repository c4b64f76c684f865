package parquettest

import "encoding/binary"

// A structure has values by the numbers of their fields: int64, string, []any or structure.
type structure map[byte]any

func (s structure) integer(id byte) int64 { return s[id].(int64) }
func (s structure) text(id byte) string   { return s[id].(string) }
func (s structure) list(id byte) []any    { return s[id].([]any) }

// A decoder reads Thrift's compact protocol.
type decoder struct{ b []byte }

func (d *decoder) take(n int) []byte {
	out := d.b[:n]
	d.b = d.b[n:]
	return out
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	check(n > 0, "an integer")
	d.b = d.b[n:]
	return v
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.b)
	check(n > 0, "an integer")
	d.b = d.b[n:]
	return v
}

func (d *decoder) structure() structure {
	s, id := structure{}, byte(0)
	for head := d.take(1)[0]; head != 0; head = d.take(1)[0] {
		check(head>>4 > 0, "a long field")
		id += head >> 4
		s[id] = d.value(head & 15)
	}
	return s
}

func (d *decoder) value(kind byte) any {
	switch kind {
	case 4, 5, 6:
		return d.varint()
	case 8:
		return string(d.take(int(d.uvarint())))
	case 9:
		head := d.take(1)[0]
		n := int(head >> 4)
		if n == 15 {
			n = int(d.uvarint())
		}
		list := []any{}
		for range n {
			list = append(list, d.value(head&15))
		}
		return list
	}
	check(kind == 12, "a type")
	return d.structure()
}
