package payload

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// A compiled segment is one expression of a text with its sign. Without eval it is
// constant.
type compiledSegment struct {
	segment
	most  int
	clock bool
	env   bool
	alone bool // the %{...} after it is not an initial value, but the next expression
}

// segment compiles the expression between two offsets, which include its sign, its braces
// and its initial value.
func (p *parser) segment(from, to int) (s compiledSegment, err error) {
	end, sign := from+bodyLen(p.src[from:]), p.src[from]
	started := ctx{now: time.Now().UnixNano()}
	var init node
	init.kind = kindNone
	if end < to {
		if init, err = p.expression(end+2, to-1, kindNone); err != nil {
			return s, err
		}
	}
	last := kindNone
	start, ok := init.asNumber()
	if ok {
		last = start.kind
	}
	sites := p.sites
	n, err := p.expression(from+2, end-1, last)
	if err == nil && n.self && n.kind == kindReal && last == kindInteger {
		// Its values are real from the second one on, so all are.
		p.sites, last = sites, kindReal
		n, err = p.expression(from+2, end-1, last)
	}
	if err != nil {
		return s, err
	}
	s.alone = end < to && sign == '$' && !n.self
	s.env = n.env || init.env && !s.alone
	if err := p.allowed(sign, from, n); err != nil {
		return s, err
	}
	value, ok := n.asText()
	if !ok {
		return s, p.notValue(n, "the expression")
	}
	switch {
	case sign == '%':
		s.literal = string(value.text(started, nil))
		return s, nil
	case !n.varies && (sign == '$' || init.kind == kindNone):
		s.literal = value.known
		return s, nil
	}
	first := uint64(0)
	if n.self {
		if n.kind != kindInteger && n.kind != kindReal {
			return s, p.errorf(n.at, "this.last() is possible in expressions that are numbers, and this is %v", n.kind)
		}
		first = bitsOf(start, last)(started)
	}
	s.clock = n.clock
	if sign == '#' {
		r := &refresher{value: value.text, last: first}
		if n.self {
			r.bits = bitsOf(n, last)
		}
		s.most, s.clock = value.most, true
		if init.kind != kindNone {
			text, ok := init.asText()
			if !ok {
				return s, p.notValue(init, "the initial value")
			}
			first := string(text.text(started, nil))
			r.text.Store(&first)
			s.most = max(s.most, len(first))
		}
		s.eval = r.append
		return s, nil
	}
	switch {
	case n.step != nil && last == kindInteger:
		one, step := int64(first)+*n.step, *n.step
		n = integerNode(n.traits, func(c ctx) int64 { return one + step*int64(c.event) })
		value, _ = n.asText()
	case n.self && n.clock: // values are computed ahead, in blocks
		return s, p.errorf(max(p.clockAt, 0), "this is the current time, which this.last() cannot be combined with: time that %%{...} reads once may start it, as in ${this.last() + 1}%%{time:millisSinceEpoch()}")
	case n.self:
		q := &sequence{next: bitsOf(n, last), marks: []uint64{first}, stride: 1}
		n = q.node(n, last)
		value, _ = n.asText()
	}
	s.most, s.eval = value.most, value.text
	if n.kind == kindInteger {
		s.integer = n.integer
	}
	return s, nil
}

// allowed checks that the use of the text permits an expression.
func (p *parser) allowed(sign byte, from int, n node) error {
	if p.o.Use == Live || sign == '%' {
		return nil
	}
	const once = "; %{...} is evaluated once, when the run is prepared"
	why := "this text must be the same whenever it is needed for an event"
	if p.o.Use == Ahead {
		why = "events are made before the run here, and repeat"
	}
	switch {
	case sign == '#':
		return p.errorf(from, "#{...} changes with time, but %s%s", why, once)
	case n.clock:
		return p.errorf(max(p.clockAt, 0), "this is the current time, but %s%s", why, once)
	case n.self && p.o.Use == Ahead:
		return p.errorf(p.selfAt, "this.last() is that of the event before, but %s", why)
	}
	return nil
}

// bitsOf returns what evaluates a number to its bits, as a number of the kind of
// this.last().
func bitsOf(n node, last kind) func(c ctx) uint64 {
	if last == kindReal {
		f := n.asReal().real
		return func(c ctx) uint64 { return math.Float64bits(f(c)) }
	}
	f := n.asInteger().integer
	return func(c ctx) uint64 { return uint64(f(c)) }
}

