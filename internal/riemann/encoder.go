package riemann

import (
	"encoding/binary"
	"math"
	"time"

	"carronade/internal/riemann/wire"
)

// encoderBlock is the number of events encoded together: their metrics fit into
// the L1 cache, and their time is set in one pass.
const encoderBlock = 64

// An encoder encodes one lane's messages. It belongs to one goroutine.
//
// All events of a period are encoded ahead, one after the other, in the form
// that they have in a message. So a message is a copy of a piece of the pool,
// and many messages of one event are a copy of a larger piece. The fields that
// change are then overwritten; their length is always the same:
//
//   - the time in seconds is a varint of 5 bytes until the year 3058, the time
//     in microseconds one of 8 bytes until the year 4253. Seconds are the same
//     for a million events and are set in the pool, once per second and block;
//   - a double has 8 bytes, a float 4;
//   - a sint64 is a varint as long as the longest that may occur; shorter ones
//     are padded with zero bits. The protocol buffers format requires readers
//     to accept that; events of varying length could not be copied in one
//     piece. Constants, and ranges within one length, have no padding;
//   - {seq} has ten digits.
type encoder struct {
	shape  *shape
	stream int32

	head         int      // bytes for a frame header before each event in the pool; 0 unless messages have one event
	pool         []byte   // for each event: head, tag and length, event
	ends         []uint32 // where each event ends in pool
	sums         []uint32 // bytes of the events themselves up to there
	seqs         []uint32 // positions of the {seq} of each event, in bytes before its end
	seqsPerEvent int      // number of {seq} in an event
	width        int      // bytes of a metric's value, 0 without one
	stamps       []int64  // the second that is set in each block of the pool
	most         int      // bytes of the largest event with tag and length
	maxMessage   int      // bytes of the largest framed message

	jsons  *jsonPool // made on first use
	widest int       // bytes of the largest event as JSON; 0: not computed yet
}

// newEncoder makes an encoder for messages of the given number of events. It can
// encode messages of another number too, at a higher cost when events is 1. It
// takes as much memory as the pool is large, and about a millisecond.
func newEncoder(s *shape, stream int32, events int) *encoder {
	p := &encoder{shape: s, stream: stream, width: s.metricWidth(), seqsPerEvent: s.seqs()}
	if events == 1 {
		p.head = wire.FrameHead
	}
	p.ends, p.sums = make([]uint32, 0, s.period), make([]uint32, 0, s.period)
	p.stamps = make([]int64, (s.period+encoderBlock-1)/encoderBlock)
	for i := range p.stamps {
		p.stamps[i] = math.MinInt64
	}
	p.pool = make([]byte, 0, int(float64(s.period)*(s.mean+10)))
	var marked []byte
	sum := 0
	for k := range s.period {
		from := len(p.pool)
		p.pool = p.template(p.pool, k, 0)
		if p.seqsPerEvent > 0 {
			marked = p.template(marked[:0], k, markSeq)
			p.seqs = appendSeqs(p.seqs, p.pool[from:], marked)
		}
		if p.head > 0 {
			wire.PutFrame(p.pool[from:])
		}
		entry := len(p.pool) - from - p.head
		p.most = max(p.most, entry)
		sum += entry - 1 - lengthSize(p.pool[from+p.head+1:])
		p.ends, p.sums = append(p.ends, uint32(len(p.pool))), append(p.sums, uint32(sum))
	}
	p.maxMessage = wire.FrameHead + max(1, events)*p.most
	return p
}

// template appends event k of the pool, with its changing fields at their final
// length.
func (p *encoder) template(dst []byte, k, seq uint64) []byte {
	e := p.shape.content(eventPlace{stream: p.stream, content: k, seq: seq})
	p.shape.fillTime(&e, time.Unix(1<<30, 0))
	e.Metric = wire.Metric{Kind: p.shape.kind}
	if e.Metric.Kind == wire.Sint64 && p.width > 1 {
		// The smallest number whose varint has width bytes; zigzag doubles it.
		e.Metric.Int = 1 << (7*(p.width-1) - 1)
	}
	dst = append(dst, make([]byte, p.head)...)
	return wire.AppendMsg(dst, &wire.Msg{Events: []wire.Event{e}})
}

