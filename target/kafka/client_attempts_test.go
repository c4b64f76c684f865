package kafka

import (
	"encoding/binary"
	"errors"
	"net"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"carronade/load"
)

// The report has the number of failed attempts, and says nothing if none failed.
func TestClientAttempts(t *testing.T) {
	for _, tt := range []struct {
		name                string
		refused, unanswered uint64 // requests of one batch
	}{
		{"no failures", 0, 0},
		{"refused", 3, 0},
		{"connection closed", 0, 2},
		{"both", 2, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := eventsCluster(t, 1)
			var seen atomic.Uint64
			c.ControlKey(int16(kmsg.Produce), func(req kmsg.Request) (kmsg.Response, error, bool) {
				c.KeepControl()
				switch n := seen.Add(1); {
				case n <= tt.refused:
					asked := req.(*kmsg.ProduceRequest)
					resp := req.ResponseKind().(*kmsg.ProduceResponse)
					for _, topic := range asked.Topics {
						rt := kmsg.NewProduceResponseTopic()
						rt.Topic, rt.TopicID = topic.Topic, topic.TopicID
						for _, p := range topic.Partitions {
							rp := kmsg.NewProduceResponseTopicPartition()
							rp.Partition, rp.ErrorCode = p.Partition, kerr.RequestTimedOut.Code
							rt.Partitions = append(rt.Partitions, rp)
						}
						resp.Topics = append(resp.Topics, rt)
					}
					return resp, nil, true
				case n <= tt.refused+tt.unanswered:
					return nil, errors.New("the test closes this connection"), true
				}
				return nil, nil, false
			})
			s, err := open(t, spec(t, fakeURL(c.ListenAddrs()), map[string][]string{"engine": {engineClient}, "idempotent": {"true"}}))
			if err != nil {
				t.Fatal(err)
			}
			const events = 200
			res := launch(t, s, load.Plan{Schedule: load.Limit(load.Constant(2000), events)})
			if res.Measurement.Acked != events {
				t.Errorf("%d of %d events acked", res.Measurement.Acked, events)
			}
			p := s.Target().(*clientProducer)
			a := &p.attempts
			if a.refused.Load() != tt.refused || a.unanswered.Load() != tt.unanswered {
				t.Errorf("%d attempts refused and %d unanswered, want %d and %d", a.refused.Load(), a.unanswered.Load(), tt.refused, tt.unanswered)
			}
			if got, want := a.written.Load(), seen.Load(); got != want {
				t.Errorf("%d batches were written, the broker saw %d", got, want)
			}
			if _, counted := p.facts()["batch_attempts"]; counted != (tt.refused+tt.unanswered > 0) {
				t.Errorf("got the facts %v", p.facts())
			}
		})
	}
}

// FuzzCountedConn checks that no input makes the counting panic, however it is split
// into reads.
func FuzzCountedConn(f *testing.F) {
	f.Add([]byte{0, 0, 0, 8, 0, 0, 0, 7, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 2, 9, 9}, uint8(3))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0, 0}, uint8(1))
	f.Fuzz(func(t *testing.T, b []byte, cut uint8) {
		c := newCountedConn(&net.TCPConn{}, new(attempts))
		c.pending[7] = pendingProduce{version: 9, batches: 1}
		for rest := b; len(rest) > 0; {
			n := min(len(rest), int(cut)+1)
			c.parse(rest[:n])
			rest = rest[n:]
		}
		produceOf(b)
		if len(b) >= 4 {
			binary.BigEndian.PutUint32(b, uint32(len(b)-4))
			produceOf(b)
		}
	})
}

// BenchmarkProduceOf measures the cost of counting a request of 1 MiB.
func BenchmarkProduceOf(b *testing.B) {
	req := kmsg.NewPtrProduceRequest()
	req.Version, req.Acks = 9, 1
	topic := kmsg.NewProduceRequestTopic()
	topic.Topic = "events"
	for i := range int32(4) {
		p := kmsg.NewProduceRequestTopicPartition()
		p.Partition, p.Records = i, make([]byte, 256<<10)
		topic.Partitions = append(topic.Partitions, p)
	}
	req.Topics = append(req.Topics, topic)
	raw := kmsg.NewRequestFormatter(kmsg.FormatterClientID("carronade")).AppendRequest(nil, req, 5)
	if id, p, ok := produceOf(raw); !ok || id != 5 || p != (pendingProduce{version: 9, batches: 4}) {
		b.Fatalf("got %d, %+v, %v", id, p, ok)
	}
	b.ReportAllocs()
	for b.Loop() {
		produceOf(raw)
	}
}
