package standin

import (
	"encoding/binary"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// produceSum sums the record batches of a produce request.
type produceSum struct {
	acks int16
	produced
}

func (c *produceSum) begin(_ []byte, acks int16, _ int) { c.acks = acks }
func (c *produceSum) topic([]byte, [16]byte, int)       {}
func (c *produceSum) endTopic()                         {}
func (c *produceSum) partition(_ int32, p produced) {
	c.batches += p.batches
	c.records += p.records
	c.bytes += p.bytes
}

// serveBrokerProduce forwards the produce request in c.body to the broker, without
// the partitions that the error rules or the server refuse.
func (c *conn) serveBrokerProduce(h requestHead) error {
	st := frameStream(c.body)
	if _, err := st.next(12); err != nil {
		return err
	}
	if err := skipClient(&st, h.version >= 9); err != nil {
		return err
	}
	var sum produceSum
	if err := walkProduce(&st, h.version, &sum); err != nil {
		return err
	}
	if len(c.front.opts.Errors) > 0 && sum.acks != 0 || c.front.server != nil {
		return c.serveFaultyProduce(h)
	}
	var answer []byte
	var err error
	if sum.acks == 0 {
		// The broker does not answer it.
		err = c.sendUnanswered(c.body)
	} else {
		answer, err = c.forward(c.body)
	}
	if err != nil {
		return err
	}
	c.out = append(c.out, answer...)
	if c.rec != nil {
		resp := kmsg.NewPtrProduceResponse()
		if sum.acks != 0 {
			if err := readAnswer(h, answer, resp); err != nil {
				return err
			}
		}
		if err := c.recordProduce(h, resp.Topics); err != nil {
			return err
		}
	}
	c.tally.batches.Add(uint64(sum.batches))
	c.tally.events.Add(uint64(sum.records))
	c.tally.bytes.Add(uint64(sum.bytes))
	return nil
}

// serveFaultyProduce draws whether each partition of the request in c.body gets
// an error, passes the records of the others to the server, forwards the partitions
// that nothing refuses, and joins the answers. Without an answer (acks=0) a client
// cannot learn of an error: what a full server refuses is lost.
func (c *conn) serveFaultyProduce(h requestHead) error {
	req := kmsg.NewPtrProduceRequest()
	if err := c.decode(h, req); err != nil {
		return err
	}
	resp := req.ResponseKind().(*kmsg.ProduceResponse)
	var forwarded []kmsg.ProduceRequestTopic
	for _, rt := range req.Topics {
		at := kmsg.NewProduceResponseTopic()
		at.Topic, at.TopicID = rt.Topic, rt.TopicID
		keep := rt
		keep.Partitions = nil
		for _, rp := range rt.Partitions {
			st := frameStream(rp.Records)
			p, err := walkBatches(&st, len(rp.Records))
			if err != nil {
				return err
			}
			code := int16(0)
			if req.Acks != 0 {
				code = c.front.produceError()
			}
			if code == 0 {
				var done time.Time
				done, code = c.front.admit(p.records)
				if req.Acks != 0 {
					c.departures.NotBefore(done)
				}
			}
			if code == 0 {
				c.tally.batches.Add(uint64(p.batches))
				c.tally.events.Add(uint64(p.records))
				c.tally.bytes.Add(uint64(p.bytes))
				keep.Partitions = append(keep.Partitions, rp)
				continue
			}
			c.tally.refused.Add(uint64(p.records))
			ap := kmsg.NewProduceResponseTopicPartition()
			ap.Partition, ap.ErrorCode, ap.BaseOffset = rp.Partition, code, -1
			at.Partitions = append(at.Partitions, ap)
		}
		if len(keep.Partitions) > 0 {
			forwarded = append(forwarded, keep)
		}
		if len(at.Partitions) > 0 {
			resp.Topics = append(resp.Topics, at)
		}
	}
	if req.Acks == 0 {
		if req.Topics = forwarded; len(forwarded) > 0 {
			if err := c.sendUnanswered(frameOfRequest(c.body, req)); err != nil {
				return err
			}
		}
		if c.rec != nil {
			return c.recordProduce(h, nil)
		}
		return nil
	}
	if len(forwarded) > 0 {
		req.Topics = forwarded
		answer := req.ResponseKind().(*kmsg.ProduceResponse)
		if err := c.askBroker(h, req, answer); err != nil {
			return err
		}
		resp.Topics = joinTopics(answer.Topics, resp.Topics)
		resp.ThrottleMillis = answer.ThrottleMillis
	}
	c.reply(h, resp)
	if c.rec != nil {
		return c.recordProduce(h, resp.Topics)
	}
	return nil
}

// joinTopics adds the partitions of b to the topics of a, because an answer names
// each topic once.
func joinTopics(a, b []kmsg.ProduceResponseTopic) []kmsg.ProduceResponseTopic {
	for _, bt := range b {
		found := false
		for i := range a {
			if a[i].Topic == bt.Topic && a[i].TopicID == bt.TopicID {
				a[i].Partitions = append(a[i].Partitions, bt.Partitions...)
				found = true
				break
			}
		}
		if !found {
			a = append(a, bt)
		}
	}
	return a
}

// askBroker sends a request to the broker on the client's connection, with the
// client's correlation id, and reads the answer into resp.
func (c *conn) askBroker(h requestHead, req kmsg.Request, resp kmsg.Response) error {
	answer, err := c.forward(frameOfRequest(c.body, req))
	if err != nil {
		return err
	}
	return readAnswer(h, answer, resp)
}

// frameOfRequest returns a frame of the request req with the head of another frame,
// for the same kind and version of request.
func frameOfRequest(head []byte, req kmsg.Request) []byte {
	frame := append([]byte(nil), head[:12]...)
	frame = append(frame, 255, 255) // no client id
	if req.IsFlexible() {
		frame = append(frame, 0)
	}
	frame = req.AppendTo(frame)
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
	return frame
}

// readAnswer reads the answer to the request h.
func readAnswer(h requestHead, answer []byte, resp kmsg.Response) error {
	resp.SetVersion(h.version)
	skip := 8
	if resp.IsFlexible() {
		skip++
	}
	if len(answer) < skip {
		return errFrame
	}
	return resp.ReadFrom(answer[skip:])
}
