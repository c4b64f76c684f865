package ledger

import (
	"sort"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"carronade/load"
)

// A Join pairs batches with the arrival of their events, for end-to-end times, whether
// the answer or the arrival comes first. It pairs them by log and offset. Batches whose
// place is not known, such as those without acknowledgement, are paired by stream and
// index if events are stamped (see Stamped). Batches and arrivals need not begin and
// end together.
//
// Unpaired batches and arrivals wait in limited memory: neighbours are merged, and if that
// is not enough, the oldest are given up and counted. All methods are safe for concurrent use; the callback is called without a
// lock, from the goroutine that reported the second side.
type Join struct {
	logOf func(stream int32) int32
	call  func(o load.Outcome, at, earliest time.Duration)
	miss  func(o load.Outcome) // nil: not needed

	stamped bool
	run     uint32

	mu     sync.RWMutex
	tracks map[track]*trackQueue
	most   int64 // maximum number of batches that wait

	waiting atomic.Int64 // batches
	reads   atomic.Int64 // arrivals that wait
	givenUp atomic.Uint64

	counting   bool // see Counting
	over       bool // what waits is given up
	fired, met counter
	mergeAt    atomic.Int64 // how many batches wait when neighbours are merged; 0: they are not

	// Whether batches with and without a place have been reported: arrivals are looked
	// up and kept only in the tracks that have batches.
	placed, unplaced atomic.Bool
}

// A track is a sequence of positions: the offsets of a log, or the indices of a stream.
type track struct {
	id      int32
	indices bool
}

// A trackQueue contains the unpaired batches and arrivals of one track, sorted by their
// first position.
type trackQueue struct {
	mu      sync.Mutex
	batches []waitingBatch
	reads   []waitingRead
	head    int // batches[head:] wait
	front   int // reads[front:] wait
}

// A waitingBatch contains the events of a batch that have not arrived.
type waitingBatch struct {
	lo, hi int64
	o      load.Outcome // of these events only
}

// A waitingRead contains arrived events whose batch is not known.
type waitingRead struct {
	lo, hi int64
	at     arrivalTimes
}

// arrivalTimes are when something was read, and the earliest moment at which it can
// have arrived; if requested is not 0, events sent after it cannot have arrived before
// at - waited.
type arrivalTimes struct{ at, earliest, requested, waited time.Duration }

func timesOf(a *load.Arrival) arrivalTimes {
	if a.Earliest > 0 {
		return arrivalTimes{a.At, a.Earliest, a.Requested, a.Waited}
	}
	return arrivalTimes{at: a.At, earliest: a.At}
}

// A pairing is an argument of the callback.
type pairing struct {
	o  load.Outcome
	at arrivalTimes
}

// report calls the callback.
func (j *Join) report(p *pairing) {
	earliest := p.at.earliest
	if p.at.requested > 0 && p.o.SentFirst() >= p.at.requested {
		earliest = max(earliest, p.at.at-p.at.waited)
	}
	if j.counting {
		j.met.add(&p.o)
	}
	j.call(p.o, p.at.at, earliest)
}

// Batches that wait take at most joinBytes, arrivals 48 bytes each.
const (
	joinBytes    = 32 << 20
	countedBytes = 256 << 20 // with Counting; most batches are merged long before
	mostReads    = 1 << 18
)

// NewJoin returns a join that calls call for every batch whose events were sent and
// have arrived: once, or once for each part that arrived separately, with First, Place,
// Events, Bytes and counts of the part. logOf is as in Config.
func NewJoin(logOf func(stream int32) int32, call func(o load.Outcome, at, earliest time.Duration)) *Join {
	return &Join{logOf: logOf, call: call, tracks: map[track]*trackQueue{}, most: joinBytes / int64(unsafe.Sizeof(waitingBatch{}))}
}

// Stamped makes the join also recognize arrivals by the stamps of a run. It is called
// before all other methods.
func (j *Join) Stamped(run uint32) { j.stamped, j.run = true, run }

// Missing sets the function that is called with batches, or parts of them, that are
// given up, including by GiveUpRest. It is called before all other methods. miss must
// not call the join.
func (j *Join) Missing(miss func(o load.Outcome)) { j.miss = miss }

// Counting has the join count for Counts. It is called before all other methods. The parts of batches that
// were merged have only the times of the first one, apart from when their events were due: a caller that
// needs all of them does without merging.
func (j *Join) Counting(merging bool) {
	j.counting = true
	if merging {
		j.mergeAt.Store(j.most)
	}
	j.most *= countedBytes / joinBytes
}

// A Count is a number of events, and of bytes of their payloads.
type Count struct{ Events, Bytes uint64 }

