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
// The targets must not form batches by themselves (SelfBatcher).
type Mix struct {
	parts       []Part
	starts      []int32 // number of the first stream of each part; one more at the end
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
		if _, ok := p.Target.(SelfBatcher); ok {
			return nil, fmt.Errorf("part %s forms its batches by itself, so its share cannot be kept", p.Name)
		}
		if p.Schedule != nil {
			scheduled++
		}
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

// Connections implements Connector.
func (m *Mix) Connections() int {
	n := 0
	for _, p := range m.parts {
		if c, ok := p.Target.(Connector); ok {
			n += c.Connections()
		}
	}
	return n
}

// Connected implements Connected: all parts must know.
func (m *Mix) Connected() (n int, known bool) {
	for _, p := range m.parts {
		c, ok := p.Target.(Connected)
		if !ok {
			return 0, false
		}
		of, known := c.Connected()
		if !known {
			return 0, false
		}
		n += of
	}
	return n, true
}

// Pending is what each part waits for, one text per connection, of those parts that know.
func (m *Mix) Pending() []string {
	var out []string
	for _, p := range m.parts {
		if w, ok := p.Target.(interface{ Pending() []string }); ok {
			for _, text := range w.Pending() {
				out = append(out, p.Name+": "+text)
			}
		}
	}
	return out
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

// Poll implements Poller: a thread waits in the first part in which it can. The other
// parts read their answers elsewhere, and wake it.
func (m *Mix) Poll(t, of int) PollWaiter {
	for _, p := range m.parts {
		if poller, ok := p.Target.(Poller); ok {
			if w := poller.Poll(t, of); w != nil {
				return w
			}
		}
	}
	return nil
}

// Threads implements Poller.
func (m *Mix) Threads(processors int) int {
	n := 1
	for _, p := range m.parts {
		if poller, ok := p.Target.(Poller); ok {
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

// Prepare implements Preparer.
func (l *mixLane) Prepare() {
	if p, ok := l.Lane.(Preparer); ok {
		p.Prepare()
	}
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
