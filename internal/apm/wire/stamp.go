package wire

import (
	"encoding/binary"
	"math/bits"
	"time"

	"carronade/internal/splitmix"
)

// A form is the format of a value at its place.
type form uint8

const (
	formID    form = iota // 16 hex digits
	formTrace             // 32 hex digits
	formUUID              // 36 characters, v1's ids
	formMicro             // 16 decimal digits: microseconds since 1970
	formTime              // 27 characters, RFC 3339 in UTC with microseconds: v1's times
	forms
)

var formSizes = [forms]int{16, 32, 36, 16, 27}

// A place is a value in a body that is overwritten for each batch.
type place struct {
	at   int32
	form form
	back uint8  // the id belongs to the batch this many before
	val  uint64 // of an id: its number in its batch; of a time: microseconds after the batch's (an int64)
}

func (p place) end() int { return int(p.at) + formSizes[p.form] }

func (p place) isTime() bool { return p.form == formMicro || p.form == formTime }

// The layout of ids, the bounds of times, and constants for writing them.
const (
	idBits    = 20
	maxIDs    = 1 << (idBits - 1)  // ids of events in one batch
	traceBit  = 1 << (idBits - 1)  // set in the number of a trace
	MaxBatch  = 1<<(64-idBits) - 1 // batches whose ids are all different
	maxHops   = 16                 // requests that share their traces
	timeMin   = 1000000000000000   // 2001-09-09, the first time of 16 digits
	timeMax   = 9999999999999999   // 2286-11-20, the last
	zeroHex   = 0x3030303030303030 // eight '0'
	hexLift   = 'a' - '0' - 10     // from after '9' to 'a'
	lowNibble = 0x0f0f0f0f0f0f0f0f // the low halves of eight bytes
	hexCarry  = 0x0606060606060606 // carries a nibble above 9 into the high half
	ones      = 0x0101010101010101 // eight times 1
)

// A Run is the key for the ids of all batches of a run. Runs with different seeds
// have different ids.
type Run uint64

// NewRun makes a run's key from a seed.
func NewRun(seed uint64) Run { return Run(splitmix.Mix(seed + splitmix.Golden)) }

// key is XORed with the numbers of a batch's ids.
func (r Run) key(batch uint64) uint64 { return uint64(r) ^ batch<<idBits }

// put writes the value of p into b, for batch number batch at time micros.
func (p *place) put(b []byte, run Run, batch uint64, micros int64) {
	switch p.form {
	case formID:
		putHex(b[p.at:], splitmix.Mix(run.key(batch-uint64(p.back))^p.val))
	case formTrace:
		hi := splitmix.Mix(run.key(batch-uint64(p.back)) ^ p.val)
		putHex(b[p.at:], hi)
		putHex(b[p.at+16:], splitmix.Mix(hi+splitmix.Golden))
	case formUUID:
		putUUID(b[p.at:], splitmix.Mix(run.key(batch-uint64(p.back))^p.val))
	case formMicro:
		putMicros(b[p.at:], micros+int64(p.val))
	case formTime:
		putTime(b[p.at:], micros+int64(p.val))
	}
}

// putHex writes v as 16 hex digits. It spreads the nibbles of four bytes over eight
// bytes and converts them to digits in one step, since it runs for every id sent.
func putHex(b []byte, v uint64) {
	_ = b[15]
	binary.BigEndian.PutUint64(b, hexDigits(uint32(v>>32)))
	binary.BigEndian.PutUint64(b[8:], hexDigits(uint32(v)))
}

func hexDigits(v uint32) uint64 {
	x := uint64(v)
	x = (x | x<<16) & 0x0000ffff0000ffff
	x = (x | x<<8) & 0x00ff00ff00ff00ff
	x = (x | x<<4) & lowNibble
	letters := (x + hexCarry) >> 4 & ones // 1 where the nibble is above 9
	return x + zeroHex + letters*hexLift
}

func putUUID(b []byte, hi uint64) {
	_ = b[35]
	var hex [32]byte
	putHex(hex[:], hi)
	putHex(hex[16:], splitmix.Mix(hi+splitmix.Golden))
	copy(b, hex[:8])
	copy(b[9:], hex[8:12])
	copy(b[14:], hex[12:16])
	copy(b[19:], hex[16:20])
	copy(b[24:], hex[20:])
	b[8], b[13], b[18], b[23] = '-', '-', '-', '-'
}

// putMicros writes 16 decimal digits. It clamps times outside of their range.
func putMicros(b []byte, v int64) {
	_ = b[15]
	u := uint64(min(max(v, timeMin), timeMax))
	binary.LittleEndian.PutUint64(b, decimalDigits(u/1e8))
	binary.LittleEndian.PutUint64(b[8:], decimalDigits(u%1e8))
}

// decimalDigits are the eight digits of v, which is below 10^8, the first in the
// lowest byte. It divides halves, quarters and eighths of the number in parallel.
func decimalDigits(v uint64) uint64 {
	x := v/10000 | v%10000<<32
	q := x * 10486 >> 20 & 0x0000007f0000007f // /100 of each half
	x = q | (x-q*100)<<16
	q = x * 103 >> 10 & 0x000f000f000f000f // /10 of each quarter
	return (q | (x-q*10)<<8) + zeroHex
}

// putTime writes RFC 3339 in UTC with microseconds. (AppendFormat of package time
// would temporarily write nine digits, beyond the end of the place.)
func putTime(b []byte, v int64) {
	_ = b[26]
	t := time.UnixMicro(min(max(v, timeMin), timeMax)).UTC()
	year, month, day := t.Date()
	hour, minute, second := t.Clock()
	two := func(at, v int) { b[at], b[at+1] = byte('0'+v/10), byte('0'+v%10) }
	two(0, year/100)
	two(2, year%100)
	two(5, int(month))
	two(8, day)
	two(11, hour)
	two(14, minute)
	two(17, second)
	us := t.Nanosecond() / 1000
	two(20, us/10000)
	two(22, us/100%100)
	two(24, us%100)
	b[4], b[7], b[10], b[13], b[16], b[19], b[26] = '-', '-', 'T', ':', ':', '.', 'Z'
}

// parseHex parses 16 hex digits of either case.
func parseHex(b []byte) (v uint64, ok bool) {
	for _, c := range b[:16] {
		d := c - '0'
		if d > 9 {
			if d = c | 0x20 - 'a' + 10; c|0x20 < 'a' || d > 15 {
				return 0, false
			}
		}
		v = v<<4 | uint64(d)
	}
	return v, true
}

// fold combines the two halves of a trace id into one number, which is the same
// everywhere in the corpus.
func fold(hi, lo uint64) uint64 { return hi ^ bits.RotateLeft64(lo, 32) }
