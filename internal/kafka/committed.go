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
	return newWireSourceAt(&reader, stamped, starts, c.Clients)
}

// transactions are those of the client.
type transactions struct {
	*franz.Producer
	committed *wireSource // nil: they are not verified
}

// Committed implements protocol.Transactions.
func (t transactions) Committed() load.Source {
	if t.committed == nil {
		return nil
	}
	return t.committed
}
