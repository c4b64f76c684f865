package kafka

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"carronade/internal/wire/kafka"
	"carronade/load"
	"carronade/payload"
)

// TestTimedHeadersFit: a batch does not exceed its size when headers with the time are longer
// when they are sent than when its events were counted.
func TestTimedHeadersFit(t *testing.T) {
	t.Parallel()
	const batchSize = 2000
	p := openProducer(t, eventsCluster(t, 1).ListenAddrs(), nil, "batch-size=2000", "size=20", "fresh=true",
		"header=at=${time:nanos() % 2 == 0 ? 'a' : 'a text that is much longer than the other one, and that half of the events have'}")
	e := &p.senders[0].encoder
	for i := range uint64(500) {
		first := 100 * i
		batch := load.Batch{First: first, Events: int32(e.room(0, first))}
		sl := &slot{buffer: &buffer{}}
		e.encode(sl, &batch)
		if size := kafka.HeaderSize + len(sl.recs); size > batchSize || batch.Events < 8 {
			t.Fatalf("a batch of %d events has %d bytes, more than %d", batch.Events, size, batchSize)
		}
	}
}

// TestClientHeadersAllocateNothing: headers that vary use the memory of their batch.
func TestClientHeadersAllocateNothing(t *testing.T) {
	gen, err := payload.New(payload.Spec{Size: "10", Headers: []string{"n=${this.last() + 1}%{-1}", "at=${time:nanos()}", "same=x"}})
	if err != nil {
		t.Fatal(err)
	}
	c := &content{}
	cfg := &config{topic: "events", fresh: true}
	c.prepare(gen, cfg, false)
	p := &clientProducer{cfg: cfg, gen: gen, streams: newStreams(partitioner{kind: "roundrobin"}, 1, 1, gen, 1)}
	to := &clientBatch{l: &clientLane{s: &clientSender{p: p}}, records: make([]kgo.Record, 50)}
	batch := load.Batch{Events: 50}
	if n := testing.AllocsPerRun(100, func() { c.fill(to, &batch); batch.First += 50 }); n >= 1 {
		t.Errorf("%v allocations a batch", n)
	}
	var bytes int64
	want := c.fill(to, &batch)
	for i := range to.records {
		r := &to.records[i]
		if len(r.Headers) != 3 || r.Headers[0].Key != "n" || r.Headers[2].Key != "same" || string(r.Headers[2].Value) != "x" {
			t.Fatalf("record %d has the headers %v", i, r.Headers)
		}
		bytes += eventSize(r)
	}
	if bytes != want {
		t.Errorf("the records have %d bytes, not %d", bytes, want)
	}
}
