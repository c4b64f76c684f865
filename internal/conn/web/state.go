package web

import (
	"sync"
	"time"

	"carronade/internal/conn"
	"carronade/load"
)

// A State is what every lane has, whatever its connection is. The lane embeds it. Mu guards all that
// changes.
type State struct {
	S      *Lanes
	Num    int
	Server string
	// Accepts reports whether the lane accepts a batch now. It is called with Mu held.
	Accepts func(now time.Duration) bool

	Mu           sync.Mutex
	Out          []load.Outcome // not delivered yet
	ReadyDue     bool           // Fire was refused, so Ready is due
	Earliest     time.Duration  // while answers are processed: their earliest possible arrival; 0: not known
	Closed       bool
	PausedUntil  time.Duration // the server asked to send nothing until then
	Outage       conn.Outage
	FailuresLeft int // batches to accept and fail until the next attempt to connect
	Metrics      Metrics
}

// ID implements load.Lane.
func (l *State) ID() int { return l.Num }

// Capabilities implements load.Lane.
func (*State) Capabilities() load.LaneCapabilities { return load.LaneCapabilities{} }

// FailuresPerAttempt is how many batches fail with each attempt to connect to a
// server that has long been unreachable: enough that a run ends, but not at full
// speed.
const FailuresPerAttempt = 100

// Deliver passes the outcomes to the sink.
func (l *State) Deliver() {
	if len(l.Out) > 0 {
		l.S.Sink.Complete(l.Out)
		clear(l.Out)
		l.Out = l.Out[:0]
	}
}

// Ready calls Ready if it is due.
func (l *State) Ready(now time.Duration) {
	if l.ReadyDue && !l.Closed && l.Accepts(now) {
		l.ReadyDue = false
		if l.Earliest > 0 {
			now = l.Earliest // the delay in reading is the generator's, not the system's
		}
		l.S.Sink.Ready(l.Num, now)
	}
}

// Pause pauses the lane for as long as the server asked.
func (l *State) Pause(now time.Duration, wait time.Duration) {
	l.Metrics.Throttled++
	l.Metrics.Paused += max(0, now+wait-max(l.PausedUntil, now)) // consecutive answers ask for overlapping pauses
	l.PausedUntil = max(l.PausedUntil, now+wait)
	time.AfterFunc(wait, func() {
		l.Mu.Lock()
		defer l.Mu.Unlock()
		if !l.Closed {
			l.Ready(l.S.Sink.Now())
		}
	})
}

// Count implements Runner.
func (l *State) Count() (string, Metrics) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	return l.Server, l.Metrics
}

// IsClosed reports whether the lane is over.
func (l *State) IsClosed() bool {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	return l.Closed
}
