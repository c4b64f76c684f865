//go:build conformance

package acceptance

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
	"carronade/test/testkit/kafkatest"
)

// TestThrottled sends against a quota: Kafka throttles the client, which slows the run and fails no event.
func TestThrottled(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Shared(t)
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			topic, id := broker.CreateTopic(t, 1, 1), "throttled-"+engine
			const quota = 50_000 // bytes/s
			results, err := broker.Admin(t).AlterClientQuotas(t.Context(), []kadm.AlterClientQuotaEntry{{
				Entity: kadm.ClientQuotaEntity{{Type: "client-id", Name: &id}},
				Ops:    []kadm.AlterClientQuotaOp{{Key: "producer_byte_rate", Value: quota}},
			}})
			assert.Must(t, err == nil && len(results) == 1 && results[0].Err == nil, "set a quota: %v, %+v", err, results)
			// A broker throttles only when the average over its window of 11 s exceeds
			// the quota, so 1 MB of events is late by about 9 s.
			e := run(t, "run", topicURL(broker, topic), "--engine", engine, "--client-id", id, "--rate", "200/s", "--for", "5s", "--size", "1000", "--batch-size", "8KiB",
				"--client-metrics", "--drain", "60s", "--json", "--quiet").succeeded(t)
			d := e.document(t)
			assert.Equal(t, d.Totals.Acked, 1000, "events acked: %+v, %+v", d.Totals.counts, d.Failures)
			assert.True(t, d.Response != nil && d.Response.MaxUS >= 2e6, "the quota does not show: %+v", d.Response)
			assert.True(t, strings.Contains(strings.ToLower(e.stdout), "throttle"), "the report does not mention throttling")
			got := broker.EndSum(t, topic)
			assert.True(t, got == int64(d.wholeRun().Acked), "the end offsets grew by %d, acked are %d", got, d.wholeRun().Acked)
		})
	}
}

// TestJavaProfile sends as the Java producer does by default.
func TestJavaProfile(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Shared(t)
	topic := broker.CreateTopic(t, 1, 1)
	run(t, "run", topicURL(broker, topic), "--engine", "client", "--profile", "java", "--rate", "2000/s", "--for", "1s", "--json", "--quiet").succeeded(t)
	next := 0
	for _, b := range broker.Node(1).Dump(t, topic) {
		assert.True(t, b.ProducerID >= 0 && b.BaseSequence == next && b.Codec == "none" && b.Size <= 17_000,
			"batch at %d: producer %d, sequence %d (want %d), codec %s, %d bytes", b.Base, b.ProducerID, b.BaseSequence, next, b.Codec, b.Size)
		next += b.Count
	}
	assert.Equal(t, next, 2000, "events on the disk")
}

// TestOthers reads with other tools what carronade sent, and with carronade what they sent.
func TestOthers(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Shared(t)
	t.Run("Kafka's perf tool writes", func(t *testing.T) {
		topic := broker.CreateTopic(t, 2, 1)
		broker.Tool(t, "ProducerPerformance", "--topic", topic, "--num-records", "20000", "--record-size", "100", "--throughput", "-1",
			"--command-property", "compression.type=zstd")
		for _, engine := range engines {
			for _, flag := range []string{"--decode", "--until-end"} {
				d := run(t, "run", topicURL(broker, topic), "--op", "consume", "--engine", engine, "--until-end", flag, "--json", "--quiet").wantOneOf(t, 0, 3).document(t)
				assert.Equal(t, d.Totals.Consumed, 20_000, "%s %s: consumed events", engine, flag)
			}
		}
	})
	t.Run("Kafka's perf tool reads", func(t *testing.T) {
		topic := broker.CreateTopic(t, 2, 1)
		run(t, "run", topicURL(broker, topic), "--count", "20000", "--compression", "gzip", "--quiet").wantOneOf(t, 0, 3)
		out := broker.Tool(t, "ConsumerPerformance", "--topic", topic, "--num-records", "20000", "--timeout", "60000")
		assert.True(t, strings.Contains(out, " 20000,"), "kafka-consumer-perf-test prints:\n%s", out)
	})
	t.Run("kcat", func(t *testing.T) {
		kcat := assert.Value(exec.LookPath("kcat"))(t, "kcat is missing: apt-get install kcat, or run scripts/deps as root")
		topic := broker.CreateTopic(t, 1, 1)
		run(t, "run", topicURL(broker, topic), "--count", "1000", "--size", "50", "--payload", "text", "--compression", "lz4", "--quiet").wantOneOf(t, 0, 3)
		ctx := testkit.Minute(t)
		out := assert.Value(exec.CommandContext(ctx, kcat, "-b", broker.Bootstrap(), "-C", "-t", topic, "-e", "-q", "-f", "%S\n").Output())(t)
		assert.Equal(t, strings.Count(string(out), "50\n"), 1000, "events of 50 bytes that kcat read")
	})
}

