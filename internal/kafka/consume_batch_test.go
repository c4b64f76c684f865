package kafka

import (
	"bytes"
	"testing"
	"time"

	"carronade/internal/kafka/wire"
	"carronade/load"
	"carronade/test/testkit/assert"
)

// wireBatch encodes a batch of records with the offset deltas given, as a broker would send it.
func wireBatch(t testing.TB, base int64, codec wire.Codec, deltas []int32, values [][]byte, change func(*wire.Header)) []byte {
	t.Helper()
	var recs []byte
	for i, d := range deltas {
		recs = wire.AppendRecord(recs, d, nil, values[i], []byte{0})
	}
	last := int32(0)
	if len(deltas) > 0 {
		last = deltas[len(deltas)-1]
	}
	if codec != wire.None {
		z, err := wire.NewCompressor(codec)
		assert.OK(t, err)
		recs, err = z.Append(nil, recs)
		assert.OK(t, err)
	}
	h := wire.Header{
		BaseOffset: base, Length: int32(wire.HeaderSize + len(recs) - 12), Attributes: int16(codec), LastOffsetDelta: last,
		ProducerID: -1, ProducerEpoch: -1, BaseSequence: -1, NumRecords: int32(len(deltas)),
	}
	if change != nil {
		change(&h)
	}
	b := make([]byte, wire.HeaderSize, wire.HeaderSize+len(recs))
	h.Put(b)
	b = append(b, recs...)
	h.CRC = wire.UpdateCRC(0, b[21:])
	h.Put(b)
	return b
}

func dense(n int) []int32 {
	d := make([]int32, n)
	for i := range d {
		d[i] = int32(i)
	}
	return d
}

func values(n, size int) [][]byte {
	v := make([][]byte, n)
	for i := range v {
		v[i] = make([]byte, size)
	}
	return v
}

func TestDecoderCountsWhatWasAskedFor(t *testing.T) {
	t.Parallel()
	type piece struct {
		Base   int64
		Events int32
		Bytes  int64
	}
	plain := wireBatch(t, 100, wire.None, dense(10), values(10, 7), nil)
	packed := wireBatch(t, 100, wire.Zstd, dense(10), values(10, 7), nil)
	// Compaction keeps the offset range of a batch and removes records in it.
	compacted := wireBatch(t, 100, wire.None, []int32{2, 3, 9}, values(3, 7), nil)
	for _, tt := range []struct {
		name       string
		records    []byte
		from, end  int64
		decode     bool
		want       []piece
		next       int64
		skipsWhole bool
	}{
		{name: "whole", records: plain, from: 100, end: 1000, want: []piece{{100, 10, 70}}, next: 110},
		{name: "from the middle", records: plain, from: 104, end: 1000, want: []piece{{104, 6, 42}}, next: 110},
		{name: "up to the middle", records: plain, from: 100, end: 103, want: []piece{{100, 3, 21}}, next: 110},
		{name: "compressed", records: packed, from: 100, end: 1000, want: []piece{{100, 10, -1}}, next: 110},
		{name: "compressed, from the middle", records: packed, from: 107, end: 1000, want: []piece{{107, 3, 21}}, next: 110},
		{name: "compressed, decoded", records: packed, from: 100, end: 1000, decode: true, want: []piece{{100, 10, 70}}, next: 110},
		{name: "compacted", records: compacted, from: 100, end: 1000, want: []piece{{100, 3, 21}}, next: 110},
		{name: "compacted, from the middle", records: compacted, from: 103, end: 1000, want: []piece{{103, 2, 14}}, next: 110},
		{name: "before what was asked for", records: plain, from: 200, end: 1000, next: 200},
		{name: "two batches and a part of a third", records: bytes.Join([][]byte{plain, wireBatch(t, 110, wire.None, dense(2), values(2, 1), nil), plain[:70]}, nil), from: 100, end: 1000, want: []piece{{100, 10, 70}, {110, 2, 2}}, next: 112},
		{name: "control", records: wireBatch(t, 100, wire.None, dense(1), values(1, 4), func(h *wire.Header) { h.Attributes |= wire.AttrControl }), from: 100, end: 1000, next: 101},
		{name: "nothing", from: 100, end: 1000, next: 100},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := decoder{decode: tt.decode, check: tt.decode}
			p := &partition{offset: tt.from, end: tt.end}
			got := assert.Value(d.appendArrivals(p, &wire.FetchPartition{Records: tt.records}, time.Second, nil))(t)
			var pieces []piece
			for _, a := range got {
				pieces = append(pieces, piece{a.Base, a.Events, a.Bytes})
				assert.True(t, !a.Corrupt, "the arrival at offset %d is marked corrupt", a.Base)
			}
			assert.Same(t, pieces, tt.want, "arrivals")
			assert.Equal(t, p.offset, tt.next, "next offset")
		})
	}
}

func TestDecoderFindsCorruption(t *testing.T) {
	t.Parallel()
	for _, codec := range []wire.Codec{wire.None, wire.Gzip, wire.LZ4} {
		b := wireBatch(t, 5, codec, dense(10), values(10, 50), nil)
		b[len(b)-9] ^= 4
		for _, check := range []bool{true, false} {
			d := decoder{decode: check, check: check}
			got := assert.Value(d.appendArrivals(&partition{offset: 5, end: 100}, &wire.FetchPartition{Records: b}, 1, nil))(t)
			assert.True(t, len(got) == 1 && got[0].Events == 10 && got[0].Corrupt == check,
				"%s, checked %v: got %+v, want one arrival of 10 events, corrupt %v", codec, check, got, check)
		}
	}
}

