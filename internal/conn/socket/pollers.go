package socket

import "time"

// Pollers are the pollers of a target's sending threads. A target creates them before
// its run begins, and then looks up those of its clients.
type Pollers struct{ all []*Poller }

// Make returns the poller of thread t of the given number, as NewPoller does, and is called
// for all threads in order. It returns nil if pollers are not supported.
func (p *Pollers) Make(t, of int, now func() time.Duration, combine bool) *Poller {
	if t == 0 {
		p.all = make([]*Poller, of)
	}
	if len(p.all) != of {
		return nil
	}
	p.all[t] = NewPoller(now, combine)
	return p.all[t]
}

// Method returns how the threads wait: by "epoll" or "io_uring", or "runtime" if they do
// not wait in pollers, and the Go runtime reads the connections.
func (p *Pollers) Method() string {
	if q := p.Of(0); q != nil {
		return q.Method()
	}
	return "runtime"
}

// Of returns the poller in which the thread of a client waits, nil if it waits
// elsewhere.
func (p *Pollers) Of(client int) *Poller {
	if len(p.all) == 0 {
		return nil
	}
	return p.all[client%len(p.all)]
}