// Everything that the documents promise of old clusters works on them: operations, both engines, groups,
// transactions, verified runs, topics, the drop-ins; and what a release does not have is refused by name.
func TestOldKafka(t *testing.T) {
	for _, version := range slices.Sorted(maps.Keys(kafkatest.OldVersions)) {
		t.Run(version, func(t *testing.T) {
			broker := kafkatest.StartOld(t, version)
			zstd := 0
			if version < "2.1" {
				zstd = 2
			}
			latency := filepath.Join(t.TempDir(), "latency.properties")
			assert.OK(t, os.WriteFile(latency, nil, 0o600))
			for _, tt := range []struct {
				line string
				code int
			}{
				{"topics create kafka://BROKER/t --partitions 3 --replicas 1", 0},
				{"topics describe kafka://BROKER/t", 0},
				{"topics list kafka://BROKER", 0},
				{"run kafka://BROKER/made --count 200 --rate 2k/s --create-topic partitions=2", 0},
				{"run kafka://BROKER/defaults --count 200 --rate 2k/s --create-topic auto", 0},
				{"run kafka://BROKER/t --count 2k --rate 2k/s --verify", 0},
				{"run kafka://BROKER/t --count 2k --rate 2k/s --engine client", 0},
				{"run kafka://BROKER/t --count 2k --rate 2k/s --compression gzip", 0},
				{"run kafka://BROKER/t --count 2k --rate 2k/s --compression snappy", 0},
				{"run kafka://BROKER/t --count 2k --rate 2k/s --compression lz4", 0},
				{"run kafka://BROKER/t --count 2k --rate 2k/s --compression zstd", zstd},
				{"run kafka://BROKER/t --count 2k --rate 2k/s --idempotent --acks all", 0},
				{"run kafka://BROKER/t --count 2k --rate 2k/s --engine client --transactions --verify", 0},
				{"run kafka://BROKER/t --op consume --count 5k", 0},
				{"run kafka://BROKER/t --op consume --count 5k --engine client", 0},
				{"run kafka://127.0.0.1:9,BROKER/t --op consume --count 5k --engine client --group g", 0},
				{"run kafka://BROKER/t --op roundtrip --count 1k --rate 500/s", 0},
				{"run kafka://BROKER/m-{0..4} --count 2k --rate 2k/s --create-topic partitions=3 --verify", 0},
				{"run kafka://BROKER/m-{0..4} --count 2k --rate 2k/s --engine client --topic-weights zipf(1.1) --verify", 0},
				{"run kafka://BROKER/m-{0..4} --count 2k --rate 2k/s --op roundtrip --verify", 0},
				{"run kafka://BROKER/m-{0..4} --op consume --until-end", 0},
				{"run kafka://BROKER/m-{0..4} --op consume --count 5k --engine client --group m", 0},
				{"doctor kafka://BROKER/t", 0},
				{"profile kafka://BROKER/t", 0},
				{"as kafka-producer-perf-test --topic t --num-records 2000 --record-size 100 --throughput 2000 --producer-props bootstrap.servers=BROKER", 0},
				{"as kafka-consumer-perf-test --topic t --messages 2000 --bootstrap-server BROKER", 0},
				{"as kafka-e2e-latency BROKER t 200 1 100 " + latency, 0},
				{"as mongoose --storage-driver-type=kafka --storage-net-node-addrs=BROKER --item-output-path=t --item-data-size=100 --load-op-limit-count=500", 0},
				{"topics delete kafka://BROKER/made", 0},
			} {
				e := run(t, strings.Fields(strings.ReplaceAll(tt.line, "BROKER", broker))...)
				// 3: this machine is busy. doctor warns of it with 1.
				ok := e.code == tt.code || tt.code == 0 && (e.code == 3 || e.code == 1 && strings.HasPrefix(tt.line, "doctor"))
				assert.True(t, ok, "%s: exit %d, want %d\n%s%s", tt.line, e.code, tt.code, e.stdout, e.stderr)
			}
		})
	}
}

