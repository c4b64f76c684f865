package kafka

import (
	"fmt"
	"math"
	"sort"

	"carronade/protocol"
)

// A span is a number of items with consecutive offsets in one partition.
type span struct {
	first uint64 // number of its first item in the list
	from  int64  // offset of that item
	part  int32
}

// items are the records that a run reads, in order, by their partitions and offsets.
// Items with consecutive offsets take the memory of one.
type items struct {
	spans   []span
	n       uint64
	recycle bool // read them again and again
	// ends are where the partitions end, if that is known: no record lies beyond them.
	ends []int64
}

// ended reports whether an offset is known to be after the end of its partition. A pipeline
// has no list.
func (t *items) ended(part int32, offset int64) bool {
	return t != nil && int(part) < len(t.ends) && offset >= t.ends[part]
}

// add appends consecutive records.
func (t *items) add(part int32, from int64, n uint64) {
	if n == 0 {
		return
	}
	if k := len(t.spans); k > 0 {
		if last := &t.spans[k-1]; last.part == part && last.from+int64(t.n-last.first) == from {
			t.n += n
			return
		}
	}
	t.spans = append(t.spans, span{first: t.n, from: from, part: part})
	t.n += n
}

// at returns where item n is, and how many items from there on have consecutive
// offsets; 0 if item n does not exist.
func (t *items) at(n uint64) (part int32, offset int64, left int) {
	if t.n == 0 || n >= t.n && !t.recycle {
		return 0, 0, 0
	}
	n %= t.n
	i := sort.Search(len(t.spans), func(i int) bool { return t.spans[i].first > n }) - 1
	s := &t.spans[i]
	end := t.n
	if i+1 < len(t.spans) {
		end = t.spans[i+1].first
	}
	return s.part, s.from + int64(n-s.first), int(min(end-n, math.MaxInt32))
}

// The turns of partitions when a whole topic is read: long enough for large requests,
// and enough for every client to have some.
const (
	leastTurn = 1024
	mostTurns = 1 << 16
)

// wholeTopic are all records between the starts and the ends of partitions. The
// partitions take turns.
func wholeTopic(starts, ends []int64, recycle bool) *items {
	t := &items{recycle: recycle}
	total := int64(0)
	next := append([]int64(nil), starts...)
	for i := range ends {
		total += max(0, ends[i]-starts[i])
	}
	turn := max(leastTurn, total/mostTurns)
	for moved := true; moved; {
		moved = false
		for i := range next {
			if n := min(turn, ends[i]-next[i]); n > 0 {
				t.add(int32(i), next[i], uint64(n))
				next[i] += n
				moved = true
			}
		}
	}
	return t
}

// nothingToRead is the error of a topic without records.
func nothingToRead(topic string) error {
	return &protocol.Error{
		Doing: "find the records of the topic " + topic, Err: fmt.Errorf("it has none, so nothing can be read"),
		Hint: "write some first: carronade run kafka://.../" + topic + " --count 10000",
	}
}