func TestDecoderReadsStamps(t *testing.T) {
	t.Parallel()
	vs := values(3, 40)
	for i, v := range vs {
		s := wire.Stamp{Run: 9, Stream: 2, Index: uint64(i)}
		s.Put(v)
	}
	vs[2][3] ^= 1
	d := decoder{decode: true, check: true, stamps: true}
	got, err := d.appendArrivals(&partition{offset: 10, end: 100}, &wire.FetchPartition{Records: wireBatch(t, 10, wire.None, dense(3), vs, nil)}, 1, nil)
	assert.OK(t, err)
	want := []load.Stamp{
		{Run: 9, Stream: 2, Index: 0, Offset: 10},
		{Run: 9, Stream: 2, Index: 1, Offset: 11},
		{Bad: true, Offset: 12},
	}
	assert.Must(t, len(got) == 1 && len(got[0].Stamps) == 3, "got %+v, want one arrival with 3 stamps", got)
	// The other fields of a bad stamp have no meaning.
	got[0].Stamps[2] = load.Stamp{Bad: got[0].Stamps[2].Bad, Offset: got[0].Stamps[2].Offset}
	assert.Same(t, got[0].Stamps, want, "stamps")
}

func TestDecoderSkipsAborted(t *testing.T) {
	t.Parallel()
	of := func(pid int64, attrs int16) func(*wire.Header) {
		return func(h *wire.Header) {
			h.ProducerID, h.Attributes = pid, h.Attributes|wire.AttrTransactional|attrs
		}
	}
	marker := func(base, pid int64, kind byte) []byte {
		var recs []byte
		recs = wire.AppendRecord(recs, 0, []byte{0, 0, 0, kind}, make([]byte, 6), []byte{0})
		h := wire.Header{BaseOffset: base, Length: int32(wire.HeaderSize + len(recs) - 12), NumRecords: 1, BaseSequence: -1}
		of(pid, wire.AttrControl)(&h)
		b := make([]byte, wire.HeaderSize)
		h.Put(b)
		return append(b, recs...)
	}
	const abort, commit = 0, 1
	log := bytes.Join([][]byte{
		wireBatch(t, 0, wire.None, dense(5), values(5, 1), of(1, 0)),  // aborted
		wireBatch(t, 5, wire.None, dense(5), values(5, 1), of(2, 0)),  // committed
		wireBatch(t, 10, wire.None, dense(5), values(5, 1), of(1, 0)), // aborted
		marker(15, 1, abort), marker(16, 2, commit),
		wireBatch(t, 17, wire.None, dense(5), values(5, 1), of(1, 0)), // committed: the next transaction
		marker(22, 1, commit),
		wireBatch(t, 23, wire.None, dense(5), values(5, 1), of(3, 0)), // aborted, and overlaps the next
		wireBatch(t, 28, wire.None, dense(5), values(5, 1), of(1, 0)), // aborted
		marker(33, 1, abort), marker(34, 3, abort),
		wireBatch(t, 35, wire.None, dense(5), values(5, 1), nil),
	}, nil)
	aborted := []wire.AbortedTransaction{{ProducerID: 1}, {ProducerID: 1, FirstOffset: 28}, {ProducerID: 3, FirstOffset: 23}} // in the order of their ends
	for _, committed := range []bool{true, false} {
		d := decoder{committed: committed}
		p := &partition{end: 1000}
		got := assert.Value(d.appendArrivals(p, &wire.FetchPartition{Records: log, Aborted: aborted}, 1, nil))(t)
		var bases []int64
		for _, a := range got {
			bases = append(bases, a.Base)
		}
		want := []int64{0, 5, 10, 17, 23, 28, 35}
		if committed {
			want = []int64{5, 17, 35}
		}
		assert.Same(t, bases, want, "committed %v", committed)
		assert.Equal(t, p.offset, 40, "next offset")
	}
}

// FuzzDecoder checks that no record set makes the decoder panic, count a negative number
// of events, or move the offset back.
func FuzzDecoder(f *testing.F) {
	f.Add(wireBatch(f, 3, wire.None, dense(3), values(3, 30), nil), int64(3), true)
	f.Add(wireBatch(f, 3, wire.Snappy, dense(3), values(3, 30), nil), int64(4), false)
	f.Add([]byte{1, 2, 3}, int64(0), true)
	f.Fuzz(func(t *testing.T, records []byte, from int64, decode bool) {
		from = max(0, from) % (1 << 40)
		p := &partition{offset: from, end: 1 << 62}
		d := decoder{decode: decode, check: decode, stamps: decode, committed: !decode}
		got, err := d.appendArrivals(p, &wire.FetchPartition{Records: records, Aborted: []wire.AbortedTransaction{{FirstOffset: from}}}, 1, nil)
		assert.Must(t, p.offset >= from, "the offset moved back from %d to %d", from, p.offset)
		if err != nil {
			return
		}
		for _, a := range got {
			assert.Must(t, a.Events > 0 && a.Bytes >= -1, "got %+v", a)
		}
	})
}
