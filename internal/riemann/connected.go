package riemann

// Connected counts the connections at the moment. Over UDP there are no connections.
func (s *session) Connected() (n int, known bool) {
	for _, one := range s.lanes {
		l, ok := one.(*lane)
		if !ok {
			return 0, false
		}
		l.mu.Lock()
		if l.link != nil {
			n++
		}
		l.mu.Unlock()
	}
	return n, true
}
