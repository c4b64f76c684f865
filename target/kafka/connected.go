package kafka

import (
	"maps"
	"slices"
	"time"

	"carronade/load"
)

var (
	_ load.Connected = (*producer)(nil)
	_ load.Connected = (*clientProducer)(nil)
	_ load.Connected = (*itemReader)(nil)
	_ load.Connected = (*wireSource)(nil)
	_ load.Connected = (*clientSource)(nil)
	_ load.Answering = (*wireSource)(nil)
	_ load.Answering = (*clientSource)(nil)
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
func (p *clientProducer) Connected() (n int, known bool) { return p.traffic.connections(), true }

// Connected implements load.Connected: connections on which records are read.
func (r *itemReader) Connected() (n int, known bool) {
	for _, c := range r.clients {
		c.mu.Lock()
		for _, k := range c.links {
			if k.conn != nil {
				n++
			}
		}
		c.mu.Unlock()
	}
	return n, true
}

// Connected implements load.Connected: connections on which partitions are read.
func (s *wireSource) Connected() (n int, known bool) { return int(s.connected.Load()), true }

// Connected implements load.Connected: all connections of its clients.
func (s *clientSource) Connected() (n int, known bool) { return s.traffic.connections(), true }

// Emptied implements load.Answering: an answer of a broker has the end of each log.
func (s *wireSource) Emptied() []time.Duration {
	out := make([]time.Duration, len(s.parts))
	for i, p := range s.parts {
		if out[i] = time.Duration(p.emptied.Load()); out[i] == notRead {
			out[i] = s.now()
		}
	}
	return out
}

// Patience implements load.Answering.
func (s *wireSource) Patience() time.Duration { return s.cl.cfg.fetch.maxWait }

// count adds what a fetcher has done to the metrics of its broker. The lock is held.
func (s *wireSource) count(st *fetcher) {
	if s.metrics == nil {
		s.metrics = map[int32]*BrokerMetrics{}
	}
	m := s.metrics[st.key.broker]
	if m == nil {
		m = &BrokerMetrics{Broker: st.key.broker}
		s.metrics[st.key.broker] = m
	}
	m.Addr = st.addr
	m.Requests += st.metrics.Requests
	m.Bytes += st.metrics.Bytes
	m.Throttle += st.metrics.Throttle
	m.Throttled += st.metrics.Throttled
	m.Reconnects += st.metrics.Reconnects
	st.metrics = BrokerMetrics{}
}

// Metrics returns what was asked of each broker, by id, on connections that have ended: after Receive,
// all of them.
func (s *wireSource) Metrics() []BrokerMetrics {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []BrokerMetrics
	for _, id := range slices.Sorted(maps.Keys(s.metrics)) {
		all = append(all, *s.metrics[id])
	}
	return all
}

// Emptied implements load.Answering. The client does not pass on answers without records; but an answer
// of the broker that a log was last read from, without any of it, says that there are none. What a share
// group has not read is not known.
func (s *clientSource) Emptied() []time.Duration {
	out := make([]time.Duration, len(s.delivered))
	s.mu.Lock()
	clients := s.clients
	s.mu.Unlock()
	for log := range out {
		high := s.high[log].Load()
		for _, r := range clients {
			switch {
			case s.ended[log].Load():
				out[log] = r.lateness.now()
			case high >= 0 && s.delivered[log].Load() >= high && r.owns(int32(log)):
				out[log] = max(out[log], r.lateness.answeredFor(int32(log)))
			}
		}
	}
	return out
}

// Patience implements load.Answering.
func (s *clientSource) Patience() time.Duration { return s.cl.cfg.clientMaxWait() }

// owns reports whether a client reads a log now, as far as a group has assigned it.
func (r *clientReader) owns(log int32) bool {
	if r.s.cl.cfg.group == "" {
		return true // the others have no answers for it
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.owned[log]
}

// answeredFor returns when the newest answer of the broker arrived that a log was last read from; 0: none
// is known.
func (l *clientLateness) answeredFor(log int32) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.logs[log]
	if f == nil || !f.from.known {
		return 0
	}
	return l.fetches(f.from.broker).newest.arrived
}
