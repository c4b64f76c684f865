package franz

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"carronade/internal/kafka/cluster"
	"carronade/load"
	"carronade/payload"
	"carronade/test/testkit/assert"
)

// TestClientHeadersAllocateNothing: headers that vary use the memory of their batch.
func TestClientHeadersAllocateNothing(t *testing.T) {
	gen, err := payload.New(payload.Spec{Size: "10", Headers: []string{"n=${this.last() + 1}%{-1}", "at=${time:nanos()}", "same=x"}})
	assert.OK(t, err)
	c := &content{}
	cfg := &cluster.Config{Topic: "events", Fresh: true}
	c.prepare(gen, cfg, false)
	p := &Producer{cfg: cfg, gen: gen, streams: cluster.NewStreams(cluster.Partitioner{Kind: "roundrobin"}, 1, 1, gen, 1)}
	to := &liveBatch{l: &lane{s: &sender{p: p}}, records: make([]kgo.Record, 50)}
	batch := load.Batch{Events: 50}
	n := testing.AllocsPerRun(100, func() { c.fill(to, &batch); batch.First += 50 })
	assert.True(t, n < 1, "%v allocations a batch", n)
	var bytes int64
	want := c.fill(to, &batch)
	for i := range to.records {
		r := &to.records[i]
		if len(r.Headers) != 3 || r.Headers[0].Key != "n" || r.Headers[2].Key != "same" || string(r.Headers[2].Value) != "x" {
			t.Fatalf("record %d has the headers %v", i, r.Headers)
		}
		bytes += int64(len(r.Key) + len(r.Value))
		for _, h := range r.Headers {
			bytes += int64(len(h.Key) + len(h.Value))
		}
	}
	assert.Equal(t, bytes, want, "bytes of the records")
}
