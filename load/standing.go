package load

import "time"

// A Standing is the progress of a run, for a watchdog.
type Standing struct {
	InFlight int64         // events
	Done     time.Duration // when the newest outcome came; 0 before
	Due      uint64        // events by now, with a schedule
	Left     int64         // events that may be fired now, without one
	Written  uint64        // bytes
	Read     uint64
}

// Standing returns the progress of the run. It is safe for concurrent use once the run
// has started. It waits for no sending thread, which may itself be stuck.
func (r *Run) Standing() Standing {
	s := Standing{Done: time.Duration(r.lastDone.Load())}
	for _, t := range r.threads {
		s.InFlight += t.inFlight.Load()
	}
	s.Written, s.Read = r.target.Wire()
	switch g := r.plan.Gate; {
	case g != nil && g.Left() == 0: // it waits for another run
	case r.plan.Schedule != nil:
		s.Due = min(r.plan.Schedule.Count(r.clipEnd(r.Now())), r.phases[len(r.phases)-1].to)
	case r.Now() < r.clipEnd(Never):
		s.Left = r.measurement.Load()
	}
	return s
}

// Moved reports whether anything has happened to events between two moments.
func (s Standing) Moved(before Standing) bool {
	return s.InFlight != before.InFlight || s.Done != before.Done || s.Left != before.Left || s.Written != before.Written || s.Read != before.Read
}

// Waits reports whether something should happen: answers are outstanding, or events
// have become due since the earlier moment.
func (s Standing) Waits(before Standing) bool {
	return s.InFlight > 0 || s.Due > before.Due || s.Left > 0
}
