package wire

import (
	"encoding/binary"
	"fmt"
)

// Versions of produce requests that this package writes and reads. Batches v2 came
// with v3 (Kafka 0.11); v9 is flexible; from v13 on (Kafka 4.1) a topic is
// named by its id.
const (
	ProduceKey        = 0
	MinProduceVersion = 3
	MaxProduceVersion = 13

	produceFlexible = 9
	produceTopicIDs = 13
)

// A ProduceFormat is what all produce requests of a connection have in common. The
// pieces of a request are made separately from its batches, so that batches can be
// written from where they are in memory:
//
//	head, then for each topic: topic, then for each of its batches: partition, batch, end of partition;
//	then end of topic; then tail
//
// A ProduceFormat must not change once it is used; then it is safe for concurrent
// use.
type ProduceFormat struct {
	Version       int16
	ClientID      string
	Acks          int16 // 0, 1, -1
	TimeoutMillis int32 // how long the broker waits for replicas
}

// A Topic is how requests name a topic.
type Topic struct {
	Name string
	ID   [16]byte // of produce requests from v13 on, and of fetch requests from v13 on
}

// AppendHead appends the start of a request with the number of topics given.
// PutSize writes its size afterwards.
func (f *ProduceFormat) AppendHead(dst []byte, correlation int32, topics int) []byte {
	dst = append(dst, 0, 0, 0, 0) // size
	dst = binary.BigEndian.AppendUint16(dst, ProduceKey)
	dst = binary.BigEndian.AppendUint16(dst, uint16(f.Version))
	dst = binary.BigEndian.AppendUint32(dst, uint32(correlation))
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(f.ClientID)))
	dst = append(dst, f.ClientID...)
	if f.Version >= produceFlexible {
		dst = append(dst, 0, 0) // no tags in the header; no transactional id
	} else {
		dst = append(dst, 0xff, 0xff) // no transactional id
	}
	dst = binary.BigEndian.AppendUint16(dst, uint16(f.Acks))
	dst = binary.BigEndian.AppendUint32(dst, uint32(f.TimeoutMillis))
	return f.appendCount(dst, topics)
}

// appendCount appends the length of a list.
func (f *ProduceFormat) appendCount(dst []byte, n int) []byte {
	if f.Version >= produceFlexible {
		return binary.AppendUvarint(dst, uint64(n)+1)
	}
	return binary.BigEndian.AppendUint32(dst, uint32(n))
}

// AppendTopic appends the start of a topic with the number of partitions given.
func (f *ProduceFormat) AppendTopic(dst []byte, t *Topic, partitions int) []byte {
	switch {
	case f.Version >= produceTopicIDs:
		dst = append(dst, t.ID[:]...)
	case f.Version >= produceFlexible:
		dst = binary.AppendUvarint(dst, uint64(len(t.Name))+1)
		dst = append(dst, t.Name...)
	default:
		dst = binary.BigEndian.AppendUint16(dst, uint16(len(t.Name)))
		dst = append(dst, t.Name...)
	}
	return f.appendCount(dst, partitions)
}

// AppendTopicEnd appends what comes after the partitions of a topic.
func (f *ProduceFormat) AppendTopicEnd(dst []byte) []byte {
	if f.Version >= produceFlexible {
		return append(dst, 0) // no tags
	}
	return dst
}

// AppendPartition appends what comes before the batch of a partition.
func (f *ProduceFormat) AppendPartition(dst []byte, partition int32, batchSize int) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(partition))
	if f.Version >= produceFlexible {
		return binary.AppendUvarint(dst, uint64(batchSize)+1)
	}
	return binary.BigEndian.AppendUint32(dst, uint32(batchSize))
}

// AppendPartitionEnd appends what comes after the batch of a partition.
func (f *ProduceFormat) AppendPartitionEnd(dst []byte) []byte {
	if f.Version >= produceFlexible {
		return append(dst, 0)
	}
	return dst
}

// AppendTail appends the end of a request.
func (f *ProduceFormat) AppendTail(dst []byte) []byte {
	if f.Version >= produceFlexible {
		return append(dst, 0) // no tags
	}
	return dst
}

// PutSize writes the size of a request into its head. size is that of all pieces
// and batches together, including the four bytes of the size field.
func PutSize(head []byte, size int) {
	binary.BigEndian.PutUint32(head, uint32(size-4))
}

// MaxHead returns an upper bound of the bytes of head and tail together.
func (f *ProduceFormat) MaxHead() int { return 48 + len(f.ClientID) }

