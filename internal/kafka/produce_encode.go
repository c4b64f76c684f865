package kafka

import (
	"fmt"
	"sync/atomic"

	"carronade/internal/kafka/wire"
	"carronade/load"
)

// An encoder makes the records of batches. It belongs to a sending thread. Most
// batches only refer to the records of a template. Stamped and fresh batches, and
// compressed parts of a template, have their own memory.
type encoder struct {
	p           *producer
	needsBuffer bool // batches need their own memory
	stamped     bool

	z           *wire.Compressor
	packed      map[packKey]packed // compressed prefixes of templates, for reuse
	packedBytes int64              // size of all prefixes compressed so far

	// Of batches with a codec, before compression: all that was sent, and the part of it
	// that was compressed as it was sent. The goroutine that asks for facts reads them.
	rawBytes, compressedBytes atomic.Uint64

	headers wire.HeaderEncoder
	key     []byte
	scratch []byte
	roomFor struct {
		stream int32
		first  uint64
		room   int
	}
}

// A packKey identifies the first events of a template.
type packKey struct {
	part, template, events int32
}

type packed struct {
	recs []byte
	sum  wire.Sum
}

func (e *encoder) init(p *producer) {
	e.p = p
	e.stamped = p.Stamped()
	e.needsBuffer = e.stamped || p.cfg.Fresh
	e.headers = wire.HeaderEncoder{Source: p.gen}
	e.roomFor.stream = -1
	if p.codec != wire.None {
		e.packed = map[packKey]packed{}
	}
}

// room returns how many events may be in a stream's batch that begins with its
// event first.
func (e *encoder) room(stream int32, first uint64) int {
	if e.p.cfg.Fresh {
		return e.freshRoom(stream, first)
	}
	tpl := e.p.batchPool.pick(stream, e.p.streams.Log(stream), first)
	if tpl == nil {
		return 0
	}
	return tpl.events()
}

// template returns the template that a batch is made from; nil: none.
func (e *encoder) template(batch *load.Batch) *template {
	if e.p.cfg.Fresh {
		return nil
	}
	return e.p.batchPool.pick(batch.Stream, e.p.streams.Log(batch.Stream), batch.First)
}

// encode makes the records of a batch and returns the size of its events.
func (e *encoder) encode(sl *slot, batch *load.Batch) int64 {
	bytes := e.encodeBatch(sl, batch)
	if e.p.codec != wire.None {
		e.rawBytes.Add(uint64(sl.raw))
	}
	return bytes
}

func (e *encoder) encodeBatch(sl *slot, batch *load.Batch) int64 {
	n := int(batch.Events)
	if e.p.cfg.Fresh {
		return e.encodeFresh(sl, batch)
	}
	part := e.p.streams.Log(batch.Stream)
	tpl := e.p.batchPool.pick(batch.Stream, part, batch.First)
	size := tpl.size(n)
	sl.raw = int32(size)
	switch {
	case e.stamped:
		if sl.buffer.copy != tpl { // usually a free buffer is a copy of it already
			sl.buffer.b = append(sl.buffer.b[:0], tpl.recs...)
			sl.buffer.copy = tpl
		}
		recs := sl.buffer.b[:size:size]
		e.stamp(recs, tpl.valueStarts[:n], batch)
		sl.recs, sl.sum = recs, wire.SumOf(recs)
	case e.p.codec == wire.None:
		sl.recs, sl.sum = tpl.recs[:size:size], tpl.sum(n)
	case n == tpl.events():
		sl.recs, sl.sum = tpl.compressed, tpl.compressedSum
	default:
		if e.p.batchPool.byPart == nil {
			part = 0
		}
		e.pack(sl, packKey{part, tpl.id, int32(n)}, tpl.recs[:size])
	}
	return int64(tpl.bytes[n-1])
}

// maxPackedBytes bounds the compressed prefixes that a client keeps. Under a
// schedule, batches differ a little in their number of events.
const maxPackedBytes = 16 << 20

