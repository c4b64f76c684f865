package kafka

import (
	"cmp"
	"context"
	"sync"
	"time"
)

// A pause stops fetchers, and lets them go on.
type pause struct {
	ping    time.Duration // see stayConnected, which 0 stands for
	mu      sync.Mutex
	resumed chan struct{} // closed when they go on; nil: they are not stopped
}

// set implements load.SourceCapabilities.Pause.
func (p *pause) set(paused bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case paused && p.resumed == nil:
		p.resumed = make(chan struct{})
	case !paused && p.resumed != nil:
		close(p.resumed)
		p.resumed = nil
	}
}

// until returns what is closed when a pause ends; nil: there is none.
func (p *pause) until() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.resumed
}

// stayConnected is how often a fetcher that is paused sends a request: brokers close connections without one
// (connections.max.idle.ms, 10 minutes by default).
const stayConnected = time.Minute

// rest waits until a pause ends, but not longer than stayConnected: then it asks for nothing, so that the
// connection stays open. The next request is not late.
func (st *fetcher) rest(ctx context.Context, resumed <-chan struct{}) error {
	defer func() { st.late.CouldAsk = 0 }()
	timer := time.NewTimer(cmp.Or(st.src.pause.ping, stayConnected))
	defer timer.Stop()
	select {
	case <-resumed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
	}
	parts := st.parts
	st.parts = nil
	defer func() { st.parts = parts }()
	if err := st.ask(ctx); err != nil {
		return err
	}
	frame, err := st.answer()
	if err != nil {
		return err
	}
	_, err = st.handle(frame)
	return err
}
