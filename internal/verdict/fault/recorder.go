package fault

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"carronade/load"
)

// Bounds of a Recorder.
const (
	MostLanes = 128 // a run with more has only the whole
	MostMarks = 64

	chunkBins = 100              // bins that are kept or dropped together
	keptSince = time.Minute      // kept before now, and before each mark
	keptAfter = 10 * time.Minute // kept after each mark
	mostCells = 2 << 20
	mostKinds = 1 << 16 // bins with failures of a class
)

// A Recorder counts outcomes in bins. Of a long run without marks it keeps the last minute. It is
// safe for concurrent use; each sending thread has a shard of its own.
type Recorder struct {
	limit  time.Duration
	lanes  int
	laneOf func(stream int32) int
	shards []*shard

	mu    sync.Mutex
	marks []Mark
}

// A shard belongs to a sending thread: its mutex is contended only when the run has ended. Of a run that
// only reads, it belongs to some of the lanes.
type shard struct {
	mu     sync.Mutex
	of     *Recorder
	chunks map[int]*chunk
	latest int // the newest chunk
	cells  int
	full   time.Duration // from when on outcomes were not counted; never: none
	errors bool          // failures were not counted by class
	recent *chunk
	bad    map[badKey]uint64
}

// never is after every run.
const never = time.Duration(math.MaxInt64)

type chunk struct {
	index   int
	cells   [][]Cell // of each lane; nil for a lane without outcomes, all nil if it was dropped
	dropped bool
	net     []int64 // of each lane: events due in it, less those with an outcome in it; of a dropped one, also those of dropped ones before it
}

type badKey struct {
	bin   int
	class load.Class
}

// NewRecorder makes a recorder for a run with these numbers of sending threads and lanes. Events whose
// response time is above the limit count as late. laneOf returns the lane of a stream; with more
// than MostLanes lanes, only the whole is recorded.
func NewRecorder(limit time.Duration, threads, lanes int, laneOf func(stream int32) int) *Recorder {
	r := &Recorder{limit: limit, lanes: lanes, laneOf: laneOf}
	if lanes > MostLanes || lanes < 1 {
		r.lanes, r.laneOf = 1, func(int32) int { return 0 }
	}
	for range threads {
		r.shards = append(r.shards, &shard{of: r, full: never, chunks: map[int]*chunk{}, bad: map[badKey]uint64{}})
	}
	return r
}

// Mark adds a mark. It returns false if there are too many.
func (r *Recorder) Mark(m Mark) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.marks) >= MostMarks {
		return false
	}
	r.marks = append(r.marks, m)
	slices.SortStableFunc(r.marks, func(a, b Mark) int { return cmp.Compare(a.AtS, b.AtS) })
	return true
}

// Marks returns the marks so far, in order of time.
func (r *Recorder) Marks() []Mark {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.marks)
}

// Add counts the final outcomes of batches of a sending thread.
func (r *Recorder) Add(thread int, out []load.Outcome) {
	s := r.shards[thread]
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range out {
		s.add(&out[i])
	}
}

// Unsent counts events of a stream, due evenly from first to last, that were never sent until the run
// ended, at end: they wait from when they were due, and nothing answers them.
func (r *Recorder) Unsent(thread int, stream int32, first, last, end time.Duration, events uint64) {
	r.without(thread, stream, first, last, events, fate{until: end})
}

// Dropped counts events of a stream, due evenly from first to last, that the generator dropped because
// the system took no more: they do not wait, and are not acked.
func (r *Recorder) Dropped(thread int, stream int32, first, last time.Duration, events uint64) {
	r.without(thread, stream, first, last, events, fate{dropped: true})
}

// without counts events without an outcome.
func (r *Recorder) without(thread int, stream int32, first, last time.Duration, events uint64, what fate) {
	s := r.shards[thread]
	s.mu.Lock()
	defer s.mu.Unlock()
	lane := r.laneOf(stream)
	for rest := events; rest > 0; {
		n := min(rest, 1<<30)
		o := load.Outcome{Batch: load.Batch{Stream: stream, DueFirst: first, DueLast: last, Events: int32(n)}}
		s.addDue(&o, lane, what)
		rest -= n
	}
}