// pack compresses the first records of a template, only once if the result can
// be kept.
func (e *encoder) pack(sl *slot, key packKey, recs []byte) {
	if p, ok := e.packed[key]; ok {
		sl.recs, sl.sum = p.recs, p.sum
		return
	}
	out := e.compress(nil, recs)
	p := packed{out, wire.SumOf(out)}
	if e.packedBytes += int64(len(out)); e.packedBytes <= maxPackedBytes {
		e.packed[key] = p
	}
	sl.recs, sl.sum = p.recs, p.sum
}

func (e *encoder) compress(dst, recs []byte) []byte {
	if e.z == nil {
		z, err := wire.NewCompressor(e.p.codec)
		if err != nil {
			panic(fmt.Sprintf("kafka: set up a codec that worked before: %v", err))
		}
		e.z = z
	}
	out, err := e.z.Append(dst, recs)
	if err != nil {
		// Writing to memory does not fail.
		panic(fmt.Sprintf("kafka: %v", err))
	}
	e.compressedBytes.Add(uint64(len(recs)))
	return out
}

// stamp writes a stamp into every value.
func (e *encoder) stamp(recs []byte, values []uint32, batch *load.Batch) {
	st := wire.Stamp{Run: uint32(e.p.cfg.RunID), Stream: batch.Stream, Index: batch.First}
	for _, at := range values {
		st.Put(recs[at : at+wire.StampSize])
		st.Index++
	}
}

// freshRoom counts how many events, beginning with first, fit into a batch.
func (e *encoder) freshRoom(stream int32, first uint64) int {
	if f := &e.roomFor; f.stream == stream && f.first == first {
		return f.room
	}
	limit := e.p.cfg.BatchSize - wire.HeaderSize
	size, n := 0, 0
	for n != e.p.cfg.BatchEvents || n == 0 {
		key, value := e.p.streams.Numbers(stream, first+uint64(n))
		size += wire.RecordSize(int32(n), e.keySize(key), e.p.gen.Size(value), e.headers.Bound(value))
		if n > 0 && size > limit {
			break
		}
		n++
	}
	e.roomFor.stream, e.roomFor.first, e.roomFor.room = stream, first, n
	return n
}

func (e *encoder) keySize(n uint64) int {
	if !e.p.gen.HasKey() {
		return -1
	}
	e.key = e.p.gen.AppendKey(e.key[:0], n)
	return len(e.key)
}

// encodeFresh encodes events that were never sent before.
func (e *encoder) encodeFresh(sl *slot, batch *load.Batch) int64 {
	gen := e.p.gen
	buf := sl.buffer.b[:0]
	if e.p.codec != wire.None {
		buf = e.scratch[:0]
	}
	var key []byte
	total := int64(0)
	for i := range batch.Events {
		kn, vn := e.p.streams.Numbers(batch.Stream, batch.First+uint64(i))
		if gen.HasKey() {
			e.key = gen.AppendKey(e.key[:0], kn)
			key = e.key
		}
		size := gen.Size(vn)
		headers := e.headers.Encode(vn)
		buf = wire.OpenRecord(buf, i, key, size, len(headers))
		at := len(buf)
		buf = gen.AppendValue(buf, vn)
		if e.stamped && size >= wire.StampSize {
			st := wire.Stamp{Run: uint32(e.p.cfg.RunID), Stream: batch.Stream, Index: batch.First + uint64(i)}
			st.Put(buf[at : at+wire.StampSize])
		}
		buf = append(buf, headers...)
		total += int64(len(key) + size + e.headers.EventBytes)
	}
	sl.raw = int32(len(buf))
	if e.p.codec != wire.None {
		e.scratch = buf
		buf = e.compress(sl.buffer.b[:0], buf)
	}
	sl.buffer.b, sl.recs, sl.sum = buf, buf, wire.SumOf(buf)
	return total
}
