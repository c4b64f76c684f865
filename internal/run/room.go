package run

import (
	"runtime/debug"
	"runtime/metrics"
	"sync"

	"carronade/load"
)

// A heapRoom is what one execution keeps in memory until its end: the rows of its series and its ledger.
//
// Before it collects again, the collector lets the heap grow by a share (GOGC) of all that is in use. What
// is kept needs no such room, since it does not become garbage: without a heapRoom it would take its size
// twice. It has hardly any pointers, so collections do not take longer because of it.
type heapRoom struct{ kept int64 }

// leastRoom is how much the heap may grow in any case, as in Go's runtime.
const leastRoom = 4 << 20

// roomOfAll is the setting for all executions in this process.
var roomOfAll struct {
	mu    sync.Mutex
	kept  int64  // by all of them
	asked uint64 // percent that the user's setting is
	set   uint64 // percent that was set here; 0: not yet
}

// keep says how many bytes are kept now. The live heap differs a little after each collection, so a setting
// is made only if it differs by more than a sixteenth.
func (r *heapRoom) keep(bytes int64) {
	a := &roomOfAll
	a.mu.Lock()
	defer a.mu.Unlock()
	a.kept += bytes - r.kept
	r.kept = bytes
	now := []metrics.Sample{{Name: "/gc/gogc:percent"}, {Name: "/gc/heap/live:bytes"}}
	metrics.Read(now)
	percent, live := sampled(now[0]), int64(min(sampled(now[1]), 1<<62))
	if percent != a.set {
		a.asked = percent
	}
	if a.asked == 0 || a.asked > 1<<20 {
		return // the user has turned the collector off
	}
	want := roomPercent(a.asked, live, a.kept)
	if a.kept > 0 && want-want/16 <= percent && percent <= want+want/16 {
		return
	}
	if want != percent {
		debug.SetGCPercent(int(want))
	}
	a.set = want
}

// roomPercent returns the percentage of live bytes that leaves the room of the asked percentage of those
// that are not kept.
func roomPercent(asked uint64, live, kept int64) uint64 {
	room := max(live-kept, min(live, leastRoom))
	if room >= live {
		return asked
	}
	return max(uint64(float64(asked)*float64(room)/float64(live)), 1)
}

func sampled(s metrics.Sample) uint64 {
	if s.Value.Kind() != metrics.KindUint64 {
		return 0 // this runtime does not have it
	}
	return s.Value.Uint64()
}

// keepRoom gives the collector the room for the end of an interval.
func (e *execution) keepRoom(s *load.Snapshot) {
	kept := int64(s.Kept)
	for _, l := range e.ledgers {
		kept += l.Bytes()
	}
	// The rest is what is not counted: the allocator's rounding, and some hundred bytes of each interval
	// elsewhere (percentiles, metrics of the system).
	e.room.keep(kept + kept/8)
}
