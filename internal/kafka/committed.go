package kafka

import (
	"carronade/internal/kafka/cluster"
	"carronade/internal/kafka/franz"
	"carronade/load"
)

// committedSource returns a source of committed events that begins at starts.
func committedSource(cl *cluster.Cluster, stamped bool, starts []int64) *wireSource {
	c := *cl.Config
	c.Fetch.Committed = true
	reader := *cl
	reader.Config = &c
	return newWireSourceAt(&reader, stamped, starts)
}

// Committed implements protocol.Transactional.
func (s *session) Committed() load.Source {
	if s.committed == nil {
		return nil
	}
	return s.committed
}

// EndTransactions implements protocol.Transactional.
func (s *session) EndTransactions() {
	if p, ok := s.out.(*franz.Producer); ok {
		p.EndTransactions()
	}
}

// Uncommitted implements protocol.Transactional.
func (s *session) Uncommitted(note func(stream int32, first, events uint64, aborted bool)) {
	if p, ok := s.out.(*franz.Producer); ok {
		p.Uncommitted(note)
	}
}
