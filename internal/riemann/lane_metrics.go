package riemann

import (
	"fmt"

	"carronade/measure"
)

// metrics implements sender.
func (l *lane) metrics() measure.Client {
	l.mu.Lock()
	m := l.counts
	l.mu.Unlock()
	m.Broker = fmt.Sprintf("%d to %s", l.id, l.addr)
	m.Batches = m.Requests // a message is a batch and a request
	m.WireBytes = l.writtenBy.Load() + l.readBy.Load()
	if m.Batches > 0 {
		m.EventsPerBatch = float64(m.Events) / float64(m.Batches)
	}
	return m
}
