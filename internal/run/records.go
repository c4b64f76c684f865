package run

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"slices"
	"sync"
	"time"
	"unsafe"

	"carronade/load"
)

// In a fleet, what one generator sent is found by another. Both keep records for the ledger
// of the program that commands them: outcomes of batches, and arrivals. A chunk is a sequence
// of records, encoded as differences to the ones before; each chunk can be read alone.

// Sizes of records, in bytes.
const (
	recordChunk = 128 << 10 // a chunk, about
	mostRecords = 48 << 20  // of those that were not taken yet; what comes then is counted only
	mostAhead   = 4096      // outcomes whose memory is kept
	outcomeSize = int(unsafe.Sizeof(load.Outcome{}))
)

// The kinds of records.
const (
	outcomeRecord = iota
	arrivalRecord
	leftOutRecord // a number of acked events, and one of arrived ones, without a record
	logsRecord    // what is read; the first record of a generator that reads
	frozeRecord   // when a generator that reads did not run, before the arrivals that it delayed
)

// Flags of the record of an outcome.
const (
	wholeAcked = 1 << iota // Acked is Events
	hasPlace               // else -1
	hasSum                 // else 0
	hasTimes               // when it was due, ready, free and sent
	hasDue                 // a schedule has its events
	ownDues                // they were due at different times, which follow
	wasWritten             // Sent is not -1
	sentBefore             // by an earlier attempt, at FirstSent
)

// Flags of the record of an arrival.
const (
	hasStamps = 1 << iota
	isCorrupt
	isTimed   // Earliest and the request are known
	sameTimes // all times are those of the arrival before, which came with the same answer
)

// Records are those of one generator, until they are taken. They are safe for concurrent use.
type Records struct {
	logOf func(stream int32) int32
	times bool                                               // records have what end-to-end times need
	due   func(stream int32, index uint64) time.Duration     // nil: nothing schedules the run
	early func(at, earliest time.Duration) (t time.Duration) // of arrivals; nil: as it is
	froze func(after time.Duration) load.Frozen              // freezes of this process; nil: none

	mu      sync.Mutex
	chunks  [][]byte // full ones
	size    int      // of them
	current []byte
	last    recordState
	left    [2]uint64     // events without a record: acked, arrived
	frozen  time.Duration // end of the newest freeze that has a record

	// An interval is delivered with the outcomes that it counts (later, if more chunks wait than are
	// taken at once), and with none that the next one counts, so that totals and
	// ledger agree when nothing more comes of a generator. When an interval is taken, a few outcomes
	// of the next one are there already: they wait.
	open  int32 // the interval whose outcomes are recorded at once
	ahead []load.Outcome
}

// A recordState is what the next record is the difference to.
type recordState struct {
	next  map[int32]uint64 // by stream: the index after the last event
	place map[int32]int64  // by log: the offset after it
	base  map[int32]int64  // by log: the same, of arrivals
	stamp map[int32]load.Stamp
	at    time.Duration
	came  arrivalTimes // of the newest arrival
}

// arrivalTimes are the times of an arrival, as its record has them.
type arrivalTimes struct{ at, earliest, requested, waited time.Duration }

func newRecordState() recordState {
	return recordState{next: map[int32]uint64{}, place: map[int32]int64{}, base: map[int32]int64{}, stamp: map[int32]load.Stamp{}}
}

// NewRecords returns an empty list of records.
func NewRecords() *Records { return &Records{last: newRecordState()} }

// Of says which log the events of a stream are in, whether records have the times that end-to-end
// times need, and when a schedule has the events of a stream; nil without one. It is called before
// the first outcome.
func (r *Records) Of(logOf func(stream int32) int32, times bool, due func(stream int32, index uint64) time.Duration) {
	r.logOf, r.times, r.due = logOf, times, due
}

// full reports whether the room is used up, and counts events if so. The lock must be taken.
func (r *Records) full(side int, events int32) bool {
	if r.size+len(r.current)+len(r.ahead)*outcomeSize < mostRecords {
		return false
	}
	r.left[side] += uint64(max(events, 0))
	return true
}

// put ends a record: a full chunk is put aside.
func (r *Records) put() {
	if len(r.current) < recordChunk {
		return
	}
	r.seal()
}

func (r *Records) seal() {
	r.chunks = append(r.chunks, r.current)
	r.size += len(r.current)
	r.current, r.last = nil, newRecordState()
}

