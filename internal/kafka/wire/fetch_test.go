package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"

	"carronade/test/testkit/assert"
)

// testBatch returns an uncompressed batch of n records "value i", made by kmsg.
func testBatch(base int64, n int) []byte {
	var recs []byte
	for i := range n {
		v := fmt.Appendf(nil, "value %d", i)
		recs = AppendRecord(recs, int32(i), nil, v, []byte{0})
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
			a := assert.Value(WalkFetch(body, version, func(p *FetchPartition) error {
				q := *p
				q.Aborted = append([]AbortedTransaction(nil), p.Aborted...)
				got = append(got, q)
				return nil
			}))(t)
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

func patched(b []byte, i int, with ...byte) []byte {
	c := append([]byte(nil), b...)
	copy(c[i:], with)
	return c
}

func TestRecordsMatchKmsg(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hs := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) recordHeader {
			return recordHeader{rapid.String().Draw(t, "key"), rapid.SliceOf(rapid.Byte()).Draw(t, "value")}
		}), 0, 3).Draw(t, "headers")
		key := rapid.OneOf(rapid.Just([]byte(nil)), rapid.SliceOf(rapid.Byte())).Draw(t, "key")
		value := rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "value")
		delta := rapid.Int32Min(0).Draw(t, "delta")
		want := kmsg.NewRecord()
		want.OffsetDelta, want.Key, want.Value = delta, key, value
		wantBytes := len(key) + len(value)
		for _, h := range hs {
			want.Headers = append(want.Headers, kmsg.Header{Key: h.Key, Value: h.Value})
			wantBytes += len(h.Key) + len(h.Value)
		}
		encoded := (&HeaderEncoder{Source: headerList(hs)}).Encode(0)
		e := HeaderEncoder{Source: headerList(hs)}
		most := len(encoded)
		for i := range hs {
			if i%2 == 0 { // these may be longer by three and five bytes, and so are their lengths
				most += 8 + varintLen(int64(len(hs[i].Key)+3)) - varintLen(int64(len(hs[i].Key))) + varintLen(int64(len(hs[i].Value)+5)) - varintLen(int64(len(hs[i].Value)))
			}
		}
		if n := e.Bound(0); n != most {
			t.Fatalf("HeaderEncoder: at most %d bytes, want %d", n, most)
		}
		for n := range uint64(2) { // its memory is used again
			again := e.Encode(n)
			if !bytes.Equal(again, encoded) || e.EventBytes != wantBytes-len(key)-len(value) {
				t.Fatalf("HeaderEncoder: %x of %d bytes, want %x", again, e.EventBytes, encoded)
			}
		}
		got := AppendRecord([]byte("x"), delta, key, value, encoded)[1:]
		keyLen := len(key)
		if key == nil {
			keyLen = -1
		}
		if n := RecordSize(delta, keyLen, len(value), len(encoded)); n != len(got) {
			t.Fatalf("RecordSize = %d, appended %d", n, len(got))
		}
		// kmsg leaves the length to its caller.
		body := want.AppendTo(nil)[1:]
		assert.Must(t, bytes.Equal(got, append(appendVarint(nil, int64(len(body))), body...)), "got  %x\nwant %x", got, body)
		n := 0
		err := ForEachRecord(got, 1, func(r *Record) error {
			n++
			if r.OffsetDelta != delta || !bytes.Equal(r.Key, key) || (r.Key == nil) != (key == nil) || !bytes.Equal(r.Value, value) {
				t.Fatalf("read back %+v", r)
			}
			if r.EventBytes() != wantBytes || r.numHeaders != len(hs) || r.Size != len(got) {
				t.Fatalf("event bytes %d, want %d; %d headers; size %d", r.EventBytes(), wantBytes, r.numHeaders, r.Size)
			}
			return nil
		})
		assert.Must(t, err == nil && n == 1, "%d records, error %v", n, err)
	})
}

// A recordHeader is a key and a value that belong to a record.
type recordHeader struct {
	Key   string
	Value []byte
}

