package load

import (
	"math"
	"sync"
	"time"

	"carronade/measure"
)

// A Follower reads what a run has sent, each batch by the place that its outcome has.
type Follower interface {
	// Logs returns the names of the logs by index: "topic-0", ...
	Logs() []string
	// Start is called once, before the first read. now is the offset from the start of
	// the run. done takes completed reads: from any goroutine, and it does not block. It
	// does not keep the slice.
	Start(now func() time.Duration, done func(reads []Outcome))
	// Read begins to read the events of acked batches. It does not block, and does not
	// keep the slice. Each read is completed exactly once, with the Seq and the Events of
	// its batch; events that were read are Acked. One goroutine calls it.
	Read(sent []Outcome)
	// Pending reports what it waits for, as a Target does (TargetCapabilities).
	Pending() []string
	// Stop completes all reads that are outstanding before it returns.
	Stop()
}

// A StagePlan describes the second stage of a pipeline.
type StagePlan struct {
	Name        string
	Delay       time.Duration // from an event's ack to its read
	MaxInFlight int           // reads in flight: at most one per batch; 0 means 100
	Queue       uint64        // events that may be acked and not yet read; then sending waits; 0: no limit
	// Done is called with each batch that was acked and the outcome of its read, one call at
	// a time. It must not keep them.
	Done func(sent, read *Outcome)
}

// A Stage is the second stage of a pipeline: it reads what a run has sent. A batch is due
// to be read when it has been acked for the plan's delay. Reads begin in the order in
// which they become due, and complete in any order. Failed batches are not read.
type Stage struct {
	plan StagePlan
	of   Follower
	run  *Run
	gate *Gate // nil: no limit on what waits

	wake chan struct{} // capacity 1
	stop chan struct{}
	done chan struct{}
	end  sync.Once

	mu       sync.Mutex
	last     time.Duration // when a read was completed, or the first one of several began
	waiting  fifo[stageRead]
	inFlight []stageRead // by Seq
	free     []uint64    // numbers in inFlight
	reading  int
	room     time.Duration // since when there is room for a read, or was before reading began
	missed   uint64        // acked events without a place, which cannot be read
	partial  uint64        // acked events of batches of which others were not acked
	unread   uint64        // acked events whose read did not begin
	read     uint64
	stopped  bool
	tally    partTally
	account  account
	text     string // of the first read that failed

	batch []Outcome // used by the goroutine that begins reads
}

// A stageRead is a batch that waits to be read, or is read.
type stageRead struct {
	sent Outcome
	due  time.Duration
	room time.Duration // since when there was room for it
}

// passage returns when a read passed its points. Until Free it waited for a connection or a leader.
func (r *stageRead) passage(read *Outcome) Passage {
	return Passage{Ready: r.room, Free: read.Free, Sent: read.Sent, Done: read.Done, Arrived: read.Done}
}

