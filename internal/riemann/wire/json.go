package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// The form of events over WebSocket, HTTP and server-sent events: an object with
// host, service, state, description, tags, ttl, metric and time, and one more
// field for each attribute (riemann, transport/websockets.clj and common.clj,
// event-to-json). The time is ISO 8601 text: the server accepts no number there,
// and keeps only whole seconds.

// AppendJSON appends the event as JSON. A metric that is not a finite number is
// null, since JSON cannot represent it.
func AppendJSON(dst []byte, e *Event) []byte {
	dst = AppendJSONHead(dst, e)
	dst = AppendJSONMetric(dst, e.Metric)
	if at, ok := e.When(); ok {
		dst = AppendJSONTime(dst, at, e.HasTimeMicros)
	}
	return AppendJSONEnd(dst)
}

// AppendJSONHead appends the opening brace and the fields before metric and time,
// each followed by a comma.
func AppendJSONHead(dst []byte, e *Event) []byte {
	dst = append(dst, '{')
	dst = appendJSONText(dst, `"host":`, e.Host)
	dst = appendJSONText(dst, `"service":`, e.Service)
	dst = appendJSONText(dst, `"state":`, e.State)
	dst = appendJSONText(dst, `"description":`, e.Description)
	if len(e.Tags) > 0 {
		dst = append(dst, `"tags":[`...)
		for i, t := range e.Tags {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendQuoted(dst, t)
		}
		dst = append(dst, "],"...)
	}
	if e.HasTTL {
		dst = append(dst, `"ttl":`...)
		dst = append(appendReal(dst, float64(e.TTL), 32), ',')
	}
	for i := range e.Attributes {
		dst = append(appendQuoted(dst, e.Attributes[i].Key), ':')
		dst = append(appendQuoted(dst, e.Attributes[i].Value), ',')
	}
	return dst
}

// AppendJSONMetric appends the metric and a comma; nothing without a metric.
// A real number is written with a point or an exponent, so that readers do not
// take it for an integer.
func AppendJSONMetric(dst []byte, m Metric) []byte {
	switch m.Kind {
	case Sint64:
		dst = strconv.AppendInt(append(dst, `"metric":`...), m.Int, 10)
	case Double, Float:
		dst = appendReal(append(dst, `"metric":`...), m.Real, 64)
	default:
		return dst
	}
	return append(dst, ',')
}

// AppendJSONTime appends the time and a comma, with milliseconds like the server,
// or with microseconds.
func AppendJSONTime(dst []byte, t time.Time, micros bool) []byte {
	form := `"time":"2006-01-02T15:04:05.000Z",`
	if micros {
		form = `"time":"2006-01-02T15:04:05.000000Z",`
	}
	return t.UTC().AppendFormat(dst, form)
}

// AppendJSONEnd closes the object, and overwrites the last comma if there is one.
func AppendJSONEnd(dst []byte) []byte {
	if n := len(dst); n > 0 && dst[n-1] == ',' {
		dst[n-1] = '}'
		return dst
	}
	return append(dst, '}')
}

func appendJSONText(dst []byte, name, s string) []byte {
	if s == "" {
		return dst
	}
	return append(appendQuoted(append(dst, name...), s), ',')
}

// appendReal appends a number that has a point or an exponent.
func appendReal(dst []byte, v float64, bits int) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return append(dst, "null"...)
	}
	at := len(dst)
	form := byte('f')
	if a := math.Abs(v); a != 0 && (a < 1e-6 || a >= 1e15) {
		form = 'e'
	}
	dst = strconv.AppendFloat(dst, v, form, -1, bits)
	if bytes.IndexByte(dst[at:], '.') < 0 && form == 'f' {
		dst = append(dst, ".0"...)
	}
	return dst
}

// appendQuoted appends the text as a JSON string. Bytes that are not valid UTF-8
// become the replacement character, since JSON must be UTF-8.
func appendQuoted(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				dst = append(append(dst, s[from:i]...), "\ufffd"...)
				from = i + 1
			}
			i += n
			continue
		}
		dst = append(dst, s[from:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, `\n`...)
		default:
			dst = append(dst, `\u00`...)
			dst = append(dst, hex[c>>4], hex[c&15])
		}
		i++
		from = i
	}
	return append(append(dst, s[from:]...), '"')
}

var errNoObject = errors.New("not an object")

// DecodeJSON reads an event from JSON, as written by AppendJSON, servers or
// people. Null is absent. Time may be text or seconds since 1970. A metric
// without point and exponent is a whole number. A field that Riemann does not
// define is an attribute; if its value is not text, the value is its JSON.
// Attributes are sorted by name.
func DecodeJSON(b []byte) (e Event, err error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(b, &fields); err != nil {
		return e, fmt.Errorf("read JSON event: %w", err)
	}
	if fields == nil {
		return e, fmt.Errorf("read JSON event: %w", errNoObject)
	}
	for name, v := range fields {
		if string(v) == "null" {
			continue
		}
		if err := e.setJSON(name, v); err != nil {
			return Event{}, fmt.Errorf("read JSON event: %s: %w", name, err)
		}
	}
	slices.SortFunc(e.Attributes, func(a, b Attribute) int { return strings.Compare(a.Key, b.Key) })
	return e, nil
}

func (e *Event) setJSON(name string, v json.RawMessage) error {
	switch name {
	case "host":
		return json.Unmarshal(v, &e.Host)
	case "service":
		return json.Unmarshal(v, &e.Service)
	case "state":
		return json.Unmarshal(v, &e.State)
	case "description":
		return json.Unmarshal(v, &e.Description)
	case "tags":
		return json.Unmarshal(v, &e.Tags)
	case "ttl":
		e.HasTTL = true
		return json.Unmarshal(v, &e.TTL)
	case "metric":
		return e.Metric.setJSON(v)
	case "time":
		return e.setJSONTime(v)
	}
	a := Attribute{Key: name, Value: string(v)}
	if v[0] == '"' {
		if err := json.Unmarshal(v, &a.Value); err != nil {
			return err
		}
	}
	e.Attributes = append(e.Attributes, a)
	return nil
}

func (m *Metric) setJSON(v json.RawMessage) error {
	if i, err := strconv.ParseInt(string(v), 10, 64); err == nil {
		*m = Metric{Kind: Sint64, Int: i}
		return nil
	}
	m.Kind = Double
	return json.Unmarshal(v, &m.Real)
}

func (e *Event) setJSONTime(v json.RawMessage) error {
	if v[0] == '"' {
		var text string
		if err := json.Unmarshal(v, &text); err != nil {
			return err
		}
		at, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			return fmt.Errorf("%q is not a time such as 2026-11-21T12:00:00.000Z", text)
		}
		e.setTime(at.UnixMicro())
		return nil
	}
	if i, err := strconv.ParseInt(string(v), 10, 64); err == nil {
		e.Time, e.HasTime = i, true
		return nil
	}
	var seconds float64
	if err := json.Unmarshal(v, &seconds); err != nil {
		return err
	}
	if !(math.Abs(seconds) < 1e12) {
		return fmt.Errorf("%s is not a time in seconds since 1970", v)
	}
	e.setTime(int64(math.Round(seconds * 1e6)))
	return nil
}

// setTime sets the time in seconds if it is whole, otherwise in microseconds.
func (e *Event) setTime(micros int64) {
	if micros%1e6 == 0 {
		e.Time, e.HasTime = micros/1e6, true
		return
	}
	e.TimeMicros, e.HasTimeMicros = micros, true
}