// Take returns the oldest chunks of the records of an interval and of those before it, most of
// them at most. Each has about 128 KiB at most. The numbers of intervals only grow. A nil list has
// none.
func (r *Records) Take(interval, most int) [][]byte {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reach(int32(interval)) //nolint:gosec // see load.Outcome.Counted
	taken := r.take(most)
	r.reach(int32(interval) + 1) //nolint:gosec // the same
	return taken
}

// Rest returns all records that were not taken yet, when the run has ended. A nil list has none.
func (r *Records) Rest() [][]byte {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reach(math.MaxInt32)
	return r.take(-1)
}

// reach records the outcomes up to an interval that have waited for it.
func (r *Records) reach(interval int32) {
	r.open = max(r.open, interval)
	r.ahead = slices.DeleteFunc(r.ahead, func(o load.Outcome) bool {
		if o.Counted > r.open {
			return false
		}
		r.outcome(&o)
		r.put()
		return true
	})
	if len(r.ahead) == 0 && cap(r.ahead) > mostAhead {
		r.ahead = nil // a thread was late, which is rare
	}
}

// take returns the oldest chunks, most of them at most, and all if most is negative.
func (r *Records) take(most int) [][]byte {
	if r.left != [2]uint64{} && (most < 0 || len(r.chunks) < most) {
		r.current = append(r.current, leftOutRecord)
		r.current = binary.AppendUvarint(r.current, r.left[0])
		r.current = binary.AppendUvarint(r.current, r.left[1])
		r.left = [2]uint64{}
	}
	if len(r.current) > 0 && (most < 0 || len(r.chunks) < most) {
		r.seal()
	}
	n := len(r.chunks)
	if most >= 0 {
		n = min(n, most)
	}
	taken := slices.Clone(r.chunks[:n])
	r.chunks = slices.Delete(r.chunks, 0, n)
	for _, c := range taken {
		r.size -= len(c)
	}
	return taken
}

// Fired records outcomes; see load.Plan.Observe.
func (r *Records) Fired(out []load.Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range out {
		o := &out[i]
		if o.Events <= 0 || r.full(0, o.Acked) {
			continue
		}
		if o.Counted > r.open {
			r.ahead = append(r.ahead, *o)
			continue
		}
		r.outcome(o)
		r.put()
	}
}

func (r *Records) outcome(o *load.Outcome) {
	flags := byte(0)
	set := func(flag byte, on bool) {
		if on {
			flags |= flag
		}
	}
	set(wholeAcked, o.Acked == o.Events)
	set(hasPlace, o.Place >= 0)
	set(hasSum, o.Sum != 0)
	set(hasTimes, r.times && o.Acked+o.Unknown > 0)
	set(wasWritten, o.Sent >= 0)
	if flags&hasTimes != 0 {
		set(hasDue, o.DueFirst >= 0)
		set(ownDues, o.DueFirst >= 0 && o.DueFirst != o.DueLast && r.due != nil)
		set(sentBefore, o.Attempt > 0 && o.FirstSent >= 0)
	}
	b := append(r.current, outcomeRecord, flags)
	log := r.logOf(o.Stream)
	b = binary.AppendUvarint(b, uint64(o.Stream))
	b = binary.AppendUvarint(b, uint64(log))
	b = binary.AppendVarint(b, int64(o.First-r.last.next[o.Stream])) // unsigned wrap-around is intended
	r.last.next[o.Stream] = o.First + uint64(o.Events)
	b = binary.AppendUvarint(b, uint64(o.Events))
	if flags&wholeAcked == 0 {
		b = binary.AppendUvarint(b, uint64(o.Acked))
		b = binary.AppendUvarint(b, uint64(o.Unknown))
	}
	if flags&hasPlace != 0 {
		b = binary.AppendVarint(b, o.Place-r.last.place[log])
		r.last.place[log] = o.Place + int64(o.Events)
	}
	if flags&hasSum != 0 {
		b = binary.LittleEndian.AppendUint32(b, o.Sum)
	}
	if flags&hasTimes != 0 {
		b = r.outcomeTimes(b, o, flags)
	}
	r.current = b
}

