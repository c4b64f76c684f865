package load

import (
	"cmp"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
	"time"
)

// Sequence divides events by a repeated cycle: event n belongs to stream cycle[n %
// len(cycle)]. Keyed events follow such a recorded sequence. The cycle is kept, with a
// table of the same size. A stream that the cycle does not contain has no events: all
// of its event numbers are MaxUint64. It panics on an empty cycle and on streams
// outside 0..s-1.
func Sequence(cycle []int32, s int) Partitioner {
	if len(cycle) == 0 || uint64(len(cycle)) > math.MaxUint32 || s <= 0 {
		panic(fmt.Sprintf("load: cannot divide a cycle of %d events over %d streams", len(cycle), s))
	}
	q := sequence{length: uint64(len(cycle)), starts: make([]uint32, s+1), places: make([]uint32, len(cycle))}
	for i, stream := range cycle {
		if stream < 0 || int(stream) >= s {
			panic(fmt.Sprintf("load: event %d of the cycle is in stream %d of %d", i, stream, s))
		}
		q.starts[stream+1]++
	}
	for i := range s {
		q.starts[i+1] += q.starts[i]
	}
	next := slices.Clone(q.starts)
	for i, stream := range cycle {
		q.places[next[stream]] = uint32(i)
		next[stream]++
	}
	return q
}

type sequence struct {
	length uint64
	// places[starts[s]:starts[s+1]] are the positions of stream s in the cycle.
	starts, places []uint32
}

func (q sequence) of(s int32) []uint32 { return q.places[q.starts[s]:q.starts[s+1]] }

func (q sequence) Streams() int { return len(q.starts) - 1 }

func (q sequence) Event(s int32, k uint64) uint64 {
	of := q.of(s)
	if len(of) == 0 {
		return math.MaxUint64
	}
	round, in := k/uint64(len(of)), k%uint64(len(of))
	hi, lo := bits.Mul64(round, q.length)
	e, carry := bits.Add64(lo, uint64(of[in]), 0)
	if hi+carry > 0 {
		return math.MaxUint64
	}
	return e
}

func (q sequence) Before(s int32, n uint64) uint64 {
	of := q.of(s)
	round, in := n/q.length, n%q.length
	return round*uint64(len(of)) + uint64(sort.Search(len(of), func(i int) bool { return uint64(of[i]) >= in }))
}

// Weighted divides events in proportion to weights, as evenly as possible: of the first
// n events stream i has n*weight/sum, to within a few. The shares are exact if the
// weights have a ratio of integers that add up to at most 65536, such as 0.7 and 0.3.
// Otherwise they are exact to one part in 65536, and a weight too small for one part
// still gets one. A stream with weight 0 gets no events. It panics on no weights, on
// weights that are negative or not finite, and if all are 0.
func Weighted(weights []float64) Partitioner {
	shares := wholeShares(weights)
	var length int
	for _, w := range shares {
		length += w
	}
	// The ideal position of event k of a stream with w of the cycle's events is
	// (k+1/2)*length/w. Sorting by ideal position spreads all streams evenly.
	type ideal struct {
		at     float64
		stream int32
	}
	ideals := make([]ideal, 0, length)
	for i, w := range shares {
		for k := range w {
			ideals = append(ideals, ideal{(float64(k) + 0.5) * float64(length) / float64(w), int32(i)})
		}
	}
	slices.SortStableFunc(ideals, func(a, b ideal) int { return cmp.Compare(a.at, b.at) })
	cycle := make([]int32, length)
	for i, w := range ideals {
		cycle[i] = w.stream
	}
	return Sequence(cycle, len(weights))
}

// maxCycle is the maximum number of events in the cycle of a weighted partitioner,
// apart from one for each stream of very small weight.
const maxCycle = 1 << 16

