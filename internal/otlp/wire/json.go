package wire

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
)

// FromJSON returns the protobuf form of a request in OTLP's JSON, which says itself of which signal it
// is: lower camel case, ids as hex digits, 64-bit numbers as texts. Unknown members are skipped.
func FromJSON(line []byte) (s Signal, request []byte, err error) {
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber()
	var object map[string]any
	if err := d.Decode(&object); err != nil {
		return 0, nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return 0, nil, errors.New("there is text after the object")
	}
	for s = range Signals {
		if _, ok := object[signals[s].list]; ok {
			request, err = signals[s].request.encode(nil, object, 0)
			return s, request, err
		}
	}
	return 0, nil, errors.New("it has none of resourceSpans, resourceMetrics and resourceLogs")
}

// encode appends the fields of an object.
func (m *message) encode(b []byte, object map[string]any, depth int) (_ []byte, err error) {
	if depth > 2*mostNesting {
		return nil, errors.New("objects are nested too deep")
	}
	for i := range m.fields {
		f := &m.fields[i]
		value, ok := object[f.name]
		if !ok || value == nil || f.name == "" {
			continue
		}
		if !f.list {
			b, err = f.encode(b, value, depth)
		} else if list, ok := value.([]any); !ok {
			err = errors.New("want a list")
		} else {
			for _, v := range list {
				if b, err = f.encode(b, v, depth); err != nil {
					break
				}
			}
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return b, nil
}

// encode appends one value of a field.
func (f *field) encode(b []byte, value any, depth int) ([]byte, error) {
	switch f.kind {
	case isMessage:
		object, ok := value.(map[string]any)
		if !ok {
			return nil, errors.New("want an object")
		}
		inner, err := f.of.encode(nil, object, depth+1)
		return AppendMessage(b, f.num, inner), err
	case isString, isBytes, isTraceID, isSpanID:
		s, ok := value.(string)
		if !ok {
			return nil, errors.New("want a text")
		}
		raw, err := f.bytes(s)
		if err != nil || len(raw) == 0 && (f.kind == isTraceID || f.kind == isSpanID) {
			return b, err
		}
		return AppendMessage(b, f.num, raw), nil
	case isBool:
		v, ok := value.(bool)
		if !ok {
			return nil, errors.New("want true or false")
		}
		b = appendTag(b, f.num, typeVarint)
		if v {
			return append(b, 1), nil
		}
		return append(b, 0), nil
	case isDouble:
		v, err := strconv.ParseFloat(numeral(value), 64)
		if err != nil {
			return nil, errors.New("want a number")
		}
		return AppendDouble(b, f.num, v), nil
	}
	v, err := f.integer(numeral(value))
	if err != nil {
		return nil, errors.New("want a whole number")
	}
	switch wireTypes[f.kind] {
	case typeFixed64:
		return AppendFixed64(b, f.num, v), nil
	case typeFixed32:
		b = appendTag(b, f.num, typeFixed32)
		return append(b, byte(v), byte(v>>8), byte(v>>16), byte(v>>24)), nil
	}
	return AppendVarint(appendTag(b, f.num, typeVarint), v), nil
}

// bytes decodes a text of JSON.
func (f *field) bytes(s string) ([]byte, error) {
	switch f.kind {
	case isBytes:
		return base64.StdEncoding.DecodeString(s)
	case isTraceID, isSpanID:
		raw, err := hex.DecodeString(s)
		if want := map[kind]int{isTraceID: 16, isSpanID: 8}[f.kind]; err == nil && len(raw) != 0 && len(raw) != want {
			return nil, fmt.Errorf("it has %d bytes, want %d", len(raw), want)
		}
		return raw, err
	}
	return []byte(s), nil
}

// numeral is the text of a number, which JSON may have as a number or as a text.
func numeral(value any) string {
	switch v := value.(type) {
	case json.Number:
		return v.String()
	case string:
		return v
	}
	return ""
}

// integer parses a whole number into the bits of its field.
func (f *field) integer(s string) (uint64, error) {
	switch f.kind {
	case isUint, isFixed64, isFixed32:
		v, err := strconv.ParseUint(s, 10, 64)
		if f.kind == isFixed32 && v > math.MaxUint32 {
			err = strconv.ErrRange
		}
		return v, err
	case isSint:
		v, err := strconv.ParseInt(s, 10, 32)
		return uint64(uint32(v<<1) ^ uint32(v>>31)), err
	}
	v, err := strconv.ParseInt(s, 10, 64)
	return uint64(v), err
}
