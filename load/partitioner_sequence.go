package load

import (
	"cmp"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"slices"
	"sort"
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
