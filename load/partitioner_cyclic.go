package load

import (
	"fmt"
	"math"
	"math/bits"
)

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
