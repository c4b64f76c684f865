package cluster

import (
	"testing"

	"carronade/payload"
	"carronade/test/testkit/assert"
)

// TestKeysHaveOneOwner: all events of a key belong to one client and one partition, and
// each client has some of each partition.
func TestKeysHaveOneOwner(t *testing.T) {
	t.Parallel()
	gen := assert.Value(payload.New(payload.Spec{Seed: 1, Size: "10", Payload: "random", Key: "uniform(500)"}))(t)
	const clients, partitions = 3, 6
	s := NewStreams(Partitioner{Kind: "murmur2"}, clients, partitions, gen, 1)
	type place struct {
		client    int
		partition int32
	}
	owners, used := map[string]place{}, map[place]bool{}
	for stream := range int32(s.Partitioner.Streams()) {
		for k := range uint64(400) {
			key := string(gen.AppendKey(nil, s.KeyNumber(stream, k)))
			p := place{s.Client(stream), s.Partition(stream)}
			was, ok := owners[key]
			assert.Must(t, !ok || was == p, "key %q belongs to %v and %v", key, was, p)
			owners[key], used[p] = p, true
		}
	}
	assert.True(t, len(owners) >= 450 && len(used) == clients*partitions, "%d keys in %d streams", len(owners), len(used))
}
