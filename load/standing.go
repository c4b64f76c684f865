package load

import "time"

// A Standing is how far a run has come, for who watches whether it goes on.
type Standing struct {
	InFlight int64         // events
	Done     time.Duration // when the newest outcome came; 0 before
	Due      uint64        // events by now, with a schedule
	Left     int64         // events that may be fired now, without one
	Written  uint64        // bytes
	Read     uint64
}

// Standing says so. It may be called from anywhere once the run has started, and asks
// no sending thread, which may be what does not move.
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

// Waits reports whether something should happen: answers come, or events are fired
// that have become due since a moment before.
func (s Standing) Waits(before Standing) bool {
	return s.InFlight > 0 || s.Due > before.Due || s.Left > 0
}
