package kafkatools

import (
	"math"
	"strconv"
	"time"

	"carronade/measure"
)

// A sendBuffer says how long a record is at most in the tool's buffer. The tool's clock starts at its own
// send call, and that of a late record returns only when the buffer has room: when the records that fill it
// before this one were answered. So a record that is answered now was handed over when as many were left
// to be answered as the buffer holds. Records are answered evenly between the ends of intervals.
type sendBuffer struct {
	ends  []bufferEnd // of intervals, the newest last
	bytes uint64      // of all records sent
	sent  uint64      // records
	holds float64     // records
}

type bufferEnd struct {
	at       time.Duration
	answered float64 // records until then
}

// add counts what was answered in the current interval.
func (b *sendBuffer) add(c *measure.Counts) {
	if len(b.ends) == 0 {
		b.ends = []bufferEnd{{}, {}}
	}
	b.ends[len(b.ends)-1].answered += float64(c.Acked + c.Failed + c.Unknown)
	b.bytes += c.Bytes
	b.sent += c.Sent
}

// close ends the current interval, which has the given length.
func (b *sendBuffer) close(length time.Duration, o *producerOptions) {
	n := len(b.ends)
	if n == 0 {
		return
	}
	last := &b.ends[n-1]
	last.at = b.ends[n-2].at + length
	if b.sent > 0 {
		b.holds = bufferRecords(o, float64(b.bytes)/float64(b.sent))
	}
	b.ends = append(b.ends, *last)
	for len(b.ends) > 3 && b.ends[1].answered <= last.answered-b.holds {
		b.ends = b.ends[1:]
	}
}

// waited is how long the buffer took to empty until the end of the newest interval, which is the
// time that its last record was in it; the longest time if it never was full.
func (b *sendBuffer) waited() time.Duration {
	n := len(b.ends)
	if n < 3 {
		return math.MaxInt64
	}
	last := b.ends[n-2]
	target := last.answered - b.holds
	for i := n - 2; i > 0; i-- {
		from, to := b.ends[i-1], b.ends[i]
		if from.answered <= target && to.answered > from.answered {
			share := (target - from.answered) / (to.answered - from.answered)
			return last.at - from.at - time.Duration(share*float64(to.at-from.at))
		}
	}
	return math.MaxInt64
}

// The sizes of a batch of the Java client without its records, and of a record without its value.
const (
	javaBatchExtra  = 61
	javaRecordExtra = 9
)

// bufferRecords is how many records of a size the client's buffer holds. A batch takes batch.size of it, or
// what its only record needs.
func bufferRecords(o *producerOptions, size float64) float64 {
	memory, batch := producerBytes(o, "buffer.memory", 32<<20), producerBytes(o, "batch.size", 16<<10)
	each := math.Floor((batch - javaBatchExtra) / (size + javaRecordExtra))
	if each < 1 {
		return memory / (size + javaRecordExtra + javaBatchExtra)
	}
	return memory / batch * each
}

func producerBytes(o *producerOptions, property string, usual float64) float64 {
	text, _ := o.client.get(property)
	if n, err := strconv.ParseFloat(text, 64); err == nil && n > 0 {
		return n
	}
	return usual
}

// atMost are the same times, none longer than the given one.
func atMost(h *measure.Histogram, most time.Duration) *measure.Histogram {
	if h.Count() == 0 || h.Max() <= most {
		return h
	}
	out := measure.NewHistogram()
	h.EachBucket(func(top time.Duration, n uint64) { out.RecordN(min(top, h.Max(), most), n) })
	return out
}
