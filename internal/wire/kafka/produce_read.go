package kafka

import "fmt"

// A ProducePartition is the data for one partition in a produce request. Records aliases the
// request.
type ProducePartition struct {
	Topic     string   // "" from v13 on
	TopicID   [16]byte // from v13 on
	Partition int32
	Records   []byte
}

// IsProduce reports whether a request, the bytes of a frame after its size, is a produce
// request of a version that WalkProduce reads.
func IsProduce(request []byte) bool {
	r := reader{b: request}
	key, version := r.int16(), r.int16()
	return r.err == nil && key == ProduceKey && version >= MinProduceVersion && version <= MaxProduceVersion
}

// WalkProduce reads a produce request, the bytes of a frame after its size, and calls f with
// each partition in it. It does not read the records: use ForEachBatch. The pointer passed to
// f is valid only during the call.
func WalkProduce(request []byte, f func(*ProducePartition) error) error {
	r := reader{b: request}
	key, version := r.int16(), r.int16()
	if r.err != nil || key != ProduceKey || version < MinProduceVersion || version > MaxProduceVersion {
		return fmt.Errorf("read produce request: key %d in version %d is not known", key, version)
	}
	r.int32()  // correlation id
	r.string() // client id
	r.flex = version >= produceFlexible
	if r.flex {
		r.tags(nil)
	}
	r.string() // transactional id
	r.int16()  // acks
	r.int32()  // timeout
	var p ProducePartition
	for range r.array() {
		p.Topic, p.TopicID = "", [16]byte{}
		if version >= produceTopicIDs {
			copy(p.TopicID[:], r.take(16))
		} else {
			p.Topic = string(r.string())
		}
		for range r.array() {
			p.Partition = r.int32()
			p.Records = r.bytes()
			if r.flex {
				r.tags(nil)
			}
			if r.err != nil {
				return fmt.Errorf("read produce request v%d: %w", version, r.err)
			}
			if err := f(&p); err != nil {
				return err
			}
		}
		if r.flex {
			r.tags(nil)
		}
	}
	if r.flex {
		r.tags(nil)
	}
	if r.err != nil {
		return fmt.Errorf("read produce request v%d: %w", version, r.err)
	}
	return nil
}
