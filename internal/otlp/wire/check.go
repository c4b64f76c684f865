package wire

import (
	"errors"
	"fmt"
)

// mostNesting bounds how deep values of attributes may be nested, as the Collector does.
const mostNesting = 100

// A visitor sees the fields of a request in order, and counts its events.
type visitor struct {
	events int
	field  func(f *field, at, end int) // may be nil
}

// Check decodes a request as the Collector does, and returns the number of its events: fields that
// it does not know are skipped, texts need not be UTF-8, and an error is one that the Collector answers with 400.
func (s Signal) Check(request []byte) (events int, err error) {
	var v visitor
	err = walk(signals[s].request, request, 0, len(request), 0, &v)
	return v.events, err
}

// walk checks the message in b[at:end]. nested counts the messages around it whose kinds may contain themselves.
func walk(m *message, b []byte, at, end, nested int, v *visitor) error {
	if nested >= mostNesting {
		return errors.New("values are nested too deep")
	}
	if nested++; !m.nesting {
		nested = 0
	}
	if m.event {
		v.events++
	}
	before := v.events
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
		if m.oneOf && f.kind == isMessage && !f.list {
			v.events = before
		}
		if err := f.check(b, &t, nested, v); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return nil
}

// check checks the value of a field.
func (f *field) check(b []byte, t *token, nested int, v *visitor) error {
	if want := wireTypes[f.kind]; t.typ != want {
		if !f.packed || t.typ != typeBytes {
			return fmt.Errorf("it has the wire type %d, want %d", t.typ, want)
		}
		return f.checkPacked(b[t.at:t.end], want)
	}
	size := t.end - t.at
	switch f.kind {
	case isMessage:
		return walk(f.of, b, t.at, t.end, nested, v)
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