// TestSeveralTopics: both engines send to several topics of a current Kafka, whose requests name them by ids, and
// each event is read back.
func TestSeveralTopics(t *testing.T) {
	c := kafkatest.Shared(t)
	to := topicURL(c, c.CreateTopic(t, 1, 1)+"-{0..9}")
	for _, line := range []string{
		"--create-topic partitions=3 --idempotent --acks all", "--engine client --topic-weights zipf(1.1)", "--op roundtrip", "--batch-events 1 --clients 3",
		"--clients-per-topic 2 --op roundtrip", "--clients-per-topic 1 --engine client",
	} {
		e := run(t, append([]string{"run", to, "--rate", "5k/s", "--count", "20k", "--verify", "--json"}, strings.Fields(line)...)...).wantOneOf(t, 0, 3)
		assert.Has(t, e.stdout, `"topics": 10`, `"acked": 20000`)
	}
	e := run(t, "run", to, "--op", "consume", "--until-end", "--json").wantOneOf(t, 0, 3)
	assert.Has(t, e.stdout, `"consumed": 120000`)
}

// TestMembers: the members of a real group read two topics to the end, and what each of them read adds up.
func TestMembers(t *testing.T) {
	c := kafkatest.Shared(t)
	to := topicURL(c, c.CreateTopic(t, 1, 1)+"-{0..1}")
	run(t, "run", to, "--create-topic", "partitions=3", "--rate", "20k/s", "--count", "60k", "--json").wantOneOf(t, 0, 3)
	e := run(t, "run", to, "--op", "consume", "--group", "g-"+kafkatest.TopicName(t), "--members", "3", "--until-end", "--json").wantOneOf(t, 0, 3)
	var d struct {
		Lag     map[string]int64 `json:"lag_events"`
		Members []struct {
			Consumed   uint64 `json:"consumed"`
			Partitions int    `json:"partitions"`
		} `json:"members"`
	}
	assert.OK(t, json.Unmarshal([]byte(e.stdout), &d), "%.2000s", e.stderr)
	assert.True(t, len(d.Members) == 3 && len(d.Lag) == 6, "members %+v, lag %v", d.Members, d.Lag)
	sum := uint64(0)
	for _, m := range d.Members {
		sum += m.Consumed
		assert.True(t, m.Partitions > 0, "a member without a partition: %+v", d.Members)
	}
	assert.Equal(t, sum, 60_000, "events of the members: %+v", d.Members)
	for log, n := range d.Lag {
		assert.Equal(t, n, 0, "%s is behind", log)
	}
	t.Logf("%+v", d.Members)
}

// A stage is what the tests read of a pipeline's stage.
type stage struct {
	Name   string `json:"name"`
	Totals counts `json:"totals"`
}

func stages(t *testing.T, e ended) (send, read stage) {
	t.Helper()
	var d struct {
		Parts []stage `json:"parts"`
	}
	err := json.Unmarshal([]byte(e.stdout), &d)
	assert.Must(t, err == nil && len(d.Parts) == 2 && d.Parts[0].Name == "send" && d.Parts[1].Name == "read", "%v, stages %+v\n%s", err, d.Parts, e.stderr)
	return d.Parts[0], d.Parts[1]
}

// TestPipeline: reads keep up with 50,000 records a second, and each record is read once.
func TestPipeline(t *testing.T) {
	c := kafkatest.Shared(t)
	topic := c.CreateTopic(t, 3, 1)
	e := run(t, "run", topicURL(c, topic), "--op", "pipeline", "--rate", "50k/s", "--for", "2s", "--json").wantOneOf(t, 0, 3)
	send, read := stages(t, e)
	assert.True(t, send.Totals.Acked == 100_000 && read.Totals.Acked == 100_000 && read.Totals.Offered == 100_000,
		"sent %+v, read %+v", send.Totals, read.Totals)
	assert.Equal(t, c.EndSum(t, topic), 100_000, "growth of the end offsets")
	d := e.document(t)
	assert.Must(t, d.EndToEnd != nil, "no end-to-end times")
	t.Logf("end to end: max %.1f ms", d.EndToEnd.MaxUS/1000)
}

