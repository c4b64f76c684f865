package kafka

import (
	"encoding/binary"
	"math"
	"time"
)

// StampSize is how many bytes a stamp takes at the beginning of a value.
const StampSize = 24

// A Stamp identifies an event by its own bytes, so that it is known again
// wherever it is found:
//
//	 0  run     uint32  low bits of the run's id
//	 4  stripe  uint24
//	 7  index   uint40  of the event in its stripe
//	12  due     int64   nanoseconds from the start of the run
//	20  sum     uint32  CRC-32C of the 20 bytes before
//
// All big-endian. A stripe holds at most 2^40 events that can be told apart
// (a day at 12 M events/s), a run at most 2^24 stripes.
type Stamp struct {
	Run    uint32
	Stripe int32
	Index  uint64
	Due    time.Duration
}

// Limits of what a stamp can hold.
const (
	MaxStampStripe = 1<<24 - 1
	MaxStampIndex  = 1<<40 - 1
)

// Put writes the stamp to the first StampSize bytes of b.
func (s *Stamp) Put(b []byte) {
	_ = b[StampSize-1]
	binary.BigEndian.PutUint32(b, s.Run)
	binary.BigEndian.PutUint64(b[4:], uint64(uint32(s.Stripe))<<40|s.Index&MaxStampIndex)
	binary.BigEndian.PutUint64(b[12:], uint64(s.Due))
	binary.BigEndian.PutUint32(b[20:], UpdateCRC(0, b[:20]))
}

// ParseStamp reads the stamp at the beginning of a value. ok is false when
// there is none: the value is too short, or the sum does not fit.
func ParseStamp(value []byte) (s Stamp, ok bool) {
	if len(value) < StampSize {
		return s, false
	}
	place := binary.BigEndian.Uint64(value[4:])
	due := binary.BigEndian.Uint64(value[12:])
	s = Stamp{
		Run:    binary.BigEndian.Uint32(value),
		Stripe: int32(place >> 40),
		Index:  place & MaxStampIndex,
		Due:    time.Duration(due),
	}
	return s, due <= math.MaxInt64 && binary.BigEndian.Uint32(value[20:]) == UpdateCRC(0, value[:20])
}
