package standin

import (
	"bytes"
	"encoding/binary"
)

// batchHead is the size of a record batch's header (format v2), from the base
// offset to the record count.
const batchHead = 61

// A produceVisitor receives the parts of a produce request, in their order.
type produceVisitor interface {
	begin(transactional []byte, acks int16, topics int) // nil: no transaction; valid during the call
	topic(name []byte, id [16]byte, partitions int)     // name is valid during the call
	partition(index int32, p produced)
	endTopic()
}

// produced sums the record batches sent to one partition by one request.
type produced struct {
	batches int
	records int64 // according to the batches' headers
	bytes   int64 // of the batches, headers included
	bad     bool  // not batches of format v2
	id      int64 // producer id and epoch of the last batch
	epoch   int16
}

// walkProduce reads the body of a produce request, version 3 to 13, after its
// header. Of the record batches it reads only the headers. It skips the records,
// which on Linux drops them inside the kernel.
//
// The layout is ProduceRequest.json of Apache Kafka 4.3.
func walkProduce(s *stream, version int16, v produceVisitor) error {
	flexible := version >= 9
	transactional, err := s.text(flexible)
	if err != nil {
		return err
	}
	if transactional != nil {
		transactional = bytes.Clone(transactional)
	}
	acks, err := s.int16()
	if err != nil {
		return err
	}
	if _, err = s.int32(); err != nil { // timeout
		return err
	}
	topics, err := s.length(flexible, true)
	if err != nil {
		return err
	}
	v.begin(transactional, acks, max(topics, 0))
	for ; topics > 0; topics-- {
		if err := walkProduceTopic(s, version, v); err != nil {
			return err
		}
	}
	if flexible {
		if err := s.tags(); err != nil {
			return err
		}
	}
	if s.left != 0 {
		return errFrame
	}
	return nil
}

func walkProduceTopic(s *stream, version int16, v produceVisitor) error {
	flexible := version >= 9
	var id [16]byte
	var name []byte
	var err error
	if version >= 13 {
		var b []byte
		if b, err = s.next(16); err == nil {
			copy(id[:], b)
		}
	} else {
		name, err = s.text(flexible)
	}
	if err != nil {
		return err
	}
	// The name is valid only until the next read, and the count of partitions
	// follows it.
	s.name = append(s.name[:0], name...)
	partitions, err := s.length(flexible, true)
	if err != nil {
		return err
	}
	v.topic(s.name, id, max(partitions, 0))
	for ; partitions > 0; partitions-- {
		index, err := s.int32()
		if err != nil {
			return err
		}
		n, err := s.length(flexible, true)
		if err != nil {
			return err
		}
		p, err := walkBatches(s, max(n, 0))
		if err != nil {
			return err
		}
		if flexible {
			if err := s.tags(); err != nil {
				return err
			}
		}
		v.partition(index, p)
	}
	if flexible {
		if err := s.tags(); err != nil {
			return err
		}
	}
	v.endTopic()
	return nil
}

// walkBatches counts the record batches in n bytes by their headers. It skips
// bytes that are not a batch of format v2 and sets bad: a broker answers them with
// an error and keeps the connection.
func walkBatches(s *stream, n int) (p produced, err error) {
	if n > s.left {
		return p, errFrame
	}
	p.bytes = int64(n)
	for n > 0 {
		if n < batchHead {
			p.bad = true
			return p, s.skip(n)
		}
		if err := s.peek(batchHead); err != nil {
			return p, err
		}
		h := s.buf[s.r : s.r+batchHead]
		size := int64(int32(binary.BigEndian.Uint32(h[8:]))) + 12
		magic := h[16]
		p.id = int64(binary.BigEndian.Uint64(h[43:]))
		p.epoch = int16(binary.BigEndian.Uint16(h[51:]))
		records := int32(binary.BigEndian.Uint32(h[57:]))
		if magic != 2 || size < batchHead || size > int64(n) || records < 0 {
			p.bad = true
			return p, s.skip(n)
		}
		if err := s.skip(int(size)); err != nil {
			return p, err
		}
		n -= int(size)
		p.batches++
		p.records += int64(records)
	}
	return p, nil
}
