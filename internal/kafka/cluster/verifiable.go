package cluster

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"

	"carronade/internal/kafka/wire"
	"carronade/protocol"
)

// keySeed seeds the hashes of keys, which are only compared within a process.
var keySeed = maphash.MakeSeed()

// HashKey returns the hash of a key; 0 means no key.
func HashKey(key []byte) uint64 {
	if key == nil {
		return 0
	}
	return max(1, maphash.Bytes(keySeed, key))
}

// Compacts reports whether the topic is compacted: it keeps only the last event of
// each key. If its settings cannot be read, it counts as not compacted.
func (cl *Cluster) Compacts() bool {
	policies := strings.Split(cl.Settings["cleanup.policy"], ",")
	return slices.ContainsFunc(policies, func(p string) bool { return strings.TrimSpace(p) == "compact" })
}

// CheckVerifiable returns why a run's events cannot be verified; nil: they can.
func (c *Config) CheckVerifiable(keys, stamped bool) error {
	no := func(err, hint string) error {
		return &protocol.Error{Doing: "verify what is sent to " + c.TopicText(), Err: fmt.Errorf("%s", err), Hint: hint}
	}
	const other = "or take a topic with cleanup.policy=delete"
	room := fmt.Sprintf("values of %d bytes and more (--size)", wire.StampSize)
	switch {
	case c.Compacted && !keys:
		return no("the topic is compacted, and Kafka refuses events without a key there", "give events keys, such as --key 'uniform(1000)', "+other)
	case c.Compacted && c.Txn.On:
		return no("the topic is compacted, which also removes aborted events: nothing shows which events of a transaction are missing", "leave out --transactions, "+other)
	case c.Compacted && !stamped && c.Engine == EngineWire && c.Compression != "none":
		return no("compaction rewrites the topic's batches, so each event needs its own stamp, and the wire engine cannot stamp compressed events",
			"add --engine client, or --compression none, "+other)
	case c.Compacted && !stamped:
		return no("compaction rewrites the topic's batches, so each event needs its own stamp, and not every value has room for one",
			"give "+room+", "+other)
	case c.Txn.On && !stamped:
		return no("only a stamp in each event shows whether a read-committed reader sees aborted events, and not every value has room for one",
			"give "+room+", or leave out --transactions or --verify")
	}
	return nil
}
