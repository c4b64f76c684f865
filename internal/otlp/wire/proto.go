package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// Wire types of protobuf.
const (
	typeVarint   = 0
	typeFixed64  = 1
	typeBytes    = 2
	typeGroup    = 3
	typeGroupEnd = 4
	typeFixed32  = 5
)

// ErrTruncated is the error of a message that ends within a field.
var ErrTruncated = errors.New("the message ends within a field")

// AppendVarint appends a number in base 128.
func AppendVarint(b []byte, v uint64) []byte { return binary.AppendUvarint(b, v) }

func appendTag(b []byte, num, typ int) []byte { return AppendVarint(b, uint64(num)<<3|uint64(typ)) }

// AppendUint appends a field with a number; 0 is left out.
func AppendUint(b []byte, num int, v uint64) []byte {
	if v == 0 {
		return b
	}
	return AppendVarint(appendTag(b, num, typeVarint), v)
}

// AppendFixed64 appends a field of eight bytes.
func AppendFixed64(b []byte, num int, v uint64) []byte {
	return binary.LittleEndian.AppendUint64(appendTag(b, num, typeFixed64), v)
}

// AppendDouble appends a field with a floating-point number.
func AppendDouble(b []byte, num int, v float64) []byte {
	return AppendFixed64(b, num, math.Float64bits(v))
}

// AppendString appends a field with a text or bytes; an empty one is left out.
func AppendString[T string | []byte](b []byte, num int, v T) []byte {
	if len(v) == 0 {
		return b
	}
	return append(AppendVarint(appendTag(b, num, typeBytes), uint64(len(v))), v...)
}

// AppendMessage appends a field with a message, also an empty one.
func AppendMessage(b []byte, num int, message []byte) []byte {
	return append(AppendVarint(appendTag(b, num, typeBytes), uint64(len(message))), message...)
}

// uvarint reads a number of at most ten bytes, of which 64 bits count; n is 0 if there is none.
func uvarint(b []byte) (v uint64, n int) {
	for n = range min(len(b), binary.MaxVarintLen64) {
		v |= uint64(b[n]&0x7f) << (7 * n)
		if b[n] < 0x80 {
			return v, n + 1
		}
	}
	return 0, 0
}

// A token is a field as it is in a message: its number, wire type and value.
type token struct {
	num, typ int
	value    uint64 // of a varint or a fixed number
	at, end  int    // where its bytes are, without tag and length
}

// next reads the field that begins at a position, and returns where it ends.
func next(b []byte, at int) (t token, end int, err error) {
	tag, n := uvarint(b[at:])
	if n == 0 {
		return t, 0, ErrTruncated
	}
	at += n
	if t.num, t.typ = int(int32(tag>>3)), int(tag&7); t.num <= 0 {
		return t, 0, fmt.Errorf("field number %d is not valid", t.num)
	}
	t.at = at
	switch t.typ {
	case typeVarint:
		if t.value, n = uvarint(b[at:]); n == 0 {
			return t, 0, ErrTruncated
		}
		t.end = at + n
	case typeFixed64:
		if len(b)-at < 8 {
			return t, 0, ErrTruncated
		}
		t.value, t.end = binary.LittleEndian.Uint64(b[at:]), at+8
	case typeFixed32:
		if len(b)-at < 4 {
			return t, 0, ErrTruncated
		}
		t.value, t.end = uint64(binary.LittleEndian.Uint32(b[at:])), at+4
	case typeBytes:
		size, n := uvarint(b[at:])
		if n == 0 || size > uint64(len(b)-at-n) {
			return t, 0, ErrTruncated
		}
		t.at += n
		t.end = t.at + int(size)
	case typeGroup:
		t.end, err = skipGroup(b, at)
	default:
		err = fmt.Errorf("field %d has the wire type %d", t.num, t.typ)
	}
	return t, t.end, err
}

// skipGroup skips the beginning of a group, a form of nested message that only unknown fields may have. It stops
// where the Collector does: after the first value in the group, so that the group's end is an error. Only groups
// without values pass.
func skipGroup(b []byte, at int) (end int, err error) {
	for depth := 1; depth > 0; {
		tag, n := uvarint(b[at:])
		switch {
		case n == 0:
			return 0, ErrTruncated
		case tag&7 == typeGroup && int32(tag>>3) > 0:
			depth++
		case tag&7 == typeGroupEnd && int32(tag>>3) > 0:
			depth--
		default:
			_, end, err := next(b, at)
			return end, err
		}
		at += n
	}
	return at, nil
}
