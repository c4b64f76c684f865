package wire

import (
	"encoding/binary"
	"math"

	"carronade/internal/splitmix"
)

// A Form is what a place has.
type Form uint8

// The forms of places. Fresh values are written over the old ones: they have the same number of bytes.
const (
	FormTime    Form = iota // eight bytes: the time of the request plus Val nanoseconds
	FormStart               // eight bytes: the time at which the run started
	FormTraceID             // 16 bytes: the id with the number Val in its request
	FormSpanID              // eight bytes: the span id with the number Val in its request
	FormCount               // eight bytes: milliseconds since the run started times Val
	FormSum                 // the same as a floating-point number
	FormSeries              // SeriesDigits decimal digits: the series of data point Val of the request
	forms                   // how many there are
)

// SeriesDigits are the digits of a series' number.
const SeriesDigits = 10

// A Stamp has what is fresh in a request.
type Stamp struct {
	Key    uint64 // of the run, see NewKey
	Batch  uint64 // the request's number in the run
	Time   int64  // nanoseconds since 1970
	Start  int64  // when the run started, in nanoseconds since 1970
	Points uint64 // data points with series before this request
	Series uint64 // different series at a time; 0: one
	First  uint64 // the first series that is in use
}

// idBits are the bits of the numbers of ids in one request.
const idBits = 24

// MostIDs bounds the numbers of ids in one request.
const MostIDs = 1 << idBits

// NewKey makes the key of a run's ids from a seed.
func NewKey(seed uint64) uint64 { return splitmix.Mix(seed + splitmix.Golden) }

// A Place is a value in a request that is fresh each time it is sent.
type Place struct {
	At  int32
	Val uint64 // see Form
}

// Places are the places of a request, by their form. One loop for each form takes half the time of one loop over all of
// them.
type Places [forms][]Place

// Put writes the fresh values of a request into its places.
func (s *Stamp) Put(b []byte, places *Places) {
	key := s.Key ^ s.Batch<<idBits
	for _, p := range places[FormTime] {
		binary.LittleEndian.PutUint64(b[p.At:], uint64(s.Time)+p.Val)
	}
	for _, p := range places[FormStart] {
		binary.LittleEndian.PutUint64(b[p.At:], uint64(s.Start))
	}
	for _, p := range places[FormTraceID] {
		to, hi := b[p.At:], splitmix.Mix(key^p.Val)
		binary.LittleEndian.PutUint64(to[8:], splitmix.Mix(hi+splitmix.Golden))
		binary.LittleEndian.PutUint64(to, hi)
	}
	for _, p := range places[FormSpanID] {
		binary.LittleEndian.PutUint64(b[p.At:], splitmix.Mix(key^p.Val))
	}
	elapsed := uint64(max(0, s.Time-s.Start)) / 1e6
	for _, p := range places[FormCount] {
		binary.LittleEndian.PutUint64(b[p.At:], p.count(elapsed))
	}
	for _, p := range places[FormSum] {
		binary.LittleEndian.PutUint64(b[p.At:], math.Float64bits(float64(p.count(elapsed))))
	}
	for _, p := range places[FormSeries] {
		to, n := b[p.At:], s.First+(s.Points+p.Val)%max(1, s.Series)
		for k := SeriesDigits - 1; k >= 0; k-- {
			to[k] = byte('0' + n%10)
			n /= 10
		}
	}
}

func (p Place) count(elapsed uint64) uint64 { return elapsed*uint64(uint32(p.Val)) + p.Val>>32 }

// Places finds the times and ids in a request that was recorded, and returns them with the request's
// latest time. Their values are those of FormTime, relative to the latest time, FormTraceID and
// FormSpanID: equal ids have equal numbers. ids numbers them, and is shared by requests whose ids
// refer to each other.
func (s Signal) Places(request []byte, ids map[string]uint64) (places Places, latest int64, err error) {
	ofID := [...]Form{isTraceID: FormTraceID, isSpanID: FormSpanID}
	err = walk(signals[s].request, request, 0, len(request), 0, &visitor{field: func(f *field, at, end int) {
		switch {
		case f.time:
			if v := binary.LittleEndian.Uint64(request[at:]); v != 0 && v <= math.MaxInt64 {
				places[FormTime] = append(places[FormTime], Place{int32(at), v})
				latest = max(latest, int64(v))
			}
		case (f.kind == isTraceID || f.kind == isSpanID) && end > at:
			id := string(request[at:end])
			if _, known := ids[id]; !known {
				ids[id] = uint64(len(ids))
			}
			form := ofID[f.kind]
			places[form] = append(places[form], Place{int32(at), ids[id]})
		}
	}})
	for i := range places[FormTime] {
		places[FormTime][i].Val -= uint64(latest)
	}
	return places, latest, err
}