// Counts returns what was acked, and how much of it was paired or given up.
func (j *Join) Counts() (acked, met Count) {
	met = j.met.load() // first, so that it is not more
	return j.fired.load(), met
}

type counter struct{ events, bytes atomic.Uint64 }

func (c *counter) load() Count { return Count{c.events.Load(), c.bytes.Load()} }

// add adds the acked events of a batch.
func (c *counter) add(o *load.Outcome) {
	c.events.Add(uint64(o.Acked))
	c.bytes.Add(uint64(o.Bytes) * uint64(o.Acked) / uint64(o.Events))
}

// Takes reports whether Fired lets a batch wait, so that the callback or miss will be
// called for each of its events.
func (j *Join) Takes(o *load.Outcome) bool {
	return o.Events > 0 && o.Acked+o.Unknown > 0 && (o.Place >= 0 || j.stamped)
}

// GiveUpRest gives up all batches that still wait. It is called when no more arrivals
// come.
func (j *Join) GiveUpRest() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.over = true
	for _, m := range j.tracks {
		m.mu.Lock()
		for m.head < len(m.batches) {
			m.giveUp(j, 0)
		}
		m.mu.Unlock()
	}
}

// Waiting returns how many batches wait, counting parts separately.
func (j *Join) Waiting() int { return int(j.waiting.Load()) }

// set stores true only the first time, because all goroutines share the word.
func (j *Join) set(b *atomic.Bool) {
	if !b.Load() {
		b.Store(true)
	}
}

