package standin_test

import (
	"fmt"
	"os"
	"testing"

	"carronade/internal/host"
	kafkastandin "carronade/internal/kafka/standin"
	"carronade/internal/standin"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// TestMain makes the test's binary the stand-in that a benchmark spawns.
func TestMain(m *testing.M) {
	standin.Hook(kafkastandin.Kind)
	testkit.MostlyWaiting()
	os.Exit(m.Run())
}

// BenchmarkSink sends encoded requests of one batch to a discard broker in another
// process, to measure how fast the sink is and what it costs.
func BenchmarkSink(b *testing.B) {
	for _, c := range []struct {
		conns, inflight, records int
	}{{1, 5, 1000}, {1, 16, 1000}, {2, 5, 1000}, {2, 16, 1000}, {1, 16, 152}, {1, 64, 1}} {
		b.Run(fmt.Sprintf("conns=%d/inflight=%d/records=%d", c.conns, c.inflight, c.records), func(b *testing.B) {
			child, err := standin.Spawn(b.Context(), "", "kafka", "--listen", "127.0.0.1:0", "--discard", "--topic", "t:4")
			assert.OK(b, err)
			defer func() {
				if err := child.Stop(); err != nil {
					b.Fatal(err, child.Output())
				}
				if testing.Verbose() {
					b.Log(child.Output())
				}
			}()
			before := host.CPUOf(child.Pid())
			own := host.CPUOf(os.Getpid())
			b.ResetTimer()
			done := make(chan error, c.conns)
			for i := range c.conns {
				go func() {
					done <- kafkastandin.Bare(child.Addr(), kafkastandin.ProduceFrame("t", int32(i), c.records, 100), c.inflight, b.N/c.conns+1)
				}()
			}
			for range c.conns {
				assert.OK(b, <-done)
			}
			elapsed := b.Elapsed()
			b.StopTimer()
			n := float64(b.N) * float64(c.records)
			b.ReportMetric(n/elapsed.Seconds()/1e6, "Mevents/s")
			b.ReportMetric(float64(host.CPUOf(child.Pid())-before)/n, "sink-cpu-ns/event")
			b.ReportMetric(float64(host.CPUOf(os.Getpid())-own)/n, "own-cpu-ns/event")
		})
	}
}
