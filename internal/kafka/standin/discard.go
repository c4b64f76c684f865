package standin

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"carronade/internal/standin"
)

// Kafka's error codes in answers that the front makes.
const (
	codeOffsetOutOfRange = 1
	codeCorruptMessage   = 2
	codeUnknownTopic     = 3
	codeThrottled        = 89 // the overload that clients retry later
	codeUnknownTopicID   = 100
)

// serveProduce answers a produce request for the discard broker: it counts the
// batches, assigns their offsets and drops them while they arrive.
func (c *conn) serveProduce(h requestHead) error {
	if err := skipClient(c.in, h.version >= 9); err != nil {
		return err
	}
	a := &c.answer
	a.start(h)
	if err := walkProduce(c.in, h.version, a); err != nil {
		return err
	}
	if a.err == nil && len(a.joins) > 0 {
		a.err = a.joinTransaction()
	}
	a.finish()
	if a.err != nil {
		return a.err
	}
	if a.events > 0 {
		c.tally.batches.Add(a.batches)
		c.tally.events.Add(a.events)
		c.tally.bytes.Add(a.bytes)
		c.front.log.notify()
	}
	return nil
}

// A produceAnswer writes the answer to a produce request while the request is
// read. The layout is ProduceResponse.json of Apache Kafka 4.3; a broker that
// leads all partitions needs none of its tagged fields.
type produceAnswer struct {
	conn         *conn
	head         requestHead
	out          []byte // separate from the connection's out, which may be written while the request arrives
	acks         int16
	currentTopic *topic
	lastTopic    *topic // the topic before: most requests have the same one
	err          error
	txn          []byte    // the transaction's id, or nil
	joins        []txnJoin // partitions of the transaction
	batches      uint64
	events       uint64
	bytes        uint64

	name  string                    // of the topic, for the record
	parts []standin.RecordedRequest // for the record
}

func (a *produceAnswer) start(h requestHead) {
	a.head, a.err = h, nil
	a.batches, a.events, a.bytes = 0, 0, 0
	a.out = appendReplyHead(a.out[:0], h, h.version >= 9)
}

func (a *produceAnswer) flexible() bool { return a.head.version >= 9 }

func (a *produceAnswer) begin(transactional []byte, acks int16, topics int) {
	a.txn = transactional
	a.joins = a.joins[:0]
	a.acks = acks
	a.out = appendLength(a.out, topics, a.flexible())
}

func (a *produceAnswer) topic(name []byte, id [16]byte, partitions int) {
	out := a.out
	log := a.conn.front.log
	table := log.table.Load()
	var err error
	if a.head.version >= 13 {
		if a.currentTopic = a.lastTopic; a.currentTopic == nil || a.currentTopic.id != id || table.byID[id] != a.currentTopic {
			a.currentTopic, err = log.byID(id)
		}
		out = append(out, id[:]...)
	} else {
		if a.currentTopic = a.lastTopic; a.currentTopic == nil || a.currentTopic.name != string(name) || table.byID[a.currentTopic.id] != a.currentTopic {
			a.currentTopic, err = log.byName(name)
		}
		out = appendString(out, name, a.flexible())
	}
	if err != nil && a.err == nil {
		a.err = err
	}
	if a.conn.rec != nil {
		a.name = topicText(string(name), id)
	}
	a.lastTopic = a.currentTopic
	a.out = appendLength(out, partitions, a.flexible())
}

func (a *produceAnswer) partition(index int32, p produced) {
	code, base := int16(0), int64(-1)
	part := a.currentTopic.partition(index)
	switch {
	case part == nil && a.head.version >= 13 && a.currentTopic == nil:
		code = codeUnknownTopicID
	case part == nil:
		code = codeUnknownTopic
	case p.bad:
		code = codeCorruptMessage
	default:
		// Without an answer, the client cannot learn of an error.
		if a.acks != 0 {
			code = a.conn.front.produceError()
		}
		if code == 0 {
			var done time.Time
			done, code = a.conn.front.admit(p.records)
			if a.acks != 0 {
				a.conn.departures.NotBefore(done)
			}
		}
	}
	if code != 0 {
		a.conn.tally.refused.Add(uint64(p.records))
	} else {
		base = a.conn.front.log.append(part, p.records)
		a.batches += uint64(p.batches)
		a.events += uint64(p.records)
		a.bytes += uint64(p.bytes)
	}
	if a.conn.rec != nil {
		a.parts = append(a.parts, standin.RecordedRequest{Kind: "produce", Topic: a.name, Partition: index, Offset: base, Events: p.records, NoAnswer: a.acks == 0})
	}
	if a.txn != nil && code == 0 {
		a.joins = append(a.joins, txnJoin{a.currentTopic.name, index, p.id, p.epoch, len(a.out) + 4})
	}
	a.out = appendProduced(a.out, a.head.version, index, code, base)
}

func (a *produceAnswer) endTopic() {
	if a.flexible() {
		a.out = append(a.out, 0)
	}
}

// A txnJoin is a partition that a transaction produced to.
type txnJoin struct {
	topic  string
	index  int32
	id     int64
	epoch  int16
	codeAt int // index of its error code in the answer
}