// MaxTopic returns an upper bound of the bytes of a topic without its partitions.
func (t *Topic) MaxTopic() int { return 24 + len(t.Name) }

// Is reports whether an answer of a version names the topic by key.
func (t *Topic) Is(key []byte, version int16) bool {
	if version >= produceTopicIDs {
		return [16]byte(key) == t.ID
	}
	return string(key) == t.Name
}

// MaxPartition is an upper bound of the bytes of a partition without its batch.
const MaxPartition = 10

// A ProduceAnswer is the result for one partition's batch.
type ProduceAnswer struct {
	Topic       []byte // its name, or from v13 on its id; aliases the answer
	Partition   int32
	ErrorCode   int16
	BaseOffset  int64
	Message     []byte // of the broker (v8 on); aliases the answer
	LeaderID    int32  // -1: not given; with errors that mean a moved leader (v10 on)
	LeaderEpoch int32
}

// ParseProduce reads the answer to a produce request, the bytes of the frame
// after the correlation id, and appends the results to dst. throttleMillis is how
// long the broker wants no further requests.
func ParseProduce(body []byte, version int16, dst []ProduceAnswer) (_ []ProduceAnswer, throttleMillis int32, err error) {
	if version < MinProduceVersion || version > MaxProduceVersion {
		return dst, 0, fmt.Errorf("read produce answer: version %d is not known", version)
	}
	flex := version >= produceFlexible
	r := reader{b: body, flex: flex}
	if flex {
		r.tags(nil) // of the header
	}
	for range r.array() {
		var topic []byte
		if version >= produceTopicIDs {
			topic = r.take(16)
		} else {
			topic = r.string()
		}
		for range r.array() {
			a := ProduceAnswer{Topic: topic, Partition: r.int32(), ErrorCode: r.int16(), BaseOffset: r.int64(), LeaderID: -1, LeaderEpoch: -1}
			r.int64() // log append time
			if version >= 5 {
				r.int64() // log start offset
			}
			if version >= 8 {
				var first []byte
				for range r.array() { // records that were refused
					r.int32()
					if m := r.string(); first == nil {
						first = m
					}
					if flex {
						r.tags(nil)
					}
				}
				if a.Message = r.string(); a.Message == nil {
					a.Message = first
				}
			}
			if flex {
				a.leader(&r)
			}
			if r.err != nil {
				return dst, 0, fmt.Errorf("read produce answer v%d: %w", version, r.err)
			}
			dst = append(dst, a)
		}
		if flex {
			r.tags(nil)
		}
	}
	throttleMillis = r.int32()
	if flex {
		r.tags(nil) // including the addresses of new leaders: a metadata request returns more
	}
	if r.err != nil {
		return dst, 0, fmt.Errorf("read produce answer v%d: %w", version, r.err)
	}
	return dst, throttleMillis, nil
}

// leader reads a partition's tagged fields; the first is its current leader.
// It does not use reader.tags, whose function would cause an allocation for each
// partition.
func (a *ProduceAnswer) leader(r *reader) {
	for n := r.uvarint(); n > 0 && r.err == nil; n-- {
		tag := r.uvarint()
		b := r.take(int(r.uvarint()))
		if tag == 0 && r.err == nil {
			t := reader{b: b}
			if id, epoch := t.int32(), t.int32(); t.err == nil {
				a.LeaderID, a.LeaderEpoch = id, epoch
			}
		}
	}
}

// A Frame is one answer on a connection.
type Frame struct {
	Correlation int32
	Body        []byte // after the correlation id
}

// NextFrame reads the first answer from b. A nil rest without an error means that
// b does not contain a complete answer yet. A size below 4 or above maxSize is an
// error: the sender uses another protocol.
func NextFrame(b []byte, maxSize int) (f Frame, rest []byte, err error) {
	if len(b) < 4 {
		return f, nil, nil
	}
	size := int(int32(binary.BigEndian.Uint32(b)))
	if size < 4 || size > maxSize {
		return f, nil, fmt.Errorf("read answer: size %d (bytes % x): %w", size, b[:min(len(b), 8)], ErrLength)
	}
	if len(b)-4 < size {
		return f, nil, nil
	}
	end := 4 + size
	f.Correlation = int32(binary.BigEndian.Uint32(b[4:]))
	f.Body = b[8:end:end]
	return f, b[end:len(b):len(b)], nil
}