func (r *Records) outcomeTimes(b []byte, o *load.Outcome, flags byte) []byte {
	diff := func(at time.Duration) {
		b = binary.AppendVarint(b, int64(at-r.last.at))
		r.last.at = at
	}
	b = binary.AppendUvarint(b, uint64(o.Phase))
	if flags&hasDue != 0 {
		diff(o.DueFirst)
	}
	diff(o.Ready)
	diff(o.Free)
	if flags&hasDue != 0 {
		b = binary.AppendUvarint(b, uint64(o.Late))
	}
	if flags&wasWritten != 0 {
		diff(o.Sent)
	}
	if flags&sentBefore != 0 {
		diff(o.FirstSent)
	}
	if flags&ownDues != 0 {
		before := o.DueFirst
		for k := uint64(1); k < uint64(o.Events); k++ {
			due := r.due(o.Stream, o.First+k)
			b = binary.AppendVarint(b, int64(due-before))
			before = due
		}
	}
	return b
}

// Arrived records what was read; see load.ReadPlan.Observe.
func (r *Records) Arrived(_ int, as []load.Arrival) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.froze != nil {
		r.froze(r.frozen).Each(func(from, to time.Duration) {
			r.current = binary.AppendUvarint(append(r.current, frozeRecord), uint64(max(0, from)))
			r.current = binary.AppendUvarint(r.current, uint64(to-from))
			r.frozen = to
		})
	}
	for i := range as {
		a := &as[i]
		if a.Events <= 0 || r.full(1, a.Events) {
			continue
		}
		r.arrival(a)
		r.put()
	}
}

func (r *Records) arrival(a *load.Arrival) {
	flags := byte(0)
	if len(a.Stamps) > 0 {
		flags |= hasStamps
	}
	if a.Corrupt {
		flags |= isCorrupt
	}
	if a.Earliest > 0 {
		flags |= isTimed
	}
	earliest := a.At
	if a.Earliest > 0 {
		earliest = a.Earliest
	}
	if r.early != nil {
		earliest = r.early(a.At, earliest)
	}
	times := arrivalTimes{at: a.At, earliest: earliest}
	if flags&isTimed != 0 {
		times.requested, times.waited = a.Requested, a.Waited
	}
	if times == r.last.came {
		flags |= sameTimes
	}
	r.last.came = times
	b := append(r.current, arrivalRecord, flags)
	b = binary.AppendUvarint(b, uint64(a.Log))
	b = binary.AppendVarint(b, a.Base-r.last.base[a.Log])
	r.last.base[a.Log] = a.Base + int64(a.Events)
	b = binary.AppendUvarint(b, uint64(a.Events))
	b = binary.LittleEndian.AppendUint32(b, a.Sum)
	if flags&sameTimes == 0 {
		b = binary.AppendVarint(b, int64(a.At-r.last.at))
		r.last.at = a.At
		b = binary.AppendVarint(b, int64(a.At-earliest))
		if flags&isTimed != 0 {
			b = binary.AppendVarint(b, int64(a.At-a.Requested))
			b = binary.AppendVarint(b, int64(a.Waited))
		}
	}
	if flags&hasStamps != 0 {
		b = r.stamps(b, a)
	}
	r.current = b
}

// found records what will be read, before anything else.
func (r *Records) found(logs *Logs) error {
	text, err := json.Marshal(logs)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.current = binary.AppendUvarint(append(r.current, logsRecord), uint64(len(text)))
	r.current = append(r.current, text...)
	return nil
}

// stamps appends the stamps of an arrival as rows of consecutive ones.
func (r *Records) stamps(b []byte, a *load.Arrival) []byte {
	follows := func(s, before *load.Stamp) bool {
		return s.Run == before.Run && s.Stream == before.Stream && s.Index == before.Index+1 && s.Offset == before.Offset+1 && s.Bad == before.Bad && s.Key == before.Key
	}
	last := r.last.stamp[a.Log]
	for i := 0; i < len(a.Stamps); {
		n := 1
		for i+n < len(a.Stamps) && follows(&a.Stamps[i+n], &a.Stamps[i+n-1]) {
			n++
		}
		s := &a.Stamps[i]
		bad := uint64(0)
		if s.Bad {
			bad = 1
		}
		b = binary.AppendUvarint(b, uint64(n)<<1|bad)
		b = binary.LittleEndian.AppendUint32(b, s.Run)
		b = binary.AppendVarint(b, int64(s.Stream))
		b = binary.AppendVarint(b, int64(s.Index-last.Index)) // unsigned wrap-around is intended
		b = binary.AppendVarint(b, s.Offset-last.Offset)
		last = a.Stamps[i+n-1]
		i += n
	}
	r.last.stamp[a.Log] = last
	return binary.AppendUvarint(b, 0)
}
