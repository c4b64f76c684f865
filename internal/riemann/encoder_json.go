package riemann

import (
	"time"

	"carronade/internal/riemann/wire"
)

// A jsonPool has the events of a period as JSON, without their metric and time,
// which come last.
type jsonPool struct {
	bytes []byte
	ends  []uint32
	seqs  []uint32 // as in encoder
}

func (p *encoder) makeJSON() *jsonPool {
	j := &jsonPool{}
	var marked []byte
	for k := range p.shape.period {
		from := len(j.bytes)
		e := p.shape.content(eventPlace{stream: p.stream, content: k})
		j.bytes = wire.AppendJSONHead(j.bytes, &e)
		if p.seqsPerEvent > 0 {
			e = p.shape.content(eventPlace{stream: p.stream, content: k, seq: markSeq})
			marked = wire.AppendJSONHead(marked[:0], &e)
			j.seqs = appendSeqs(j.seqs, j.bytes[from:], marked)
		}
		j.ends = append(j.ends, uint32(len(j.bytes)))
	}
	return j
}

// json appends the events first, first+1, ... as JSON, each followed by a line
// feed, which bytes does not count.
func (p *encoder) json(dst []byte, first uint64, events int, now time.Time) (out []byte, bytes int64) {
	if p.jsons == nil {
		p.jsons = p.makeJSON()
	}
	j := p.jsons
	whole := time.Second
	if p.shape.time == timeMicros {
		whole = time.Microsecond
	}
	for ; events > 0; events, first = events-1, first+1 {
		k := int(first % p.shape.period)
		from := uint32(0)
		if k > 0 {
			from = j.ends[k-1]
		}
		at := len(dst)
		dst = append(dst, j.bytes[from:j.ends[k]]...)
		for _, back := range j.seqs[k*p.seqsPerEvent : (k+1)*p.seqsPerEvent] {
			putDigits(dst[len(dst)-int(back):], first)
		}
		dst = wire.AppendJSONMetric(dst, p.shape.metricAt(p.stream, first))
		if p.shape.time != timeNone {
			dst = wire.AppendJSONTime(dst, now.Truncate(whole), p.shape.time == timeMicros)
		}
		dst = wire.AppendJSONEnd(dst)
		bytes += int64(len(dst) - at)
		dst = append(dst, '\n')
	}
	return dst, bytes
}
