package kafka

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"carronade/internal/system"
	"carronade/internal/testkit/assert"
	"carronade/load"
	"carronade/target/kafka/cluster"
)

// BenchmarkWire sends as the engine does at full speed: one operation is one
// event of 100 bytes.
func BenchmarkWire(b *testing.B) {
	addr := spawnStandin(b, "--topic", "events:4").Addr()
	for _, tt := range []struct {
		name     string
		given    []string
		inFlight int
		events   int
		verify   bool
	}{
		{name: "defaults"},
		{name: "verify", verify: true},
		{name: "in flight 16", inFlight: 16},
		{name: "batch 107kB", given: []string{"batch-size=107kB"}},
		{name: "batch 107kB, in flight 16", given: []string{"batch-size=107kB"}, inFlight: 16},
		{name: "batch 64KiB, in flight 16", given: []string{"batch-size=64KiB"}, inFlight: 16},
		{name: "batch 1MiB", given: []string{"batch-size=1MiB", "max-request=4MiB"}},
		{name: "two clients", given: []string{"clients=2"}},
		{name: "1 KiB", given: []string{"size=1KiB"}},
		{name: "one event per batch", inFlight: 64, events: 1},
		{name: "fresh", given: []string{"fresh=true"}},
		{name: "idempotent", given: []string{"idempotent=true", "acks=all"}},
	} {
		b.Run(strings.ReplaceAll(tt.name, " ", "_"), func(b *testing.B) {
			cfg := configFor(b, []string{addr}, func(c *cluster.Config) { c.BatchEvents, c.Verify = tt.events, tt.verify }, tt.given...)
			cfg.Logf = func(string, ...any) {}
			p := assert.Value(newProducer(context.Background(), cfg))(b)
			defer p.Close()
			run, err := load.New(load.Plan{MaxInFlight: tt.inFlight, BatchEvents: tt.events, Measurement: load.Limits{Events: uint64(b.N)}}, p)
			assert.OK(b, err)
			b.ReportAllocs()
			before := system.CPU()
			b.ResetTimer()
			run.Start()
			res, err := run.Wait()
			b.StopTimer()
			assert.OK(b, err)
			cpu := system.CPU() - before
			if res.Measurement.Acked != uint64(b.N) {
				b.Fatal(fmt.Errorf("%d of %d acked: %+v", res.Measurement.Acked, b.N, res.Failures))
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "Mevents/s")
			b.ReportMetric(float64(cpu.Nanoseconds())/float64(b.N), "cpu-ns/event")
		})
	}
}

// BenchmarkWireOpenLoop sends a million events a second for two seconds.
func BenchmarkWireOpenLoop(b *testing.B) {
	addr := spawnStandin(b, "--topic", "events:4").Addr()
	const rate, length = 1e6, 2 * time.Second
	for _, linger := range []time.Duration{5 * time.Millisecond, time.Millisecond} {
		b.Run("linger_"+linger.String(), func(b *testing.B) {
			for b.Loop() {
				p := assert.Value(newProducer(context.Background(), configFor(b, []string{addr}, nil)))(b)
				run, err := load.New(load.Plan{Schedule: load.Constant(rate), Linger: linger, Measurement: load.Limits{Time: length}}, p)
				assert.OK(b, err)
				before := system.CPU()
				run.Start()
				res := assert.Value(run.Wait())(b)
				p.Close()
				cpu := system.CPU() - before
				b.ReportMetric(100*cpu.Seconds()/length.Seconds(), "%cpu")
				b.ReportMetric(float64(res.Measurement.Sent)/length.Seconds()/rate*100, "%sent")
				b.ReportMetric(float64(res.Measurement.SendDelay.Percentile(50).Microseconds()), "send-delay-p50-us")
				b.ReportMetric(float64(res.Measurement.SendDelay.Percentile(99).Microseconds()), "send-delay-p99-us")
				b.ReportMetric(float64(res.Measurement.Service.Percentile(50).Microseconds()), "service-p50-us")
				b.ReportMetric(float64(res.Measurement.Batches), "batches")
			}
		})
	}
}