// A refresher is the value of #{...}: evaluated by the sender that first needs it when
// the period of the value before has ended, so at most once a period, and never while
// nothing is sent. Its random values are those of the number of the evaluation.
type refresher struct {
	value func(c ctx, dst []byte) []byte
	bits  func(c ctx) uint64 // nil: this.last() is not used

	text  atomic.Pointer[string]
	until atomic.Int64 // end of the period, in nanoseconds since 1970; 0: none has begun

	mu   sync.Mutex
	done uint64 // evaluations
	last uint64
}

// refreshPeriod is the least time between two evaluations of #{...}.
const refreshPeriod = time.Second

func (r *refresher) append(c ctx, dst []byte) []byte {
	text := r.text.Load()
	if until := r.until.Load(); c.now >= until || until-c.now > int64(refreshPeriod) || text == nil {
		text = r.refresh(c)
	}
	return append(dst, *text...)
}

func (r *refresher) refresh(c ctx) *string {
	r.mu.Lock()
	defer r.mu.Unlock()
	text := r.text.Load()
	until := r.until.Load()
	switch {
	case text != nil && until == 0: // the initial value has the first period
	case text != nil && c.now < until && until-c.now <= int64(refreshPeriod): // another sender was first
		return text
	default:
		c.event, c.last = r.done, r.last
		made := string(r.value(c, nil))
		if r.bits != nil {
			r.last = r.bits(c)
		}
		r.done++
		text = &made
		r.text.Store(text)
	}
	r.until.Store(c.now + int64(refreshPeriod))
	return text
}

const (
	blockEvents = 4096 // values computed together
	blocksKept  = 256
	marksKept   = 4096
)

// A sequence has the values of an expression that refers to its own previous value. The
// value of event n is computed from that of n-1, in blocks, for all senders: the
// latest blocks are kept, since senders ask for near events in any order. Marks
// are kept too, so that an earlier value is not computed from the first one on. The
// memory does not depend on the length of a run.
type sequence struct {
	next func(c ctx) uint64

	mu     sync.Mutex
	blocks [blocksKept]*sequenceBlock // block b is at b % blocksKept
	marks  []uint64                   // the value before every stride-th block
	stride uint64
}

type sequenceBlock struct {
	number uint64
	values [blockEvents]uint64
}

// node returns a node of n's kind with the values of the sequence.
func (q *sequence) node(n node, last kind) node {
	t := n.traits
	if last == kindReal {
		return realNode(t, func(c ctx) float64 { return math.Float64frombits(q.at(c)) })
	}
	return integerNode(t, func(c ctx) int64 { return int64(q.at(c)) })
}

func (q *sequence) at(c ctx) uint64 {
	number := c.event / blockEvents
	q.mu.Lock()
	defer q.mu.Unlock()
	b := q.blocks[number%blocksKept]
	if b == nil || b.number != number {
		b = q.fill(number, c.now)
	}
	return b.values[c.event%blockEvents]
}

// fill computes a block, and those before it back to the nearest mark or kept block.
func (q *sequence) fill(number uint64, now int64) *sequenceBlock {
	mark := min(number/q.stride, uint64(len(q.marks)-1))
	at, last := mark*q.stride, q.marks[mark]
	for i := range uint64(blocksKept) { // a kept block may be nearer
		if b := q.blocks[i]; b != nil && b.number < number && b.number >= at {
			at, last = b.number+1, b.values[blockEvents-1]
		}
	}
	for ; ; at++ {
		if at%q.stride == 0 && at/q.stride == uint64(len(q.marks)) {
			q.mark(last)
		}
		slot := &q.blocks[at%blocksKept]
		if *slot == nil {
			*slot = &sequenceBlock{}
		}
		b := *slot
		b.number = at
		for i := range b.values {
			last = q.next(ctx{event: at*blockEvents + uint64(i), now: now, last: last})
			b.values[i] = last
		}
		if at == number {
			return b
		}
	}
}

// mark keeps the value before a block, and of too many marks every second one.
func (q *sequence) mark(last uint64) {
	q.marks = append(q.marks, last)
	if len(q.marks) <= marksKept {
		return
	}
	kept := (len(q.marks) + 1) / 2
	for i := range kept {
		q.marks[i] = q.marks[2*i]
	}
	q.marks = q.marks[:kept]
	q.stride *= 2
}
