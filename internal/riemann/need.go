package riemann

import "carronade/protocol"

// Prices, in bytes of resident memory beyond that of one client, measured on Linux (amd64) with pools of the
// smallest size: 9,000 connections take 66 MiB more than one. With pools of 1 MiB, 500 take 1,007 MiB more: a
// pool has tables next to its events, and making it leaves as much for the collector.
const (
	clientBytes = 6 << 10
	poolTimes   = 1.1
)

// Needs is what clients take. The pools of a connection's events are the most of it.
func (Kind) Needs(s protocol.Spec) []protocol.Need {
	v := s.Options
	clients := max(1, s.Clients, v.Int("clients"))
	pool := v.Size(optPool)
	if each := mostPools(clients) / int64(clients); !s.Given[optPool] {
		pool = min(pool, max(leastPool, each))
	}
	sizes := []protocol.NeedSize{{Setting: optPool, Bytes: pool, Times: poolTimes}}
	// Every process makes the pools of all clients: a connection may send the events of another.
	return []protocol.Need{
		{Setting: "clients", Number: int64(clients), Sizes: sizes},
		{Setting: "clients", Number: int64(s.Portion.Clients(clients)), Bytes: clientBytes, Files: 1},
	}
}
