package kafka

import (
	"carronade/internal/testkit/assert"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// produceRequest is a request of two topics and three partitions, as kmsg writes it.
func produceRequest(version int16) []byte {
	req := kmsg.NewPtrProduceRequest()
	req.Version, req.Acks, req.TimeoutMillis = version, -1, 1000
	for i, partitions := range []int32{2, 1} {
		t := kmsg.NewProduceRequestTopic()
		t.Topic = "topic"
		t.TopicID[15] = byte(i + 1)
		for p := range partitions {
			part := kmsg.NewProduceRequestTopicPartition()
			part.Partition, part.Records = p, []byte{byte(i), byte(p), 7}
			t.Partitions = append(t.Partitions, part)
		}
		req.Topics = append(req.Topics, t)
	}
	return kmsg.NewRequestFormatter(kmsg.FormatterClientID("client")).AppendRequest(nil, req, 5)[4:]
}

func TestWalkProduceMatchesKmsg(t *testing.T) {
	for version := int16(MinProduceVersion); version <= MaxProduceVersion; version++ {
		request := produceRequest(version)
		assert.Must(t, IsProduce(request), "v%d is not recognized", version)
		var got [][]byte
		err := WalkProduce(request, func(p *ProducePartition) error {
			if p.Partition != int32(p.Records[1]) || version < produceTopicIDs && p.Topic != "topic" || version >= produceTopicIDs && p.TopicID[15] != p.Records[0]+1 {
				t.Errorf("v%d: got %+v", version, p)
			}
			got = append(got, p.Records)
			return nil
		})
		assert.True(t, err == nil && len(got) == 3, "v%d: got %d partitions and %v, want 3", version, len(got), err)
		if WalkProduce(request[:len(request)-6], func(*ProducePartition) error { return nil }) == nil {
			t.Errorf("v%d: got no error of a truncated request", version)
		}
	}
}

func FuzzWalkProduce(f *testing.F) {
	for _, version := range []int16{3, 9, 13} {
		f.Add(produceRequest(version))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		total := 0
		_ = WalkProduce(data, func(p *ProducePartition) error { total += len(p.Records); return nil })
		assert.True(t, total <= len(data), "got %d bytes of records in %d", total, len(data))
	})
}
