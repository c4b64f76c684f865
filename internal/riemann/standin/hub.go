package standin

import (
	"sync"
	"sync/atomic"

	"carronade/internal/riemann/wire"
)

// subscriptionBuffer is how many events may wait for a subscriber. A slower
// subscriber loses its subscription; others lose no events.
const subscriptionBuffer = 1 << 14

// A hub sends events that enter the index to subscribers.
type hub struct {
	subscribers atomic.Int32 // number of subscribers; if it is 0, publish takes no lock
	mu          sync.Mutex
	subs        map[*subscription]struct{}
}

type subscription struct {
	q      query
	events chan wire.Event // closed if the subscriber is too slow
}

func (h *hub) subscribe(q query) *subscription {
	s := &subscription{q: q, events: make(chan wire.Event, subscriptionBuffer)}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.subs == nil {
		h.subs = make(map[*subscription]struct{})
	}
	h.subs[s] = struct{}{}
	h.subscribers.Store(int32(len(h.subs)))
	return s
}

func (h *hub) unsubscribe(s *subscription) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.subs, s)
	h.subscribers.Store(int32(len(h.subs)))
}

func (h *hub) publish(e *wire.Event) {
	if h.subscribers.Load() == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := range h.subs {
		if !s.q.matches(&subject{host: e.Host, service: e.Service, event: e}) {
			continue
		}
		select {
		case s.events <- *e:
		default:
			close(s.events)
			delete(h.subs, s)
			h.subscribers.Store(int32(len(h.subs)))
		}
	}
}