func (j *Join) queue(t track) *trackQueue {
	j.mu.RLock()
	m := j.tracks[t]
	j.mu.RUnlock()
	if m != nil {
		return m
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if m = j.tracks[t]; m == nil {
		m = &trackQueue{}
		j.tracks[t] = m
	}
	return m
}

// Fired records the outcomes of batches. It does not keep the slice. Certainly failed
// events are not waited for.
func (j *Join) Fired(out []load.Outcome) {
	var met []pairing
	for i := range out {
		o := &out[i]
		if !j.Takes(o) {
			continue
		}
		t, lo := track{id: j.logOf(o.Stream)}, o.Place
		if o.Place < 0 {
			t, lo = track{o.Stream, true}, int64(o.First)
			j.set(&j.unplaced)
		} else {
			j.set(&j.placed)
		}
		if j.counting {
			j.fired.add(o)
		}
		m := j.queue(t)
		m.mu.Lock()
		met = m.fired(j, met[:0], o, lo)
		m.mu.Unlock()
		for k := range met {
			j.report(&met[k])
		}
	}
}

// Arrived records what was read. It does not keep the slice.
func (j *Join) Arrived(pieces []load.Arrival) {
	var met []pairing
	for i := range pieces {
		a := &pieces[i]
		if a.Events <= 0 {
			continue
		}
		end := a.Base + int64(a.Events)
		if n := len(a.Stamps); n > 0 {
			end = max(end, a.Stamps[n-1].Offset+1) // offsets need not be dense
		}
		placed, unplaced := j.placed.Load(), j.unplaced.Load()
		if placed || !unplaced {
			met = j.read(met[:0], track{id: a.Log}, a.Base, end, timesOf(a))
		}
		if !j.stamped || placed && !unplaced {
			continue
		}
		for s := a.Stamps; len(s) > 0; {
			k := 1
			for k < len(s) && !s[k].Bad && s[k].Run == j.run && s[k].Stream == s[0].Stream && s[k].Index == s[0].Index+uint64(k) {
				k++
			}
			if !s[0].Bad && s[0].Run == j.run {
				lo := int64(s[0].Index)
				met = j.read(met[:0], track{s[0].Stream, true}, lo, lo+int64(k), timesOf(a))
			}
			s = s[k:]
		}
	}
}

func (j *Join) read(met []pairing, t track, lo, hi int64, at arrivalTimes) []pairing {
	m := j.queue(t)
	m.mu.Lock()
	met = m.arrived(j, met, waitingRead{lo, hi, at})
	m.mu.Unlock()
	for k := range met {
		j.report(&met[k])
	}
	return met
}

// part reduces an outcome, whose first event is at lo, to its events [from, to).
func part(o *load.Outcome, lo, from, to int64) {
	n := int32(to - from)
	if n == o.Events {
		return
	}
	// As differences of cumulative shares, so that the parts add up to the total.
	o.Bytes = o.Bytes*(to-lo)/int64(o.Events) - o.Bytes*(from-lo)/int64(o.Events)
	o.Wire = o.Wire*(to-lo)/int64(o.Events) - o.Wire*(from-lo)/int64(o.Events)
	o.First += uint64(from - lo)
	if o.Place >= 0 {
		o.Place += from - lo
	}
	o.Events, o.Acked, o.Unknown, o.Failed = n, min(o.Acked, n), min(o.Unknown, n), min(o.Failed, n)
}

// Part returns the outcome of n events of a batch, from an index on.
func Part(o *load.Outcome, from, n int32) load.Outcome {
	out := *o
	part(&out, 0, int64(from), int64(from+n))
	return out
}

// appendPairing adds a pairing of some events of a batch that begins at lo.
func appendPairing(met []pairing, o *load.Outcome, lo, from, to int64, at arrivalTimes) []pairing {
	met = append(met, pairing{*o, at})
	part(&met[len(met)-1].o, lo, from, to)
	return met
}

// batch returns the index of the first waiting batch that ends beyond lo. Batches come
// in order and are appended; arrivals come in order and take the first.
func (m *trackQueue) batch(lo int64) int {
	batches := m.batches[m.head:]
	switch n := len(batches); {
	case n == 0 || batches[n-1].hi <= lo:
		return n
	case batches[0].hi > lo:
		return 0
	default:
		return sort.Search(n, func(i int) bool { return batches[i].hi > lo })
	}
}

// read is batch for arrivals.
func (m *trackQueue) read(lo int64) int {
	reads := m.reads[m.front:]
	switch n := len(reads); {
	case n == 0 || reads[n-1].hi <= lo:
		return n
	case reads[0].hi > lo:
		return 0
	default:
		return sort.Search(n, func(i int) bool { return reads[i].hi > lo })
	}
}

// fired pairs a batch with waiting arrivals, and lets the rest of it wait.
func (m *trackQueue) fired(j *Join, met []pairing, o *load.Outcome, from int64) []pairing {
	lo, hi := from, from+int64(o.Events)
	reads := m.reads[m.front:]
	for i := m.read(lo); i < len(reads) && reads[i].lo < hi && lo < hi; {
		r := reads[i]
		if r.lo > lo {
			m.wait(j, o, from, lo, r.lo)
			lo = r.lo
		}
		end := min(r.hi, hi)
		met = appendPairing(met, o, from, lo, end, r.at)
		switch {
		case r.lo == lo && r.hi == end:
			m.dropRead(j, i)
		case r.lo == lo:
			reads[i].lo = end
		case r.hi == end:
			reads[i].hi = lo
			i++
		default:
			reads[i].hi = lo
			m.insertRead(j, waitingRead{end, r.hi, r.at})
		}
		reads = m.reads[m.front:]
		lo = end
	}
	if lo < hi {
		m.wait(j, o, from, lo, hi)
	}
	return met
}

// arrived pairs an arrival with waiting batches, and lets the rest of it wait.
func (m *trackQueue) arrived(j *Join, met []pairing, r waitingRead) []pairing {
	batches := m.batches[m.head:]
	lo := r.lo
	for i := m.batch(lo); i < len(batches) && batches[i].lo < r.hi && lo < r.hi; {
		s := &batches[i]
		if s.lo > lo {
			m.insertRead(j, waitingRead{lo, s.lo, r.at})
			lo = s.lo
		}
		end := min(s.hi, r.hi)
		met = appendPairing(met, &s.o, s.lo, lo, end, r.at)
		switch {
		case s.lo == lo && s.hi == end:
			j.waiting.Add(-1)
			m.dropBatch(i)
		case s.lo == lo:
			part(&s.o, s.lo, end, s.hi)
			s.lo = end
		case s.hi == end:
			part(&s.o, s.lo, s.lo, lo)
			s.hi = lo
			i++
		default:
			rest := *s
			part(&s.o, s.lo, s.lo, lo)
			s.hi = lo
			m.wait(j, &rest.o, rest.lo, end, rest.hi)
		}
		batches = m.batches[m.head:]
		lo = end
	}
	if lo < r.hi {
		m.insertRead(j, waitingRead{lo, r.hi, r.at})
	}
	return met
}

// wait lets the events [lo, hi) of a batch that begins at from wait. Batches that
// overlap them, which can happen in a log that was recreated, are given up: they no
// longer exist.
func (m *trackQueue) wait(j *Join, o *load.Outcome, from, lo, hi int64) {
	i := m.batch(lo)
	for m.head+i < len(m.batches) && m.batches[m.head+i].lo < hi {
		m.giveUp(j, i)
	}
	if at := j.mergeAt.Load(); at > 0 && j.waiting.Load() >= at {
		m.merge(j)
		i = m.batch(lo)
	}
	if i > 0 && j.waiting.Load() >= j.most {
		m.giveUp(j, 0)
		i--
	}
	if m.head > len(m.batches)/2 && len(m.batches) == cap(m.batches) {
		n := copy(m.batches, m.batches[m.head:])
		m.batches, m.head = m.batches[:n], 0
	}
	m.batches = append(m.batches, waitingBatch{})
	batches := m.batches[m.head:]
	copy(batches[i+1:], batches[i:])
	s := &batches[i]
	s.lo, s.hi, s.o = lo, hi, *o
	part(&s.o, from, lo, hi)
	j.waiting.Add(1)
}

// unmerged is how many of the newest batches of a track are not merged: those that are read soon.
const unmerged = 64

// merge merges each two neighbours that continue each other. When their events were due follows from their
// indices, so their end-to-end times stay exact.
func (m *trackQueue) merge(j *Join) {
	batches := m.batches[m.head:]
	n := 0
	for i := 0; i < len(batches); i++ {
		batches[n] = batches[i]
		if i+1 < len(batches)-unmerged && batches[n].takes(&batches[i+1]) {
			i++
			j.waiting.Add(-1)
		}
		n++
	}
	clear(batches[n:])
	m.batches = m.batches[:m.head+n]
	if len(batches) > 64*unmerged && len(batches)-n < len(batches)/8 { // it would be of no use each time
		at := j.waiting.Load()
		j.mergeAt.Store(at + at/8)
	}
}

// mostMerged is the most events of merged batches.
const mostMerged = 1 << 24

// takes merges the next batch into this one, if that is possible.
func (s *waitingBatch) takes(next *waitingBatch) bool {
	a, b := &s.o, &next.o
	if s.hi != next.lo || a.Stream != b.Stream || a.Phase != b.Phase || a.First+uint64(a.Events) != b.First ||
		a.Acked != a.Events || b.Acked != b.Events || a.Events+b.Events > mostMerged {
		return false
	}
	s.hi = next.hi
	a.Events, a.Acked = a.Events+b.Events, a.Acked+b.Acked
	a.Bytes, a.Wire, a.DueLast, a.Done = a.Bytes+b.Bytes, a.Wire+b.Wire, b.DueLast, b.Done
	return true
}

func (m *trackQueue) giveUp(j *Join, i int) {
	o := &m.batches[m.head+i].o
	if j.counting && !j.over {
		j.met.add(o)
	}
	j.givenUp.Add(uint64(o.Events))
	j.waiting.Add(-1)
	if j.miss != nil {
		j.miss(*o)
	}
	m.dropBatch(i)
}

func (m *trackQueue) dropBatch(i int) {
	if i == 0 {
		m.batches[m.head].o.Text = "" // the only pointer
		if m.head++; m.head == len(m.batches) {
			m.batches, m.head = m.batches[:0], 0
		}
		return
	}
	at := m.head + i
	copy(m.batches[at:], m.batches[at+1:])
	m.batches = m.batches[:len(m.batches)-1]
}

// insertRead lets arrived events wait for their batch. Those that overlap waiting ones
// are taken for copies and dropped.
func (m *trackQueue) insertRead(j *Join, r waitingRead) {
	for r.lo < r.hi {
		reads := m.reads[m.front:]
		i := m.read(r.lo)
		end := r.hi
		if i < len(reads) {
			if reads[i].lo <= r.lo {
				r.lo = reads[i].hi
				continue
			}
			end = min(end, reads[i].lo)
		}
		m.putRead(j, i, waitingRead{r.lo, end, r.at})
		r.lo = end
	}
}

func (m *trackQueue) putRead(j *Join, i int, r waitingRead) {
	if i > 0 && j.reads.Load() >= mostReads {
		// From no batch, or of a batch that was given up.
		m.dropRead(j, 0)
		i--
	}
	if m.front > len(m.reads)/2 && len(m.reads) == cap(m.reads) {
		m.reads = m.reads[:copy(m.reads, m.reads[m.front:])]
		m.front = 0
	}
	m.reads = append(m.reads, waitingRead{})
	reads := m.reads[m.front:]
	copy(reads[i+1:], reads[i:])
	reads[i] = r
	j.reads.Add(1)
}

func (m *trackQueue) dropRead(j *Join, i int) {
	j.reads.Add(-1)
	if i == 0 {
		if m.front++; m.front == len(m.reads) {
			m.reads, m.front = m.reads[:0], 0
		}
		return
	}
	at := m.front + i
	copy(m.reads[at:], m.reads[at+1:])
	m.reads = m.reads[:len(m.reads)-1]
}