func (s *shard) add(o *load.Outcome) {
	lane := s.of.laneOf(o.Stream)
	done, at := binOf(o.Done)
	c, ch := s.cell(done, lane)
	ch.net[lane] -= int64(o.Events)
	if c != nil {
		c.arrived(at, uint32(o.Acked))
		c.Failed += uint32(o.Failed + o.Unknown)
	}
	if o.Failed+o.Unknown > 0 {
		s.fail(badKey{done, o.Class}, uint64(o.Failed+o.Unknown))
	}
	s.addDue(o, lane, fate{until: never})
}

// binOf returns the bin of a moment, and the moment in microseconds of the bin.
func binOf(at time.Duration) (bin int, micros uint32) {
	bin = int(at / Bin)
	return bin, uint32((at - time.Duration(bin)*Bin) / time.Microsecond)
}

// A fate is what became of events that were not acked.
type fate struct {
	until   time.Duration // an event is over the limit if it became due more than the limit before
	dropped bool
}

// fail counts events that were not acked.
func (s *shard) fail(k badKey, n uint64) {
	if _, ok := s.bad[k]; !ok && len(s.bad) >= mostKinds {
		s.errors = true
		return
	}
	s.bad[k] += n
}

// addDue spreads the events of a batch evenly from the first due time to the last, as the engine
// does. Those that were not acked count as the last of them, and as over the limit if their fate says so.
func (s *shard) addDue(o *load.Outcome, lane int, what fate) {
	first, last := o.DueFirst, o.DueLast
	if first < 0 { // nothing schedules the run: an event is due when it is sent
		first = max(o.Sent, 0)
		if o.Sent < 0 {
			first = o.Done
		}
		last = first
	}
	n := int(o.Events)
	due := func(i int) time.Duration {
		if n < 2 {
			return first
		}
		return first + time.Duration(float64(last-first)*float64(i)/float64(n-1))
	}
	for i := 0; i < n; {
		bin := int(due(i) / Bin)
		next := n
		if last >= time.Duration(bin+1)*Bin && n > 1 {
			next = i + 1
			if span := last - first; span > 0 {
				next = max(next, int(float64(time.Duration(bin+1)*Bin-first)/float64(span)*float64(n-1)))
			}
			for next > i+1 && int(due(next-1)/Bin) > bin {
				next--
			}
			for next < n && int(due(next)/Bin) == bin {
				next++
			}
		}
		c, ch := s.cell(bin, lane)
		if what.dropped {
			if c != nil {
				c.Dropped += uint32(next - i)
			}
			i = next
			continue
		}
		ch.net[lane] += int64(next - i)
		if c != nil {
			acked := max(0, min(next, int(o.Acked))-i)
			c.Due += uint32(next - i)
			c.Answered += uint32(acked)
			if what.until-due(next-1) > s.of.limit {
				c.Over += uint32(next - i - acked)
			}
			if acked > 0 {
				mid := (due(i) + due(i+acked-1)) / 2
				c.Response += float64(acked) * (o.Done - mid).Seconds()
				late := 0
				switch {
				case o.Done-due(i+acked-1) > s.of.limit:
					late = acked
				case o.Done-due(i) > s.of.limit:
					for late < acked && o.Done-due(i+late) > s.of.limit {
						late++
					}
				}
				c.Over += uint32(late)
			}
		}
		i = next
	}
}

// cell returns the cell of a bin and lane, nil if its chunk was dropped or the memory is full, and
// the chunk.
func (s *shard) cell(bin, lane int) (*Cell, *chunk) {
	index := bin / chunkBins
	ch := s.recent
	if ch == nil || ch.index != index {
		if ch = s.chunks[index]; ch == nil {
			ch = s.forgotten(index)
		}
		if ch == nil {
			ch = s.open(index)
		}
		s.recent = ch
	}
	if ch.dropped {
		return nil, ch
	}
	if ch.cells[lane] == nil {
		if s.cells+chunkBins > mostCells/len(s.of.shards) {
			s.full = min(s.full, time.Duration(index)*chunkBins*Bin)
			return nil, ch
		}
		ch.cells[lane] = make([]Cell, chunkBins) // a thread often sends to few of the lanes
		s.cells += chunkBins
	}
	return &ch.cells[lane][bin%chunkBins], ch
}

