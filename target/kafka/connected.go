package kafka

import "carronade/load"

var (
	_ load.Connected = (*producer)(nil)
	_ load.Connected = (*clientProducer)(nil)
)

// Connected implements load.Connected: connections on which batches are sent.
func (p *producer) Connected() (n int, known bool) {
	for _, s := range p.senders {
		s.mu.Lock()
		for _, l := range s.lanes {
			if l.link != nil {
				n++
			}
		}
		s.mu.Unlock()
	}
	return n, true
}

// Connected implements load.Connected: all connections of its clients.
func (p *clientProducer) Connected() (n int, known bool) {
	p.traffic.mu.Lock()
	defer p.traffic.mu.Unlock()
	return len(p.traffic.open), true
}
