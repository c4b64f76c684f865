package load

import (
	"fmt"
	"math"
	"sync"
	"time"
)

// A Part is one load of a Mix.
type Part struct {
	Name     string
	Weight   float64  // of its share of all events; 0: it gets none
	Schedule Schedule // its own; all parts have one, or none has. Then weights have no meaning
	Target   Target
	Gate     *Gate // its allowance; nil: none. The run ends when the allowance of a part does
}

// A Mix is a Target made of several: one run divides its events among them by weight, or
// each has its own schedule.
// With a schedule, the events that are due are divided. Without one, the part that has
// the least of its share comes next, and no other part fires until it has, so that the
// shares also hold over any part of a run. All parts have the same bound on what is in
// flight. The result of the run has the counts and times of each part.
//
// The targets must not form batches by themselves (OwnBatching).
type Mix struct {
	parts       []Part
	can         []TargetCapabilities // of each part
	starts      []int32              // number of the first stream of each part; one more at the end
	partitioner mixPartitioner
	scheduled   bool // each part has its own schedule

	mu    sync.Mutex
	lanes map[Lane]*mixLane
}

// NewMix joins the parts, of which at least one has a weight above 0.
func NewMix(parts []Part) (*Mix, error) {
	m := &Mix{parts: parts, lanes: map[Lane]*mixLane{}}
	weights := make([]float64, len(parts))
	sum := 0.0
	streams, scheduled := 0, 0
	for i, p := range parts {
		if !(p.Weight >= 0) || math.IsInf(p.Weight, 0) {
			return nil, fmt.Errorf("part %s has the weight %v", p.Name, p.Weight)
		}
		can := p.Target.Capabilities()
		if can.OwnBatching != nil {
			return nil, fmt.Errorf("part %s forms its batches by itself, so its share cannot be kept", p.Name)
		}
		if p.Schedule != nil {
			scheduled++
		}
		m.can = append(m.can, can)
		weights[i] = p.Weight
		sum += p.Weight
		m.starts = append(m.starts, int32(streams))
		streams += p.Target.Partitioner().Streams()
		m.partitioner.of = append(m.partitioner.of, p.Target.Partitioner())
	}
	m.scheduled = scheduled > 0
	m.starts = append(m.starts, int32(streams))
	m.partitioner.m = m
	switch {
	case scheduled == len(parts):
		m.partitioner.shares = &knownBefore{Partitioner: unionPartitioner(m.schedules())}
	case scheduled > 0:
		return nil, fmt.Errorf("%d of %d parts have a schedule", scheduled, len(parts))
	case !(sum > 0) || math.IsInf(sum, 0):
		return nil, fmt.Errorf("the weights of the parts sum to %v", sum)
	default:
		m.partitioner.shares = Weighted(weights)
	}
	return m, nil
}

// schedules are those of the parts.
func (m *Mix) schedules() union {
	var all union
	for _, p := range m.parts {
		all = append(all, p.Schedule)
	}
	return all
}

// part returns which part a stream belongs to.
func (m *Mix) part(stream int32) int {
	i := 0
	for stream >= m.starts[i+1] {
		i++
	}
	return i
}

// Partitioner implements Target.
func (m *Mix) Partitioner() Partitioner { return m.partitioner }

// Client implements Target. Clients of the same number share a thread, and with it
// what may be in flight.
func (m *Mix) Client(stream int32) int {
	i := m.part(stream)
	return m.parts[i].Target.Client(stream - m.starts[i])
}

// Clients implements Target.
func (m *Mix) Clients() int {
	n := 0
	for _, p := range m.parts {
		n = max(n, p.Target.Clients())
	}
	return n
}

// Capabilities implements Target. What only a part can do stays out: events of different parts
// cannot share lanes, gates limit the numbers of events, and logs of different parts have the same
// numbers.
func (m *Mix) Capabilities() TargetCapabilities {
	var c TargetCapabilities
	connected := 0
	for i := range m.can {
		of := &m.can[i]
		if of.Connections != nil {
			c.Connections = m.connections
		}
		if of.Connected != nil {
			connected++
		}
		if of.Pending != nil {
			c.Pending = m.pending
		}
		if of.Poller != nil {
			c.Poller = mixPoller{m}
		}
		if of.AppendKey != nil {
			c.AppendKey = m.appendKey
		}
	}
	if connected == len(m.can) {
		c.Connected = m.connected
	}
	return c
}

func (m *Mix) connections() (n int) {
	for i := range m.can {
		if of := m.can[i].Connections; of != nil {
			n += of()
		}
	}
	return n
}

// connected adds up the connections of the parts, all of which must know them.
func (m *Mix) connected() (n int, known bool) {
	for i := range m.can {
		of, known := m.can[i].Connected()
		if !known {
			return 0, false
		}
		n += of
	}
	return n, true
}

func (m *Mix) pending() (out []string) {
	for i := range m.can {
		if of := m.can[i].Pending; of != nil {
			for _, text := range of() {
				out = append(out, m.parts[i].Name+": "+text)
			}
		}
	}
	return out
}

