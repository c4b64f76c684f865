package wire

import (
	"errors"
	"fmt"
	"hash/crc32"
	"testing"

	"carronade/test/testkit/assert"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// testBatch returns an uncompressed batch of n records "value i", made by kmsg.
func testBatch(base int64, n int) []byte {
	var recs []byte
	for i := range n {
		v := fmt.Appendf(nil, "value %d", i)
		recs = AppendRecord(recs, int32(i), nil, v, AppendHeaders(nil, nil))
	}
	b := kmsg.RecordBatch{
		FirstOffset: base, Magic: 2, LastOffsetDelta: int32(n - 1), FirstTimestamp: 1000, MaxTimestamp: 1000,
		ProducerID: -1, ProducerEpoch: -1, FirstSequence: -1, NumRecords: int32(n), Records: recs,
		Length: int32(HeaderSize - lengthExcludes + len(recs)),
	}
	raw := b.AppendTo(nil)
	b.CRC = int32(crc32.Checksum(raw[atAttributes:], castagnoli))
	return b.AppendTo(nil)
}

func TestForEachBatch(t *testing.T) {
	one, two := testBatch(7, 3), testBatch(10, 2)
	old := testBatch(12, 1)
	old[atMagic] = 1
	type seen struct {
		Base, Last int64
		N          int32
		Size       int
	}
	for _, tt := range []struct {
		name    string
		in      []byte
		want    []seen
		rest    int
		wantErr error
	}{
		{name: "empty"},
		{name: "two", in: join(one, two), want: []seen{{7, 2, 3, len(one)}, {10, 1, 2, len(two)}}},
		{name: "last cut in the records", in: join(one, two[:len(two)-1]), want: []seen{{7, 2, 3, len(one)}}, rest: len(two) - 1},
		{name: "last cut in the header", in: join(one, two[:20]), want: []seen{{7, 2, 3, len(one)}}, rest: 20},
		{name: "old format", in: join(one, old), want: []seen{{7, 2, 3, len(one)}}, rest: len(old), wantErr: ErrMagic},
		{name: "length too small", in: patched(one, atBatchLength, 0, 0, 0, 9), rest: len(one), wantErr: ErrLength},
		{name: "negative count", in: patched(one, atNumRecords, 0xff, 0xff, 0xff, 0xff), rest: len(one), wantErr: ErrLength},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []seen
			rest, err := ForEachBatch(tt.in, func(b Batch) error {
				err := b.Check()
				assert.True(t, err == nil, "%v", err)
				got = append(got, seen{b.BaseOffset, int64(b.LastOffsetDelta), b.NumRecords, b.Size()})
				return nil
			})
			assert.Same(t, got, tt.want, "batches")
			assert.Equal(t, rest, tt.rest, "rest")
			assert.True(t, errors.Is(err, tt.wantErr) && (err == nil) == (tt.wantErr == nil), "error = %v, want %v", err, tt.wantErr)
		})
	}
}

func TestBatchCheckFindsEachFlippedBit(t *testing.T) {
	raw := testBatch(0, 2)
	for i := atAttributes; i < len(raw); i++ {
		bad := patched(raw, i, raw[i]^1)
		h, err := ParseHeader(bad)
		if err != nil {
			continue // ParseHeader detected it
		}
		b := Batch{Header: h, Raw: bad}
		assert.True(t, b.Check() != nil, "a flipped bit in byte %d was not found", i)
	}
}

