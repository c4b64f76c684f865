package standin

import (
	"net/http"
	"sync"
	"time"
)

// A SharedQueue is the server of a stand-in: all connections share it, and it reads the
// clock. A nil one serves everything at once.
type SharedQueue struct {
	mu     sync.Mutex
	server *Queue
}

// NewSharedQueue returns the server of valid options; nil without a rate.
func NewSharedQueue(o CapacityOptions) *SharedQueue {
	if !o.On() {
		return nil
	}
	return &SharedQueue{server: NewQueue(o)}
}

// Arrive adds events that arrive now, all or none, and returns when the last of them
// will have been served; not ok: the queue is full. Without a server, or without
// events, the time is zero.
func (s *SharedQueue) Arrive(events int) (done time.Time, ok bool) {
	if s == nil || events <= 0 {
		return time.Time{}, true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.server.Arrive(time.Now(), events)
}

// Hold holds back the answer to a request until its events are served. An answer
// after which the connection ends waits here, because the end would overtake it, as
// does one of HTTP/2, whose requests share a connection.
func (s *SharedQueue) Hold(r *http.Request, served time.Time, ends bool) {
	if s == nil {
		return
	}
	if r.ProtoMajor >= 2 {
		SleepUntil(r.Context().Done(), served)
		return
	}
	departures := DeparturesOf(ConnOf(r))
	departures.NotBefore(served)
	if ends || r.Close {
		departures.Wait(r.Context())
	}
}
