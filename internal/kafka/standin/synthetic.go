package standin

import (
	"encoding/binary"
	"hash/crc32"
	"time"
)

// A syntheticBatch is one record batch, made once and served again and again. The
// checksum does not cover its base offset and leader epoch (KIP-98), so a copy for
// another offset costs eight bytes.
type syntheticBatch struct {
	data   []byte
	ends   []int // ends[k] is where the first k records end in data
	events int
	millis int64 // the time of all records
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// newSynthetic makes a batch of events records, without keys, of size bytes
// each: letters and digits, different in every record.
func newSynthetic(events, size int, at time.Time) *syntheticBatch {
	b := &syntheticBatch{events: events, millis: at.UnixMilli()}
	b.data = make([]byte, batchHead, batchHead+events*(size+16))
	b.ends = make([]int, 1, events+1)
	b.ends[0] = batchHead
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
	x := uint64(0x9e3779b97f4a7c15)
	var rec []byte
	for i := range events {
		rec = append(rec[:0], 0, 0) // attributes, time delta
		rec = binary.AppendVarint(rec, int64(i))
		rec = binary.AppendVarint(rec, -1) // no key
		rec = binary.AppendVarint(rec, int64(size))
		for range size {
			x ^= x << 13
			x ^= x >> 7
			x ^= x << 17
			rec = append(rec, letters[x>>58])
		}
		rec = append(rec, 0) // no headers
		b.data = binary.AppendVarint(b.data, int64(len(rec)))
		b.data = append(b.data, rec...)
		b.ends = append(b.ends, len(b.data))
	}
	b.head(b.data[:batchHead:batchHead], 0, events)
	return b
}

// head writes the header of a batch of the first k records into h.
func (b *syntheticBatch) head(h []byte, base int64, k int) {
	be := binary.BigEndian
	be.PutUint64(h, uint64(base))
	be.PutUint32(h[8:], uint32(b.ends[k]-12))
	be.PutUint32(h[12:], 0)           // leader epoch
	h[16] = 2                         // magic
	be.PutUint16(h[21:], 0)           // attributes
	be.PutUint32(h[23:], uint32(k-1)) // last offset delta
	be.PutUint64(h[27:], uint64(b.millis))
	be.PutUint64(h[35:], uint64(b.millis))
	for i := 43; i < 57; i++ {
		h[i] = 0xff // no producer id, epoch, sequence
	}
	be.PutUint32(h[57:], uint32(k))
	sum := crc32.Checksum(h[21:batchHead], castagnoli)
	sum = crc32.Update(sum, castagnoli, b.data[batchHead:b.ends[k]])
	be.PutUint32(h[17:], sum)
}

// recordsAt is the number of records in the batch at offset at, in a log that ends
// at end.
func (b *syntheticBatch) recordsAt(at, end int64) int {
	k := int64(b.events)
	return int(min(k-at%k, end-at))
}

// size is the size in bytes of a batch of the first k records.
func (b *syntheticBatch) size(k int) int { return b.ends[k] }