// wholeShares returns integers in the ratio of the weights.
func wholeShares(weights []float64) []int {
	var sum float64
	for i, w := range weights {
		if !(w >= 0) || math.IsInf(w, 0) {
			panic(fmt.Sprintf("load: weight %d is %v", i, w))
		}
		sum += w
	}
	if !(sum > 0) || math.IsInf(sum, 0) {
		panic(fmt.Sprintf("load: %d weights sum to %v", len(weights), sum))
	}
	if exact := exactShares(weights); exact != nil {
		return exact
	}
	shares := make([]int, len(weights))
	for i, w := range weights {
		if w > 0 {
			shares[i] = max(1, int(math.Round(w/sum*maxCycle)))
		}
	}
	return shares
}

// exactShares returns nil if the integers would be too large.
func exactShares(weights []float64) []int {
	common := big.NewInt(1)
	parts := make([]*big.Rat, len(weights))
	for i, w := range weights {
		parts[i] = new(big.Rat)
		if w == 0 {
			continue
		}
		r := new(big.Rat).SetFloat64(w)
		half := new(big.Rat).SetFloat64(math.Nextafter(w, math.Inf(1)))
		half.Sub(half, r).Mul(half, big.NewRat(1, 2))
		parts[i] = simplest(new(big.Rat).Sub(r, half), new(big.Rat).Add(r, half))
		common = lcm(common, parts[i].Denom())
		if common.BitLen() > 256 {
			return nil
		}
	}
	whole := make([]*big.Int, len(weights))
	divisor, sum := new(big.Int), new(big.Int)
	for i, p := range parts {
		whole[i] = new(big.Int).Mul(p.Num(), common)
		whole[i].Quo(whole[i], p.Denom())
		divisor.GCD(nil, nil, divisor, whole[i])
		sum.Add(sum, whole[i])
	}
	if sum.Quo(sum, divisor); !sum.IsInt64() || sum.Int64() > maxCycle {
		return nil
	}
	shares := make([]int, len(weights))
	for i, w := range whole {
		shares[i] = int(w.Quo(w, divisor).Int64())
	}
	return shares
}

// RoundRobin divides the events among s streams in round-robin order: stream i gets the
// events i, i+s, i+2s, ... It panics if s is not positive.
func RoundRobin(s int) Partitioner { return Blocks(s, 1) }

// Single is the partitioner of one stream that gets every event.
func Single() Partitioner { return Blocks(1, 1) }

// Blocks gives each of s streams n consecutive events in round-robin order. It panics
// if s or n is not positive.
func Blocks(s int, n uint64) Partitioner {
	if s <= 0 || s > math.MaxInt32 || n == 0 || n > math.MaxUint64/uint64(s) {
		panic(fmt.Sprintf("load: cannot divide blocks of %d events over %d streams", n, s))
	}
	return blocks{streams: uint64(s), block: n, round: uint64(s) * n}
}

type blocks struct {
	streams uint64
	block   uint64 // consecutive events
	round   uint64 // streams * block
}

func (b blocks) Streams() int { return int(b.streams) }

func (b blocks) Event(s int32, k uint64) uint64 {
	cycle, in := k, uint64(0)
	if b.block > 1 {
		cycle, in = k/b.block, k%b.block
	}
	hi, lo := bits.Mul64(cycle, b.round)
	e, carry := bits.Add64(lo, uint64(s)*b.block+in, 0)
	if hi+carry > 0 {
		return math.MaxUint64
	}
	return e
}

func (b blocks) Before(s int32, n uint64) uint64 {
	cycle, in := n/b.round, n%b.round
	start := uint64(s) * b.block
	if in <= start {
		return cycle * b.block
	}
	return cycle*b.block + min(in-start, b.block)
}

