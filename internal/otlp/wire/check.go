package wire

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// mostDepth bounds how deep messages may be nested: values of attributes contain each other.
const mostDepth = 200

// A Place is a value in a request that is fresh each time it is sent.
type Place struct {
	At   int32
	Form Form
	Val  uint64 // see Form
}

// A visitor sees the parts of a request in order. Its functions may be nil.
type visitor struct {
	event func()
	field func(f *field, at, end int)
}

// Check decodes a request as the Collector does, and returns the number of its events: fields that
// it does not know are skipped, and an error is one that the Collector answers with 400.
func (s Signal) Check(request []byte) (events int, err error) {
	err = walk(signals[s].request, request, 0, len(request), 0, &visitor{event: func() { events++ }})
	return events, err
}

// walk checks the message in b[at:end].
func walk(m *message, b []byte, at, end, depth int, v *visitor) error {
	if depth > mostDepth {
		return errors.New("messages are nested too deep")
	}
	if m.event {
		v.event()
	}
	b = b[:end]
	for at < end {
		t, after, err := next(b, at)
		if err != nil {
			return err
		}
		at = after
		f := m.field(t.num)
		if f == nil {
			continue
		}
		if err := f.check(b, &t, depth, v); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return nil
}

// check checks the value of a field.
func (f *field) check(b []byte, t *token, depth int, v *visitor) error {
	if want := wireTypes[f.kind]; t.typ != want {
		if !f.packed || t.typ != typeBytes {
			return fmt.Errorf("it has the wire type %d, want %d", t.typ, want)
		}
		return f.checkPacked(b[t.at:t.end], want)
	}
	size := t.end - t.at
	switch f.kind {
	case isMessage:
		return walk(f.of, b, t.at, t.end, depth+1, v)
	case isString:
		if !utf8.Valid(b[t.at:t.end]) {
			return errors.New("it is not UTF-8")
		}
	case isTraceID:
		if size != 0 && size != 16 {
			return fmt.Errorf("it has %d bytes, want 16", size)
		}
	case isSpanID:
		if size != 0 && size != 8 {
			return fmt.Errorf("it has %d bytes, want 8", size)
		}
	}
	if v.field != nil {
		v.field(f, t.at, t.end)
	}
	return nil
}

// checkPacked checks numbers in one piece.
func (f *field) checkPacked(b []byte, typ int) error {
	if typ == typeFixed64 {
		if len(b)%8 != 0 {
			return ErrTruncated
		}
		return nil
	}
	for len(b) > 0 {
		_, n := uvarint(b)
		if n == 0 {
			return ErrTruncated
		}
		b = b[n:]
	}
	return nil
}
