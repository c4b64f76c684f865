package wire

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
)

// A Record is one record of a batch; its slices alias the batch. A nil Key or
// Value is Kafka's null, which differs from an empty one.
type Record struct {
	TimestampDelta int64
	OffsetDelta    int32
	Key, Value     []byte
	headers        []byte // encoded
	numHeaders     int
	Size           int // encoded, with the length field
}

// EventBytes returns the size of the record's key, value and headers (their keys
// and values). A run counts it as the event's bytes.
func (r *Record) EventBytes() int {
	n := len(r.Key) + len(r.Value)
	_ = r.Headers(func(k, v []byte) { n += len(k) + len(v) })
	return n
}

// Headers calls f with each header's key and value, which alias the batch.
func (r *Record) Headers(f func(key, value []byte)) error {
	p := r.headers
	for range r.numHeaders {
		k, rest, err := takeBytes(p)
		if err != nil {
			return fmt.Errorf("read header key: %w", err)
		}
		v, rest, err := takeBytes(rest)
		if err != nil {
			return fmt.Errorf("read header value: %w", err)
		}
		f(k, v)
		p = rest
	}
	return nil
}

// varintLen returns the size of a zigzag varint.
func varintLen(v int64) int {
	u := uint64(v<<1) ^ uint64(v>>63)
	return (bits.Len64(u|1) + 6) / 7
}

func appendVarint(dst []byte, v int64) []byte { return binary.AppendVarint(dst, v) }

// A HeaderSource makes the headers of events that do not all have the same.
type HeaderSource interface {
	NumHeaders() int
	// AppendHeader appends the name and the value of header i of event n, and returns how
	// many of these bytes are the name.
	AppendHeader(dst []byte, i int, n uint64) (out []byte, name int)
	// HeadersVary reports whether headers differ between events.
	HeadersVary() bool
	// MaxHeader returns the maximum bytes of the name and of the value of header i, and
	// whether it depends on when it is made.
	MaxHeader(i int) (name, value int, timed bool)
}

// A HeaderEncoder encodes the headers of events for AppendRecord: only once if they are the
// same for every event. It keeps memory for the next event, so it belongs to one goroutine.
type HeaderEncoder struct {
	Source     HeaderSource
	EventBytes int // of the names and values that were encoded last

	out, header []byte
	same        bool // out has the headers of every event
}

// Encode encodes the headers of event n. They are valid until the next call.
func (e *HeaderEncoder) Encode(n uint64) []byte {
	if e.same {
		return e.out
	}
	count := e.Source.NumHeaders()
	e.out, e.EventBytes = appendVarint(e.out[:0], int64(count)), 0
	for i := range count {
		var name int
		e.header, name = e.Source.AppendHeader(e.header[:0], i, n)
		e.out = appendVarint(e.out, int64(name))
		e.out = append(e.out, e.header[:name]...)
		e.out = appendVarint(e.out, int64(len(e.header)-name))
		e.out = append(e.out, e.header[name:]...)
		e.EventBytes += len(e.header)
	}
	e.same = !e.Source.HeadersVary()
	return e.out
}

// Bound returns the maximum length of the headers of event n, whenever they are encoded:
// those that depend on the time may become longer.
func (e *HeaderEncoder) Bound(n uint64) int {
	if e.same {
		return len(e.out)
	}
	count := e.Source.NumHeaders()
	size := varintLen(int64(count))
	for i := range count {
		name, value, timed := e.Source.MaxHeader(i)
		if !timed {
			e.header, name = e.Source.AppendHeader(e.header[:0], i, n)
			value = len(e.header) - name
		}
		size += varintLen(int64(name)) + name + varintLen(int64(value)) + value
	}
	return size
}

// RecordSize returns how many bytes AppendRecord appends for a record with a
// timestamp delta of 0. keyLen is -1 for no key; headersLen is the size of the
// encoded headers.
func RecordSize(offsetDelta int32, keyLen, valueLen, headersLen int) int {
	n := recordBody(offsetDelta, keyLen, valueLen, headersLen)
	return varintLen(int64(n)) + n
}

func recordBody(offsetDelta int32, keyLen, valueLen, headersLen int) int {
	n := 1 + 1 + varintLen(int64(offsetDelta)) + varintLen(int64(keyLen)) + varintLen(int64(valueLen)) + valueLen + headersLen
	if keyLen > 0 {
		n += keyLen
	}
	return n
}

