package load

import (
	"runtime"
	"runtime/metrics"
	"time"
)

// Connections from which on a run has a lead, and the lead for each of them. For a connection, a
// target starts two goroutines and makes some system calls, which takes 20 us; lanes and their
// first buffers take as long, and so does a collection, divided among them.
const (
	manyConnections   = 256
	leadPerConnection = 80 * time.Microsecond
)

// Lead returns how long before its time 0 a run starts its target and makes its lanes. With
// thousands of connections the first events would be late otherwise.
func Lead(target Target) time.Duration {
	if c, ok := target.(Connector); ok && c.Connections() >= manyConnections {
		return time.Duration(c.Connections()) * leadPerConnection
	}
	return 0
}

// collectEarly runs the collector when the threads have made their lanes, if the size of the heap
// lets it end before time 0. With ten thousand lanes the heap has doubled several times by then,
// so that the next collection would begin with the first events; it would take both of two
// processors for some tens of milliseconds. After this one, the heap may grow by as much as the
// lanes take before there is another. A heap that is too large to be collected in the rest of the
// lead was large before the lanes, so that it usually has room for them without a collection.
func (r *Run) collectEarly() {
	r.begun.Wait()
	if time.Until(r.start) > collectionTime(r.memory.size()) {
		r.memory.collect()
	}
}

// A memory is what a run collects before its time 0.
type memory interface {
	size() (bytes uint64) // live, or not swept yet
	collect()             // returns when the collection has ended
}

// A goMemory is the heap of the process.
type goMemory struct{}

func (goMemory) size() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

func (goMemory) collect() { runtime.GC() }

// How long a collection takes at most: at least, and for each MiB. On one processor that others
// used as well it took up to 0.6 ms for each MiB of objects with two pointers.
const (
	leastCollection  = 5 * time.Millisecond
	collectionPerMiB = time.Millisecond
)

// collectionTime returns how long a collection of a heap of this size takes at most.
func collectionTime(bytes uint64) time.Duration {
	return leastCollection + time.Duration(bytes>>10)*collectionPerMiB>>10
}