// NewStage returns a stage and sets the Observe and the Gate of the run that sends.
func NewStage(plan StagePlan, of Follower, sending *Plan) *Stage {
	if plan.MaxInFlight <= 0 {
		plan.MaxInFlight = 100
	}
	s := &Stage{plan: plan, of: of, wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
	if plan.Queue > 0 {
		s.gate = NewGate()
		s.gate.Add(plan.Queue)
		sending.Gate = s.gate
	}
	sending.Observe, sending.Returns = s.follow, true
	return s
}

// Start begins to read, once the run exists and before it starts.
func (s *Stage) Start(r *Run) {
	s.run = r
	s.tally, s.account = newPartTally(r), newAccount(len(r.phases)+1)
	s.of.Start(r.Now, s.complete)
	go s.drive()
}

// Reads reports whether the stage reads a batch.
func (s *Stage) Reads(o *Outcome) bool { return o.Acked == o.Events && o.Place >= 0 }

// follow takes final outcomes of the run.
func (s *Stage) follow(out []Outcome) {
	back := uint64(0)
	s.mu.Lock()
	idle := s.waiting.n == 0
	for i := range out {
		o := &out[i]
		if s.stopped || !s.Reads(o) {
			s.run.Unread(0, o, s.run.Now())
			back += uint64(o.Events)
			if o.Acked < o.Events {
				s.partial += uint64(o.Acked)
			} else {
				s.missed += uint64(o.Acked)
			}
			continue
		}
		s.tally.total[o.Phase].Offered += uint64(o.Events)
		s.waiting.push(stageRead{sent: *o, due: o.Done + s.plan.Delay})
	}
	if idle && s.waiting.n > 0 {
		s.signal()
	}
	s.mu.Unlock()
	if s.gate != nil && back > 0 {
		s.gate.addAt(back, s.run.Now())
	}
}

func (s *Stage) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// drive begins reads as they become due, until the stage ends.
func (s *Stage) drive() {
	defer close(s.done)
	timer := time.NewTimer(math.MaxInt64)
	defer timer.Stop()
	for {
		select { // first, since the run's clock begins later
		case <-s.stop:
			return
		case <-s.wake:
		case <-timer.C:
		}
		if next := s.begin(); next >= 0 {
			timer.Reset(next)
		}
	}
}

// begin begins the reads that are due and for which there is room. It returns when the next
// one is due, from now; below 0: a completed read or a new batch comes first.
func (s *Stage) begin() (next time.Duration) {
	for {
		s.batch = s.batch[:0]
		next = -1
		s.mu.Lock()
		now := s.run.Now()
		for s.waiting.n > 0 && s.reading < s.plan.MaxInFlight {
			if due := s.waiting.first().due; due > now {
				next = due - now
				break
			}
			r := s.waiting.pop()
			r.room = s.room
			if s.reading++; s.reading == 1 {
				s.last = now
			}
			s.account.addInFlight(s.run, now, int64(r.sent.Events))
			seq := s.slot()
			s.inFlight[seq] = r
			r.sent.Seq = seq
			s.batch = append(s.batch, r.sent)
		}
		s.mu.Unlock()
		if len(s.batch) == 0 {
			return next
		}
		s.of.Read(s.batch) // it may complete reads at once, so look again
	}
}

// slot returns a free number of a read in flight.
func (s *Stage) slot() uint64 {
	if n := len(s.free); n > 0 {
		seq := s.free[n-1]
		s.free = s.free[:n-1]
		return seq
	}
	s.inFlight = append(s.inFlight, stageRead{})
	return uint64(len(s.inFlight) - 1)
}

// A StageProgress describes how far a stage is, for detecting that it is stuck.
type StageProgress struct {
	Done uint64 // events whose read was completed
	Due  uint64 // events that are being read or are due to be
}

// Progress returns the progress of the stage. It is safe for concurrent use once the run has
// started.
func (s *Stage) Progress() StageProgress {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := StageProgress{Done: s.read, Due: uint64(max(0, s.account.inFlight))}
	if s.waiting.n > 0 && s.waiting.first().due <= s.run.Now() {
		p.Due += uint64(s.waiting.first().sent.Events)
	}
	return p
}

// complete takes completed reads.
func (s *Stage) complete(reads []Outcome) {
	back := uint64(0)
	s.mu.Lock()
	full := false
	for i := range reads {
		o := &reads[i]
		if s.reading == s.plan.MaxInFlight {
			full, s.room = true, o.Done
		}
		r := &s.inFlight[o.Seq]
		s.reading--
		s.account.addInFlight(s.run, o.Done, -int64(o.Events))
		p := r.passage(o)
		since := p.Since(r.due)
		s.record(r, o, since, p.Service())
		back += uint64(o.Events)
		if o.Acked == o.Events {
			earliest := o.Done
			if o.Earliest > 0 {
				earliest = o.Earliest
			}
			s.run.Consumed(0, &r.sent, o.Done, max(earliest-since.delay, r.sent.Done))
		} else {
			s.run.Unread(0, &r.sent, o.Done)
		}
		if s.plan.Done != nil {
			s.plan.Done(&r.sent, o)
		}
		*r = stageRead{}
		s.free = append(s.free, o.Seq)
	}
	s.read += back
	s.last = s.run.Now()
	if full || s.reading == 0 {
		s.signal()
	}
	s.mu.Unlock()
	if s.gate != nil {
		s.gate.addAt(back, s.run.Now())
	}
}

// record adds a completed read, with its response and its service time, to the tally.
func (s *Stage) record(r *stageRead, o *Outcome, since, service Elapsed) {
	if o.Unknown > 0 {
		o.Class = o.Class.OfUnknown()
	}
	if o.Acked < o.Events && s.text == "" {
		s.text = o.Text
	}
	if o.Failed+o.Unknown > 0 {
		s.tally.classes[o.Class.String()] += uint64(o.Failed + o.Unknown)
	}
	t := &s.tally.total[r.sent.Phase]
	if o.Sent < 0 {
		t.Unsent += uint64(o.Events)
		return
	}
	t.Sent += uint64(o.Events)
	t.Acked += uint64(o.Acked)
	t.Counts.Failed += uint64(o.Failed)
	t.Unknown += uint64(o.Unknown)
	t.Retries += uint64(o.Retries)
	t.Batches++
	bytes := uint64(max(o.Read, 0))
	t.Bytes += bytes
	t.AckedBytes += bytes
	t.WireBytes += uint64(max(o.Wire, 0))
	sent := s.account.at(s.run, o.Sent)
	sent.sends += uint64(o.Events)
	sent.sendsB += bytes
	done := s.account.at(s.run, o.Done)
	done.arrived += uint64(o.Acked)
	done.arrivedB += bytes
	if o.Acked > 0 || o.Failed > 0 {
		t.Answered++
		done.answers++
	}
	hist(&t.Set.SendDelay).RecordN(since.delay, uint64(o.Events))
	switch {
	case o.Acked > 0:
		hist(&t.Set.Response).RecordN(since.took, uint64(o.Acked))
		hist(&t.Set.Service).RecordN(service.took, 1)
	case o.Failed > 0:
		hist(&t.Set.FailedService).RecordN(service.took, 1)
	}
}

// CatchUp waits until everything that was acked has been read, and ends the reading. It gives
// up when nothing was read for the idle time, which begins now, although something was due, or when
// cancel is closed: reads in flight are then given up, and what waits is not read. The plan's Completed
// must call it.
func (s *Stage) CatchUp(idle time.Duration, cancel <-chan struct{}) {
	s.catchUp(idle, cancel)
	s.finish()
}

func (s *Stage) catchUp(idle time.Duration, cancel <-chan struct{}) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	began := s.run.Now()
	for {
		s.mu.Lock()
		left := s.waiting.n + s.reading
		since := max(s.last, began)
		if s.reading == 0 && s.waiting.n > 0 {
			since = max(since, s.waiting.first().due)
		}
		s.mu.Unlock()
		if left == 0 || s.run.Now()-since > idle {
			return
		}
		select {
		case <-cancel:
			return
		case <-tick.C:
		}
	}
}