// forgotten returns the dropped chunk that took over the counts of another, or nil.
func (s *shard) forgotten(index int) *chunk {
	for ; index <= s.latest; index++ {
		if ch := s.chunks[index]; ch != nil {
			if ch.dropped {
				return ch
			}
			return nil
		}
	}
	return nil
}

// open makes a chunk, and drops those that no mark needs.
func (s *shard) open(index int) *chunk {
	ch := &chunk{index: index, net: make([]int64, s.of.lanes), cells: make([][]Cell, s.of.lanes)}
	s.chunks[index] = ch
	if index > s.latest {
		s.latest = index
		s.prune()
	}
	return ch
}

func (s *shard) prune() {
	marks := s.of.Marks()
	const length = chunkBins * Bin
	now := time.Duration(s.latest) * length
	needed := func(begin, end time.Duration) bool {
		return end >= now-keptSince || slices.ContainsFunc(marks, func(m Mark) bool { return end >= m.At()-keptSince && begin <= m.At()+keptAfter })
	}
	for i, ch := range s.chunks {
		begin := time.Duration(i) * length
		if ch.dropped || needed(begin, begin+length) {
			continue
		}
		for _, c := range ch.cells {
			s.cells -= len(c)
		}
		ch.cells, ch.dropped = nil, true
	}
	s.forget()
	for k := range s.bad {
		if at := time.Duration(k.bin) * Bin; !needed(at, at+Bin) {
			delete(s.bad, k)
		}
	}
}

// forget leaves one chunk of neighbours that were dropped, the last, with the counts of all: what
// waits is asked for only at moments that a mark needs.
func (s *shard) forget() {
	for _, i := range slices.Sorted(maps.Keys(s.chunks)) {
		ch, next := s.chunks[i], s.chunks[i+1]
		if next == nil || !ch.dropped || !next.dropped {
			continue
		}
		for lane, n := range ch.net {
			next.net[lane] += n
		}
		delete(s.chunks, i)
	}
	s.recent = nil // it may be gone
}

// Full returns from when on outcomes were not counted because the memory was full, and whether that
// came about; and whether failures are missing in Errors.
func (r *Recorder) Full() (since time.Duration, full, errors bool) {
	since = never
	for _, s := range r.shards {
		s.mu.Lock()
		since, errors = min(since, s.full), errors || s.errors
		s.mu.Unlock()
	}
	return since, since < never, errors
}

// Lanes returns the number of lanes that are recorded.
func (r *Recorder) Lanes() int { return r.lanes }

// Window returns the bins of a lane from a moment until before another; lane -1 is the whole. Bins that
// were dropped are empty: Waiting counts their events only if they are before all bins of the window.
func (r *Recorder) Window(lane int, from, to time.Duration) Series {
	first := int(max(from, 0) / Bin)
	n := max(0, int((to+Bin-1)/Bin)-first)
	out := Series{From: time.Duration(first) * Bin, Cells: make([]Cell, n)}
	for _, s := range r.shards {
		s.mu.Lock()
		for l := range r.lanes {
			if lane < 0 || l == lane {
				s.window(l, first, &out)
			}
		}
		s.mu.Unlock()
	}
	return out
}

func (s *shard) window(lane, first int, out *Series) {
	for index, ch := range s.chunks {
		switch begin := index * chunkBins; {
		case begin+chunkBins <= first:
			out.Waiting += ch.net[lane]
		case ch.dropped, begin >= first+len(out.Cells):
		default:
			for i := range ch.cells[lane] {
				c := &ch.cells[lane][i]
				switch at := begin + i - first; {
				case at < 0:
					out.Waiting += int64(c.Due) - c.settled()
				case at < len(out.Cells):
					out.Cells[at].add(c)
				}
			}
		}
	}
}

// Errors returns the events that failed or are unknown, by class, in a stretch of time.
func (r *Recorder) Errors(from, to time.Duration) map[string]uint64 {
	var out map[string]uint64
	for _, s := range r.shards {
		s.mu.Lock()
		for k, n := range s.bad {
			if at := time.Duration(k.bin) * Bin; at+Bin > from && at < to {
				if out == nil {
					out = map[string]uint64{}
				}
				out[k.class.String()] += n
			}
		}
		s.mu.Unlock()
	}
	return out
}
