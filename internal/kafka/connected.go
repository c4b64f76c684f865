package kafka

import (
	"maps"
	"slices"
	"time"

	"carronade/internal/kafka/cluster"
)

// Connected counts the connections on which batches are sent.
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

// Connected counts the connections on which records are read.
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

// Connected counts the connections on which partitions are read.
func (s *wireSource) Connected() (n int, known bool) { return int(s.connected.Load()), true }

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
func (s *wireSource) Patience() time.Duration { return s.cl.Config.Fetch.MaxWait }

// count adds what a fetcher has done to the metrics of its broker. The caller locks s.mu.
func (s *wireSource) count(st *fetcher) {
	if s.metrics == nil {
		s.metrics = map[int32]*cluster.BrokerMetrics{}
	}
	m := s.metrics[st.key.broker]
	if m == nil {
		m = &cluster.BrokerMetrics{Broker: st.key.broker}
		s.metrics[st.key.broker] = m
	}
	m.Addr = st.addr
	m.Requests += st.metrics.Requests
	m.Bytes += st.metrics.Bytes
	m.Throttle += st.metrics.Throttle
	m.Throttled += st.metrics.Throttled
	m.Reconnects += st.metrics.Reconnects
	st.metrics = cluster.BrokerMetrics{}
}

// Metrics returns what was asked of each broker, by id, on connections that have ended: after Receive,
// all of them.
func (s *wireSource) Metrics() []cluster.BrokerMetrics {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []cluster.BrokerMetrics
	for _, id := range slices.Sorted(maps.Keys(s.metrics)) {
		all = append(all, *s.metrics[id])
	}
	return all
}
