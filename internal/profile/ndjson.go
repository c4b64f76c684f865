package profile

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"time"
)

// IsJSON reports whether a file with this beginning may have JSON in each line. A file of texts or numbers
// may be something else.
func IsJSON(head []byte) bool {
	head = bytes.TrimSpace(head)
	return len(head) > 0 && (head[0] == '{' || head[0] == '[')
}

// A jsonRecord has the names by which programs write the fields of a record, among them kcat
// with -J. Names are found in any case.
type jsonRecord struct {
	Partition json.RawMessage `json:"partition"`
	TS        json.RawMessage `json:"ts"`
	Timestamp json.RawMessage `json:"timestamp"`
	Time      json.RawMessage `json:"time"`
	At        json.RawMessage `json:"@timestamp"`
	Key       json.RawMessage `json:"key"`
	Value     json.RawMessage `json:"value"`
	Payload   json.RawMessage `json:"payload"`
	Headers   json.RawMessage `json:"headers"`
	Size      json.RawMessage `json:"size"`
}

// NDJSON reads records as JSON, an object a line. An object has the fields key, value or
// payload, timestamp, ts, time or @timestamp, partition, headers and size (of a value that is
// left out). One without value, payload and size is itself the value, and so is other JSON, and an object
// in which partition, headers or size are of another type.
func NDJSON(in *bufio.Reader, to Sink) error {
	l := lines{in: in}
	var r Record
	for {
		line, err := l.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var j jsonRecord
		if line[0] == '{' {
			err = json.Unmarshal(line, &j)
		} else if !json.Valid(line) {
			err = errors.New("the line is cut, or of another format")
		}
		if err != nil {
			return l.wrong(fmt.Errorf("it is not JSON: %w", err))
		}
		j.record(line, &r)
		to.Record(&r)
		if full(to) {
			return ErrEnough
		}
	}
}

// maxSize limits the size of a value that is left out.
const maxSize = 1 << 30

// record fills in r.
func (j *jsonRecord) record(line []byte, r *Record) {
	*r = Record{Log: -1, Headers: r.Headers[:0]}
	for _, at := range []json.RawMessage{j.TS, j.Timestamp, j.At, j.Time} {
		if t, ok := jsonTime(at); ok {
			r.Time = t
			break
		}
	}
	partition, size := int32(-1), -1
	if !decode(j.Partition, &partition) || !decode(j.Size, &size) || j.Size != nil && !isNull(j.Size) && (size < 0 || size > maxSize) || !j.headers(r) {
		r.Headers, r.Value = r.Headers[:0], line
		return
	}
	r.Log = max(partition, -1)
	if j.Key != nil && !isNull(j.Key) {
		r.Keyed, r.Key = true, jsonBytes(j.Key)
	}
	value := j.Value
	if value == nil {
		value = j.Payload
	}
	switch {
	case value != nil && isNull(value):
		r.Null = true
	case value != nil:
		r.Value = jsonBytes(value)
	case size >= 0:
		r.Size = size
	default:
		r.Value = line
	}
}

// decode decodes a field, if there is one, and reports whether it has the type of to.
func decode(raw json.RawMessage, to any) bool { return raw == nil || json.Unmarshal(raw, to) == nil }

// headers reads headers as an object, as a list of names and values (kcat), or as a list of
// objects with key and value. It reports whether they are one of these.
func (j *jsonRecord) headers(r *Record) bool {
	if j.Headers == nil || isNull(j.Headers) {
		return true
	}
	if j.Headers[0] == '{' {
		d := json.NewDecoder(bytes.NewReader(j.Headers))
		if _, err := d.Token(); err != nil {
			return false
		}
		for d.More() {
			name, err := d.Token()
			text, ok := name.(string)
			var value json.RawMessage
			if err != nil || !ok || d.Decode(&value) != nil {
				return false
			}
			r.Headers = append(r.Headers, Header{Name: []byte(text), Value: jsonBytes(value)})
		}
		return true
	}
	var list []json.RawMessage
	if json.Unmarshal(j.Headers, &list) != nil {
		return false
	}
	for i := 0; i < len(list); i++ {
		if list[i][0] == '{' {
			var h struct {
				Key   string          `json:"key"`
				Name  string          `json:"name"`
				Value json.RawMessage `json:"value"`
			}
			if json.Unmarshal(list[i], &h) != nil {
				return false
			}
			h.Key = cmp.Or(h.Key, h.Name)
			r.Headers = append(r.Headers, Header{Name: []byte(h.Key), Value: jsonBytes(h.Value)})
			continue
		}
		if i+1 == len(list) {
			return false
		}
		r.Headers = append(r.Headers, Header{Name: jsonBytes(list[i]), Value: jsonBytes(list[i+1])})
		i++
	}
	return true
}

func isNull(raw json.RawMessage) bool { return string(raw) == "null" }

// jsonBytes returns the bytes of a text, or of any other value as it is written.
func jsonBytes(raw json.RawMessage) []byte {
	if len(raw) == 0 || isNull(raw) {
		return []byte{}
	}
	if raw[0] == '"' {
		var text string
		if json.Unmarshal(raw, &text) == nil {
			return []byte(text)
		}
	}
	return raw
}

// jsonTime reads a time: a text, or a number since 1970 whose unit follows from its size.
func jsonTime(raw json.RawMessage) (nanoseconds int64, ok bool) {
	if len(raw) == 0 {
		return 0, false
	}
	if raw[0] == '"' {
		text := string(jsonBytes(raw))
		for _, form := range []string{time.RFC3339Nano, "2006-01-02 15:04:05.999999999", "2006-01-02T15:04:05.999999999", "2006-01-02T15:04:05.999999999Z0700"} {
			if t, err := time.Parse(form, text); err == nil && t.Year() > 1970 && t.Year() < 2200 {
				return t.UnixNano(), true
			}
		}
		raw = json.RawMessage(text)
	}
	var number json.Number
	if json.Unmarshal(raw, &number) != nil {
		return 0, false
	}
	if n, err := number.Int64(); err == nil {
		return unixTime(n)
	}
	f, err := number.Float64()
	if err != nil || !(f > 0) || f > 1e10 { // seconds with a fraction
		return 0, false
	}
	return int64(math.Round(f*1e6)) * 1000, true // a float64 has the microseconds of such a time
}

// unixTime returns the nanoseconds of a number since 1970 in seconds, milliseconds,
// microseconds or nanoseconds: the unit in which it is from 1973 to 5138.
func unixTime(n int64) (nanoseconds int64, ok bool) {
	const (
		least = 100_000_000
		most  = 100_000_000_000
	)
	switch {
	case n < least:
		return 0, false
	case n < most:
		if n > math.MaxInt64/1_000_000_000 {
			return 0, false
		}
		return n * 1e9, true
	case n < most*1e3:
		if n > math.MaxInt64/1_000_000 {
			return 0, false
		}
		return n * 1e6, true
	case n < most*1e6:
		return n * 1e3, true
	}
	return n, true
}
