package load

import "time"

// A Progress describes how far a run is, for detecting that it is stuck.
type Progress struct {
	InFlight int64         // events
	Done     time.Duration // when the newest outcome came; 0 before the first
	Due      uint64        // events due by now, with a schedule
	Left     int64         // events that may be fired now, without one
	Written  uint64        // bytes
	Read     uint64
}

// Progress returns the progress of the run. It is safe for concurrent use once the run
// has started. It does not wait for sending threads, which may be stuck themselves.
func (r *Run) Progress() Progress {
	s := Progress{Done: time.Duration(r.lastDone.Load())}
	for _, t := range r.threads {
		s.InFlight += t.inFlight.Load()
	}
	s.Written, s.Read = r.target.Wire()
	switch g := r.plan.Gate; {
	case g != nil && g.Left() == 0: // the run waits to be fed
	case r.plan.Schedule != nil:
		s.Due = min(r.plan.Schedule.Count(r.clipEnd(r.Now())), r.phases[len(r.phases)-1].to)
	case r.Now() < r.clipEnd(Never):
		s.Left = r.measurementLeft.Load()
	}
	return s
}

// Measured reports whether the measurement is over: its time, its bytes or its events, or it was stopped.
// Answers may still be waited for. It is safe for concurrent use once the run has started.
func (r *Run) Measured() bool {
	return r.Now() >= min(r.clipEnd(Never), time.Duration(r.lastFiredAt.Load()))
}

// Moved reports whether any event changed state between two moments.
func (s Progress) Moved(before Progress) bool {
	return s.InFlight != before.InFlight || s.Done != before.Done || s.Left != before.Left || s.Written != before.Written || s.Read != before.Read
}

// Waits reports whether a change is expected: answers are outstanding, or events have
// become due since the earlier moment.
func (s Progress) Waits(before Progress) bool {
	return s.InFlight > 0 || s.Due > before.Due || s.Left > 0
}
