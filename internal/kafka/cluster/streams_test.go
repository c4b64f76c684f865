package cluster

import (
	"fmt"
	"math"
	"testing"

	"carronade/payload"
	"carronade/test/testkit/assert"
)

// topicsOf returns topics with as many partitions each.
func topicsOf(partitions ...int) (topics []TopicLogs) {
	base := 0
	for i, n := range partitions {
		topics = append(topics, TopicLogs{Name: fmt.Sprint("t", i), Base: base, Partitions: n})
		base += n
	}
	return topics
}

// TestKeysHaveOneOwner: all events of a key in a topic belong to one client and one partition, and
// each client has some of each partition.
func TestKeysHaveOneOwner(t *testing.T) {
	t.Parallel()
	gen := assert.Value(payload.New(payload.Spec{Seed: 1, Size: "10", Payload: "random", Key: "uniform(500)"}))(t)
	for _, topics := range [][]TopicLogs{topicsOf(6), topicsOf(6, 2)} {
		const clients = 3
		s := NewStreams(&Config{Partitioner: Partitioner{Kind: "murmur2"}, Clients: clients}, topics, gen, 1)
		places := Places(topics)
		type keyOf struct{ key, topic string }
		type place struct {
			client int
			log    int32
		}
		owners, used := map[keyOf]place{}, map[place]bool{}
		for stream := range int32(s.Partitioner.Streams()) {
			for k := range uint64(400) {
				key := keyOf{string(gen.AppendKey(nil, s.KeyNumber(stream, k))), topics[places[s.Log(stream)].Topic].Name}
				p := place{s.Client(stream), s.Log(stream)}
				was, ok := owners[key]
				assert.Must(t, !ok || was == p, "key %q belongs to %v and %v", key, was, p)
				owners[key], used[p] = p, true
			}
		}
		logs := len(s.Used)
		assert.True(t, len(owners) >= 450*len(topics) && len(used) == clients*logs, "%d keys in %d streams", len(owners), len(used))
	}
}

// TestTopicShares: each topic gets its share of the events, each of its partitions and clients as many, and batches of
// the sticky partitioner stay whole.
func TestTopicShares(t *testing.T) {
	t.Parallel()
	gen := assert.Value(payload.New(payload.Spec{Seed: 1, Size: "10", Payload: "random", Key: "uniform(5000)"}))(t)
	for _, tt := range []struct {
		kind, weights string
		topics        []TopicLogs
		want          []float64 // shares
	}{
		{"roundrobin", "equal", topicsOf(4, 4), []float64{0.5, 0.5}},
		{"roundrobin", "equal", topicsOf(1, 3), []float64{0.5, 0.5}},
		{"roundrobin", "3,1", topicsOf(2, 2), []float64{0.75, 0.25}},
		{"sticky", "equal", topicsOf(2, 2), []float64{0.5, 0.5}},
		{"sticky", "1,4,5", topicsOf(3, 1, 2), []float64{0.1, 0.4, 0.5}},
		{"fixed", "1,3", topicsOf(3, 2), []float64{0.25, 0.75}},
		{"murmur2", "1,3", topicsOf(3, 2), []float64{0.25, 0.75}},
		{"roundrobin", "1e9,1e9,1e-20", topicsOf(1, 1, 1), []float64{0.5, 0.5, 0}},
		{"roundrobin", "1e9,1,1e-20", topicsOf(1, 1, 1), []float64{1, 0, 0}},
		{"roundrobin", "3,1,1e-20", topicsOf(1, 1, 1), []float64{0.75, 0.25, 0}},
		{"roundrobin", "zipf(1)", topicsOf(1, 1, 1, 1), []float64{0.48, 0.24, 0.16, 0.12}},
	} {
		t.Run(fmt.Sprint(tt.kind, tt.weights, len(tt.topics)), func(t *testing.T) {
			const block, events = 50, 1 << 17
			c := &Config{Partitioner: Partitioner{Kind: tt.kind, Fixed: 1}, Clients: 2}
			c.TopicWeights = assert.Value(parseTopicWeights(tt.weights, len(tt.topics)))(t)
			s := NewStreams(c, tt.topics, gen, block)
			places := Places(tt.topics)
			for i := range tt.topics {
				var got, least, most uint64
				for stream := range int32(s.Partitioner.Streams()) {
					at := places[s.Log(stream)]
					if int(at.Topic) != i {
						continue
					}
					assert.True(t, tt.kind != "fixed" || at.Partition == 1, "partition %d", at.Partition)
					n := s.Partitioner.Before(stream, events)
					if got += n; least == 0 || n < least {
						least = n
					}
					most = max(most, n)
				}
				share := float64(got) / events
				assert.True(t, math.Abs(share-tt.want[i]) < 0.01, "topic %d has %.3f of the events, want %.3f", i, share, tt.want[i])
				assert.True(t, tt.kind == "murmur2" || float64(most-least) <= 0.02*float64(most)+block, "its streams have %d to %d events", least, most)
			}
			for stream := range int32(s.Partitioner.Streams()) {
				if first := s.Partitioner.Event(stream, 0); tt.kind == "sticky" {
					assert.Equal(t, s.Partitioner.Event(stream, block-1), first+block-1, "the last event of its first batch")
				}
			}
		})
	}
	for text, want := range map[string]string{"1,2,3": "3 weights, and the target 2 topics", "1,x": `"x" is not a weight`, "1,0": "not a weight above 0", "zipf(-1)": "exponent", "zipf(1": "not a weight"} {
		_, err := parseTopicWeights(text, 2)
		assert.ErrorHas(t, err, want, text)
	}
}
