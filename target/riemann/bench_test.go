package riemann

import (
	"net"
	"strings"
	"testing"
	"time"

	"carronade/internal/socket"
	"carronade/internal/system"
	"carronade/internal/testkit/assert"
	"carronade/internal/wire/riemann"
	"carronade/load"
)

// BenchmarkLane sends at full speed through the engine: one operation is one
// event.
func BenchmarkLane(b *testing.B) {
	addr := spawnStandin(b).Addr()
	for _, tt := range []struct {
		name     string
		given    []string
		events   int
		inFlight int
		observe  bool
	}{
		{name: "one event", events: 1},
		{name: "one event, in flight 100", events: 1, inFlight: 100},
		{name: "one event, in flight 10000", events: 1, inFlight: 10_000},
		{name: "one event, two clients", given: []string{"clients=2"}, events: 1},
		{name: "one event, one by one", events: 1, observe: true},
		{name: "ten events", events: 10},
		{name: "a hundred events", events: 100, inFlight: 100},
		{name: "a thousand events", events: 1000, inFlight: 20},
	} {
		b.Run(strings.ReplaceAll(tt.name, " ", "_"), func(b *testing.B) {
			spec := specOf(b, "riemann://"+addr, tt.given...)
			spec.BatchEvents, spec.Logf = tt.events, nil
			s := assert.Value(Kind{}.Open(b.Context(), spec))(b)
			defer s.Close()
			plan := load.Plan{BatchEvents: tt.events, MaxInFlight: 1000, Measurement: load.Limits{Events: uint64(b.N)}}
			if tt.inFlight > 0 {
				plan.MaxInFlight = tt.inFlight
			}
			if tt.observe {
				plan.Observe = func([]load.Outcome) {}
			}
			run := assert.Value(load.New(plan, s.Target()))(b)
			b.ReportAllocs()
			before := system.CPU()
			b.ResetTimer()
			run.Start()
			res, err := run.Wait()
			b.StopTimer()
			assert.OK(b, err)
			cpu := system.CPU() - before
			if res.Measurement.Acked != uint64(b.N) {
				b.Fatalf("%d of %d acked: %+v", res.Measurement.Acked, b.N, res.Failures)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "Mevents/s")
			b.ReportMetric(float64(res.Measurement.WireBytes)/b.Elapsed().Seconds()/1e6, "wire-MB/s")
			b.ReportMetric(float64(cpu.Nanoseconds())/float64(b.N), "cpu-ns/event")
		})
	}
}

// BenchmarkOpenLoop sends a hundred thousand messages per second for two
// seconds.
func BenchmarkOpenLoop(b *testing.B) {
	addr := spawnStandin(b).Addr()
	const rate, length = 100_000, 2 * time.Second
	for b.Loop() {
		s := assert.Value(Kind{}.Open(b.Context(), specOf(b, "riemann://"+addr)))(b)
		run, err := load.New(load.Plan{Schedule: load.Constant(rate), BatchEvents: 1, MaxInFlight: 1000, Measurement: load.Limits{Time: length}}, s.Target())
		assert.OK(b, err)
		before := system.CPU()
		run.Start()
		res := assert.Value(run.Wait())(b)
		s.Close()
		cpu := system.CPU() - before
		b.ReportMetric(100*cpu.Seconds()/length.Seconds(), "%cpu")
		b.ReportMetric(float64(res.Measurement.Sent)/length.Seconds()/rate*100, "%sent")
		b.ReportMetric(float64(res.Measurement.SendDelay.Percentile(50).Microseconds()), "send-delay-p50-us")
		b.ReportMetric(float64(res.Measurement.SendDelay.Percentile(99).Microseconds()), "send-delay-p99-us")
		b.ReportMetric(float64(res.Measurement.Service.Percentile(50).Microseconds()), "service-p50-us")
	}
}

// Sending and completing a batch group allocates nothing once the buffers have
// grown.
func TestLaneAllocatesNothing(t *testing.T) {
	if raced {
		t.Skip("pools drop what they keep")
	}
	here, there := net.Pipe()
	defer there.Close()
	l, sink := newTestLane(t, 1, true)
	l.link.Conn.Close()
	l.link.Conn = here
	answers := riemann.AppendAcks(nil, 100)
	assert.Value(l.link.processAnswers(answers[:riemann.AckSize], socket.Arrival{Last: sink.Now()}))(t)
	seq := uint64(1)
	batches := make([]load.Batch, 1)
	complete := func(n int32) {
		batches[0] = load.Batch{Seq: seq, First: seq, Events: n, Batches: n, DueFirst: -1, DueLast: -1}
		seq += uint64(n)
		assert.Must(t, l.Fire(batches) == 1, "not taken")
		l.flushUnwritten()
		l.out, l.waiting = l.waiting, l.out[:0]
		l.off, l.edge, l.outLast = 0, 0, l.queued
		l.wrote(len(l.out))
		assert.Value(l.link.processAnswers(answers[:int(n)*riemann.AckSize], socket.Arrival{Last: sink.Now()}))(t)
	}
	complete(100)
	assert.Equal(t, testing.AllocsPerRun(1000, func() { complete(100) }), 0, "allocations for a batch group of 100 messages")
	assert.Equal(t, testing.AllocsPerRun(1000, func() { complete(1) }), 0, "allocations for a message")
}
