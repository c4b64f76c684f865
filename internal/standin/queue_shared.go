package standin

import (
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
