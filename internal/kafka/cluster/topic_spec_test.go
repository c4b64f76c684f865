package cluster

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"carronade/payload"
	"carronade/test/testkit/assert"
)

func TestTopicSpec(t *testing.T) {
	for _, tt := range []struct {
		name, text, want string
		wrong            bool
	}{
		{name: "all", text: "partitions=3,replicas=2,retention.ms=5", want: "partitions=3,replicas=2,retention.ms=5"},
		{name: "config prefix", text: "config.segment.ms=2,config.flush.ms=1", want: "flush.ms=1,segment.ms=2"},
		{name: "of another broker", text: "redpanda.remote.read=true", want: "redpanda.remote.read=true"},
		{name: "of another broker, with words of Kafka's", text: "flush.bytes=1,retention.local.target.bytes=5", want: "flush.bytes=1,retention.local.target.bytes=5"},
		{name: "a mistyped name", text: "retention.mss=5", wrong: true},
		{name: "swapped letters", text: "retentoin.ms=5", wrong: true},
		{name: "a name that Kafka has not", text: "partitons=3", wrong: true},
		{name: "value with a comma", text: "cleanup.policy=compact,delete,partitions=1", want: "partitions=1,cleanup.policy=compact,delete"},
		{name: "empty", text: "", want: ""},
		{name: "broker defaults", text: "auto", want: ""},
		{name: "broker defaults, with a setting", text: "auto,retention.ms=5", want: "retention.ms=5"},
		{name: "no value", text: "partitions", wrong: true},
		{name: "zero", text: "replicas=0", wrong: true},
		{name: "too many", text: "replicas=40000", wrong: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ParseTopicSpec(tt.text)
			assert.Must(t, (err != nil) == tt.wrong, "got error %v, want one: %v", err, tt.wrong)
			assert.True(t, err != nil || got.String() == tt.want, "got %q, want %q", got, tt.want)
		})
	}
	for text, want := range map[string]string{
		"partition=3":            `read the topic's settings "partition=3": Kafka has no setting partition of topics; did you mean partitions?`,
		"replicas=1,partition=3": `read the topic's settings "replicas=1,partition=3": "partition=3": Kafka has no setting partition of topics; did you mean partitions?`,
	} {
		_, err := ParseTopicSpec(text)
		assert.Must(t, err != nil && err.Error() == want, "got %v, want %s", err, want)
	}
}

// The texts of two layouts differ wherever the layouts differ.
func TestLayoutOfMany(t *testing.T) {
	of := func(n int, change ...int) string {
		leaders := make([]int32, n)
		for i := range leaders {
			leaders[i] = int32(i % 3)
		}
		for _, i := range change {
			leaders[i] = 7
		}
		return Layout(leaders)
	}
	assert.Equal(t, of(6), "0: 0 3, 1: 1 4, 2: 2 5")
	all := of(120)
	assert.True(t, strings.Contains(all, "(the first 64 of 120; #"), "got %q", all)
	assert.True(t, of(120) == all && of(120, 119) != all && of(121) != all,
		"got %q, and %q with another leader, and %q with one more partition", all, of(120, 119), of(121))
}

func TestDue(t *testing.T) {
	for _, tt := range []struct {
		name string
		work TopicLoad
		at   time.Duration
		want uint64
	}{
		{"none yet", TopicLoad{Op: OpListTopics, Times: -1, Rate: 10}, 0, 0},
		{"the first", TopicLoad{Op: OpListTopics, Times: -1, Rate: 10}, 1, 1},
		{"ten", TopicLoad{Op: OpListTopics, Times: -1, Rate: 10}, time.Second, 10},
		{"eleven", TopicLoad{Op: OpListTopics, Times: -1, Rate: 10}, time.Second + 1, 11},
		{"thirds", TopicLoad{Op: OpListTopics, Times: -1, Rate: 3}, 3 * time.Second, 9},
		{"several in a request", TopicLoad{Op: OpCreateTopics, Next: func() string { return "" }, Times: -1, Rate: 3, PerRequest: 10}, time.Second + 1, 40},
		{"one in a listing", TopicLoad{Op: OpListTopics, Times: -1, Rate: 3, PerRequest: 10}, time.Second + 1, 4},
		{"a number", TopicLoad{Op: OpCreateTopics, Next: func() string { return "" }, Times: 25, Rate: 3, PerRequest: 10}, time.Second, 25},
		{"a number that is not reached", TopicLoad{Op: OpListTopics, Times: math.MaxInt, Rate: 10}, time.Second, 10},
		{"names", TopicLoad{Op: OpDeleteTopics, Names: NumberedNames("x", 7), Rate: 10}, time.Minute, 7},
		{"until its time is over", TopicLoad{Op: OpListTopics, Times: -1, Rate: 50, For: 100 * time.Millisecond}, time.Minute, 5},
		{"without a rate", TopicLoad{Op: OpListTopics, Times: -1}, time.Minute, 0},
	} {
		assert.Equal(t, tt.work.DueBefore(tt.at), tt.want, "%s", tt.name)
	}
}

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
