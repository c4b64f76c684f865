package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// HeaderSize is the size in bytes of the header of a record batch v2, from the
// base offset up to and including the number of records.
const HeaderSize = 61

// Offsets of the header's fields, in bytes from the start of the batch.
const (
	atBaseOffset      = 0
	atBatchLength     = 8 // of everything after it
	atLeaderEpoch     = 12
	atMagic           = 16
	atCRC             = 17 // CRC32-C of everything from atAttributes on
	atAttributes      = 21
	atLastOffsetDelta = 23
	atBaseTimestamp   = 27
	atMaxTimestamp    = 35
	atProducerID      = 43
	atProducerEpoch   = 51
	atBaseSequence    = 53
	atNumRecords      = 57

	lengthExcludes = 12 // base offset and the length itself are not counted
)

// Bits of a batch's attributes.
const (
	AttrCodec         = 0x07 // a Codec
	AttrLogAppendTime = 0x08 // the broker set the timestamps
	AttrTransactional = 0x10
	AttrControl       = 0x20 // the records are transaction markers, not events
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Errors of checking batches.
var (
	ErrShort    = errors.New("truncated")
	ErrMagic    = errors.New("record format is older than v2")
	ErrLength   = errors.New("length does not fit")
	ErrChecksum = errors.New("checksum does not match")
)

// A Header is the header of a record batch.
type Header struct {
	BaseOffset      int64
	Length          int32 // of the batch after this field, so 12 less than its size
	LeaderEpoch     int32
	CRC             uint32
	Attributes      int16
	LastOffsetDelta int32
	BaseTimestamp   int64 // milliseconds since 1970
	MaxTimestamp    int64
	ProducerID      int64 // -1: none
	ProducerEpoch   int16
	BaseSequence    int32
	NumRecords      int32
}

// Size returns the size of the batch with its header, in bytes.
func (h *Header) Size() int { return int(h.Length) + lengthExcludes }

// Codec returns the codec that the records are compressed with.
func (h *Header) Codec() Codec { return Codec(h.Attributes & AttrCodec) }

// Control reports whether the batch contains transaction markers.
func (h *Header) Control() bool { return h.Attributes&AttrControl != 0 }

// Transactional reports whether the batch belongs to a transaction.
func (h *Header) Transactional() bool { return h.Attributes&AttrTransactional != 0 }

// ParseHeader reads the header at the start of b, which may end after the header.
// It checks only the header: the error is or wraps ErrShort, ErrMagic or
// ErrLength, except for a magic above 2.
func ParseHeader(b []byte) (Header, error) {
	if len(b) < HeaderSize {
		// The magic is at the same offset in all formats.
		if len(b) > atMagic && b[atMagic] < 2 {
			return Header{}, fmt.Errorf("read batch header: magic %d: %w", b[atMagic], ErrMagic)
		}
		return Header{}, ErrShort
	}
	if m := b[atMagic]; m != 2 {
		if m < 2 {
			return Header{}, fmt.Errorf("read batch header: magic %d: %w", m, ErrMagic)
		}
		return Header{}, fmt.Errorf("read batch header: unknown magic %d", m)
	}
	h := Header{
		BaseOffset:      int64(binary.BigEndian.Uint64(b[atBaseOffset:])),
		Length:          int32(binary.BigEndian.Uint32(b[atBatchLength:])),
		LeaderEpoch:     int32(binary.BigEndian.Uint32(b[atLeaderEpoch:])),
		CRC:             binary.BigEndian.Uint32(b[atCRC:]),
		Attributes:      int16(binary.BigEndian.Uint16(b[atAttributes:])),
		LastOffsetDelta: int32(binary.BigEndian.Uint32(b[atLastOffsetDelta:])),
		BaseTimestamp:   int64(binary.BigEndian.Uint64(b[atBaseTimestamp:])),
		MaxTimestamp:    int64(binary.BigEndian.Uint64(b[atMaxTimestamp:])),
		ProducerID:      int64(binary.BigEndian.Uint64(b[atProducerID:])),
		ProducerEpoch:   int16(binary.BigEndian.Uint16(b[atProducerEpoch:])),
		BaseSequence:    int32(binary.BigEndian.Uint32(b[atBaseSequence:])),
		NumRecords:      int32(binary.BigEndian.Uint32(b[atNumRecords:])),
	}
	if h.Length < HeaderSize-lengthExcludes || h.NumRecords < 0 || h.LastOffsetDelta < 0 {
		return Header{}, fmt.Errorf("read batch header: length %d, %d records, last offset +%d: %w", h.Length, h.NumRecords, h.LastOffsetDelta, ErrLength)
	}
	return h, nil
}

// Put writes the header to the first HeaderSize bytes of b.
func (h *Header) Put(b []byte) {
	_ = b[HeaderSize-1]
	binary.BigEndian.PutUint64(b[atBaseOffset:], uint64(h.BaseOffset))
	binary.BigEndian.PutUint32(b[atBatchLength:], uint32(h.Length))
	binary.BigEndian.PutUint32(b[atLeaderEpoch:], uint32(h.LeaderEpoch))
	b[atMagic] = 2
	binary.BigEndian.PutUint32(b[atCRC:], h.CRC)
	binary.BigEndian.PutUint16(b[atAttributes:], uint16(h.Attributes))
	binary.BigEndian.PutUint32(b[atLastOffsetDelta:], uint32(h.LastOffsetDelta))
	binary.BigEndian.PutUint64(b[atBaseTimestamp:], uint64(h.BaseTimestamp))
	binary.BigEndian.PutUint64(b[atMaxTimestamp:], uint64(h.MaxTimestamp))
	binary.BigEndian.PutUint64(b[atProducerID:], uint64(h.ProducerID))
	binary.BigEndian.PutUint16(b[atProducerEpoch:], uint16(h.ProducerEpoch))
	binary.BigEndian.PutUint32(b[atBaseSequence:], uint32(h.BaseSequence))
	binary.BigEndian.PutUint32(b[atNumRecords:], uint32(h.NumRecords))
}

// A Batch is one record batch of a fetch answer: its header and all its bytes,
// which alias the answer.
type Batch struct {
	Header
	Raw []byte // the batch with its header
}

// Records returns the bytes after the header: the records, perhaps compressed.
func (b *Batch) Records() []byte { return b.Raw[HeaderSize:] }

// Check verifies the batch's CRC32-C, which covers everything from the
// attributes on. The error is ErrChecksum if it does not match.
func (b *Batch) Check() error {
	if crc32.Checksum(b.Raw[atAttributes:], castagnoli) != b.CRC {
		return ErrChecksum
	}
	return nil
}

// SentCRC returns the checksum that the batch was sent with, by a producer whose
// records all have the same timestamp. If a topic uses the time of appending, the
// broker writes it to the header as the largest timestamp, sets a bit of the
// attributes, and recomputes the checksum (DefaultRecordBatch's setMaxTimestamp).
// CRCs are linear, so the records need not be read.
func (b *Batch) SentCRC() uint32 {
	if b.Attributes&AttrLogAppendTime == 0 {
		return b.CRC
	}
	sent := b.Header
	sent.Attributes &^= AttrLogAppendTime
	sent.MaxTimestamp = sent.BaseTimestamp
	var head [HeaderSize]byte
	sent.Put(head[:])
	change := crc32.Checksum(head[atAttributes:], castagnoli) ^ crc32.Checksum(b.Raw[atAttributes:HeaderSize], castagnoli)
	return b.CRC ^ field.ShiftBy(len(b.Raw)-HeaderSize).Times(change)
}

// ForEachBatch calls f with every complete batch in records, the record set of
// one partition of a fetch answer, in order. It decodes and checks only the
// headers. Brokers cut off the last batch where it exceeds the fetch's size limit;
// such a batch is skipped without an error, and rest is the number of its bytes.
// Batch.Raw aliases records. ForEachBatch stops at the first error of f and
// returns it.
//
// A message of format v0 or v1 is an error that wraps ErrMagic.
func ForEachBatch(records []byte, f func(Batch) error) (rest int, err error) {
	for len(records) > 0 {
		h, err := ParseHeader(records)
		if errors.Is(err, ErrShort) {
			return len(records), nil
		}
		if err != nil {
			return len(records), err
		}
		n := h.Size()
		if n > len(records) {
			return len(records), nil
		}
		if err := f(Batch{Header: h, Raw: records[:n:n]}); err != nil {
			return len(records), err
		}
		records = records[n:]
	}
	return 0, nil
}