// finish ends the reading: times of events that are read later would not be in the result of the
// run.
func (s *Stage) finish() {
	s.end.Do(func() {
		close(s.stop)
		<-s.done
		s.mu.Lock()
		s.stopped = true
		s.mu.Unlock()
		s.of.Stop()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.giveUp()
	})
}

// giveUp drops what waits. The caller holds the lock.
func (s *Stage) giveUp() {
	for s.waiting.n > 0 {
		r := s.waiting.pop()
		s.unread += uint64(r.sent.Events)
		s.tally.total[r.sent.Phase].Unsent += uint64(r.sent.Events)
		s.run.Unread(0, &r.sent, s.run.Now())
		if s.plan.Done != nil {
			o := Outcome{Batch: r.sent.Batch, Sent: -1, Done: s.run.Now(), Failed: r.sent.Events, Class: Canceled, Text: TextUnwritten, Place: -1}
			s.plan.Done(&r.sent, &o)
		}
	}
}

// Result returns what the stage did in the measurement of the run, which has ended.
func (s *Stage) Result(of *Result) StageResult {
	s.finish()
	s.mu.Lock()
	defer s.mu.Unlock()
	m := &of.Measurement
	return StageResult{
		PartResult: s.run.partResult(&s.tally, []*account{&s.account}, measure.Tally{Name: s.plan.Name, Start: m.Start, End: m.End}),
		Missed:     s.missed, Partial: s.partial, Unread: s.unread, Text: s.text,
	}
}

// A StageResult is what a stage did. Its times are of reads: response is from due to read,
// and the send delay is how late a read began.
type StageResult struct {
	PartResult
	// Acked events that were not read, over all phases, except those that failed:
	Unread  uint64 // their read did not begin
	Missed  uint64 // their place is not known
	Partial uint64 // other events of their batch were not acked

	Text string // why the first read failed
}
