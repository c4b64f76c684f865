package bench

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// A group is measured together: contestants that alternate, and their lines of the
// table.
type group struct {
	name    string // matched by BENCH_ROWS
	measure func(*Suite, testing.TB)
}

// groups are the rows of the table, in its order.
var groups = []group{
	{"produce 100 B", (*Suite).produceSmall},
	{"produce 1 KiB", (*Suite).produceLarge},
	{"open loop 1 M/s", (*Suite).kafkaOpenLoop},
	{"ordinary rates", (*Suite).ordinaryRates},
	{"produce to a real broker, 1 KiB", (*Suite).produceBroker},
	{"consume from a real broker, 100 B", (*Suite).consumeBroker},
	{"null://, 300 B", (*Suite).nullTarget},
	{"trace", (*Suite).traced},
	{"riemann, single events", (*Suite).riemannSingle},
	{"riemann, messages of 100 events", (*Suite).riemannBulk},
	{"riemann, open loop", (*Suite).riemannOpenLoop},
	{"riemann, memory", (*Suite).riemannMemory},
	{"apm, one body repeated", (*Suite).apmRepeated},
	{"apm, fresh bodies, gzip", (*Suite).apmFresh},
	{"apm, 10x10x10 uncompressed", (*Suite).apmLarge},
	{"apm, open loop", (*Suite).apmOpenLoop},
	{"otlp over HTTP", (*Suite).otlpHTTP},
	{"otlp over gRPC", (*Suite).otlpGRPC},
	{"otlp, 1 k requests/s", (*Suite).otlpRate},
	{"otlp, a real Collector", (*Suite).otlpCollector},
	{"otlp, memory", (*Suite).otlpMemory},
	{"many connections", (*Suite).manyConnections},
	{"watching a tree of 20 processes", (*Suite).watching},
	{"as sangrenel -noop, 300 B", (*Suite).asSangrenel},
	{"as kafka-producer-perf-test", (*Suite).asKafkaProducer},
	{"memory", (*Suite).memory},
	{"stored reports", (*Suite).storedReports},
	{"series", (*Suite).series},
}

const (
	topic      = "bench"
	partitions = 4
)

// startDiscardingKafka starts the stand-in that accepts everything and keeps nothing.
func (u *Suite) startDiscardingKafka(b testing.TB) *server {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), 20*time.Second)
	defer cancel()
	s, err := serve(ctx, u.program, "standin", "kafka", "--discard", "--listen", "127.0.0.1:0", "--topic", fmt.Sprintf("%s:%d", topic, partitions))
	if err != nil {
		b.Fatal("bench: start the stand-in: ", err)
	}
	b.Cleanup(s.stop)
	return s
}

func (u *Suite) produceSmall(b testing.TB) {
	s := u.startDiscardingKafka(b)
	url, lasts := "kafka://"+s.addr+"/"+topic, u.scaled(5*time.Second)
	r := u.alternate(b.Context(), "produce 100 B",
		u.producer(carronade, "produce 100 B, carronade", url, "--size", "100", "--for", lasts.String()),
		u.javaProducer(b, "produce 100 B, "+producerPerf, s.addr, topic, 100, u.records(20_000_000), perfStandin),
		u.kcatProducer("produce 100 B, kcat", s.addr, topic, 100, u.records(4_000_000)),
		u.producer(clientEngine, "produce 100 B, carronade "+clientEngine, url, "--size", "100", "--engine", "client", "--for", lasts.String()),
		u.kgoProducer(s.addr, topic, 100, lasts),
	)
	u.addComparison(r, carronade, producerPerf, eventsPerS, atLeast(10), atLeast(14))
	u.addComparison(r, carronade, producerPerf, cpuPerEvent, atMost(1.0/12), bound{})
	u.addLine(r, eventsPerS, bound{}, atLeast(30e6))
	for _, peer := range []string{kcat, kgoBare} {
		u.addComparison(r, carronade, peer, eventsPerS, bound{}, bound{})
		u.addComparison(r, carronade, peer, cpuPerEvent, bound{}, bound{})
	}
	u.addComparison(r, clientEngine, kgoBare, eventsPerS, atLeast(0.9), bound{})
	u.addComparison(r, clientEngine, kgoBare, cpuPerEvent, bound{}, bound{})
}