// OpenRecord appends everything of a record that comes before its value. The
// caller appends the value (of exactly valueLen bytes) and then the encoded
// headers. The timestamp delta is 0.
func OpenRecord(dst []byte, offsetDelta int32, key []byte, valueLen, headersLen int) []byte {
	keyLen := len(key)
	if key == nil {
		keyLen = -1
	}
	dst = appendVarint(dst, int64(recordBody(offsetDelta, keyLen, valueLen, headersLen)))
	dst = append(dst, 0, 0) // attributes, timestamp delta
	dst = appendVarint(dst, int64(offsetDelta))
	dst = appendVarint(dst, int64(keyLen))
	dst = append(dst, key...)
	return appendVarint(dst, int64(valueLen))
}

// AppendRecord appends a record with a timestamp delta of 0. A nil key is
// null. headers are encoded by a HeaderEncoder.
func AppendRecord(dst []byte, offsetDelta int32, key, value, headers []byte) []byte {
	dst = OpenRecord(dst, offsetDelta, key, len(value), len(headers))
	dst = append(dst, value...)
	return append(dst, headers...)
}

// ForEachRecord calls f with the n records in recs, which are not compressed.
// Records alias recs. An error names the invalid record. ForEachRecord stops at the
// first error of f.
func ForEachRecord(recs []byte, n int32, f func(*Record) error) error {
	var r Record
	p := recs
	for i := range n {
		rest, err := r.parse(p)
		if err != nil {
			return fmt.Errorf("read record %d of %d: %w", i, n, err)
		}
		if err := f(&r); err != nil {
			return err
		}
		p = rest
	}
	if len(p) != 0 {
		return fmt.Errorf("read records: %d bytes after the last of %d: %w", len(p), n, ErrLength)
	}
	return nil
}

func (r *Record) parse(p []byte) (rest []byte, err error) {
	length, k := binary.Varint(p)
	if k <= 0 || length < 0 || length > int64(len(p)-k) {
		return nil, fmt.Errorf("record length: %w", ErrShort)
	}
	r.Size = k + int(length)
	rest = p[r.Size:]
	p = p[k:r.Size:r.Size]
	if len(p) < 1 {
		return nil, fmt.Errorf("record attributes: %w", ErrShort)
	}
	p = p[1:]
	if r.TimestampDelta, k = binary.Varint(p); k <= 0 {
		return nil, fmt.Errorf("timestamp delta: %w", ErrShort)
	}
	p = p[k:]
	od, k := binary.Varint(p)
	if k <= 0 || od < 0 || od > math.MaxInt32 {
		return nil, fmt.Errorf("offset delta: %w", ErrLength)
	}
	r.OffsetDelta = int32(od)
	if r.Key, p, err = takeBytes(p[k:]); err != nil {
		return nil, fmt.Errorf("key: %w", err)
	}
	if r.Value, p, err = takeBytes(p); err != nil {
		return nil, fmt.Errorf("value: %w", err)
	}
	nh, k := binary.Varint(p)
	if k <= 0 || nh < 0 || nh > int64(len(p)) {
		return nil, fmt.Errorf("number of headers: %w", ErrLength)
	}
	r.numHeaders, r.headers = int(nh), p[k:]
	// Headers are checked here so that Headers cannot fail later.
	p = p[k:]
	for range 2 * r.numHeaders {
		if _, p, err = takeBytes(p); err != nil {
			return nil, fmt.Errorf("headers: %w", err)
		}
	}
	if len(p) != 0 {
		return nil, fmt.Errorf("%d bytes after the headers: %w", len(p), ErrLength)
	}
	return rest, nil
}

// takeBytes reads a byte string with a zigzag varint before it; -1 is null.
func takeBytes(p []byte) (b, rest []byte, err error) {
	n, k := binary.Varint(p)
	switch {
	case k <= 0:
		return nil, nil, ErrShort
	case n == -1:
		return nil, p[k:], nil
	case n < 0 || n > int64(len(p)-k):
		return nil, nil, ErrLength
	}
	end := k + int(n)
	return p[k:end:end], p[end:], nil
}
