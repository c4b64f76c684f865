package kafka

import (
	"context"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"carronade/internal/kafkatest"
	"carronade/load"
)

func TestMain(m *testing.M) { os.Exit(kafkatest.Main(m)) }

// real skips tests that start Kafka under -short, and says so.
func real(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a real Kafka, which -short leaves out")
	}
}

// filled makes a topic on a real broker with n events of 100 bytes.
func filled(t testing.TB, c *kafkatest.Cluster, partitions int32, n uint64, given map[string][]string) string {
	t.Helper()
	topic := c.CreateTopic(t, partitions, 1)
	s, err := open(t, spec(t, "kafka://"+c.Bootstrap()+"/"+topic, given))
	if err != nil {
		t.Fatal(err)
	}
	if res := launch(t, s, load.Plan{Hold: load.Limits{Events: n}}); res.Hold.Acked != n {
		t.Fatalf("got %d acked, want %d", res.Hold.Acked, n)
	}
	return topic
}

// BenchmarkConsumeReal reads a topic of a real broker whose pages are warm.
func BenchmarkConsumeReal(b *testing.B) {
	const n = 10_000_000
	c := kafkatest.Shared(b)
	for _, partitions := range []int32{1, 4} {
		topic := filled(b, c, partitions, n, map[string][]string{"batch-size": {"16KiB"}})
		for _, bm := range []struct {
			name  string
			given map[string][]string
		}{
			{"wire", nil},
			{"wire, two clients", map[string][]string{"clients": {"2"}}},
			{"wire, 1 MiB answers", map[string][]string{"fetch-max": {"1MiB"}}},
			{"wire, 4 MiB a partition", map[string][]string{"fetch-max": {"8MiB"}, "fetch-partition-max": {"4MiB"}}},
			{"wire, decoded", map[string][]string{"decode": {"true"}}},
			{"client", map[string][]string{"engine": {engineClient}}},
		} {
			b.Run(bm.name+map[int32]string{1: " p1", 4: " p4"}[partitions], func(b *testing.B) {
				given := map[string][]string{"until-end": {"true"}}
				for k, v := range bm.given {
					given[k] = v
				}
				var events atomic.Int64
				var busy time.Duration
				for b.Loop() {
					s := spec(b, "kafka://"+c.Bootstrap()+"/"+topic, given)
					s.Op = opConsume
					sess, err := Kind{}.Open(b.Context(), s)
					if err != nil {
						b.Fatal(err)
					}
					start := time.Now()
					before := cpuTime()
					err = sess.Source().Receive(context.Background(), func() time.Duration { return time.Since(start) }, func(_ int, as []load.Arrival) {
						for i := range as {
							events.Add(int64(as[i].Events))
						}
					})
					if err != nil {
						b.Fatal(err)
					}
					busy += time.Since(start)
					b.ReportMetric(float64(cpuTime()-before)/n, "cpu-ns/event")
					if err := sess.Close(); err != nil {
						b.Fatal(err)
					}
				}
				if events.Load() != int64(b.N)*n {
					b.Fatalf("got %d events, want %d", events.Load(), int64(b.N)*n)
				}
				b.ReportMetric(float64(events.Load())/busy.Seconds()/1e6, "Mevents/s")
			})
		}
	}
}
