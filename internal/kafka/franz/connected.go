package franz

import "time"

// Connected counts all connections of its clients.
func (p *Producer) Connected() (n int, known bool) { return p.traffic.connections(), true }

// Connected counts all connections of its clients.
func (s *Source) Connected() (n int, known bool) { return s.traffic.connections(), true }

// Emptied implements load.Answering. The client does not pass on answers without records; but an answer
// of the broker that a log was last read from, without any of it, says that there are none. What a share
// group has not read is not known.
func (s *Source) Emptied() []time.Duration {
	out := make([]time.Duration, len(s.ended))
	s.mu.Lock()
	clients := s.clients
	s.mu.Unlock()
	for log := range out {
		behind := s.Behind(log)
		for _, r := range clients {
			switch {
			case s.ended[log].Load():
				out[log] = r.lateness.now()
			case behind == 0 && r.owns(int32(log)):
				// The last events count from when they were polled, which is after their answer came.
				out[log] = max(out[log], r.lateness.answeredFor(int32(log)), time.Duration(s.polled[log].Load()))
			}
		}
	}
	return out
}

// Patience implements load.Answering.
func (s *Source) Patience() time.Duration { return maxWait(s.cl.Config) }

// owns reports whether a client reads a log now, as far as a group has assigned it.
func (r *reader) owns(log int32) bool {
	if r.s.cl.Config.Group == "" {
		return true // the others have no answers for it
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.owned[log]
}
