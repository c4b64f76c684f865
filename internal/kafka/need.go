package kafka

import (
	"carronade/internal/kafka/cluster"
	"carronade/payload"
	"carronade/protocol"
)

// Prices, in bytes of resident memory on Linux (amd64), each beyond that of one: 9,000 clients take 82 MiB
// more, and 500 of franz-go 58 MiB; 10,000 partitions take 12 MiB more with one client and 209 MiB with 100.
// A batch is encoded into a buffer and copied.
const (
	clientBytes        = 8 << 10
	libraryClientBytes = 64 << 10
	streamBytes        = 180 // of a client and a partition
	partitionBytes     = 700
	batchTimes         = 2
)

// Needs is what clients take. How many brokers there are is not known yet: a client has a connection to
// each, at least one.
func (Kind) Needs(s protocol.Spec) []protocol.Need {
	v := s.Options
	wire, each := v.String("engine") != cluster.EngineClient, int64(clientBytes)
	if !wire {
		each = libraryClientBytes
	}
	clients := protocol.Need{Setting: "clients", Number: int64(s.Portion.Clients(max(1, s.Clients, v.Int("clients")))), Bytes: each, Files: 1}
	if v.Has("clients-per-topic") {
		clients = perTopic(clients, v.Int("clients-per-topic"))
	}
	if s.Op == cluster.OpConsume || s.Op == cluster.OpRead {
		if wire { // a partition has one reader
			clients.Number = 1
		}
		return []protocol.Need{clients}
	}
	needs := []protocol.Need{clients, {Setting: "payload", Number: 1, Bytes: payload.Held(v.String("payload"))}}
	if s.Groups > 0 { // each member of a group is a client with its own connections, at least one
		needs = append(needs, protocol.Need{Setting: "members", Number: int64(max(1, s.Members)), Bytes: each * int64(s.Groups), Files: int64(s.Groups)})
	}
	if wire {
		batch := v.Size("batch-size")
		needs = append(needs, protocol.Need{Setting: "batch-size", Number: 1, Sizes: []protocol.NeedSize{{Setting: "batch-size", Bytes: batch, Times: batchTimes}}})
		if !v.Bool("fresh") {
			needs = append(needs, protocol.Need{Setting: "pool", Number: 1, Sizes: []protocol.NeedSize{{Setting: "pool", Bytes: min(v.Size("pool"), mostTemplates*batch)}}})
		}
	}
	return needs
}

// streamNeeds is what is known of a producer once the cluster has answered: each client has a connection to
// each broker that leads a partition.
func (p *producer) streamNeeds(v *view) []protocol.Need {
	brokers := map[int32]bool{}
	for _, id := range v.leaders {
		if id != noLeader {
			brokers[id] = true
		}
	}
	partitions := int64(len(v.leaders))
	clients := protocol.Need{Setting: "clients", Number: int64(p.cfg.Portion.Clients(p.cfg.Clients)), Bytes: clientBytes + partitions*streamBytes, Files: int64(len(brokers))}
	if p.cfg.PerTopic {
		topics := len(p.cfg.Names)
		each := partitions / int64(topics)
		clients.Number = int64(p.cfg.Portion.Clients(topics * p.cfg.Clients))
		clients.Bytes, clients.Files = clientBytes+each*streamBytes, min(each, clients.Files)
		clients = perTopic(clients, p.cfg.Clients)
	}
	return []protocol.Need{clients, {Setting: "partitions", Number: partitions, Bytes: partitionBytes}}
}

// perTopic is the need of clients for each topic: topics are what may be too many.
func perTopic(clients protocol.Need, each int) protocol.Need {
	each = max(1, each)
	clients.Setting, clients.Number = "topics", clients.Number/int64(each)
	clients.Bytes, clients.Files = clients.Bytes*int64(each), clients.Files*int64(each)
	return clients
}
