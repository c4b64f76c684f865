package kafka

import (
	"hash/fnv"

	"carronade/internal/wire/kafka"
	"carronade/load"
	"carronade/payload"
)

// streams maps the engine's streams to clients and partitions. A stream is one
// client's share of one partition: stream s belongs to client s / n and to the
// partition used[s % n], where n partitions are used.
type streams struct {
	clients     int
	used        []int32 // partitions
	partitioner load.Partitioner
	cycle       *keyCycle // murmur2 only
}

// cycleEvents is the number of events after which the keys of a run repeat, if
// they choose the partition: enough for a skewed distribution to show, and few
// enough for small tables (20 bytes per event).
const cycleEvents = 1 << 16

// A keyCycle groups the events 0..cycleEvents-1 by the partition that their key
// chooses.
type keyCycle struct {
	events [][]uint32 // by partition, ascending
	parts  []int32    // by event
	owners []int32    // by event: the client
}

func newKeyCycle(gen *payload.Generator, partitions, clients int) *keyCycle {
	c := &keyCycle{events: make([][]uint32, partitions), parts: make([]int32, cycleEvents), owners: make([]int32, cycleEvents)}
	var key []byte
	for n := range uint64(cycleEvents) {
		key = gen.AppendKey(key[:0], n)
		p := kafka.PartitionOf(key, partitions)
		c.parts[n] = p
		h := fnv.New32a() // another hash than the partition's, so that each client has some of each
		h.Write(key)
		c.owners[n] = int32(h.Sum32() % uint32(clients))
		c.events[p] = append(c.events[p], uint32(n))
	}
	return c
}

// newStreams divides the events of a run. blockEvents is how many events fit into
// a batch, for the sticky partitioner.
func newStreams(p partitioner, clients, partitions int, gen *payload.Generator, blockEvents int) streams {
	s := streams{clients: clients}
	if p.kind == "fixed" {
		s.used = []int32{p.fixed}
	} else {
		for i := range partitions {
			s.used = append(s.used, int32(i))
		}
	}
	n := clients * len(s.used)
	switch p.kind {
	case "sticky":
		s.partitioner = load.Blocks(n, uint64(max(1, blockEvents)))
	case "murmur2":
		s.cycle = newKeyCycle(gen, partitions, clients)
		// All events of a key belong to one client, which keeps their order. (Events that
		// are encoded ahead are repeated, and have no order.)
		seq := make([]int32, 0, cycleEvents)
		for e, part := range s.cycle.parts {
			seq = append(seq, s.cycle.owners[e]*int32(partitions)+part)
		}
		s.partitioner = load.Sequence(seq, n)
	default: // roundrobin, fixed
		s.partitioner = load.RoundRobin(n)
	}
	return s
}

func (s *streams) client(stream int32) int { return int(stream) / len(s.used) }

func (s *streams) partition(stream int32) int32 { return s.used[int(stream)%len(s.used)] }

// keyNumber returns the number of the generator's key that event k of a stream
// has, if events are encoded fresh.
func (s *streams) keyNumber(stream int32, k uint64) uint64 {
	n := s.partitioner.Event(stream, k)
	if s.cycle != nil {
		return n % uint64(len(s.cycle.parts))
	}
	return n
}
