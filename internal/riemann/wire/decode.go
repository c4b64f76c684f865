package wire

import (
	"errors"
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// MaxEvents is the most events that are read from one message: an encoded event
// of two bytes takes a hundred times that in memory.
const MaxEvents = 1 << 18

// Errors of a message, besides those of package protowire.
var (
	ErrTooManyEvents = fmt.Errorf("more than %d events in one message", MaxEvents)
	errNoKey         = errors.New("an attribute has no key")
)

// DecodeMsg reads a message: the bytes of a frame after its length, or of a
// datagram. The result does not alias b. Like generated code it skips fields that
// are unknown or have an unexpected type, and uses the last of several values of
// one field.
func DecodeMsg(b []byte) (m Msg, err error) {
	count, err := countEvents(b)
	if err != nil {
		return m, fmt.Errorf("read message: %w", err)
	}
	if count > 0 {
		m.Events = make([]Event, 0, count)
	}
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return Msg{}, fmt.Errorf("read message: %w", protowire.ParseError(n))
		}
		b = b[n:]
		var v []byte
		switch {
		case num == fieldOK && typ == protowire.VarintType:
			var u uint64
			if u, n = protowire.ConsumeVarint(b); n >= 0 {
				m.OK, m.HasOK = protowire.DecodeBool(u), true
			}
		case num == fieldError && typ == protowire.BytesType:
			if v, n = protowire.ConsumeBytes(b); n >= 0 {
				m.Error = string(v)
			}
		case num == fieldQuery && typ == protowire.BytesType:
			if v, n = protowire.ConsumeBytes(b); n >= 0 {
				m.HasQuery = true
				err = decodeQuery(v, &m.Query)
			}
		case num == fieldEvents && typ == protowire.BytesType:
			if v, n = protowire.ConsumeBytes(b); n >= 0 {
				m.Events = m.Events[:len(m.Events)+1]
				if err = decodeEvent(v, &m.Events[len(m.Events)-1]); err != nil {
					err = fmt.Errorf("event %d of %d: %w", len(m.Events)-1, count, err)
				}
			}
		default:
			n = protowire.ConsumeFieldValue(num, typ, b)
		}
		if n < 0 {
			err = fmt.Errorf("field %d: %w", num, protowire.ParseError(n))
		}
		if err != nil {
			return Msg{}, fmt.Errorf("read message: %w", err)
		}
		b = b[n:]
	}
	return m, nil
}

func countEvents(b []byte) (events int, err error) {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeField(b)
		if n < 0 {
			return 0, protowire.ParseError(n)
		}
		if num == fieldEvents && typ == protowire.BytesType {
			if events++; events > MaxEvents {
				return 0, ErrTooManyEvents
			}
		}
		b = b[n:]
	}
	return events, nil
}

func decodeQuery(b []byte, to *string) error {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return fmt.Errorf("query: %w", protowire.ParseError(n))
		}
		b = b[n:]
		if num == fieldString && typ == protowire.BytesType {
			var v []byte
			if v, n = protowire.ConsumeBytes(b); n >= 0 {
				*to = string(v)
			}
		} else {
			n = protowire.ConsumeFieldValue(num, typ, b)
		}
		if n < 0 {
			return fmt.Errorf("query: %w", protowire.ParseError(n))
		}
		b = b[n:]
	}
	return nil
}

// DecodeEvent reads an event, the bytes after its length in a message. The result
// does not alias b.
func DecodeEvent(b []byte) (e Event, err error) {
	if err = decodeEvent(b, &e); err != nil {
		return Event{}, fmt.Errorf("read event: %w", err)
	}
	return e, nil
}

// decodeEvent reads into a zero event. All its texts are parts of one string, so
// that it needs one allocation per event, not per field, and an event that is
// kept keeps no other bytes alive.
func decodeEvent(b []byte, e *Event) error {
	all := string(b)
	var metric [Float + 1]uint64
	var has [Float + 1]bool
	for at := 0; at < len(b); {
		num, typ, n := protowire.ConsumeTag(b[at:])
		if n < 0 {
			return protowire.ParseError(n)
		}
		at += n
		switch typ {
		case protowire.BytesType:
			var v []byte
			if v, n = protowire.ConsumeBytes(b[at:]); n >= 0 {
				if err := e.setText(num, all[at+n-len(v):at+n]); err != nil {
					return err
				}
			}
		case protowire.VarintType:
			var u uint64
			if u, n = protowire.ConsumeVarint(b[at:]); n >= 0 {
				switch num {
				case fieldTime:
					e.Time, e.HasTime = int64(u), true
				case fieldTimeMicros:
					e.TimeMicros, e.HasTimeMicros = int64(u), true
				case fieldSint64:
					metric[Sint64], has[Sint64] = u, true
				}
			}
		case protowire.Fixed32Type:
			var u uint32
			if u, n = protowire.ConsumeFixed32(b[at:]); n >= 0 {
				switch num {
				case fieldTTL:
					e.TTL, e.HasTTL = math.Float32frombits(u), true
				case fieldFloat:
					metric[Float], has[Float] = uint64(u), true
				}
			}
		case protowire.Fixed64Type:
			var u uint64
			if u, n = protowire.ConsumeFixed64(b[at:]); n >= 0 && num == fieldDouble {
				metric[Double], has[Double] = u, true
			}
		default:
			n = protowire.ConsumeFieldValue(num, typ, b[at:])
		}
		if n < 0 {
			return fmt.Errorf("field %d: %w", num, protowire.ParseError(n))
		}
		at += n
	}
	switch {
	case has[Sint64]:
		e.Metric = Metric{Kind: Sint64, Int: protowire.DecodeZigZag(metric[Sint64])}
	case has[Double]:
		e.Metric = Metric{Kind: Double, Real: math.Float64frombits(metric[Double])}
	case has[Float]:
		e.Metric = Metric{Kind: Float, Real: float64(math.Float32frombits(uint32(metric[Float])))}
	}
	return nil
}

func (e *Event) setText(num protowire.Number, v string) error {
	switch num {
	case fieldState:
		e.State = v
	case fieldService:
		e.Service = v
	case fieldHost:
		e.Host = v
	case fieldDescription:
		e.Description = v
	case fieldTags:
		e.Tags = append(e.Tags, v)
	case fieldAttributes:
		return e.addAttribute(v)
	}
	return nil
}

func (e *Event) addAttribute(all string) error {
	var a Attribute
	keyed := false
	b := []byte(all) // does not escape, so a short one needs no allocation
	for at := 0; at < len(b); {
		num, typ, n := protowire.ConsumeTag(b[at:])
		if n < 0 {
			return fmt.Errorf("attribute: %w", protowire.ParseError(n))
		}
		at += n
		if typ == protowire.BytesType {
			var v []byte
			if v, n = protowire.ConsumeBytes(b[at:]); n >= 0 {
				s := all[at+n-len(v) : at+n]
				switch num {
				case fieldKey:
					a.Key, keyed = s, true
				case fieldValue:
					a.Value = s
				}
			}
		} else {
			n = protowire.ConsumeFieldValue(num, typ, b[at:])
		}
		if n < 0 {
			return fmt.Errorf("attribute: field %d: %w", num, protowire.ParseError(n))
		}
		at += n
	}
	if !keyed {
		return errNoKey
	}
	e.Attributes = append(e.Attributes, a)
	return nil
}