func TestWalkFetchMatchesKmsg(t *testing.T) {
	for version := int16(MinFetchVersion); version <= MaxFetchVersion; version++ {
		t.Run(fmt.Sprintf("v%d", version), func(t *testing.T) {
			resp := kmsg.NewPtrFetchResponse()
			resp.SetVersion(version)
			resp.ThrottleMillis, resp.SessionID = 12, 3
			topic := kmsg.NewFetchResponseTopic()
			topic.Topic, topic.TopicID = "events", [16]byte{1, 2, 3}
			for i := range int32(3) {
				p := kmsg.NewFetchResponseTopicPartition()
				p.Partition, p.ErrorCode = i, int16(i)
				p.HighWatermark, p.LastStableOffset, p.LogStartOffset = 100, 99, 5
				if i == 1 {
					p.AbortedTransactions = []kmsg.FetchResponseTopicPartitionAbortedTransaction{{ProducerID: 4, FirstOffset: 50}}
					p.CurrentLeader.LeaderID, p.CurrentLeader.LeaderEpoch = 2, 8
					p.DivergingEpoch.Epoch = 4
				}
				p.RecordBatches = testBatch(int64(i), 1)
				topic.Partitions = append(topic.Partitions, p)
			}
			resp.Topics = append(resp.Topics, topic)
			var body []byte
			if resp.IsFlexible() {
				body = append(body, 0)
			}
			body = resp.AppendTo(body)

			var got []FetchPartition
			a, err := WalkFetch(body, version, func(p *FetchPartition) error {
				q := *p
				q.Aborted = append([]AbortedTransaction(nil), p.Aborted...)
				got = append(got, q)
				return nil
			})
			assert.OK(t, err)
			assert.True(t, a.ThrottleMillis == 12 && (version < 7 || a.SessionID == 3), "answer = %+v", a)
			var want []FetchPartition
			for i := range int32(3) {
				w := FetchPartition{
					Topic: "events", Partition: i, ErrorCode: int16(i), HighWatermark: 100, LastStableOffset: 99,
					LogStartOffset: 5, LeaderID: -1, LeaderEpoch: -1, Records: testBatch(int64(i), 1),
				}
				if i == 1 {
					w.Aborted = []AbortedTransaction{{4, 50}}
				}
				if version >= 13 {
					w.Topic, w.TopicID = "", [16]byte{1, 2, 3}
				}
				if version < 5 {
					w.LogStartOffset = -1
				}
				if version >= 12 && i == 1 {
					w.LeaderID, w.LeaderEpoch = 2, 8
				}
				want = append(want, w)
			}
			assert.Same(t, got, want)
			for i := range body {
				_, err := WalkFetch(body[:i], version, func(*FetchPartition) error { return nil })
				assert.True(t, err != nil, "an answer cut to %d of %d bytes was accepted", i, len(body))
			}
		})
	}
}

func FuzzWalkFetch(f *testing.F) {
	resp := kmsg.NewPtrFetchResponse()
	topic := kmsg.NewFetchResponseTopic()
	p := kmsg.NewFetchResponseTopicPartition()
	p.RecordBatches = testBatch(5, 2)
	topic.Partitions = append(topic.Partitions, p)
	resp.Topics = append(resp.Topics, topic)
	for _, v := range []int16{4, 11, 12, 18} {
		resp.SetVersion(v)
		body := resp.AppendTo(nil)
		if v >= 12 {
			body = append([]byte{0}, body...)
		}
		f.Add(body, v)
	}
	f.Add([]byte{0, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff}, int16(4))
	f.Fuzz(func(t *testing.T, body []byte, version int16) {
		total := 0
		_, _ = WalkFetch(body, version, func(p *FetchPartition) error {
			total += len(p.Records)
			_, err := ForEachBatch(p.Records, func(b Batch) error {
				assert.Equal(t, b.Size(), len(b.Raw), "size of a batch")
				_ = b.Check()
				if b.Codec() == None {
					_ = ForEachRecord(b.Records(), b.NumRecords, func(r *Record) error { _ = r.EventBytes(); return nil })
				}
				return nil
			})
			return err
		})
		assert.True(t, total <= len(body), "%d bytes of records in an answer of %d", total, len(body))
	})
}

func join(parts ...[]byte) []byte {
	var out []byte
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

// patched returns a copy of b with other bytes at i.
func patched(b []byte, i int, with ...byte) []byte {
	c := append([]byte(nil), b...)
	copy(c[i:], with)
	return c
}
