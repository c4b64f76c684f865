package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// A FetchPartition is the answer for one partition in a fetch answer. Records
// aliases the answer.
type FetchPartition struct {
	Topic   string   // "" from v13 on
	TopicID [16]byte // from v13 on

	Partition        int32
	ErrorCode        int16
	HighWatermark    int64
	LastStableOffset int64
	LogStartOffset   int64 // -1 before v5
	LeaderID         int32 // -1: not given (v12 on, with errors that mean a moved leader)
	LeaderEpoch      int32
	Aborted          []AbortedTransaction // valid until the next call of WalkFetch's f
	Records          []byte
}

// Of reports whether an answer is for the topic.
func (t *Topic) Of(p *FetchPartition) bool {
	if p.Topic == "" {
		return p.TopicID == t.ID
	}
	return p.Topic == t.Name
}

// An AbortedTransaction means that the records of the producer from the offset up
// to its next abort marker are aborted.
type AbortedTransaction struct {
	ProducerID  int64
	FirstOffset int64
}

// A FetchAnswer contains the fields of a fetch answer outside its partitions.
type FetchAnswer struct {
	ThrottleMillis int32
	ErrorCode      int16 // v7 on
	SessionID      int32 // v7 on
}

// Versions of the fetch answer that WalkFetch reads.
const (
	MinFetchVersion = 4
	MaxFetchVersion = 18
)

// WalkFetch reads a fetch answer, the bytes of the frame after the correlation
// id, and calls f with each partition in it. It does not read the records: use
// ForEachBatch. The pointer passed to f is valid only during the call. WalkFetch
// allocates only for names of topics and for aborted transactions.
func WalkFetch(body []byte, version int16, f func(*FetchPartition) error) (FetchAnswer, error) {
	var a FetchAnswer
	if version < MinFetchVersion || version > MaxFetchVersion {
		return a, fmt.Errorf("read fetch answer: version %d is not known", version)
	}
	flex := version >= 12
	r := reader{b: body, flex: flex}
	if flex {
		r.tags(nil) // of the header
	}
	a.ThrottleMillis = r.int32()
	if version >= 7 {
		a.ErrorCode = r.int16()
		a.SessionID = r.int32()
	}
	var p FetchPartition
	for range r.array() {
		p.Topic, p.TopicID = "", [16]byte{}
		if version >= 13 {
			copy(p.TopicID[:], r.take(16))
		} else {
			p.Topic = string(r.string())
		}
		for range r.array() {
			p.Partition = r.int32()
			p.ErrorCode = r.int16()
			p.HighWatermark = r.int64()
			p.LastStableOffset = r.int64()
			p.LogStartOffset, p.LeaderID, p.LeaderEpoch = -1, -1, -1
			if version >= 5 {
				p.LogStartOffset = r.int64()
			}
			p.Aborted = p.Aborted[:0]
			for range r.array() {
				t := AbortedTransaction{ProducerID: r.int64(), FirstOffset: r.int64()}
				if flex {
					r.tags(nil)
				}
				p.Aborted = append(p.Aborted, t)
			}
			if version >= 11 {
				r.int32() // preferred read replica
			}
			p.Records = r.bytes()
			if flex {
				r.tags(func(tag uint32, b []byte) {
					if tag == 1 { // current leader
						t := reader{b: b}
						id, epoch := t.int32(), t.int32()
						if t.err == nil {
							p.LeaderID, p.LeaderEpoch = id, epoch
						}
					}
				})
			}
			if r.err != nil {
				return a, fmt.Errorf("read fetch answer v%d: %w", version, r.err)
			}
			if err := f(&p); err != nil {
				return a, err
			}
		}
		if flex {
			r.tags(nil)
		}
	}
	if flex {
		r.tags(nil)
	}
	if r.err != nil {
		return a, fmt.Errorf("read fetch answer v%d: %w", version, r.err)
	}
	return a, nil
}

var errTooMany = errors.New("an array is longer than the bytes left")

// A reader reads the primitives of the protocol from b. After an error all reads
// return zeros, and arrays end.
type reader struct {
	b    []byte
	flex bool // compact strings and arrays, tagged fields
	err  error
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.b = nil
}

func (r *reader) take(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.fail(ErrShort)
		return nil
	}
	t := r.b[:n:n]
	r.b = r.b[n:]
	return t
}

func (r *reader) int16() int16 {
	if t := r.take(2); t != nil {
		return int16(binary.BigEndian.Uint16(t))
	}
	return 0
}

func (r *reader) int32() int32 {
	if t := r.take(4); t != nil {
		return int32(binary.BigEndian.Uint32(t))
	}
	return 0
}

func (r *reader) int64() int64 {
	if t := r.take(8); t != nil {
		return int64(binary.BigEndian.Uint64(t))
	}
	return 0
}

func (r *reader) uvarint() uint32 {
	u, k := binary.Uvarint(r.b)
	if k <= 0 || u > 1<<32-1 {
		r.fail(ErrShort)
		return 0
	}
	r.b = r.b[k:]
	return uint32(u)
}

// array reads the length of an array; null counts as empty. Each element has at
// least one byte, so an array longer than the bytes left is an error at once.
func (r *reader) array() int {
	var n int
	if r.flex {
		n = int(r.uvarint()) - 1
	} else {
		n = int(r.int32())
	}
	if n < 0 {
		return 0
	}
	if n > len(r.b) {
		r.fail(errTooMany)
		return 0
	}
	return n
}

// string reads a string; nil: null.
func (r *reader) string() []byte {
	if r.flex {
		return r.bytes()
	}
	n := int(r.int16())
	if n < 0 {
		return nil
	}
	return r.take(n)
}

// bytes reads a byte string with a long length; nil: null.
func (r *reader) bytes() []byte {
	var n int
	if r.flex {
		n = int(r.uvarint()) - 1
	} else {
		n = int(r.int32())
	}
	if n < 0 {
		return nil
	}
	return r.take(n)
}

// tags reads tagged fields and calls f with each, unless f is nil.
func (r *reader) tags(f func(tag uint32, b []byte)) {
	n := r.uvarint()
	for ; n > 0 && r.err == nil; n-- {
		tag := r.uvarint()
		b := r.take(int(r.uvarint()))
		if f != nil && r.err == nil {
			f(tag, b)
		}
	}
}