// TestPipelineLeaderMoved: while leaders move, every record that was acked is read in the end.
func TestPipelineLeaderMoved(t *testing.T) {
	t.Parallel()
	threeNodes.Lock()
	defer threeNodes.Unlock()
	c := kafkatest.SharedThree(t)
	topic := c.CreateTopic(t, 2, 3)
	s := start(t, "run", topicURL(c, topic), "--op", "pipeline", "--acks", "all", "--idempotent", "--rate", "1000/s", "--for", "8s", "--read-delay", "500ms", "--json")
	s.awaitStderr(progressText)
	for range 3 {
		from := c.LeaderOf(t, topic, 0)
		c.MoveLeader(t, topic, 0, c.Node(from.ID()%3+1))
		pause(t, time.Second)
	}
	_, read := stages(t, s.wait(runTimeout).wantOneOf(t, 0, 3))
	assert.Equal(t, read.Totals.Acked, 8000, "read %+v", read.Totals)
}

// A fitted is what `carronade profile --json` prints.
type fitted struct {
	Schema string `json:"schema"`
	Source struct {
		Read  uint64 `json:"read"`
		Whole bool   `json:"whole"`
	} `json:"source"`
	Parameters struct {
		Sizes struct {
			Family string  `json:"family"`
			Mean   float64 `json:"mean"`
		} `json:"sizes"`
		Content struct {
			Codec string  `json:"codec"`
			Ratio float64 `json:"ratio"`
		} `json:"content"`
		Batches struct {
			Codec string `json:"codec"`
		} `json:"batches"`
		Keys struct {
			Family string `json:"family"`
		} `json:"keys"`
	} `json:"parameters"`
}

func profile(t *testing.T, args ...string) (f fitted) {
	t.Helper()
	e := run(t, append([]string{"profile", "--json"}, args...)...).want(t, 0)
	err := json.Unmarshal([]byte(e.stdout), &f)
	assert.Must(t, err == nil && f.Schema == "carronade.profile/1", "the profile: %v\n%.500s", err, e.stdout)
	return f
}

// TestProfile fits a workload to a topic that Kafka's perf tool filled from a file of payloads,
// runs it against Kafka, and fits another one to that.
func TestProfile(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Shared(t)
	topic := broker.CreateTopic(t, 3, 1)
	dir := t.TempDir()
	// Lines of three sizes, of text that compresses.
	var lines []string
	for i := range 300 {
		lines = append(lines, fmt.Sprintf(`{"order":%d,"customer":%d,"note":"%s"}`, 10_000+i, 5000+7*i, strings.Repeat("as soon as possible ", 1+i%3*4)))
	}
	payloads := filepath.Join(dir, "payloads.txt")
	assert.OK(t, os.WriteFile(payloads, []byte(strings.Join(lines, "\n")), 0o644))
	broker.Tool(t, "ProducerPerformance", "--topic", topic, "--num-records", "20000", "--payload-file", payloads, "--throughput", "8000", "--command-property", "compression.type=lz4")
	file := filepath.Join(dir, "fitted.yaml")
	before := profile(t, topicURL(broker, topic), "-o", file, "--to", topicURL(broker, topic+"-again"))
	p := before.Parameters
	assert.Must(t, before.Source.Read == 20_000 && before.Source.Whole && p.Keys.Family == "none" &&
		p.Batches.Codec == "lz4" && p.Sizes.Family == "weighted", "the profile of the perf tool's topic: %+v", before)
	text, err := os.ReadFile(file)
	assert.Must(t, err == nil && !strings.Contains(string(text), "customer"), "the workload: %v\n%s", err, text)
	run(t, "run", "-f", file, "--quiet").wantOneOf(t, 0, 3)
	after := profile(t, topicURL(broker, topic+"-again"), "-o", filepath.Join(dir, "again.yaml")).Parameters
	assert.True(t, math.Abs(after.Sizes.Mean/p.Sizes.Mean-1) <= 0.05 && math.Abs(after.Content.Ratio/p.Content.Ratio-1) <= 0.05 && after.Batches.Codec == "lz4",
		"after the run: %+v, want it within 5%% of %+v", after, p)
}
