package franz

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"carronade/internal/kafka/cluster"
	"carronade/load"
	"carronade/test/testkit/assert"
)

// A reader that has read to the end knows it: it is not behind, and the partition counts as empty, but not
// before the last events were polled. For a reader of committed events, an open transaction is the end of what it
// gets, but it lags behind the log.
func TestCaughtUp(t *testing.T) {
	t.Parallel()
	for isolation, want := range map[string]int{"uncommitted": 4, "committed": 2} {
		t.Run(isolation, func(t *testing.T) {
			c := assert.Value(kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "t")))(t)
			defer c.Close()
			client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.DefaultProduceTopic("t"), kgo.TransactionalID("x"))
			assert.OK(t, err)
			defer client.Close()
			for _, commit := range []bool{true, false} {
				assert.OK(t, client.BeginTransaction())
				assert.OK(t, client.ProduceSync(t.Context(), kgo.StringRecord("a"), kgo.StringRecord("b")).FirstErr())
				if commit {
					assert.OK(t, client.EndTransaction(t.Context(), kgo.TryCommit))
				}
			}
			// The answer with the events is the only one: no later answer says that there are no more events.
			var answered atomic.Bool
			c.ControlKey(int16(kmsg.Fetch), func(kmsg.Request) (kmsg.Response, error, bool) {
				c.KeepControl()
				if answered.Swap(true) {
					return nil, errors.New("the test closes this connection"), true
				}
				return nil, nil, false
			})
			s, err := NewSource(t.Context(), connect(t, cluster.OpConsume, "kafka://"+c.ListenAddrs()[0]+"/t", map[string][]string{
				"engine": {cluster.EngineClient}, "isolation": {isolation},
			}), false)
			assert.OK(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			start := time.Now()
			var events int
			var last time.Duration
			err = s.Receive(ctx, func() time.Duration { return time.Since(start) }, func(_ int, as []load.Arrival) {
				for _, a := range as {
					events, last = events+int(a.Events), a.At
				}
				if events >= want {
					cancel()
				}
			})
			assert.Must(t, errors.Is(err, context.Canceled) && events == want, "got %d events and %v, want %d", events, err, want)
			assert.Equal(t, s.Lag()[0], int64(4-want), "events that are in the log and were not read")
			at := s.Emptied()[0]
			assert.True(t, at >= last, "the partition counts as empty at %v, the last events were polled at %v", at, last)
		})
	}
}

// A reader's own delay counts until it has read to the end. For a reader of committed events, that is the
// last stable offset, if the broker says it.
func TestOwnDelayCountsToTheEnd(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name         string
		committed    bool
		stable, next int64 // the last stable offset, and the offset that is read next
		counts       bool
	}{
		{"uncommitted, up to the last stable offset", false, 5, 5, true},
		{"uncommitted, up to the high watermark", false, 5, 10, false},
		{"committed, before the last stable offset", true, 5, 4, true},
		{"committed, up to the last stable offset", true, 5, 5, false},
		{"committed, the broker does not say it", true, -1, 5, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := &cluster.Config{Fetch: cluster.Fetching{Committed: tt.committed}}
			r := &reader{s: &Source{cl: &cluster.Cluster{Config: c}}, lateness: newOwnLateness(nil, nil)}
			r.lateness.log(0).ownDelay = time.Millisecond
			r.addArrival(&kgo.FetchTopicPartition{FetchPartition: kgo.FetchPartition{
				HighWatermark: 10, LastStableOffset: tt.stable, Records: []*kgo.Record{{Offset: tt.next - 1}},
			}}, 0, time.Second)
			assert.Equal(t, r.lateness.log(0).ownDelay > 0, tt.counts, "whether the own delay counts for what comes next")
		})
	}
}

// TestGroupBegins: a new group of a round trip begins where the logs ended when the run began; what it has committed, and
// where a consumer wants to begin, stay.
func TestGroupBegins(t *testing.T) {
	c := assert.Value(kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(2, "t")))(t)
	defer c.Close()
	for _, op := range []string{cluster.OpRoundTrip, cluster.OpConsume} {
		s := assert.Value(NewSource(t.Context(), connect(t, op, "kafka://"+c.ListenAddrs()[0]+"/t", map[string][]string{"group": {"g"}, "engine": {"client"}}), false))(t)
		end := kgo.NewOffset().AtEnd()
		got := assert.Value(s.fromStarts(t.Context(), map[string]map[int32]kgo.Offset{"t": {0: end, 1: kgo.NewOffset().At(7)}, "other": {0: end}}))(t)
		want := map[bool]int64{true: 0, false: -1}[op == cluster.OpRoundTrip]
		for p, at := range map[int32]int64{0: want, 1: 7} {
			assert.Equal(t, got["t"][p].EpochOffset().Offset, at, "%s, partition %d", op, p)
		}
		assert.Equal(t, got["other"][0].EpochOffset().Offset, -1, "%s, another topic", op)
	}
}
