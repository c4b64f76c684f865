package kafka

import (
	"carronade/load"
)

// committedSource returns a source of committed events that begins at starts.
func committedSource(cl *cluster, stamped bool, starts []int64) *wireSource {
	c := *cl.cfg
	c.fetch.committed = true
	reader := *cl
	reader.cfg = &c
	return newWireSourceAt(&reader, stamped, starts)
}

// Committed implements target.Transactional.
func (s *session) Committed() load.Source {
	if s.committed == nil {
		return nil
	}
	return s.committed
}

// EndTransactions implements target.Transactional.
func (s *session) EndTransactions() {
	if p, ok := s.out.(*clientProducer); ok {
		p.conclude()
	}
}

// Uncommitted implements target.Transactional.
func (s *session) Uncommitted(note func(stream int32, first, events uint64, aborted bool)) {
	if p, ok := s.out.(*clientProducer); ok {
		p.uncommitted(note)
	}
}
