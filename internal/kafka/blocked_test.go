package kafka

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"carronade/internal/kafka/cluster"
	"carronade/load"
	"carronade/protocol"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// TestOpenTransactionBlocks: a reader of committed events ends before another producer's open transaction. The log does
// not end there: the reader lags behind it, and can say whose transaction it is.
func TestOpenTransactionBlocks(t *testing.T) {
	for _, engine := range []string{cluster.EngineWire, cluster.EngineClient} {
		t.Run(engine, func(t *testing.T) {
			c := fakeCluster(t, kfake.SeedTopics(1, "t"))
			s := spec(t, urlOf(c, "t"), map[string][]string{"engine": {engine}, "isolation": {"committed"}})
			s.Op = cluster.OpRoundTrip
			sess, err := open(t, s)
			assert.OK(t, err)
			src := sess.Source()
			seek, blocking := src.(protocol.Seekable), src.(protocol.BlockReporter)
			text, err := blocking.Blocked(t.Context())
			assert.True(t, text == "" && err == nil, "nothing is open: %q, %v", text, err)

			before, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.DefaultProduceTopic("t"))
			assert.OK(t, err)
			defer before.Close()
			assert.OK(t, before.ProduceSync(t.Context(), kgo.StringRecord("before")).FirstErr())
			other, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.DefaultProduceTopic("t"), kgo.TransactionalID("other"))
			assert.OK(t, err)
			defer other.Close()
			assert.OK(t, other.BeginTransaction())
			assert.OK(t, other.ProduceSync(t.Context(), kgo.StringRecord("open")).FirstErr())
			assert.OK(t, before.ProduceSync(t.Context(), kgo.StringRecord("behind it")).FirstErr())
			id, _, err := other.ProducerID(t.Context())
			assert.OK(t, err)

			read := make(chan int32, 10)
			go func() {
				_ = src.Receive(t.Context(), func() time.Duration { return time.Second }, func(_ int, as []load.Arrival) {
					for i := range as {
						read <- as[i].Events
					}
				})
			}()
			assert.Equal(t, <-read, 1, "events before the transaction")
			testkit.Until(t, "the broker has said that there are more", func() bool { return seek.Positions()[0] >= 1 && src.Lag()[0] >= 2 })
			ends, err := seek.Ends(t.Context())
			assert.OK(t, err)
			if at, lag := seek.Positions()[0], src.Lag()[0]; ends[0] != 3 || at != 1 || lag != 2 {
				t.Errorf("read up to %d of %d, lag %d; want 1 of 3, and 2", at, ends[0], lag)
			}
			text, err = blocking.Blocked(t.Context())
			want := fmt.Sprintf("the last stable offset of t-0 stands at 1, before its end at 3, because of the open transaction of producer id %d", id)
			assert.True(t, text == want && err == nil, "got %q, %v; want %q", text, err, want)
		})
	}
}
