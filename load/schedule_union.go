package load

import (
	"math"
	"math/bits"
	"sort"
	"sync"
	"time"
)

// Union returns the schedule of all events of several schedules. Of events that are due at
// the same time, those of the earlier schedule come first.
func Union(of ...Schedule) Schedule { return union(of) }

type union []Schedule

// Due is slow: it searches. Parts of a Mix have their own schedules for the send path.
func (u union) Due(n uint64) time.Duration {
	if u.Count(Never) <= n {
		return Never
	}
	// The first time before whose end more than n events are due.
	at := sort.Search(math.MaxInt64, func(t int) bool { return u.upTo(time.Duration(t)) > n })
	return time.Duration(at)
}

// upTo counts the events that are due at a time or before.
func (u union) upTo(t time.Duration) uint64 { return u.Count(after(t)) }

// after is the next time.
func after(t time.Duration) time.Duration {
	if t == Never {
		return Never
	}
	return t + 1
}

func (u union) Count(t time.Duration) uint64 {
	n := uint64(0)
	for _, s := range u {
		var carry uint64
		if n, carry = bits.Add64(n, s.Count(t), 0); carry > 0 {
			return math.MaxUint64
		}
	}
	return n
}

func (u union) Rate(t time.Duration) float64 {
	sum := 0.0
	for _, s := range u {
		sum += s.Rate(t)
	}
	return sum
}

func (u union) End() time.Duration {
	end := time.Duration(0)
	for _, s := range u {
		end = max(end, s.End())
	}
	return end
}

// A unionPartitioner divides the events of a union among its schedules: stream i is the
// events of schedule i.
type unionPartitioner union

// Streams implements Partitioner.
func (p unionPartitioner) Streams() int { return len(p) }

// Event implements Partitioner.
func (p unionPartitioner) Event(s int32, k uint64) uint64 {
	due := p[s].Due(k)
	if due == Never {
		return math.MaxUint64
	}
	n := k
	for j, other := range p {
		var carry uint64
		switch {
		case j < int(s):
			n, carry = bits.Add64(n, other.Count(after(due)), 0)
		case j > int(s):
			n, carry = bits.Add64(n, other.Count(due), 0)
		}
		if carry > 0 {
			return math.MaxUint64
		}
	}
	return n
}

// Before implements Partitioner.
func (p unionPartitioner) Before(s int32, n uint64) uint64 {
	due := union(p).Due(n)
	if due == Never {
		return p[s].Count(Never)
	}
	first := p[s].Count(due)
	tied := p[s].Count(after(due)) - first
	return first + uint64(sort.Search(int(tied), func(i int) bool { return p.Event(s, first+uint64(i)) >= n }))
}

// A knownBefore is a partitioner that computes each result of Before once. That of a union
// searches, and all streams of a part ask for the same: the bounds of phases, and where the run
// ended. It keeps all results, so it is not for callers that ask for many. It is safe for
// concurrent use.
type knownBefore struct {
	Partitioner
	mu    sync.Mutex
	known map[streamBound]uint64
}

// A streamBound is what Before takes.
type streamBound struct {
	stream int32
	n      uint64
}

// Before implements Partitioner.
func (p *knownBefore) Before(s int32, n uint64) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	of := streamBound{s, n}
	before, ok := p.known[of]
	if !ok {
		before = p.Partitioner.Before(s, n)
		if p.known == nil {
			p.known = make(map[streamBound]uint64)
		}
		p.known[of] = before
	}
	return before
}
