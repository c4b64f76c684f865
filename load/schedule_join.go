package load

import (
	"fmt"
	"math"
	"math/bits"
	"sort"
	"strings"
	"sync"
	"time"
)

// Joined returns schedules one after the other: each begins, with its event 0, when the
// previous one has ended; a fraction of an event is not carried over. The steps of the
// result are the steps of its parts, and the parts that have none. All but the last
// must end (see Until); Joined panics otherwise, and on no parts.
func Joined(parts ...Schedule) Stepped {
	if len(parts) == 0 {
		panic("load: nothing to join")
	}
	j := &joined{parts: parts}
	var at time.Duration
	var n uint64
	for i, p := range parts {
		if at == Never {
			panic(fmt.Sprintf("load: part %d of the joined schedules never ends: %v", i, parts[i-1]))
		}
		j.starts = append(j.starts, at)
		j.firsts = append(j.firsts, n)
		end := p.End()
		j.steps = append(j.steps, stepsOf(p, at)...)
		if end > Never-at {
			at = Never
		} else {
			at += end
			n += p.Count(end)
		}
	}
	j.end = at
	return j
}

type joined struct {
	parts  []Schedule
	starts []time.Duration
	firsts []uint64
	steps  []Step
	end    time.Duration
}

func (j *joined) at(t time.Duration) int {
	return sort.Search(len(j.starts), func(i int) bool { return j.starts[i] > t }) - 1
}

func (j *joined) Due(n uint64) time.Duration {
	i := sort.Search(len(j.firsts), func(i int) bool { return j.firsts[i] > n }) - 1
	d := j.parts[i].Due(n - j.firsts[i])
	if d > Never-j.starts[i] {
		return Never
	}
	return d + j.starts[i]
}

func (j *joined) Count(t time.Duration) uint64 {
	if t <= 0 {
		return 0
	}
	i := j.at(t)
	c := j.parts[i].Count(t - j.starts[i])
	if c > math.MaxUint64-j.firsts[i] {
		return math.MaxUint64
	}
	return c + j.firsts[i]
}

func (j *joined) Rate(t time.Duration) float64 {
	if t < 0 || t >= j.end {
		return 0
	}
	i := j.at(t)
	return j.parts[i].Rate(t - j.starts[i])
}

func (j *joined) End() time.Duration { return j.end }

func (j *joined) Steps() []Step { return append([]Step(nil), j.steps...) }

func (j *joined) String() string {
	var texts []string
	for _, p := range j.parts {
		texts = append(texts, fmt.Sprint(p))
	}
	return strings.Join(texts, "+")
}

// stepsOf returns the steps of a schedule that begins at from; a schedule without steps
// is one step.
func stepsOf(s Schedule, from time.Duration) []Step {
	var steps []Step
	if st, ok := s.(Stepped); ok {
		steps = st.Steps()
	}
	if len(steps) == 0 {
		steps = []Step{{Name: stepName(s), Rate: meanRate(s), End: s.End()}}
	}
	for i := range steps {
		steps[i].Start += from
		if steps[i].End > Never-from {
			steps[i].End = Never
		} else {
			steps[i].End += from
		}
	}
	return steps
}

func stepName(s Schedule) string {
	switch x := s.(type) {
	case constant:
		return rateName(x.rate)
	case *until:
		return stepName(x.of)
	}
	return fmt.Sprint(s)
}

// meanRate returns the requested rate over a complete step, which its throughput is
// compared with.
func meanRate(s Schedule) float64 {
	switch x := s.(type) {
	case constant:
		return x.rate
	case *until:
		if c, ok := x.of.(constant); ok {
			return c.rate
		}
	case *sine:
		return x.mean
	}
	if end := s.End(); end != Never && end > 0 {
		return float64(s.Count(end)) / end.Seconds()
	}
	return s.Rate(0)
}

// Until returns the schedule cut off at end: events due then or later are never due. It
// is Stepped if s is. It panics if end is not positive.
func Until(s Schedule, end time.Duration) Schedule {
	if end <= 0 {
		panic(fmt.Sprintf("load: a schedule until %v", end))
	}
	if end >= s.End() {
		return s
	}
	u := &until{of: s, end: end}
	if st, ok := s.(Stepped); ok {
		return cut{u, cutSteps(st.Steps(), end)}
	}
	return u
}

type until struct {
	of  Schedule
	end time.Duration
}

func (u *until) Due(n uint64) time.Duration {
	d := u.of.Due(n)
	if d >= u.end {
		return Never
	}
	return d
}

func (u *until) Count(t time.Duration) uint64 { return u.of.Count(min(t, u.end)) }

func (u *until) Rate(t time.Duration) float64 {
	if t >= u.end {
		return 0
	}
	return u.of.Rate(t)
}

func (u *until) End() time.Duration { return u.end }

func (u *until) String() string { return fmt.Sprintf("%v:%v", u.of, u.end) }

// A cut is a schedule that ends earlier and has kept its steps.
type cut struct {
	Schedule
	steps []Step
}

func (c cut) Steps() []Step { return append([]Step(nil), c.steps...) }

func (c cut) String() string { return fmt.Sprint(c.Schedule) }

func cutSteps(steps []Step, end time.Duration) []Step {
	var kept []Step
	for _, s := range steps {
		if s.Start < end {
			s.End = min(s.End, end)
			kept = append(kept, s)
		}
	}
	return kept
}

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
