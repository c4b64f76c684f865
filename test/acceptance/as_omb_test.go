//go:build conformance

package acceptance

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"carronade/internal/dropin/dropintest"
	"carronade/test/testkit/assert"
	"carronade/test/testkit/kafkatest"
)

// An ombShape is a workload of OpenMessaging Benchmark, with times and sizes cut.
type ombShape struct {
	name                                                         string
	topics, partitions, groups, consumers, producers, size, rate int
	backlogGB                                                    float64
	more, driver                                                 string // further lines
}

func (s *ombShape) file() string {
	return fmt.Sprintf("name: %s\ntopics: %d\npartitionsPerTopic: %d\nmessageSize: %d\nuseRandomizedPayloads: true\nrandomBytesRatio: 0.5\nrandomizedPayloadPoolSize: 1000\n"+
		"subscriptionsPerTopic: %d\nconsumerPerSubscription: %d\nproducersPerTopic: %d\nproducerRate: %d\nconsumerBacklogSizeGB: %g\ntestDurationMinutes: 0.1\nwarmupDurationMinutes: 0.05\n%s",
		s.name, s.topics, s.partitions, s.size, s.groups, s.consumers, s.producers, s.rate, s.backlogGB, s.more)
}

// runOMB runs the shapes one after the other, and checks their result files and reports.
func runOMB(t *testing.T, brokers string, replicas int, shapes ...ombShape) {
	for _, s := range shapes {
		t.Run(strings.ReplaceAll(s.name, " ", "-"), func(t *testing.T) {
			dir := t.TempDir()
			load, driver, result := filepath.Join(dir, "w.yaml"), filepath.Join(dir, "d.yaml"), filepath.Join(dir, "r.json")
			writeFile(t, load, s.file())
			writeFile(t, driver, fmt.Sprintf("name: Kafka\ndriverClass: io.openmessaging.benchmark.driver.kafka.KafkaBenchmarkDriver\nreplicationFactor: %d\ntopicConfig: |\n  min.insync.replicas=%d\n"+
				"commonConfig: |\n  bootstrap.servers=%s\nproducerConfig: |\n  acks=all\n  linger.ms=1\n  batch.size=131072\n%sconsumerConfig: |\n  auto.offset.reset=earliest\n  enable.auto.commit=false\n",
				replicas, (replicas+1)/2, brokers, s.driver))
			e := start(t, "as", "omb", "--drivers", driver, "-o", result, "--report-json", filepath.Join(dir, "report.json"), "--budget", "150s", load).wait(5 * time.Minute)
			assert.Must(t, e.code == 0, "exit %d\n%s%s", e.code, e.stdout, e.stderr)
			assert.Has(t, e.stdout, "----- Aggregated Pub Latency (ms) avg: ", "Writing test result into ")
			r := dropintest.ReadOMBResult(t, string(assert.Value(os.ReadFile(result))(t)))
			d := assert.Value(parseDocument(string(assert.Value(os.ReadFile(filepath.Join(dir, "report.json")))(t))))(t)
			assert.True(t, r.Topics == s.topics && r.Partitions == s.partitions && len(r.PublishRate) > 0, "%+v", r)
			assert.True(t, d.Totals.Acked > 0 && d.Totals.Failed == 0, "acked %d, failed %d", d.Totals.Acked, d.Totals.Failed)
			wantClose(t, "consumed", float64(d.Totals.Consumed), float64(d.Totals.Acked)*float64(s.groups), 0)
			wantClose(t, "the 99th percentile in ms", *r.AggregatedPublishLatency99pct, d.Response.P99US/1e3, 0.001+d.Response.P99US/1e6)
			if s.backlogGB > 0 {
				assert.Has(t, e.stdout, "Stopping all consumers to build backlog\n", "--- Completed backlog build in ", "--- Start draining backlog ---\n", "--- Completed backlog draining in ")
				b := d.Backlog
				assert.True(t, b.State == "drained" && float64(b.MostBytes) >= s.backlogGB*(1<<30)/float64(s.groups), "%+v", b)
			}
			if s.groups > 0 {
				assert.True(t, *r.AggregatedEndToEndLatency50pct > 0, "no end-to-end latency")
			}
		})
	}
}

// TestAsOMB: eleven of OMB's workloads on one broker.
func TestAsOMB(t *testing.T) {
	runOMB(t, kafkatest.Shared(t).Bootstrap(), 1,
		ombShape{name: "1 topic 1 partition 100b", topics: 1, partitions: 1, groups: 1, consumers: 1, producers: 1, size: 100, rate: 5000},
		ombShape{name: "1 topic 16 partitions 1kb", topics: 1, partitions: 16, groups: 1, consumers: 1, producers: 1, size: 1024, rate: 2000},
		ombShape{name: "1 topic 100 partitions 4p 4c", topics: 1, partitions: 100, groups: 1, consumers: 4, producers: 4, size: 1024, rate: 2000},
		ombShape{name: "3 producers", topics: 1, partitions: 3, groups: 1, consumers: 1, producers: 3, size: 100, rate: 3000},
		ombShape{name: "10 topics 3 partitions", topics: 10, partitions: 3, groups: 1, consumers: 1, producers: 1, size: 100, rate: 3000},
		ombShape{name: "100 topics 3 subscriptions", topics: 100, partitions: 1, groups: 3, consumers: 1, producers: 1, size: 1024, rate: 1000},
		ombShape{name: "20 producers 20 consumers 64kb", topics: 1, partitions: 20, groups: 1, consumers: 20, producers: 20, size: 65_536, rate: 100},
		ombShape{name: "the rate is searched", topics: 1, partitions: 6, groups: 1, consumers: 1, producers: 1, size: 100, rate: 0},
		ombShape{name: "keys in turn zstd", topics: 1, partitions: 10, groups: 0, producers: 1, size: 1024, rate: 2000, more: "keyDistributor: KEY_ROUND_ROBIN\n", driver: "  compression.type=zstd\n"},
		ombShape{name: "random keys", topics: 1, partitions: 10, groups: 1, consumers: 2, producers: 1, size: 1024, rate: 2000, more: "keyDistributor: RANDOM_NANO\n"},
		ombShape{name: "a backlog of 2 subscriptions", topics: 1, partitions: 10, groups: 2, consumers: 2, producers: 1, size: 1024, rate: 2000, backlogGB: 0.02, more: "backlogDrainRatio: 0.9\n"},
	)
}

// TestAsOMBThreeNodes: three of them on three nodes, with three replicas.
func TestAsOMBThreeNodes(t *testing.T) {
	runOMB(t, kafkatest.SharedThree(t).Bootstrap(), 3,
		ombShape{name: "1 topic 16 partitions", topics: 1, partitions: 16, groups: 1, consumers: 1, producers: 1, size: 1024, rate: 1000},
		ombShape{name: "10 topics 3 partitions", topics: 10, partitions: 3, groups: 1, consumers: 2, producers: 2, size: 100, rate: 1000},
		ombShape{name: "3 subscriptions", topics: 2, partitions: 4, groups: 3, consumers: 4, producers: 1, size: 1024, rate: 1000},
	)
}