// shares keeps the parts of a run without a schedule at their shares: only the part
// whose next batch is due by its share may fire. The middle of a batch counts, so that
// a part with large batches is as often ahead of its share as behind. Safe for
// concurrent use.
type shares struct {
	mu      sync.Mutex
	weights []float64
	taken   []uint64 // events
	asked   []int    // events of the newest batch
	next    atomic.Int32
	changes atomic.Uint64 // how often next may have changed
	starved atomic.Int32  // threads that wait until another part is next
	wake    func()        // wakes all threads
}

func newShares(parts []Part, wake func()) *shares {
	s := &shares{taken: make([]uint64, len(parts)), asked: make([]int, len(parts)), wake: wake}
	for i, p := range parts {
		s.weights = append(s.weights, p.Weight)
		s.asked[i] = 1
	}
	s.choose()
	return s
}

// choose finds the part that comes next.
func (s *shares) choose() {
	best, at := -1, 0.0
	for i, w := range s.weights {
		if w == 0 {
			continue
		}
		if middle := (float64(s.taken[i]) + float64(s.asked[i])/2) / w; best < 0 || middle < at {
			best, at = i, middle
		}
	}
	s.changes.Add(1)
	if s.next.Swap(int32(best)) != int32(best) && s.starved.Load() > 0 {
		s.wake()
	}
}

// isNext reports whether a part comes next.
func (s *shares) isNext(part int) bool { return int(s.next.Load()) == part }

// take claims a batch of n events for a part. It returns false if the part is not next.
func (s *shares) take(part, n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked[part] != n {
		s.asked[part] = n
		s.choose()
	}
	if !s.isNext(part) {
		return false
	}
	s.taken[part] += uint64(n)
	s.choose()
	return true
}

// giveBack returns events that were claimed and not fired.
func (s *shares) giveBack(part, n int) {
	if n == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken[part] -= uint64(n)
	s.choose()
}

// A Portion is the part of a run that one of several generators fires: the events of the
// clients From up to To, To excluded. The zero Portion is the whole run.
//
// All generators of a run compute the same schedule and the same streams, and each fires
// the streams of its own clients. So their events together are those that a single
// generator with all clients fires: with the same numbers, due times, partitions and
// bytes. Limits on events, bytes and concurrency are not divided by the engine; each
// generator's plan has its own.
type Portion struct{ From, To int }

// Whole reports whether the portion is all of a run.
func (p Portion) Whole() bool { return p == Portion{} }

// Has reports whether the portion contains a client.
func (p Portion) Has(client int) bool { return p.Whole() || client >= p.From && client < p.To }

// Clients returns how many of a run's clients the portion contains.
func (p Portion) Clients(all int) int {
	if p.Whole() {
		return all
	}
	return max(0, min(p.To, all)-min(p.From, all))
}

// ownBefore returns how many of the events 0..n-1 of the run are fired here.
func (r *Run) ownBefore(n uint64) uint64 {
	if r.plan.Portion.Whole() {
		return n
	}
	sum := uint64(0)
	for _, s := range r.own {
		sum += r.partitioner.Before(s, n)
	}
	return sum
}

// ownDueBefore returns how many events of a phase are fired here and due before a time.
// The result counts from the beginning of the run.
func (r *Run) ownDueBefore(p *phase, at time.Duration) uint64 {
	if r.plan.Portion.Whole() {
		return min(max(r.plan.Schedule.Count(at), p.from), p.to)
	}
	sum := uint64(0)
	for _, s := range r.own {
		sum += min(max(r.dueBefore(s, at), r.partitioner.Before(s, p.from)), r.partitioner.Before(s, p.to))
	}
	return sum
}

// ownClients returns how many of the target's clients fire here.
func (r *Run) ownClients() int { return r.plan.Portion.Clients(r.target.Clients()) }

// leaseOver ends the run if its lease is over, and reports whether it is. Nothing that
// was due before is sent.
func (r *Run) leaseOver(now time.Duration) bool {
	if r.plan.Lease == nil || int64(now) < r.plan.Lease.Load() {
		return false
	}
	r.End(ByLease)
	return true
}
