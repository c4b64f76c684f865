package standin

import (
	"encoding/binary"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"carronade/internal/standin"
)

// maxFetchWait bounds how long a fetch waits, whatever the request says: until
// then, the end of a client's connection is not noticed.
const maxFetchWait = 30 * time.Second

// fetchScratch is memory for answering a fetch, reused from one to the next.
type fetchScratch struct {
	parts []fetchPart
}

// A fetchPart is the answer for one partition.
type fetchPart struct {
	part   *logPartition
	index  int32
	code   int16
	end    int64
	from   int64 // base offset of the first batch
	bytes  int   // of all batches
	count  int   // number of batches
	events int
}

// serveFetch answers with synthetic batches. The answer is written directly from
// the one batch in memory, with the eight bytes of each base offset in between.
//
// The answer has session id 0, which declines fetch sessions (KIP-227), so that
// each request names its partitions.
func (c *conn) serveFetch(h requestHead) error {
	req := kmsg.NewPtrFetchRequest()
	if err := c.decode(h, req); err != nil {
		return err
	}
	topics := make([]*topic, len(req.Topics))
	for i := range req.Topics {
		var err error
		if h.version >= 13 {
			topics[i], err = c.front.log.byID(req.Topics[i].TopicID)
		} else {
			topics[i], err = c.front.log.byName([]byte(req.Topics[i].Topic))
		}
		if err != nil {
			return err
		}
	}
	bytes, failed := c.planFetch(req, topics)
	if !failed && bytes < int(max(req.MinBytes, 0)) && req.MaxWaitMillis > 0 {
		if err := c.flush(); err != nil {
			return err
		}
		bytes = c.waitFetch(req, topics)
	}
	c.answerFetch(h, req, bytes)
	return nil
}

// waitFetch waits until MinBytes exist, the time is up, or the stand-in ends.
func (c *conn) waitFetch(req *kmsg.FetchRequest, topics []*topic) (bytes int) {
	log := c.front.log
	log.waiters.Add(1)
	defer log.waiters.Add(-1)
	wait := time.NewTimer(min(time.Duration(req.MaxWaitMillis)*time.Millisecond, c.front.maxFetchWait))
	defer wait.Stop()
	for {
		grown := log.grownSignal() // before planFetch, or records in between would be missed
		var failed bool
		if bytes, failed = c.planFetch(req, topics); failed || bytes >= int(req.MinBytes) {
			return bytes
		}
		select {
		case <-grown:
		case <-wait.C:
			return bytes
		case <-c.front.ctx.Done():
			return bytes
		}
	}
}

// planFetch decides what each partition gets, in c.fetch.parts.
func (c *conn) planFetch(req *kmsg.FetchRequest, topics []*topic) (bytes int, failed bool) {
	batch := c.front.log.batch
	parts := c.fetch.parts[:0]
	for i := range req.Topics {
		for j := range req.Topics[i].Partitions {
			rp := &req.Topics[i].Partitions[j]
			p := fetchPart{index: rp.Partition, part: topics[i].partition(rp.Partition), end: -1}
			switch {
			case p.part == nil && req.Version >= 13 && topics[i] == nil:
				p.code = codeUnknownTopicID
			case p.part == nil:
				p.code = codeUnknownTopic
			default:
				p.end = p.part.end.Load()
				if rp.FetchOffset < 0 || rp.FetchOffset > p.end {
					p.code, p.end = codeOffsetOutOfRange, -1
				}
			}
			if p.code != 0 {
				failed = true
			} else {
				// The first batch of an answer is sent whatever its size, or
				// a small limit would stop a consumer for ever.
				p.plan(batch, rp.FetchOffset, min(int(rp.PartitionMaxBytes), int(req.MaxBytes)-bytes), bytes == 0)
				bytes += p.bytes
			}
			parts = append(parts, p)
		}
	}
	c.fetch.parts = parts
	return bytes, failed
}

// plan fills p with batches from offset from on, up to limit bytes. Batches end
// at multiples of their length, or at the log's end. The first begins exactly at
// the requested offset. So no client gets a record twice, and counting by the
// batches' headers is exact.
func (p *fetchPart) plan(b *syntheticBatch, from int64, limit int, atLeastOne bool) {
	p.from = from
	for at := from; at < p.end; {
		n := b.recordsAt(at, p.end)
		size := b.size(n)
		if p.bytes+size > limit && (p.count > 0 || !atLeastOne) {
			return
		}
		p.bytes += size
		p.events += n
		p.count++
		at += int64(n)
	}
}

// answerFetch writes the answer planned in c.fetch.parts. The layout is
// FetchResponse.json of Apache Kafka 4.3.
func (c *conn) answerFetch(h requestHead, req *kmsg.FetchRequest, bytes int) {
	be := binary.BigEndian
	flexible := h.version >= 12
	batch := c.front.log.batch
	at := c.beginReply(h, flexible)
	out := c.out
	out = append(out, 0, 0, 0, 0) // throttle time
	if h.version >= 7 {
		out = append(out, 0, 0, 0, 0, 0, 0) // error code, session id
	}
	out = appendLength(out, len(req.Topics), flexible)
	parts := c.fetch.parts
	extra := 0 // bytes of the answer that are in segments
	for i := range req.Topics {
		rt := &req.Topics[i]
		if h.version >= 13 {
			out = append(out, rt.TopicID[:]...)
		} else {
			out = appendString(out, []byte(rt.Topic), flexible)
		}
		out = appendLength(out, len(rt.Partitions), flexible)
		for range rt.Partitions {
			p := &parts[0]
			parts = parts[1:]
			out = be.AppendUint32(out, uint32(p.index))
			out = be.AppendUint16(out, uint16(p.code))
			out = be.AppendUint64(out, uint64(p.end)) // high watermark
			out = be.AppendUint64(out, uint64(p.end)) // last stable offset
			if h.version >= 5 {
				start := int64(0)
				if p.code != 0 {
					start = -1
				}
				out = be.AppendUint64(out, uint64(start))
			}
			if flexible {
				out = append(out, 0) // no aborted transactions: null
			} else {
				out = append(out, 255, 255, 255, 255)
			}
			if h.version >= 11 {
				out = append(out, 255, 255, 255, 255) // no preferred replica
			}
			out = appendLength(out, p.bytes, flexible)
			for base := p.from; base < p.from+int64(p.events); {
				n := batch.recordsAt(base, p.from+int64(p.events))
				if n < batch.events {
					h := len(out)
					out = append(out, batch.data[:batchHead]...)
					batch.head(out[h:], base, n)
					c.segments = append(c.segments, segment{len(out), batch.data[batchHead:batch.ends[n]]})
					extra += batch.ends[n] - batchHead
				} else {
					out = be.AppendUint64(out, uint64(base))
					c.segments = append(c.segments, segment{len(out), batch.data[8:]})
					extra += len(batch.data) - 8
				}
				base += int64(n)
			}
			c.tally.served.Add(uint64(p.events))
			if c.rec != nil && p.events > 0 {
				c.rec.Received(standin.RecordedRequest{Kind: "fetch", Topic: topicText(rt.Topic, rt.TopicID), Partition: p.index, Offset: p.from, Events: int64(p.events)})
			}
			if flexible {
				out = append(out, 0)
			}
		}
		if flexible {
			out = append(out, 0)
		}
	}
	if flexible {
		out = append(out, 0)
	}
	c.tally.servedBytes.Add(uint64(bytes))
	c.out = out
	c.endReply(at, extra)
}
