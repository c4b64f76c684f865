package cluster

import (
	"fmt"
	"testing"

	"carronade/payload"
	"carronade/test/testkit/assert"
)

// TestClientsPerTopic: each client sends to one topic alone, each topic has as many clients, and the events are divided
// as without them.
func TestClientsPerTopic(t *testing.T) {
	t.Parallel()
	gen := assert.Value(payload.New(payload.Spec{Seed: 1, Size: "10", Payload: "random", Key: "uniform(5000)"}))(t)
	for _, tt := range []struct {
		kind, weights string
		topics        []TopicLogs
	}{
		{"roundrobin", "equal", topicsOf(4, 4, 4)},
		{"roundrobin", "3,1", topicsOf(1, 5)},
		{"sticky", "equal", topicsOf(2, 3)},
		{"fixed", "equal", topicsOf(2, 3)},
		{"murmur2", "equal", topicsOf(3, 2)},
	} {
		t.Run(tt.kind+tt.weights, func(t *testing.T) {
			const each = 2
			c := &Config{Partitioner: Partitioner{Kind: tt.kind, Fixed: 1}, Clients: each, PerTopic: true}
			c.TopicWeights = assert.Value(parseTopicWeights(tt.weights, len(tt.topics)))(t)
			s := NewStreams(c, tt.topics, gen, 10)
			c.PerTopic = false
			shared := NewStreams(c, tt.topics, gen, 10)
			places := Places(tt.topics)
			assert.Equal(t, s.Clients(), each*len(tt.topics), "clients")
			assert.Equal(t, s.Partitioner.Streams(), shared.Partitioner.Streams(), "streams")
			clients, next := map[int32]map[int]bool{}, 0
			for client := range s.Clients() {
				first, last := s.LogsOf(client)
				from, to := s.Of(client)
				for stream := from; stream < to; stream++ {
					log := s.Log(stream)
					topic := places[log].Topic
					assert.Equal(t, s.Client(stream), client, "the client of stream %d", stream)
					assert.True(t, first == tt.topics[topic].Base && int(log) < last, "client %d has the logs %d to %d, and sends to %d", client, first, last, log)
					assert.Equal(t, s.Partitioner.Before(stream, 10_000), shared.Partitioner.Before(stream, 10_000), "events of stream %d", stream)
					if clients[topic] == nil {
						clients[topic] = map[int]bool{}
					}
					clients[topic][client] = true
					next++
				}
			}
			assert.Equal(t, next, s.Partitioner.Streams(), "streams of all clients")
			for topic, of := range clients {
				assert.Equal(t, len(of), each, "clients of topic %d", topic)
			}
			assert.Equal(t, len(clients), len(tt.topics), "topics")
		})
	}
}

// TestTopicsAndTheirClients: how the settings topics and clients-per-topic are read.
func TestTopicsAndTheirClients(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		given       map[string][]string
		topics      int
		clients     string // as preset
		text, wrong string
	}{
		{given: map[string][]string{"clients-per-topic": {"2"}}, topics: 10, clients: "20", text: "t-{0..9}"},
		{given: map[string][]string{"clients-per-topic": {"2"}, "topics": {"3"}}, topics: 3, clients: "6", text: "the first 3 of t-{0..9}"},
		{given: map[string][]string{"clients-per-topic": {"2"}, "clients": {"20"}}, topics: 10, clients: "20", text: "t-{0..9}"}, // as a report says it
		{given: map[string][]string{"topics": {"1"}}, topics: 1, text: "t-0"},
		{given: map[string][]string{"topics": {"11"}}, wrong: "the target names 10 topics, and not 11"},
		{given: map[string][]string{"topics": {"0"}}, wrong: "0 is not a number of topics"},
		{given: map[string][]string{"topics": {"t-.*"}}, wrong: "only --op consume takes an expression"},
		{given: map[string][]string{"clients-per-topic": {"0"}}, wrong: "0 clients send nothing"},
		{given: map[string][]string{"clients-per-topic": {"2"}, "clients": {"2"}}, wrong: "2 for each of 10 topics are 20 clients, and --clients says 2"},
		{given: map[string][]string{"clients-per-topic": {"1000000"}}, wrong: "more than 1048576 clients"},
	} {
		t.Run(fmt.Sprint(tt.given), func(t *testing.T) {
			s := spec(t, "kafka://a/t-{0..9}", tt.given)
			c, err := ParseConfig(s)
			if tt.wrong != "" {
				assert.ErrorHas(t, err, tt.wrong)
				return
			}
			assert.OK(t, err)
			set, _, err := Presets(s.URL, s.Options, s.Given)
			assert.OK(t, err)
			assert.Equal(t, len(c.Names), tt.topics, "topics")
			assert.Equal(t, set["clients"], tt.clients, "clients")
			assert.Equal(t, c.TopicText(), tt.text, "the topics")
		})
	}
}

// TestCreateAtOnce: a request makes no more records in the controller's log than Kafka takes.
func TestCreateAtOnce(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"partitions=1": 500, "auto": 500, "partitions=100": 79, "partitions=10000": 1, "partitions=15,retention.ms=1": 470} {
		spec := assert.Value(ParseTopicSpec(text))(t)
		assert.Equal(t, spec.createAtOnce(), want, text)
	}
}