func (m *Mix) appendKey(dst []byte, stream int32, index uint64) ([]byte, bool) {
	i := m.part(stream)
	if of := m.can[i].AppendKey; of != nil {
		return of(dst, stream-m.starts[i], index)
	}
	return dst, false
}

// Start implements Target.
func (m *Mix) Start(sink Sink) {
	for i, p := range m.parts {
		p.Target.Start(&mixSink{Sink: sink, m: m, part: i})
	}
}

// Route implements Target.
func (m *Mix) Route(stream int32) Lane {
	i := m.part(stream)
	l := m.parts[i].Target.Route(stream - m.starts[i])
	if l == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	own := m.lanes[l]
	if own == nil {
		own = &mixLane{Lane: l, id: m.laneID(i, l.ID()), start: m.starts[i]}
		m.lanes[l] = own
	}
	return own
}

// laneID returns the number in the run of a part's lane.
func (m *Mix) laneID(part, lane int) int { return lane*len(m.parts) + part }

// partOfLane is its inverse for the part.
func (m *Mix) partOfLane(id int) int { return id % len(m.parts) }

// Wire implements Target.
func (m *Mix) Wire() (written, read uint64) {
	for _, p := range m.parts {
		w, r := p.Target.Wire()
		written, read = written+w, read+r
	}
	return written, read
}

// A mixPoller is the Poller of a Mix.
type mixPoller struct{ m *Mix }

// Poll implements Poller: a thread waits in the first part in which it can. The other
// parts read their answers elsewhere, and wake it.
func (p mixPoller) Poll(t, of int) PollWaiter {
	for i := range p.m.can {
		if poller := p.m.can[i].Poller; poller != nil {
			if w := poller.Poll(t, of); w != nil {
				return w
			}
		}
	}
	return nil
}

// Threads implements Poller.
func (p mixPoller) Threads(processors int) int {
	n := 1
	for i := range p.m.can {
		if poller := p.m.can[i].Poller; poller != nil {
			n = max(n, poller.Threads(processors))
		} else {
			n = max(n, processors)
		}
	}
	return n
}

// A mixPartitioner divides events first among the parts, then among the streams of each.
type mixPartitioner struct {
	m      *Mix
	shares Partitioner   // among the parts
	of     []Partitioner // of each part
}

// Streams implements Partitioner.
func (d mixPartitioner) Streams() int { return int(d.m.starts[len(d.m.parts)]) }

// Event implements Partitioner.
func (d mixPartitioner) Event(s int32, k uint64) uint64 {
	i := d.m.part(s)
	n := d.of[i].Event(s-d.m.starts[i], k)
	if n == math.MaxUint64 {
		return n
	}
	return d.shares.Event(int32(i), n)
}

// Before implements Partitioner.
func (d mixPartitioner) Before(s int32, n uint64) uint64 {
	i := d.m.part(s)
	return d.of[i].Before(s-d.m.starts[i], d.shares.Before(int32(i), n))
}

// A mixLane is a lane of a part, under the numbers that lanes and streams have in the
// run.
type mixLane struct {
	Lane
	id    int
	start int32 // number of the part's first stream
}

// ID implements Lane.
func (l *mixLane) ID() int { return l.id }

// Room implements Lane.
func (l *mixLane) Room(stream int32, first uint64) int { return l.Lane.Room(stream-l.start, first) }

// Fire implements Lane.
func (l *mixLane) Fire(batches []Batch) int {
	for i := range batches {
		batches[i].Stream -= l.start
	}
	taken := l.Lane.Fire(batches)
	for i := range batches {
		batches[i].Stream += l.start
	}
	return taken
}

// Capabilities implements Lane.
func (l *mixLane) Capabilities() LaneCapabilities {
	c := l.Lane.Capabilities()
	if group := c.BatchGroup; group != nil {
		c.BatchGroup = func(stream int32, first uint64, events int) int { return group(stream-l.start, first, events) }
	}
	return c
}

// A mixSink receives the outcomes of a part and passes them on under the run's numbers.
type mixSink struct {
	Sink
	m    *Mix
	part int
	pool sync.Pool // of *[]Outcome: the caller's slice must not change
}

// Complete implements Sink.
func (s *mixSink) Complete(out []Outcome) {
	if len(out) == 0 {
		return
	}
	own, _ := s.pool.Get().(*[]Outcome)
	if own == nil {
		own = new([]Outcome)
	}
	*own = append((*own)[:0], out...)
	for i := range *own {
		o := &(*own)[i]
		o.Stream += s.m.starts[s.part]
		o.Lane = int32(s.m.laneID(s.part, int(o.Lane)))
	}
	s.Sink.Complete(*own)
	clear(*own)
	s.pool.Put(own)
}

// Ready implements Sink.
func (s *mixSink) Ready(lane int, at time.Duration) {
	if lane >= 0 {
		lane = s.m.laneID(s.part, lane)
	}
	s.Sink.Ready(lane, at)
}
