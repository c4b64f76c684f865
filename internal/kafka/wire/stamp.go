package wire

import (
	"encoding/binary"
	"math/bits"
)

// StampSize is the size of a stamp in bytes. It is at the beginning of a value.
const StampSize = 16

// A Stamp in an event's value identifies the event wherever it is read:
//
//	 0  run     uint32  low bits of the run's id
//	 4  stream  uint24
//	 7  index   uint40  of the event in its stream
//	12  sum     uint32  a hash of the 12 bytes before
//
// All are big-endian. A stream has at most 2^40 events that can be distinguished
// (a day at 12 M events/s), a run at most 2^24 streams.
type Stamp struct {
	Run    uint32
	Stream int32
	Index  uint64
}

// Largest values of a stamp's fields.
const (
	maxStampStream = 1<<24 - 1
	MaxStampIndex  = 1<<40 - 1
)

// Put writes the stamp to the first StampSize bytes of b.
func (s *Stamp) Put(b []byte) {
	_ = b[StampSize-1]
	position := uint64(uint32(s.Stream))<<40 | s.Index&MaxStampIndex
	binary.BigEndian.PutUint32(b, s.Run)
	binary.BigEndian.PutUint64(b[4:], position)
	binary.BigEndian.PutUint32(b[12:], stampSum(s.Run, position))
}

// stampSum hashes a stamp by two folded products of 128 bits. It is computed for
// every event: this takes a nanosecond, a CRC of so few bytes several.
func stampSum(run uint32, position uint64) uint32 {
	hi, lo := bits.Mul64(position^0x9e3779b97f4a7c15, uint64(run)<<32^0xd6e8feb86659fd93)
	hi, lo = bits.Mul64(hi^lo^uint64(run)^position, 0xa0761d6478bd642f)
	h := hi ^ lo ^ position*0xe7037ed1a0b428db
	return uint32(h>>32) ^ uint32(h)
}

// ParseStamp reads the stamp at the beginning of a value. ok is false if the value
// has none: it is too short, or the sum does not match.
func ParseStamp(value []byte) (s Stamp, ok bool) {
	if len(value) < StampSize {
		return s, false
	}
	position := binary.BigEndian.Uint64(value[4:])
	s = Stamp{
		Run:    binary.BigEndian.Uint32(value),
		Stream: int32(position >> 40),
		Index:  position & MaxStampIndex,
	}
	return s, binary.BigEndian.Uint32(value[12:]) == stampSum(s.Run, position)
}