// metricWidth returns the bytes of a metric's value.
func (s *shape) metricWidth() int {
	switch s.kind {
	case wire.Sint64:
		least, most := s.metric.intBounds()
		longest := max(zigzag(least), zigzag(most))
		n := 1
		for longest >>= 7; longest > 0; longest >>= 7 {
			n++
		}
		return n
	case wire.Double:
		return 8
	case wire.Float:
		return 4
	}
	return 0
}

func zigzag(v int64) uint64 { return uint64(v<<1) ^ uint64(v>>63) }

// markSeq is a number whose ten digits all differ from 0.
const markSeq = 1111111111

// appendSeqs finds the {seq} of an event by comparing it with marked, the same
// event with another number. It appends the distance of each from the event's
// end, in bytes.
func appendSeqs(dst []uint32, event, marked []byte) []uint32 {
	for i := 0; i < len(event); i++ {
		if event[i] != marked[i] {
			dst = append(dst, uint32(len(event)-i))
			i += seqDigits - 1
		}
	}
	return dst
}

// lengthSize returns the bytes of the varint at the beginning of b.
func lengthSize(b []byte) int {
	n := 1
	for b[n-1] >= 0x80 {
		n++
	}
	return n
}

// size returns the largest size of a framed message of the encoder's number of
// events, in bytes.
func (p *encoder) size() int { return p.maxMessage }

// sizeOf is size for messages of the given number of events.
func (p *encoder) sizeOf(events int) int { return wire.FrameHead + events*p.most }

// append appends one framed message of the events first, first+1, ... bytes is
// the size of the events themselves, which does not depend on how many share a
// message. It allocates when dst has no room for sizeOf(events).
func (p *encoder) append(dst []byte, first uint64, events int, now time.Time) (out []byte, bytes int64) {
	if p.head > 0 && events == 1 {
		return p.copy(dst, first, 1, clockOf(now, p.shape.time))
	}
	at := len(dst)
	dst, bytes = p.entries(append(dst, 0, 0, 0, 0), first, events, clockOf(now, p.shape.time))
	wire.PutFrame(dst[at:])
	return dst, bytes
}

// batchGroup appends framed messages of the given number of events each.
func (p *encoder) batchGroup(dst []byte, first uint64, batches, events int, now time.Time) (out []byte, bytes int64) {
	c := clockOf(now, p.shape.time)
	if p.head > 0 && events == 1 {
		return p.copy(dst, first, batches, c)
	}
	for range batches {
		at := len(dst)
		var n int64
		dst, n = p.entries(append(dst, 0, 0, 0, 0), first, events, c)
		wire.PutFrame(dst[at:])
		bytes += n
		first += uint64(events)
	}
	return dst, bytes
}

// datagram appends one message without a frame.
func (p *encoder) datagram(dst []byte, first uint64, events int, now time.Time) (out []byte, bytes int64) {
	return p.entries(dst, first, events, clockOf(now, p.shape.time))
}

// clockOf is the time in the unit that events state it in, 0 when they have none.
func clockOf(now time.Time, form timeForm) int64 {
	switch form {
	case timeSeconds:
		return max(0, now.Unix())
	case timeMicros:
		return max(0, now.UnixMicro())
	}
	return 0
}

// entries appends events without a frame.
func (p *encoder) entries(dst []byte, first uint64, events int, clock int64) ([]byte, int64) {
	if p.head == 0 {
		return p.copy(dst, first, events, clock)
	}
	var bytes int64
	for range events {
		at := len(dst)
		var n int64
		dst, n = p.copy(dst, first, 1, clock)
		// Remove the frame header that was copied with the event.
		dst = dst[:at+copy(dst[at:], dst[at+p.head:])]
		bytes += n
		first++
	}
	return dst, bytes
}

