package traffic

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"carronade/internal/wire/kafka"
	"carronade/internal/wire/riemann"
)

// Packets reads the requests of clients from a capture of packets: produce requests of Kafka,
// requests of APM agents over HTTP, and messages of Riemann, all without TLS. Which protocol a
// connection speaks follows from its bytes.
type Packets struct {
	Records KafkaBatches // takes the records of Kafka
	APM     APMSink
	Riemann RiemannSink

	Counts     Counts
	KafkaConns int // connections with requests
	APMConns   int
	RieConns   int
	Batches    uint64
	Topics     int    // of Kafka
	Unreadable uint64 // requests that could not be decoded

	topics map[string]int32 // the first partition number of each topic
	logs   map[logID]int32
	plain  []byte
	kept   int // bytes of all connections that wait for the rest of a request
	done   bool
}

// A logID is a partition of a topic.
type logID struct {
	topic     string
	partition int32
}

const (
	// maxMessage limits a request, and maxWaiting what waits for its rest on all connections.
	maxMessage = 64 << 20
	maxWaiting = 256 << 20
)

// Read reads a capture. A sink ends it with ErrEnough, which Read returns.
func (p *Packets) Read(in *bufio.Reader) error {
	p.topics, p.logs = map[string]int32{}, map[logID]int32{}
	var err error
	p.Counts, err = ReadConnections(in, func(Flow) Stream { return &conversation{p: p} }, func() error {
		if p.done || full(p.Records.To) {
			return ErrEnough
		}
		return nil
	})
	if at, ok := errors.AsType[*PacketError](err); ok {
		return &Error{Where: fmt.Sprintf("packet %d", at.Packet), Err: at.Err}
	}
	return err
}

// errForeign ends a connection that speaks none of the protocols.
var errForeign = errors.New("none of the protocols")

// A conversation is one direction of a connection.
type conversation struct {
	p        *Packets
	protocol func(c *conversation, time int64) error // nil: not known yet
	buffer   []byte
	known    bool // it had a request
	chunks   int  // bytes of complete chunks of the request that is not complete
}

// Gap implements Stream: the next bytes begin a request, or are ignored until some do.
func (c *conversation) Gap() {
	c.p.kept -= len(c.buffer)
	c.buffer, c.protocol, c.chunks = nil, nil, 0
}

// End implements Stream.
func (c *conversation) End() { c.Gap() }

// Data implements Stream.
func (c *conversation) Data(time int64, b []byte) error {
	if len(c.buffer)+len(b) > maxMessage || c.p.kept+len(b) > maxWaiting {
		c.Gap()
		return errForeign
	}
	c.buffer = append(c.buffer, b...)
	c.p.kept += len(b)
	before := len(c.buffer)
	err := c.parse(time)
	c.p.kept -= before - len(c.buffer)
	if err != nil {
		c.Gap()
	}
	return err
}

func (c *conversation) parse(time int64) error {
	if c.protocol == nil {
		if len(c.buffer) < 14 {
			return nil
		}
		switch {
		case isHTTP(c.buffer):
			c.protocol = (*conversation).http
		case isKafka(c.buffer):
			c.protocol = (*conversation).kafka
		case c.buffer[4] == 0x32 && binary.BigEndian.Uint32(c.buffer) <= maxRiemann: // the tag of an event
			c.protocol = (*conversation).riemann
		case c.known: // after a gap: the next packet may begin a request
			c.buffer = c.buffer[:0]
			return nil
		default:
			return errForeign
		}
	}
	err := c.protocol(c, time)
	switch {
	case err == nil, errors.Is(err, ErrEnough):
		c.p.done = c.p.done || err != nil
		return err
	case c.known:
		c.p.Unreadable++
		c.buffer, c.protocol, c.chunks = c.buffer[:0], nil, 0
		return nil
	}
	return errForeign // the answers of a server, or another protocol
}

// smallBuffer is how much memory a connection keeps between requests.
const smallBuffer = 16 << 10

// take removes the first n bytes of the buffer.
func (c *conversation) take(n int) {
	c.buffer = c.buffer[:copy(c.buffer, c.buffer[n:])]
	if len(c.buffer) == 0 && cap(c.buffer) > smallBuffer {
		c.buffer = nil
	}
}

// count counts a connection when it has its first request.
func (c *conversation) count(conns *int) {
	if !c.known {
		c.known = true
		*conns++
	}
}

// isKafka reports whether bytes may begin a request to Kafka: a size, a key of an API, a
// version, a correlation id and a client's name.
func isKafka(b []byte) bool {
	size, key, version := binary.BigEndian.Uint32(b), binary.BigEndian.Uint16(b[4:]), binary.BigEndian.Uint16(b[6:])
	name := int16(binary.BigEndian.Uint16(b[12:]))
	if size < 10 || size > maxMessage || key > 100 || version > 30 || name < -1 || name > 255 {
		return false
	}
	for _, c := range b[14:min(len(b), 14+max(0, int(name)))] {
		if c < ' ' || c > '~' {
			return false
		}
	}
	return true
}

// kafka reads requests of Kafka.
func (c *conversation) kafka(int64) error {
	for len(c.buffer) >= 14 {
		size := int(binary.BigEndian.Uint32(c.buffer))
		if !isKafka(c.buffer) {
			return errors.New("it is not a request to Kafka")
		}
		if len(c.buffer) < 4+size {
			return nil
		}
		request := c.buffer[4 : 4+size]
		if kafka.IsProduce(request) {
			if err := kafka.WalkProduce(request, c.p.produced); err != nil {
				return err
			}
			c.count(&c.p.KafkaConns)
		}
		c.take(4 + size)
	}
	return nil
}

// produced takes the batches for a partition.
func (p *Packets) produced(part *kafka.ProducePartition) error {
	topic := part.Topic
	if topic == "" {
		topic = string(part.TopicID[:])
	}
	log := logID{topic, part.Partition}
	number, ok := p.logs[log]
	if !ok {
		number = -1
		if len(p.logs) < maxLogs {
			number = int32(len(p.logs))
			p.logs[log] = number
			p.topics[topic]++
			p.Topics = len(p.topics)
		}
	}
	rest, err := kafka.ForEachBatch(part.Records, func(b kafka.Batch) error {
		records := b.Records()
		if codec := b.Codec(); codec != kafka.None {
			plain, err := kafka.Decompress(p.plain[:0], codec, records)
			if err != nil {
				return err
			}
			p.plain, records = plain, plain
		}
		p.Batches++
		return p.Records.Add(number, &b, records, math.MinInt64, math.MaxInt64)
	})
	if err == nil && rest > 0 {
		err = fmt.Errorf("%d bytes after the last batch", rest)
	}
	return err
}

// riemann reads messages of Riemann.
func (c *conversation) riemann(time int64) error {
	for len(c.buffer) > 0 {
		msg, rest, err := riemann.NextFrame(c.buffer, maxRiemann)
		if err != nil {
			return err
		}
		if rest == nil {
			return nil
		}
		m, err := riemann.DecodeMsg(msg)
		if err != nil {
			return err
		}
		if len(m.Events) > 0 {
			c.count(&c.p.RieConns)
			if err := c.p.Riemann(&RiemannMessage{Events: m.Events, Bytes: len(msg), Time: time}); err != nil {
				return err
			}
		}
		c.take(len(c.buffer) - len(rest))
	}
	return nil
}
