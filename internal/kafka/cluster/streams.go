package cluster

import (
	"fmt"
	"hash/fnv"

	"carronade/internal/kafka/wire"
	"carronade/load"
	"carronade/payload"
	"carronade/protocol"
	"carronade/units"
)

// Streams maps the engine's streams to clients and logs. A stream is one
// client's share of one log: stream s belongs to the log Used[s % n], where n logs are used, and to its
// client s / n. With clients for each topic, those of topic t are t, t + topics, t + 2 topics, ...
type Streams struct {
	Each        int     // clients that send to each log
	Used        []int32 // logs
	perTopic    bool    // each topic has clients of its own; else each client sends to all
	topics      []TopicLogs
	topicOf     []int32 // by place in Used
	firstOf     []int32 // by topic: the place in Used of its first log; one more at the end
	Partitioner load.Partitioner
	Cycle       *KeyCycle // murmur2 only
}

// CycleEvents is the number of events after which the keys of a run repeat, if
// they choose the partition: enough for a skewed distribution to show, and few
// enough for small tables (20 bytes per event).
const CycleEvents = 1 << 16

// A KeyCycle groups the events 0..cycleEvents-1 by the log that their key
// chooses. Of several topics, the number of an event chooses one, as if by chance.
type KeyCycle struct {
	Events [][]uint32 // by log, ascending
	logs   []int32    // by event
	owners []int32    // by event: the client
}

func newKeyCycle(gen *payload.Generator, t *topicChoice, clients int) *KeyCycle {
	c := &KeyCycle{Events: make([][]uint32, t.logs()), logs: make([]int32, CycleEvents), owners: make([]int32, CycleEvents)}
	var key []byte
	for n := range uint64(CycleEvents) {
		key = gen.AppendKey(key[:0], n)
		topic := &t.topics[t.random(n)]
		log := int32(topic.Base) + wire.PartitionOf(key, topic.Partitions) //nolint:gosec // few logs
		c.logs[n] = log
		h := fnv.New32a() // another hash than the partition's, so that each client has some of each
		h.Write(key)
		c.owners[n] = int32(h.Sum32() % uint32(clients))
		c.Events[log] = append(c.Events[log], uint32(n))
	}
	return c
}

// NewStreams divides the events of a run among the partitions of topics. blockEvents is how many events
// fit into a batch, for the sticky partitioner.
func NewStreams(c *Config, topics []TopicLogs, gen *payload.Generator, blockEvents int) Streams {
	p := c.Partitioner
	t := newTopicChoice(topics, c.TopicWeights)
	s := Streams{Each: c.Clients, perTopic: c.PerTopic, topics: topics}
	for i := range topics {
		s.firstOf = append(s.firstOf, int32(len(s.Used))) //nolint:gosec // few logs
		for part := range topics[i].Partitions {
			if p.Kind != "fixed" || part == int(p.Fixed) {
				s.Used = append(s.Used, int32(topics[i].Base+part)) //nolint:gosec // few logs
				s.topicOf = append(s.topicOf, int32(i))             //nolint:gosec // few topics
			}
		}
	}
	s.firstOf = append(s.firstOf, int32(len(s.Used))) //nolint:gosec // few logs
	n := s.Each * len(s.Used)
	block := 1
	switch p.Kind {
	case "murmur2":
		s.Cycle = newKeyCycle(gen, t, s.Each)
		// All events of a key belong to one client, which keeps their order. (Events that
		// are encoded ahead are repeated, and have no order.)
		seq := make([]int32, 0, CycleEvents)
		for e, log := range s.Cycle.logs {
			seq = append(seq, s.Cycle.owners[e]*int32(len(s.Used))+log) //nolint:gosec // few streams
		}
		s.Partitioner = load.Sequence(seq, n)
		return s
	case "sticky":
		block = max(1, blockEvents)
	}
	switch {
	case !t.even():
		s.Partitioner = load.Sequence(t.sequence(&s, block, p.Kind == "fixed"), n)
	case p.Kind == "sticky":
		s.Partitioner = load.Blocks(n, uint64(block))
	default: // roundrobin, fixed
		s.Partitioner = load.RoundRobin(n)
	}
	return s
}

// Clients is the number of all clients.
func (s *Streams) Clients() int {
	if s.perTopic {
		return s.Each * len(s.topics)
	}
	return s.Each
}

// Client is the client that a stream belongs to.
func (s *Streams) Client(stream int32) int {
	client := int(stream) / len(s.Used)
	if s.perTopic {
		client = client*len(s.topics) + int(s.topicOf[int(stream)%len(s.Used)])
	}
	return client
}

// Of returns the streams of a client, from one up to another, to excluded.
func (s *Streams) Of(client int) (from, to int32) {
	if s.perTopic {
		before := int32(client / len(s.topics) * len(s.Used)) //nolint:gosec // few streams
		t := client % len(s.topics)
		return before + s.firstOf[t], before + s.firstOf[t+1]
	}
	return int32(client * len(s.Used)), int32((client + 1) * len(s.Used)) //nolint:gosec // few streams
}

// LogsOf returns the logs from up to to, to excluded, among which are those that a client sends to: of its topic, or
// of all topics.
func (s *Streams) LogsOf(client int) (from, to int) {
	first, last := &s.topics[0], &s.topics[len(s.topics)-1]
	if s.perTopic {
		first = &s.topics[client%len(s.topics)]
		last = first
	}
	return first.Base, last.Base + last.Partitions
}

// Log is the log that a stream belongs to.
func (s *Streams) Log(stream int32) int32 { return s.Used[int(stream)%len(s.Used)] }

// Numbers returns two numbers of event k of a stream, if events are encoded fresh: one
// for the generator's key and one for its value. Both are the event's number in the
// run; but where keys choose the partition, keys repeat with each round of the cycle.
func (s *Streams) Numbers(stream int32, k uint64) (key, value uint64) {
	n := s.Partitioner.Event(stream, k)
	if s.Cycle != nil {
		return n % uint64(len(s.Cycle.logs)), n
	}
	return n, n
}

// KeyNumber returns the first of Numbers.
func (s *Streams) KeyNumber(stream int32, k uint64) uint64 {
	key, _ := s.Numbers(stream, k)
	return key
}

// CheckPartitioner returns an error if events go to one partition, which a topic does not have, or if
// there are too many partitions for keys to choose from.
func (c *Config) CheckPartitioner(topics []TopicLogs) error {
	p, all := c.Partitioner, 0
	for i := range topics {
		t := &topics[i]
		all += t.Partitions
		if p.Kind == "fixed" && int(p.Fixed) >= t.Partitions {
			return &protocol.Error{
				Doing: "choose the partition", Err: fmt.Errorf("topic %s has %d partitions, and no partition %d", t.Name, t.Partitions, p.Fixed),
				Hint: fmt.Sprintf("give --partitioner 'fixed(N)' with N from 0 to %d", t.Partitions-1),
			}
		}
	}
	if most := CycleEvents / 4; p.Kind == "murmur2" && len(topics) > 1 && all > most {
		return &protocol.Error{
			Doing: "choose the partition", Err: fmt.Errorf("keys can choose from %s of several topics, and they have %d", units.Plural(most, "partition"), all),
			Hint: "give --partitioner roundrobin, or fewer topics",
		}
	}
	return nil
}

// EventsPerBatch is about how many events fit into a batch, at least 1.
func (c *Config) EventsPerBatch(gen *payload.Generator) int {
	return max(1, int(float64(c.BatchSize-wire.HeaderSize)/(gen.MeanSize()+10)))
}
