package wire

import (
	"errors"
	"fmt"
	"testing"

	"carronade/test/testkit/assert"

	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"
)

func TestProduceRequestMatchesKmsg(t *testing.T) {
	for version := int16(MinProduceVersion); version <= MaxProduceVersion; version++ {
		for _, batches := range [][][]byte{{[]byte("one batch")}, {[]byte("a"), make([]byte, 20_000), []byte("c")}} {
			t.Run(fmt.Sprintf("v%d with %d", version, len(batches)), func(t *testing.T) {
				f := ProduceFormat{Version: version, ClientID: "me", Acks: -1, TimeoutMillis: 30_000}
				topics := []Topic{{"events", [16]byte{9, 8}}, {"others", [16]byte{7}}}[:min(2, len(batches))]
				req := kmsg.NewPtrProduceRequest()
				req.SetVersion(version)
				req.Acks, req.TimeoutMillis = f.Acks, f.TimeoutMillis
				got := f.AppendHead(nil, 77, len(topics))
				n := len(f.AppendTail(f.AppendHead(nil, 77, 1<<20)))
				assert.True(t, n <= f.MaxHead(), "head and tail take %d bytes, MaxHead = %d", n, f.MaxHead())
				for i := range topics {
					topic := kmsg.NewProduceRequestTopic()
					topic.Topic, topic.TopicID = topics[i].Name, topics[i].ID
					n := len(f.AppendTopicEnd(f.AppendTopic(nil, &topics[i], 1<<20)))
					assert.True(t, n <= topics[i].MaxTopic(), "a topic takes %d bytes, MaxTopic = %d", n, topics[i].MaxTopic())
					got = f.AppendTopic(got, &topics[i], len(batches))
					for j, b := range batches {
						p := kmsg.NewProduceRequestTopicPartition()
						p.Partition, p.Records = int32(j*300), b
						topic.Partitions = append(topic.Partitions, p)
						n := len(got)
						got = f.AppendPartition(got, int32(j*300), len(b))
						n = len(got) - n
						got = append(got, b...)
						end := len(got)
						got = f.AppendPartitionEnd(got)
						n += len(got) - end
						assert.True(t, n <= MaxPartition, "a partition takes %d bytes, MaxPartition = %d", n, MaxPartition)
					}
					got = f.AppendTopicEnd(got)
					req.Topics = append(req.Topics, topic)
				}
				got = f.AppendTail(got)
				PutSize(got, len(got))
				assert.Same(t, got, kmsg.NewRequestFormatter(kmsg.FormatterClientID("me")).AppendRequest(nil, req, 77))
			})
		}
	}
}

// produceAnswer returns an answer with one acknowledged and one refused partition.
func produceAnswer(version int16) *kmsg.ProduceResponse {
	resp := kmsg.NewPtrProduceResponse()
	resp.SetVersion(version)
	resp.ThrottleMillis = 40
	topic := kmsg.NewProduceResponseTopic()
	topic.Topic, topic.TopicID = "events", [16]byte{9}
	good := kmsg.NewProduceResponseTopicPartition()
	good.Partition, good.BaseOffset, good.LogAppendTime, good.LogStartOffset = 3, 1<<40, 5, 6
	bad := kmsg.NewProduceResponseTopicPartition()
	bad.Partition, bad.ErrorCode, bad.BaseOffset = 4, 6, -1
	message := "not me"
	bad.ErrorRecords = []kmsg.ProduceResponseTopicPartitionErrorRecord{{RelativeOffset: 1, ErrorMessage: &message}}
	bad.CurrentLeader.LeaderID, bad.CurrentLeader.LeaderEpoch = 2, 11
	topic.Partitions = append(topic.Partitions, good, bad)
	resp.Topics = append(resp.Topics, topic)
	b := kmsg.NewProduceResponseBroker()
	b.NodeID, b.Host = 2, "there"
	resp.Brokers = append(resp.Brokers, b)
	return resp
}

func encodeAnswer(resp kmsg.Response) []byte {
	var body []byte
	if resp.IsFlexible() {
		body = append(body, 0)
	}
	return resp.AppendTo(body)
}

func TestParseProduceMatchesKmsg(t *testing.T) {
	for version := int16(MinProduceVersion); version <= MaxProduceVersion; version++ {
		t.Run(fmt.Sprintf("v%d", version), func(t *testing.T) {
			body := encodeAnswer(produceAnswer(version))
			want := []ProduceAnswer{
				{Partition: 3, BaseOffset: 1 << 40, LeaderID: -1, LeaderEpoch: -1},
				{Partition: 4, ErrorCode: 6, BaseOffset: -1, LeaderID: -1, LeaderEpoch: -1},
			}
			if version >= 8 {
				want[1].Message = []byte("not me")
			}
			if version >= 9 { // from v10 on by the protocol; kmsg writes it wherever there are tags
				want[1].LeaderID, want[1].LeaderEpoch = 2, 11
			}
			got, throttle, err := ParseProduce(body, version, nil)
			assert.OK(t, err)
			sent := Topic{"events", [16]byte{9}}
			for i := range got {
				assert.True(t, sent.Is(got[i].Topic, version) && !(&Topic{Name: "other"}).Is(got[i].Topic, version), "topic %q", got[i].Topic)
				got[i].Topic = nil
			}
			assert.Same(t, got, want)
			assert.Equal(t, throttle, 40, "throttle")
			for i := range body {
				_, _, err := ParseProduce(body[:i], version, nil)
				assert.True(t, err != nil, "an answer cut to %d of %d bytes was accepted", i, len(body))
			}
			room := make([]ProduceAnswer, 0, 8)
			assert.Equal(t, testing.AllocsPerRun(10, func() { room, _, _ = ParseProduce(body, version, room[:0]) }), 0, "allocations")
		})
	}
	for _, version := range []int16{MinProduceVersion - 1, MaxProduceVersion + 1} {
		_, _, err := ParseProduce(nil, version, nil)
		assert.True(t, err != nil, "version %d was accepted", version)
	}
}

