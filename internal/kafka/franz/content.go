package franz

import (
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"carronade/internal/kafka/cluster"
	"carronade/internal/kafka/wire"
	"carronade/load"
	"carronade/payload"
)

const (
	// mostDistinct bounds the number of distinct events in memory.
	mostDistinct = 1 << 16
	// sizeSamples is the number of sizes that are checked to find out whether stamps
	// fit, where every event is generated when it is sent.
	sizeSamples = 1 << 16
)

// A content makes the records of the client engine, either from values generated
// before the run, which all clients share, or fresh ones. It does not change after
// prepare.
type content struct {
	gen         *payload.Generator
	cfg         *cluster.Config
	values      [][]byte           // generated before the run; nil when fresh
	keys        [][]byte           // likewise; nil without keys
	headers     []kgo.RecordHeader // of every event, unless they vary
	headerBytes int64              // bytes of them
	stamped     bool
	cyclic      bool // keys choose the partition: event n has key n % cycleEvents
}

func (c *content) prepare(gen *payload.Generator, cfg *cluster.Config, cyclic bool) {
	c.gen, c.cfg, c.cyclic = gen, cfg, cyclic
	for _, h := range gen.Headers() {
		c.headers = append(c.headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
		c.headerBytes += int64(len(h.Key) + len(h.Value))
	}
	c.stamped = cfg.Verify || cfg.RoundTrip
	if cfg.Fresh {
		for n := uint64(0); n < sizeSamples && c.stamped; n++ {
			c.stamped = gen.Size(n) >= wire.StampSize
		}
	} else {
		var bytes int64
		for n := uint64(0); n < mostDistinct && (n == 0 || bytes < cfg.Pool); n++ {
			v := gen.AppendValue(nil, n)
			bytes += int64(len(v))
			c.values = append(c.values, v)
			c.stamped = c.stamped && len(v) >= wire.StampSize
		}
	}
	if gen.HasKey() && (cyclic || !cfg.Fresh) {
		n := len(c.values)
		if cyclic {
			n = cluster.CycleEvents
		}
		for i := range n {
			c.keys = append(c.keys, gen.AppendKey(nil, uint64(i)))
		}
	}
}

// fill makes the records of a batch and returns their bytes.
func (c *content) fill(to *liveBatch, batch *load.Batch) (bytes int64) {
	l := to.l
	p := l.s.p
	partitioner := p.streams.Partitioner
	wall := time.Now()
	run := uint32(c.cfg.RunID)
	to.bytes, to.headers = to.bytes[:0], to.headers[:0]
	for i := range to.records {
		n := partitioner.Event(batch.Stream, batch.First+uint64(i))
		r := &to.records[i]
		*r = kgo.Record{Topic: l.topic, Partition: l.partition, Timestamp: wall, Headers: c.headers}
		if c.gen.HeadersVary() {
			from := len(to.bytes)
			r.Headers = c.makeHeaders(to, n)
			bytes += int64(len(to.bytes) - from)
		}
		switch {
		case c.keys != nil:
			r.Key = c.keys[n%uint64(len(c.keys))]
		case c.gen.HasKey():
			from := len(to.bytes)
			to.bytes = c.gen.AppendKey(to.bytes, n)
			r.Key = to.bytes[from:len(to.bytes):len(to.bytes)]
		}
		switch {
		case c.values == nil:
			from := len(to.bytes)
			to.bytes = c.gen.AppendValue(to.bytes, n)
			r.Value = to.bytes[from:len(to.bytes):len(to.bytes)]
		case c.stamped:
			from := len(to.bytes)
			to.bytes = append(to.bytes, c.values[n%uint64(len(c.values))]...)
			r.Value = to.bytes[from:len(to.bytes):len(to.bytes)]
		default:
			r.Value = c.values[n%uint64(len(c.values))]
		}
		if c.stamped && len(r.Value) >= wire.StampSize {
			st := wire.Stamp{Run: run, Stream: batch.Stream, Index: batch.First + uint64(i)}
			st.Put(r.Value)
		}
		bytes += int64(len(r.Key)+len(r.Value)) + c.headerBytes
	}
	return bytes
}

// makeHeaders makes the headers of event n of the run, in the memory of a batch. They
// repeat with the values.
func (c *content) makeHeaders(to *liveBatch, n uint64) []kgo.RecordHeader {
	if c.values != nil {
		n %= uint64(len(c.values))
	}
	count := c.gen.NumHeaders()
	if to.names == nil {
		to.names = make([]string, count)
	}
	first := len(to.headers)
	for i := range count {
		from := len(to.bytes)
		var name int
		to.bytes, name = c.gen.AppendHeader(to.bytes, i, n)
		b := to.bytes[from:len(to.bytes):len(to.bytes)]
		if to.names[i] != string(b[:name]) { // most names are those of the event before
			to.names[i] = string(b[:name])
		}
		to.headers = append(to.headers, kgo.RecordHeader{Key: to.names[i], Value: b[name:]})
	}
	return to.headers[first:len(to.headers):len(to.headers)]
}

// appendKey appends the key of event n of the run. False: events have no keys.
func (c *content) appendKey(dst []byte, n uint64) ([]byte, bool) {
	switch {
	case c.keys != nil:
		return append(dst, c.keys[n%uint64(len(c.keys))]...), true
	case c.gen.HasKey():
		return c.gen.AppendKey(dst, n), true
	}
	return dst, false
}
