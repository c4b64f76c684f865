package kafka

import (
	"fmt"

	"carronade/internal/wire/kafka"
	"carronade/load"
)

// An encoder makes the records of batches. It belongs to a sending thread. Most
// batches only point at a template; those of stamped, fresh or unusually compressed
// ones are made in memory of their own.
type encoder struct {
	p       *producer
	buffers bool // batches need memory of their own
	stamped bool

	z      *kafka.Compressor
	packed map[packKey]packed // prefixes compressed so far
	kept   int64              // their bytes

	headerBytes int
	key         []byte
	scratch     []byte
	roomFor     struct {
		stream int32
		first  uint64
		room   int
	}
}

// A packKey names the first events of a template.
type packKey struct {
	part, template, events int32
}

type packed struct {
	recs []byte
	sum  kafka.Sum
}

func (m *encoder) init(p *producer) {
	m.p = p
	m.stamped = p.Stamped()
	m.buffers = m.stamped || p.cfg.fresh
	_, m.headerBytes = encodedHeaders(p.gen)
	m.roomFor.stream = -1
	if p.codec != kafka.None {
		m.packed = map[packKey]packed{}
	}
}

// room is how many events the batch of a stream may carry that begins with its
// event first.
func (m *encoder) room(stream int32, first uint64) int {
	if m.p.cfg.fresh {
		return m.freshRoom(stream, first)
	}
	d := m.p.batchPool.pick(stream, m.p.streams.partition(stream), first)
	if d == nil {
		return 0
	}
	return d.events()
}

// template is the one that a batch is made from; nil: none.
func (m *encoder) template(batch *load.Batch) *template {
	if m.p.cfg.fresh {
		return nil
	}
	return m.p.batchPool.pick(batch.Stream, m.p.streams.partition(batch.Stream), batch.First)
}

// encode makes the records of a batch, and returns the events' bytes.
func (m *encoder) encode(sl *slot, batch *load.Batch) int64 {
	n := int(batch.Events)
	if m.p.cfg.fresh {
		return m.encodeFresh(sl, batch)
	}
	part := m.p.streams.partition(batch.Stream)
	d := m.p.batchPool.pick(batch.Stream, part, batch.First)
	size := d.size(n)
	sl.raw = int32(size)
	switch {
	case m.stamped:
		if sl.own.copy != d { // most often there is a free copy of it
			sl.own.b = append(sl.own.b[:0], d.recs...)
			sl.own.copy = d
		}
		recs := sl.own.b[:size:size]
		m.stamp(recs, d.values[:n], batch)
		sl.recs, sl.sum = recs, kafka.SumOf(recs)
	case m.p.codec == kafka.None:
		sl.recs, sl.sum = d.recs[:size:size], d.sum(n)
	case n == d.events():
		sl.recs, sl.sum = d.full, d.fullSum
	default:
		if m.p.batchPool.byPart == nil {
			part = 0
		}
		m.pack(sl, packKey{part, d.id, int32(n)}, d.recs[:size])
	}
	return int64(d.bytes[n-1])
}

// mostKept bounds the bytes of compressed prefixes that a client keeps. Under
// a schedule batches differ in their number of events, if by little.
const mostKept = 16 << 20

// pack compresses the first records of a template, once where it can.
func (m *encoder) pack(sl *slot, key packKey, recs []byte) {
	if p, ok := m.packed[key]; ok {
		sl.recs, sl.sum = p.recs, p.sum
		return
	}
	out := m.compress(nil, recs)
	p := packed{out, kafka.SumOf(out)}
	if m.kept += int64(len(out)); m.kept <= mostKept {
		m.packed[key] = p
	}
	sl.recs, sl.sum = p.recs, p.sum
}

func (m *encoder) compress(dst, recs []byte) []byte {
	if m.z == nil {
		z, err := kafka.NewCompressor(m.p.codec)
		if err != nil {
			panic(fmt.Sprintf("kafka: a codec that was set up before: %v", err))
		}
		m.z = z
	}
	out, err := m.z.Append(dst, recs)
	if err != nil {
		// Writing to memory does not fail.
		panic(fmt.Sprintf("kafka: %v", err))
	}
	return out
}

// stamp writes a stamp into every value.
func (m *encoder) stamp(recs []byte, values []uint32, batch *load.Batch) {
	st := kafka.Stamp{Run: uint32(m.p.cfg.runID), Stream: batch.Stream, Index: batch.First}
	for _, at := range values {
		st.Put(recs[at : at+kafka.StampSize])
		st.Index++
	}
}

// number is the number in the run of the k-th event of a stream. Where keys
// choose the partition it is one of the cycle's, for the key; the value's own
// is distinguished by rounds.
func (m *encoder) number(stream int32, k uint64) (key, value uint64) {
	n := m.p.streams.partitioner.Event(stream, k)
	if c := m.p.streams.cycle; c != nil {
		return n % uint64(len(c.parts)), n
	}
	return n, n
}

// freshRoom counts how many events from first on fit a batch.
func (m *encoder) freshRoom(stream int32, first uint64) int {
	if f := &m.roomFor; f.stream == stream && f.first == first {
		return f.room
	}
	limit := m.p.cfg.batchSize - kafka.HeaderSize
	size, n := 0, 0
	for n != m.p.cfg.batchEvents || n == 0 {
		key, value := m.number(stream, first+uint64(n))
		size += kafka.RecordSize(int32(n), m.keySize(key), m.p.gen.Size(value), len(m.p.batchPool.headers))
		if n > 0 && size > limit {
			break
		}
		n++
	}
	m.roomFor.stream, m.roomFor.first, m.roomFor.room = stream, first, n
	return n
}

func (m *encoder) keySize(n uint64) int {
	if !m.p.gen.HasKey() {
		return -1
	}
	m.key = m.p.gen.AppendKey(m.key[:0], n)
	return len(m.key)
}

// encodeFresh encodes events that were never sent before.
func (m *encoder) encodeFresh(sl *slot, batch *load.Batch) int64 {
	gen, headers := m.p.gen, m.p.batchPool.headers
	buf := sl.own.b[:0]
	if m.p.codec != kafka.None {
		buf = m.scratch[:0]
	}
	var key []byte
	total := int64(0)
	for i := range batch.Events {
		kn, vn := m.number(batch.Stream, batch.First+uint64(i))
		if gen.HasKey() {
			m.key = gen.AppendKey(m.key[:0], kn)
			key = m.key
		}
		size := gen.Size(vn)
		buf = kafka.OpenRecord(buf, i, key, size, len(headers))
		at := len(buf)
		buf = gen.AppendValue(buf, vn)
		if m.stamped && size >= kafka.StampSize {
			st := kafka.Stamp{Run: uint32(m.p.cfg.runID), Stream: batch.Stream, Index: batch.First + uint64(i)}
			st.Put(buf[at : at+kafka.StampSize])
		}
		buf = append(buf, headers...)
		total += int64(len(key) + size + m.headerBytes)
	}
	sl.raw = int32(len(buf))
	if m.p.codec != kafka.None {
		m.scratch = buf
		buf = m.compress(sl.own.b[:0], buf)
	}
	sl.own.b, sl.recs, sl.sum = buf, buf, kafka.SumOf(buf)
	return total
}
