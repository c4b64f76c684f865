package socket

import "time"

// Pollers are the pollers of a target's sending threads. A target asks for them before
// its run begins, and for those of its clients from then on.
type Pollers struct{ all []*Poller }

// Make makes that of thread t of so many, in their order; nil where there are none.
func (p *Pollers) Make(t, of int, now func() time.Duration) *Poller {
	if t == 0 {
		p.all = make([]*Poller, of)
	}
	if len(p.all) != of {
		return nil
	}
	p.all[t] = NewPoller(now)
	return p.all[t]
}

// Of is where the thread of a client waits, nil where it waits elsewhere.
func (p *Pollers) Of(client int) *Poller {
	if len(p.all) == 0 {
		return nil
	}
	return p.all[client%len(p.all)]
}