func (u *Suite) produceLarge(b testing.TB) {
	s := u.startDiscardingKafka(b)
	lasts := u.scaled(5 * time.Second)
	r := u.alternate(b.Context(), "produce 1 KiB",
		u.producer(carronade, "produce 1 KiB, carronade", "kafka://"+s.addr+"/"+topic, "--size", "1KiB", "--for", lasts.String()),
		u.tcpWriter(b, lasts),
	)
	u.addComparison(r, carronade, tcpBare, bytesPerS, atLeast(0.6), atLeast(0.8))
}

func (u *Suite) kafkaOpenLoop(b testing.TB) {
	s := u.startDiscardingKafka(b)
	u.openLoop(b, openLoopRow{"produce 100 B, open loop at 1 M/s, 4 partitions", 1e6, 100, 0.35, atMost(0.20)}, "kafka://"+s.addr+"/"+topic, "--size", "100", "--rate", "1M/s")
}

func (u *Suite) nullTarget(b testing.TB) {
	lasts := u.scaled(3 * time.Second)
	nowhere := func(name string, args ...string) contestant {
		args = append([]string{"null://", "--size", "300", "--threads", "1", "--for", lasts.String()}, args...)
		return contestant{name, func(ctx context.Context) (sample, error) {
			d, e, err := u.runProgram(ctx, "null, "+name, args...)
			if err != nil {
				return nil, err
			}
			// Per core: per second of elapsed time, or of CPU time if that is
			// longer.
			return sample{eventsPerS: float64(d.Totals.Acked) / max(d.Totals.ElapsedS, e.cpu.Seconds())}, nil
		}}
	}
	r := u.alternate(b.Context(), "null://, 300 B, per core", nowhere(carronade), nowhere("--fresh", "--fresh"))
	u.addLine(r, eventsPerS, atLeast(20e6), bound{})
	fresh := &results{work: r.work + ", --fresh", samples: map[string][]sample{carronade: r.samples["--fresh"]}, faults: map[string]error{carronade: r.faults["--fresh"]}}
	u.addLine(fresh, eventsPerS, atLeast(3e6), bound{})
}

func (u *Suite) memory(b testing.TB) {
	s := u.startDiscardingKafka(b)
	url := "kafka://" + s.addr + "/" + topic
	r := u.alternate(b.Context(), "memory, 100 B at full speed",
		u.resident("memory, carronade", url, "--size", "100", "--for", u.scaled(62*time.Second).String()))
	u.addLine(r, maxRSS, atMost(150<<20), bound{}).Worst = true
	u.addLine(r, growth, atMost(5<<20), bound{}).Worst = true
	r = u.alternate(b.Context(), "memory, 100 B, concurrency 500", contestant{carronade, func(ctx context.Context) (sample, error) {
		d, e, err := u.runProgramWatched(ctx, true, "concurrency, carronade", url, "--size", "100", "--concurrency", "500", "--for", u.scaled(5*time.Second).String())
		if err != nil {
			return nil, err
		}
		return sample{maxRSS: float64(max(e.peak, d.Generator.MaxRSS))}, nil
	}})
	u.addLine(r, maxRSS, atMost(250<<20), bound{}).Worst = true
}

// resident is a run of the program that samples its resident size.
func (u *Suite) resident(what string, args ...string) contestant {
	return contestant{carronade, func(ctx context.Context) (sample, error) {
		d, e, err := u.runProgramWatched(ctx, true, what, args...)
		if err != nil {
			return nil, err
		}
		if len(e.rss) < 3 || e.rss[0] == 0 {
			return nil, fmt.Errorf("the resident size can be watched on Linux only, for 3 s or more: got %d readings", len(e.rss))
		}
		from, to := min(4, len(e.rss)/2), min(59, len(e.rss)-1)
		return sample{eventsPerS: d.Totals.EventsPS, maxRSS: float64(max(e.peak, d.Generator.MaxRSS)), growth: float64(e.rss[to]) - float64(e.rss[from])}, nil
	}}
}