func FuzzParseProduce(f *testing.F) {
	for _, v := range []int16{3, 8, 9, 13} {
		f.Add(encodeAnswer(produceAnswer(v)), v)
	}
	f.Fuzz(func(t *testing.T, body []byte, version int16) {
		got, _, err := ParseProduce(body, version, nil)
		assert.True(t, err != nil || len(got) <= len(body), "%d partitions in %d bytes", len(got), len(body))
	})
}

func TestNextFrame(t *testing.T) {
	two := []byte{0, 0, 0, 6, 0, 0, 0, 1, 'a', 'b', 0, 0, 0, 4, 0, 0, 0, 2}
	f, rest, err := NextFrame(two, 100)
	assert.Must(t, err == nil && f.Correlation == 1 && string(f.Body) == "ab" && len(rest) == 8,
		"first: %+v, rest %d, %v", f, len(rest), err)
	f, rest, err = NextFrame(rest, 100)
	assert.Must(t, err == nil && f.Correlation == 2 && len(f.Body) == 0 && rest != nil && len(rest) == 0,
		"second: %+v, rest %v, %v", f, rest, err)
	for i := range 10 {
		_, rest, err := NextFrame(two[:i], 100)
		assert.True(t, rest == nil && err == nil, "%d bytes: rest %v, error %v", i, rest, err)
	}
	for _, bad := range [][]byte{{0, 0, 0, 3}, []byte("HTTP/1.1"), {0xff, 0, 0, 0}} {
		_, _, err := NextFrame(bad, 100)
		assert.True(t, errors.Is(err, ErrLength), "%q: error = %v", bad, err)
	}
}

func FuzzNextFrame(f *testing.F) {
	f.Add([]byte{0, 0, 0, 6, 0, 0, 0, 1, 'a', 'b', 0, 0, 0, 4, 0, 0, 0, 2})
	f.Fuzz(func(t *testing.T, b []byte) {
		for len(b) > 0 {
			_, rest, err := NextFrame(b, 1000)
			if err != nil || rest == nil {
				return
			}
			assert.Must(t, len(b)-len(rest) >= 8, "a frame of %d bytes", len(b)-len(rest))
			b = rest
		}
	})
}

// The values are those of Kafka's own UtilsTest.testMurmur2.
func TestMurmur2(t *testing.T) {
	for _, tt := range []struct {
		key  string
		want int32
	}{
		{"21", -973932308},
		{"foobar", -790332482},
		{"a-little-bit-long-string", -985981536},
		{"a-little-bit-longer-string", -1486304829},
		{"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971},
		{"abc", 479470107},
	} {
		assert.Equal(t, int32(Murmur2([]byte(tt.key))), tt.want, "Murmur2(%q)", tt.key)
		assert.Equal(t, PartitionOf([]byte(tt.key), 7), (tt.want&0x7fffffff)%7, "PartitionOf(%q, 7)", tt.key)
	}
}

func TestStamp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := Stamp{
			Run:    rapid.Uint32().Draw(t, "run"),
			Stream: rapid.Int32Range(0, maxStampStream).Draw(t, "stream"),
			Index:  rapid.Uint64Range(0, MaxStampIndex).Draw(t, "index"),
		}
		b := make([]byte, StampSize)
		want.Put(b)
		got, ok := ParseStamp(append(b, "and more"...))
		if !ok || got != want {
			t.Fatalf("got %+v, %v, want %+v", got, ok, want)
		}
		bit := rapid.IntRange(0, 8*StampSize-1).Draw(t, "bit")
		b[bit/8] ^= 1 << (bit % 8)
		if _, ok := ParseStamp(b); ok {
			t.Fatalf("flipped bit %d was not detected", bit)
		}
		if _, ok := ParseStamp(b[:StampSize-1]); ok {
			t.Fatal("a value that is too short was accepted as a stamp")
		}
	})
}

func FuzzParseStamp(f *testing.F) {
	b := make([]byte, StampSize)
	(&Stamp{Run: 1, Stream: 2, Index: 3}).Put(b)
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		s, ok := ParseStamp(b)
		if !ok {
			return
		}
		again := make([]byte, StampSize)
		s.Put(again)
		assert.Same(t, again, b[:StampSize], "written again")
	})
}
