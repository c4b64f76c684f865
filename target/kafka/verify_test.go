package kafka

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"carronade/internal/kafkatest"
	"carronade/internal/ledger"
	"carronade/load"
)

// What brokers change in a batch that they take is no corruption: its time, and
// its codec.
func TestRealVerifyChanged(t *testing.T) {
	needsKafka(t)
	c := kafkatest.Shared(t)
	const events = 4000
	for _, tt := range []struct {
		name     string
		settings []string
		given    map[string][]string
		method   string
	}{
		{"stamped", []string{"message.timestamp.type=LogAppendTime"}, nil, "batches and stamps"},
		{"idempotent", []string{"message.timestamp.type=LogAppendTime"}, map[string][]string{"idempotent": {"true"}}, "batches and stamps"},
		{"compressed", []string{"message.timestamp.type=LogAppendTime"}, map[string][]string{"compression": {"lz4"}}, "batches"},
		{"too small for stamps", []string{"message.timestamp.type=LogAppendTime"}, map[string][]string{"size": {"10"}}, "batches"},
		{"compressed by the broker", []string{"compression.type=gzip"}, nil, "stamps"},
		{"with another codec", []string{"compression.type=gzip"}, map[string][]string{"compression": {"lz4"}}, "offsets"},
		{"with the same codec", []string{"compression.type=lz4"}, map[string][]string{"compression": {"lz4"}}, "batches"},
		{"unpacked by the broker", []string{"compression.type=uncompressed", "message.timestamp.type=LogAppendTime"}, map[string][]string{"compression": {"zstd"}}, "offsets"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			topic := c.CreateTopic(t, 2, 1, tt.settings...)
			given := spec(t, "kafka://"+c.Bootstrap()+"/"+topic, tt.given)
			given.Verify = true
			s, err := open(t, given)
			if err != nil {
				t.Fatal(err)
			}
			p := s.(*session).out.(wireFiring).producer
			src := s.Source().(*wireSource)
			book := ledger.New(ledger.Config{
				Logs: 2, Start: src.Starts(), LogOf: p.LogOf, RunID: uint32(given.RunID), Stamped: p.Stamped(),
			})
			r := newRig(t, p)
			r.events = 20
			book.Fired(r.fire(events))
			ctx, cancel := context.WithCancel(t.Context())
			var arrived atomic.Int64
			over := make(chan struct{})
			go func() {
				defer close(over)
				// Its end is the context's.
				_ = src.Receive(ctx, func() time.Duration { return 0 }, func(_ int, a []load.Arrival) {
					book.Arrived(a)
					for i := range a {
						arrived.Add(int64(a[i].Events))
					}
				})
			}()
			tick := time.NewTicker(10 * time.Millisecond)
			defer tick.Stop()
			for deadline := time.Now().Add(10 * time.Second); arrived.Load() < events && time.Now().Before(deadline); {
				<-tick.C
			}
			cancel()
			<-over
			v := book.Verdict(true, nil)
			got := [7]uint64{v.Acked, v.Read, v.Lost, v.Corrupted, v.Recovered, v.Foreign, v.Inexact}
			if want := [7]uint64{events, events}; got != want {
				t.Errorf("acked, read, lost, corrupted, recovered, foreign, inexact: got %v, want %v", got, want)
			}
			if v.Method != tt.method {
				t.Errorf("got the method %q, want %q", v.Method, tt.method)
			}
		})
	}
}