// joinTransaction adds the partitions of the request to the transaction at the
// broker, which keeps the transactions. Clients with KIP-890 leave this to the
// broker that receives the records. If the broker refuses, its error goes into
// the answer; the offsets stay assigned, which does no harm here.
func (a *produceAnswer) joinTransaction() error {
	for _, j := range a.joins {
		req := kmsg.NewPtrAddPartitionsToTxnRequest()
		req.SetVersion(3)
		req.TransactionalID, req.ProducerID, req.ProducerEpoch = string(a.txn), j.id, j.epoch
		rt := kmsg.NewAddPartitionsToTxnRequestTopic()
		rt.Topic, rt.Partitions = j.topic, []int32{j.index}
		req.Topics = append(req.Topics, rt)
		if err := a.conn.dialInner(); err != nil {
			return err
		}
		resp := kmsg.NewPtrAddPartitionsToTxnResponse()
		if err := ask(a.conn.inner, req, resp); err != nil {
			return fmt.Errorf("adding a partition to transaction %q: %w", a.txn, err)
		}
		for _, t := range resp.Topics {
			for _, p := range t.Partitions {
				binary.BigEndian.PutUint16(a.out[j.codeAt:], uint16(p.ErrorCode))
			}
		}
	}
	return nil
}

// finish passes the answer to the connection, unless none is due.
func (a *produceAnswer) finish() {
	for _, q := range a.parts {
		a.conn.rec.Received(q)
	}
	a.parts = a.parts[:0]
	if a.acks == 0 {
		return
	}
	out := append(a.out, 0, 0, 0, 0) // throttle time
	if a.flexible() {
		out = append(out, 0)
	}
	binary.BigEndian.PutUint32(out, uint32(len(out)-4))
	a.out = out
	a.conn.out = append(a.conn.out, out...)
}

// appendProduced appends the answer for one partition.
func appendProduced(out []byte, version int16, index int32, code int16, base int64) []byte {
	out = binary.BigEndian.AppendUint32(out, uint32(index))
	out = binary.BigEndian.AppendUint16(out, uint16(code))
	out = binary.BigEndian.AppendUint64(out, uint64(base))
	out = append(out, 255, 255, 255, 255, 255, 255, 255, 255) // log append time: none
	if version >= 5 {
		start := int64(0)
		if code != 0 {
			start = -1
		}
		out = binary.BigEndian.AppendUint64(out, uint64(start)) // log start offset
	}
	if version >= 9 {
		return append(out, 1, 0, 0) // no record errors, no message, no tags
	}
	if version >= 8 {
		out = append(out, 0, 0, 0, 0, 255, 255)
	}
	return out
}

func appendLength(out []byte, n int, compact bool) []byte {
	if compact {
		return binary.AppendUvarint(out, uint64(n)+1)
	}
	return binary.BigEndian.AppendUint32(out, uint32(n))
}

func appendString(out []byte, s []byte, compact bool) []byte {
	if compact {
		out = binary.AppendUvarint(out, uint64(len(s))+1)
	} else {
		out = binary.BigEndian.AppendUint16(out, uint16(len(s)))
	}
	return append(out, s...)
}

// serveListOffsets answers ListOffsets for the discard broker: every partition
// begins at 0 and ends after the last produced record.
func (c *conn) serveListOffsets(h requestHead) error {
	req := kmsg.NewPtrListOffsetsRequest()
	if err := c.decode(h, req); err != nil {
		return err
	}
	log := c.front.log
	resp := req.ResponseKind().(*kmsg.ListOffsetsResponse)
	for _, rt := range req.Topics {
		t, err := log.byName([]byte(rt.Topic))
		if err != nil {
			return err
		}
		at := kmsg.NewListOffsetsResponseTopic()
		at.Topic = rt.Topic
		for _, rp := range rt.Partitions {
			ap := kmsg.NewListOffsetsResponseTopicPartition()
			ap.Partition = rp.Partition
			if p := t.partition(rp.Partition); p == nil {
				ap.ErrorCode = codeUnknownTopic
			} else {
				ap.LeaderEpoch = 0
				ap.Offset, ap.Timestamp = log.offsetAt(p, rp.Timestamp)
				if h.version == 0 {
					ap.OldStyleOffsets = []int64{ap.Offset}
				}
			}
			at.Partitions = append(at.Partitions, ap)
		}
		resp.Topics = append(resp.Topics, at)
	}
	c.reply(h, resp)
	return nil
}

// offsetAt resolves a time of a ListOffsets request. All synthetic records have
// the same time.
func (l *discardLog) offsetAt(p *logPartition, at int64) (offset, timestamp int64) {
	end := p.end.Load()
	switch {
	case at == -1: // end of the log
		return end, -1
	case at == -2 || at == -4: // its start
		return 0, -1
	case end == 0:
		return -1, -1
	case at == -3: // the record with the largest time
		return end - 1, l.batch.millis
	case at >= 0 && at <= l.batch.millis:
		return 0, l.batch.millis
	default: // later than every record, or of a tiered log, which does not exist here
		return -1, -1
	}
}

// serveEpochEnds answers OffsetForLeaderEpoch: the only epoch is 0.
func (c *conn) serveEpochEnds(h requestHead) error {
	req := kmsg.NewPtrOffsetForLeaderEpochRequest()
	if err := c.decode(h, req); err != nil {
		return err
	}
	resp := req.ResponseKind().(*kmsg.OffsetForLeaderEpochResponse)
	for _, rt := range req.Topics {
		t, err := c.front.log.byName([]byte(rt.Topic))
		if err != nil {
			return err
		}
		at := kmsg.NewOffsetForLeaderEpochResponseTopic()
		at.Topic = rt.Topic
		for _, rp := range rt.Partitions {
			ap := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
			ap.Partition = rp.Partition
			if p := t.partition(rp.Partition); p == nil {
				ap.ErrorCode = codeUnknownTopic
			} else {
				ap.LeaderEpoch, ap.EndOffset = 0, p.end.Load()
			}
			at.Partitions = append(at.Partitions, ap)
		}
		resp.Topics = append(resp.Topics, at)
	}
	c.reply(h, resp)
	return nil
}
