package load

import (
	"fmt"
	"math"
	"math/bits"
)

// RoundRobin divides the events over s streams in turn: stream i gets the events
// i, i+s, i+2s, ... It panics when s is not positive.
func RoundRobin(s int) Partitioner { return Blocks(s, 1) }

// Single is the partitioner of one stream that gets every event.
func Single() Partitioner { return Blocks(1, 1) }

// Blocks gives n events in a row to each of s streams in turn. It panics when
// s or n is not positive.
func Blocks(s int, n uint64) Partitioner {
	if s <= 0 || s > math.MaxInt32 || n == 0 || n > math.MaxUint64/uint64(s) {
		panic(fmt.Sprintf("load: cannot divide blocks of %d events over %d streams", n, s))
	}
	return blocks{streams: uint64(s), block: n, round: uint64(s) * n}
}

type blocks struct {
	streams uint64
	block   uint64 // events in a row
	round   uint64 // streams * block: events until it is a stream's turn again
}

func (b blocks) Streams() int { return int(b.streams) }

func (b blocks) Event(s int32, k uint64) uint64 {
	turn, in := k, uint64(0)
	if b.block > 1 {
		turn, in = k/b.block, k%b.block
	}
	hi, lo := bits.Mul64(turn, b.round)
	e, carry := bits.Add64(lo, uint64(s)*b.block+in, 0)
	if hi+carry > 0 {
		return math.MaxUint64
	}
	return e
}

func (b blocks) Before(s int32, n uint64) uint64 {
	turn, in := n/b.round, n%b.round
	start := uint64(s) * b.block
	if in <= start {
		return turn * b.block
	}
	return turn*b.block + min(in-start, b.block)
}