// copy appends n events from the pool, and sets the fields that change.
func (p *encoder) copy(dst []byte, first uint64, n int, clock int64) ([]byte, int64) {
	var bytes int64
	k := int(first % p.shape.period)
	for n > 0 {
		run := min(n, encoderBlock-k%encoderBlock, len(p.ends)-k)
		if p.shape.time == timeSeconds && p.stamps[k/encoderBlock] != clock {
			p.stamp(k/encoderBlock, clock)
		}
		from, before := uint32(0), uint32(0)
		if k > 0 {
			from, before = p.ends[k-1], p.sums[k-1]
		}
		ends := p.ends[k : k+run]
		at := len(dst)
		dst = append(dst, p.pool[from:ends[run-1]]...)
		p.patch(dst[at:], ends, from, k, first, clock)
		bytes += int64(p.sums[k+run-1] - before)
		n, first = n-run, first+uint64(run)
		if k += run; k == len(p.ends) {
			k = 0
		}
	}
	return dst, bytes
}

// patch sets metric, microseconds and {seq} of the events in b, a copy of the
// pool from offset from on. It finds them from the end of each event: the
// encoding puts the metric last and the microseconds before it.
func (p *encoder) patch(b []byte, ends []uint32, from uint32, k int, first uint64, clock int64) {
	var numbers [encoderBlock]float64
	switch p.shape.kind {
	case wire.Double:
		p.shape.metric.fill(numbers[:len(ends)], p.stream, first)
		for i, end := range ends {
			binary.LittleEndian.PutUint64(b[end-from-8:], math.Float64bits(numbers[i%encoderBlock]))
		}
	case wire.Float:
		p.shape.metric.fill(numbers[:len(ends)], p.stream, first)
		for i, end := range ends {
			binary.LittleEndian.PutUint32(b[end-from-4:], math.Float32bits(float32(numbers[i%encoderBlock])))
		}
	case wire.Sint64:
		var whole [encoderBlock]int64
		p.shape.metric.fillInts(whole[:len(ends)], p.stream, first)
		for i, end := range ends {
			putPadded(b[int(end-from)-p.width:int(end-from)], zigzag(whole[i%encoderBlock]))
		}
	}
	if p.shape.time == timeMicros {
		var value [8]byte
		putPadded(value[:], uint64(clock))
		word := binary.LittleEndian.Uint64(value[:])
		back := uint32(8)
		if p.width > 0 {
			back += uint32(1 + p.width)
		}
		for _, end := range ends {
			binary.LittleEndian.PutUint64(b[end-from-back:], word)
		}
	}
	if p.seqsPerEvent > 0 {
		seqs := p.seqs[k*p.seqsPerEvent : (k+len(ends))*p.seqsPerEvent]
		for i, end := range ends {
			for _, back := range seqs[i*p.seqsPerEvent : (i+1)*p.seqsPerEvent] {
				putDigits(b[end-from-back:], first+uint64(i))
			}
		}
	}
}

// stamp sets the seconds of the events in block n of the pool.
func (p *encoder) stamp(n int, clock int64) {
	p.stamps[n] = clock
	from := uint32(0)
	if n > 0 {
		from = p.ends[n*encoderBlock-1]
	}
	for _, end := range p.ends[n*encoderBlock : min((n+1)*encoderBlock, len(p.ends))] {
		e := p.pool[from:end]
		at := p.head + 1
		at += lengthSize(e[at:]) + 1 // the time is the first field
		putPadded(e[at:at+5], uint64(clock))
		from = end
	}
}

// putPadded writes a varint that fills b.
func putPadded(b []byte, v uint64) {
	last := len(b) - 1
	for i := range last {
		b[i] = byte(v) | 0x80
		v >>= 7
	}
	b[last] = byte(v) & 0x7f
}
