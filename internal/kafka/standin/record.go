package standin

import (
	"encoding/binary"
	"encoding/hex"

	"github.com/twmb/franz-go/pkg/kmsg"

	"carronade/internal/standin"
)

// recordProduce records the produce request in c.body, one line per partition,
// with the offsets in the answer.
func (c *conn) recordProduce(h requestHead, answered []kmsg.ProduceResponseTopic) error {
	req := kmsg.NewPtrProduceRequest()
	if err := c.decode(h, req); err != nil {
		return err
	}
	for _, rt := range req.Topics {
		for _, rp := range rt.Partitions {
			st := frameStream(rp.Records)
			p, err := walkBatches(&st, len(rp.Records))
			if err != nil {
				return err
			}
			q := standin.RecordedRequest{
				Kind: "produce", Topic: topicText(rt.Topic, rt.TopicID), Partition: rp.Partition, Offset: standin.NoRecord, Events: p.records,
				NoAnswer: req.Acks == 0,
			}
			for _, at := range answered {
				for _, ap := range at.Partitions {
					if at.Topic == rt.Topic && at.TopicID == rt.TopicID && ap.Partition == rp.Partition {
						q.Offset = ap.BaseOffset
					}
				}
			}
			c.rec.Received(q)
		}
	}
	return nil
}

// recordFetch records the answer to a fetch, one line per partition. Partitions
// without events are left out: consumers poll all the time.
func (c *conn) recordFetch(h requestHead, answer []byte) error {
	resp := kmsg.NewPtrFetchResponse()
	if err := readAnswer(h, answer, resp); err != nil {
		return err
	}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			if len(p.RecordBatches) < batchHead {
				continue
			}
			st := frameStream(p.RecordBatches)
			got, err := walkBatches(&st, len(p.RecordBatches))
			if err != nil {
				return err
			}
			c.rec.Received(standin.RecordedRequest{
				Kind: "fetch", Topic: topicText(t.Topic, t.TopicID), Partition: p.Partition,
				Offset: int64(binary.BigEndian.Uint64(p.RecordBatches)), Events: got.records,
			})
		}
	}
	return nil
}

// topicText names a topic in the record: newer requests contain only its id.
func topicText(name string, id [16]byte) string {
	if name != "" {
		return name
	}
	return hex.EncodeToString(id[:])
}
