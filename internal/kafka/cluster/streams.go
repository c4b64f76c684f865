package cluster

import (
	"fmt"
	"hash/fnv"

	"carronade/internal/kafka/wire"
	"carronade/load"
	"carronade/payload"
	"carronade/protocol"
)

// Streams maps the engine's streams to clients and partitions. A stream is one
// client's share of one partition: stream s belongs to client s / n and to the
// partition used[s % n], where n partitions are used.
type Streams struct {
	Clients     int
	Used        []int32 // partitions
	Partitioner load.Partitioner
	Cycle       *KeyCycle // murmur2 only
}

// CycleEvents is the number of events after which the keys of a run repeat, if
// they choose the partition: enough for a skewed distribution to show, and few
// enough for small tables (20 bytes per event).
const CycleEvents = 1 << 16

// A KeyCycle groups the events 0..cycleEvents-1 by the partition that their key
// chooses.
type KeyCycle struct {
	Events [][]uint32 // by partition, ascending
	parts  []int32    // by event
	owners []int32    // by event: the client
}

func newKeyCycle(gen *payload.Generator, partitions, clients int) *KeyCycle {
	c := &KeyCycle{Events: make([][]uint32, partitions), parts: make([]int32, CycleEvents), owners: make([]int32, CycleEvents)}
	var key []byte
	for n := range uint64(CycleEvents) {
		key = gen.AppendKey(key[:0], n)
		p := wire.PartitionOf(key, partitions)
		c.parts[n] = p
		h := fnv.New32a() // another hash than the partition's, so that each client has some of each
		h.Write(key)
		c.owners[n] = int32(h.Sum32() % uint32(clients))
		c.Events[p] = append(c.Events[p], uint32(n))
	}
	return c
}

// NewStreams divides the events of a run. blockEvents is how many events fit into
// a batch, for the sticky partitioner.
func NewStreams(p Partitioner, clients, partitions int, gen *payload.Generator, blockEvents int) Streams {
	s := Streams{Clients: clients}
	if p.Kind == "fixed" {
		s.Used = []int32{p.Fixed}
	} else {
		for i := range partitions {
			s.Used = append(s.Used, int32(i))
		}
	}
	n := clients * len(s.Used)
	switch p.Kind {
	case "sticky":
		s.Partitioner = load.Blocks(n, uint64(max(1, blockEvents)))
	case "murmur2":
		s.Cycle = newKeyCycle(gen, partitions, clients)
		// All events of a key belong to one client, which keeps their order. (Events that
		// are encoded ahead are repeated, and have no order.)
		seq := make([]int32, 0, CycleEvents)
		for e, part := range s.Cycle.parts {
			seq = append(seq, s.Cycle.owners[e]*int32(partitions)+part)
		}
		s.Partitioner = load.Sequence(seq, n)
	default: // roundrobin, fixed
		s.Partitioner = load.RoundRobin(n)
	}
	return s
}

// Client is the client that a stream belongs to.
func (s *Streams) Client(stream int32) int { return int(stream) / len(s.Used) }

// Partition is the partition that a stream belongs to.
func (s *Streams) Partition(stream int32) int32 { return s.Used[int(stream)%len(s.Used)] }

// Numbers returns two numbers of event k of a stream, if events are encoded fresh: one
// for the generator's key and one for its value. Both are the event's number in the
// run; but where keys choose the partition, keys repeat with each round of the cycle.
func (s *Streams) Numbers(stream int32, k uint64) (key, value uint64) {
	n := s.Partitioner.Event(stream, k)
	if s.Cycle != nil {
		return n % uint64(len(s.Cycle.parts)), n
	}
	return n, n
}

// KeyNumber returns the first of Numbers.
func (s *Streams) KeyNumber(stream int32, k uint64) uint64 {
	key, _ := s.Numbers(stream, k)
	return key
}

// CheckPartition returns an error if events go to one partition, which the topic does not have.
func (c *Config) CheckPartition(partitions int) error {
	if p := c.Partitioner; p.Kind != "fixed" || int(p.Fixed) < partitions {
		return nil
	}
	return &protocol.Error{
		Doing: "choose the partition", Err: fmt.Errorf("topic %s has %d partitions, and no partition %d", c.Topic, partitions, c.Partitioner.Fixed),
		Hint: fmt.Sprintf("give --partitioner 'fixed(N)' with N from 0 to %d", partitions-1),
	}
}

// EventsPerBatch is about how many events fit into a batch, at least 1.
func (c *Config) EventsPerBatch(gen *payload.Generator) int {
	return max(1, int(float64(c.BatchSize-wire.HeaderSize)/(gen.MeanSize()+10)))
}
