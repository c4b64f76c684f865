package kafka

import (
	"testing"

	"carronade/internal/kafka/wire"
	"carronade/load"
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
		if size := wire.HeaderSize + len(sl.recs); size > batchSize || batch.Events < 8 {
			t.Fatalf("a batch of %d events has %d bytes, more than %d", batch.Events, size, batchSize)
		}
	}
}