// A headerList is the headers of every event.
type headerList []recordHeader

func (l headerList) NumHeaders() int   { return len(l) }
func (l headerList) HeadersVary() bool { return len(l)%2 == 0 }

func (l headerList) MaxHeader(i int) (name, value int, timed bool) {
	return len(l[i].Key) + 3, len(l[i].Value) + 5, i%2 == 0
}

func (l headerList) AppendHeader(dst []byte, i int, _ uint64) ([]byte, int) {
	return append(append(dst, l[i].Key...), l[i].Value...), len(l[i].Key)
}

func TestHeaderMatchesKmsg(t *testing.T) {
	h := Header{BaseOffset: 1, Length: 55, LeaderEpoch: 3, CRC: 4, Attributes: 5, LastOffsetDelta: 6, BaseTimestamp: 7, MaxTimestamp: 8, ProducerID: 9, ProducerEpoch: 10, BaseSequence: 11, NumRecords: 12}
	k := kmsg.RecordBatch{FirstOffset: 1, Length: 55, PartitionLeaderEpoch: 3, Magic: 2, CRC: 4, Attributes: 5, LastOffsetDelta: 6, FirstTimestamp: 7, MaxTimestamp: 8, ProducerID: 9, ProducerEpoch: 10, FirstSequence: 11, NumRecords: 12}
	got := make([]byte, HeaderSize)
	h.Put(got)
	assert.Same(t, got, k.AppendTo(nil))
	assert.Same(t, assert.Value(ParseHeader(got))(t), h, "read back")
}

func TestSeal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		recs := rapid.SliceOfN(rapid.Byte(), 0, 2000).Draw(t, "records")
		head := rapid.SliceOfN(rapid.Byte(), HeaderSize, HeaderSize).Draw(t, "head")
		want := crc32.Checksum(join(head[atAttributes:], recs), castagnoli)
		for name, s := range map[string]Sum{"SumOf": SumOf(recs), "SumAt": SumAt(UpdateCRC(0, recs), len(recs))} {
			if got := Seal(head, s); got != want {
				t.Fatalf("%s: %08x, want %08x", name, got, want)
			}
		}
		b := Batch{Raw: join(head, recs)}
		b.CRC = want
		assert.OK(t, b.Check())
	})
}

func TestCodecs(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 300_000)
	for i := range noise {
		noise[i] = byte(rnd.Uint32())
	}
	inputs := map[string][]byte{
		"empty": {}, "one": {7}, "text": bytes.Repeat([]byte("a carronade was a short gun "), 9000), "noise": noise,
	}
	for c := range codecs {
		z := assert.Value(NewCompressor(c))(t)
		for name, in := range inputs {
			t.Run(fmt.Sprintf("%s %s", c, name), func(t *testing.T) {
				for range 2 { // it keeps its memory between calls
					packed := assert.Value(z.Append([]byte("before"), in))(t)
					assert.True(t, name != "text" || c == None || len(packed) <= len(in)/4, "%d bytes became %d", len(in), len(packed))
					got := assert.Value(Decompress([]byte("here"), c, packed[len("before"):]))(t)
					assert.True(t, bytes.Equal(got, append([]byte("here"), in...)), "the decompressed bytes differ")
				}
			})
		}
		back, err := ParseCodec(c.String())
		assert.True(t, err == nil && back == c, "ParseCodec(%q) = %v, %v", c.String(), back, err)
	}
	_, err := ParseCodec("zip")
	assert.True(t, err != nil, "ParseCodec accepted zip")
	_, err = NewCompressor(codecs)
	assert.True(t, err != nil, "NewCompressor accepted an unknown codec")
}

