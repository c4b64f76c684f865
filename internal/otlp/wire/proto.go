package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// Wire types of protobuf.
const (
	typeVarint  = 0
	typeFixed64 = 1
	typeBytes   = 2
	typeGroup   = 3
	typeFixed32 = 5
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

// uvarint reads a number; n is 0 if there is none.
func uvarint(b []byte) (v uint64, n int) {
	if v, n = binary.Uvarint(b); n < 0 {
		return 0, 0
	}
	return v, n
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
	if tag>>3 == 0 || tag>>3 > 1<<29-1 {
		return t, 0, fmt.Errorf("field number %d is not valid", tag>>3)
	}
	t.num, t.typ = int(tag>>3), int(tag&7)
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
		t.end, err = skipGroup(b, at, t.num)
	default:
		err = fmt.Errorf("field %d has the wire type %d", t.num, t.typ)
	}
	return t, t.end, err
}

// skipGroup returns the end of a group, a form of nested message that only unknown fields may have.
func skipGroup(b []byte, at, num int) (end int, err error) {
	open := []int{num}
	for len(open) > 0 {
		tag, n := uvarint(b[at:])
		if n == 0 {
			return 0, ErrTruncated
		}
		switch {
		case tag&7 == typeGroup:
			open = append(open, int(tag>>3))
			at += n
		case tag&7 == 4:
			if int(tag>>3) != open[len(open)-1] {
				return 0, errors.New("a group ends that did not begin")
			}
			open = open[:len(open)-1]
			at += n
		default:
			if _, at, err = next(b, at); err != nil {
				return 0, err
			}
		}
	}
	return at, nil
}