func TestDecompressXerial(t *testing.T) {
	z, _ := NewCompressor(Snappy)
	framed := append([]byte(nil), xerialMagic...)
	framed = append(framed, 0, 0, 0, 1, 0, 0, 0, 1)
	for _, part := range []string{"one, ", "two"} {
		block, _ := z.Append(nil, []byte(part))
		framed = append(framed, 0, 0, 0, byte(len(block)))
		framed = append(framed, block...)
	}
	got, err := Decompress(nil, Snappy, framed)
	assert.True(t, err == nil && string(got) == "one, two", "got %q, %v", got, err)
	for i := len(xerialMagic); i < len(framed); i++ {
		if i == 16 || i == 16+4+int(framed[19]) {
			continue // between blocks
		}
		_, err := Decompress(nil, Snappy, framed[:i])
		assert.True(t, err != nil, "a frame cut to %d bytes was accepted", i)
	}
}

func TestDecompressRefusesWrongLength(t *testing.T) {
	// A Snappy block with a length of 200 MB.
	_, err := Decompress(nil, Snappy, []byte{0x80, 0x84, 0xaf, 0x5f, 0})
	assert.True(t, errors.Is(err, ErrLength), "error = %v, want %v", err, ErrLength)
}

func FuzzDecompress(f *testing.F) {
	for c := range codecs {
		z, _ := NewCompressor(c)
		b, _ := z.Append(nil, []byte("some records, some records"))
		f.Add(b, int8(c))
	}
	f.Fuzz(func(t *testing.T, b []byte, c int8) {
		out, err := Decompress(nil, Codec(c), b)
		assert.True(t, err != nil || len(out) <= MaxDecompressed+1<<20, "%d bytes", len(out))
	})
}

func FuzzForEachRecord(f *testing.F) {
	f.Add(AppendRecord(AppendRecord(nil, 0, []byte("k"), []byte("v"), (&HeaderEncoder{Source: headerList{{"a", []byte("b")}}}).Encode(0)), 1, nil, nil, []byte{0}), int32(2))
	f.Add([]byte{2, 0}, int32(1))
	f.Fuzz(func(t *testing.T, b []byte, n int32) {
		size := 0
		_ = ForEachRecord(b, n, func(r *Record) error {
			size += r.Size
			assert.True(t, r.EventBytes() <= r.Size, "%d event bytes in a record of %d", r.EventBytes(), r.Size)
			return nil
		})
		assert.True(t, size <= len(b), "records of %d bytes in %d", size, len(b))
	})
}

// SentCRC is the same after a broker has set the timestamp of a batch.
func TestSentCRC(t *testing.T) {
	records := bytes.Repeat([]byte("records "), 1000)
	for _, n := range []int{0, 1, 100, len(records)} {
		b := make([]byte, HeaderSize, HeaderSize+n)
		h := Header{Length: int32(HeaderSize - 12 + n), Attributes: int16(LZ4), BaseTimestamp: 1_000_000, MaxTimestamp: 1_000_000, ProducerID: 5, NumRecords: 3}
		h.Put(b)
		b = append(b, records[:n]...)
		sent := Seal(b, SumOf(b[HeaderSize:]))
		read := func() Batch {
			var got Batch
			assert.Value(ForEachBatch(b, func(x Batch) error { got = x; return nil }))(t)
			return got
		}
		x := read()
		assert.Equal(t, x.SentCRC(), sent, "%d bytes, as sent", n)
		// As the broker does: change attributes, largest timestamp and checksum.
		b[22] |= AttrLogAppendTime
		binary.BigEndian.PutUint64(b[35:], 2_000_123)
		Seal(b, SumOf(b[HeaderSize:]))
		x = read()
		err := x.Check()
		assert.Must(t, err == nil && x.CRC != sent, "%d bytes: the batch is not as a broker makes it: %v", n, err)
		assert.Equal(t, x.SentCRC(), sent, "%d bytes, with the broker's time", n)
		if n > 0 {
			b[HeaderSize] ^= 1 // damaged, with a matching checksum
			Seal(b, SumOf(b[HeaderSize:]))
			x = read()
			assert.True(t, x.SentCRC() != sent, "%d bytes: damage is not detected", n)
		}
	}
}
