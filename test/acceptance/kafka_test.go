//go:build conformance

package acceptance

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
	"carronade/test/testkit/kafkatest"
)

// TestPartitioner compares the partitions of keys with those that Kafka's producer chooses.
func TestPartitioner(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Shared(t)
	const keys, partitions = 100, 7
	where := make(map[string]int32)
	java := broker.CreateTopic(t, partitions, 1)
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			topic := broker.CreateTopic(t, partitions, 1)
			run(t, "run", topicURL(broker, topic), "--engine", engine, "--rate", strconv.Itoa(keys)+"/s", "--for", "1s", "--partitioner", "murmur2",
				"--key", "seq", "--payload", "monotonic", "--fresh", "--json", "--quiet").succeeded(t)
			records := broker.Consume(t, keys, topic)
			if len(where) == 0 {
				var lines strings.Builder
				for _, r := range records {
					fmt.Fprintf(&lines, "%s\tv\n", r.Key)
				}
				produceByJava(t, broker, java, lines.String())
				for _, r := range broker.Consume(t, keys, java) {
					where[r.Key] = r.Partition
				}
			}
			for _, r := range records {
				if want, ok := where[r.Key]; !ok || want != r.Partition {
					t.Errorf("key %q is in partition %d, Kafka's producer puts it into %d (%v)", r.Key, r.Partition, want, ok)
				}
			}
			assert.Equal(t, len(records), keys, "records arrived")
		})
	}
}

// produceByJava sends lines of key and value, a tab between them, with Kafka's console producer.
func produceByJava(t *testing.T, c *kafkatest.Cluster, topic, lines string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), runTimeout)
	defer cancel()
	cmd := kafkatest.ToolCommand(t, ctx, "", "ConsoleProducer", "--bootstrap-server", c.Bootstrap(), "--topic", topic,
		"--reader-property", "parse.key=true")
	cmd.Stdin = strings.NewReader(lines)
	out, err := cmd.CombinedOutput()
	assert.Must(t, err == nil, "console producer: %v\n%s", err, out)
}

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

// TestTransactions commits and aborts transactions, and compares with a consumer of committed records.
func TestTransactions(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Shared(t)
	committed := func(t *testing.T, topic string) uint64 {
		return run(t, "run", topicURL(broker, topic), "--op", "consume", "--engine", "client", "--isolation", "committed", "--until-end",
			"--json", "--quiet").wantOneOf(t, 0, 3).document(t).Totals.Consumed
	}
	for _, tt := range []struct{ name, abort string }{{"committed", "0%"}, {"half aborted", "50%"}} {
		t.Run(tt.name, func(t *testing.T) {
			topic := broker.CreateTopic(t, 2, 1)
			d := run(t, "run", topicURL(broker, topic), "--engine", "client", "--transactions", "--transaction-interval", "100ms", "--transaction-abort", tt.abort,
				"--acks", "all", "--rate", "1000/s", "--for", "3s", "--json", "--quiet").succeeded(t).document(t)
			transactional, records := 0, 0
			for _, b := range broker.Node(1).Dump(t, topic) {
				if b.Control {
					continue
				}
				records += b.Count
				if b.Transactional {
					transactional += b.Count
				}
			}
			assert.True(t, records == transactional && records == 3000 && d.Totals.Sent == 3000,
				"%d records are on the disk, %d of them transactional; sent were %d, want 3000", records, transactional, d.Totals.Sent)
			got := committed(t, topic)
			assert.True(t, tt.abort != "0%" || got == 3000 && d.Totals.Acked == 3000,
				"%d records are committed, acked are %d, want 3000", got, d.Totals.Acked)
			assert.True(t, tt.abort == "0%" || got != 0 && got < 3000, "%d records of 3000 are committed, want about half", got)
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

// topicsReport is the JSON output of the operations on topics.
type topicsReport struct {
	Op      string
	Done    uint64
	Failed  uint64
	Events  uint64
	Classes map[string]uint64
	Service *times
}

func topicsOp(t *testing.T, code int, args ...string) topicsReport {
	t.Helper()
	e := run(t, append([]string{"topics"}, append(args, "--json")...)...).want(t, code)
	var r topicsReport
	assert.OK(t, json.Unmarshal([]byte(e.stdout), &r), "%.2000s", e.stdout)
	return r
}

// TestTopics creates, lists, reads and deletes topics, and compares with the broker.
func TestTopics(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Shared(t)
	name := kafkatest.TopicName(t)
	url := topicURL(broker, name)
	// A broker answers a creation before all of its parts have the topic.
	exist := func(want int) (n int) {
		for deadline := time.Now().Add(10 * time.Second); ; pause(t, 200*time.Millisecond) {
			all := assert.Value(broker.Admin(t).ListTopics(t.Context()))(t)
			n = 0
			for topic, d := range all {
				if strings.HasPrefix(topic, name) && d.Err == nil {
					n++
				}
			}
			if n == want || time.Now().After(deadline) {
				return n
			}
		}
	}
	if r := topicsOp(t, 0, "create", url, "--count", "20", "--per-request", "5", "--concurrency", "2", "--partitions", "2", "--replicas", "1"); r.Done != 20 || r.Failed != 0 || exist(20) != 20 {
		t.Fatalf("created: %+v; there are %d", r, exist(20))
	}
	r := topicsOp(t, 1, "create", url, "--count", "20", "--partitions", "2", "--replicas", "1")
	assert.True(t, r.Done == 0 && r.Failed == 20 && r.Classes["rejected"] == 20, "created again: %+v", r)
	e := run(t, "topics", "list", url).want(t, 0)
	assert.True(t, strings.Contains(e.stdout, name+"-19"), "%s-19 is not in the list:\n%.2000s", name, e.stdout)
	e = run(t, "topics", "describe", url+"-3").want(t, 0)
	assert.True(t, strings.Contains(e.stdout, name+"-3"), "the description:\n%.2000s", e.stdout)
	run(t, "run", url+"-3", "--count", "500", "--quiet").wantOneOf(t, 0, 3)
	r = topicsOp(t, 0, "read", "kafka://"+broker.Bootstrap(), name+"-3,"+name+"-4")
	assert.True(t, r.Done == 2 && r.Events == 500, "read: %+v, want 2 operations and 500 events", r)
	r = topicsOp(t, 1, "read", "kafka://"+broker.Bootstrap(), name+"-3,"+name+"-missing")
	assert.True(t, r.Done == 1 && r.Failed == 1, "read one that is missing: %+v", r)
	r = topicsOp(t, 0, "delete-records", url+"-3")
	assert.True(t, r.Done == 1, "records deleted: %+v", r)
	r = topicsOp(t, 0, "read", url+"-3")
	assert.True(t, r.Events == 0, "read after the records were deleted: %+v", r)
	if r := topicsOp(t, 0, "delete", url, "--count", "20"); r.Done != 20 || exist(0) != 0 {
		t.Errorf("deleted: %+v; there are %d", r, exist(0))
	}
	r = topicsOp(t, 1, "delete", url, "--count", "2")
	assert.True(t, r.Failed == 2, "deleted again: %+v", r)
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
		out, err := exec.CommandContext(ctx, kcat, "-b", broker.Bootstrap(), "-C", "-t", topic, "-e", "-q", "-f", "%S\n").Output()
		assert.OK(t, err)
		assert.Equal(t, strings.Count(string(out), "50\n"), 1000, "events of 50 bytes that kcat read")
	})
}

// TestPayloadFile sends the lines of a file.
func TestPayloadFile(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Shared(t)
	file := filepath.Join(t.TempDir(), "lines.txt")
	writeFile(t, file, "alpha\nbeta\ngamma\n")
	topic := broker.CreateTopic(t, 1, 1)
	run(t, "run", topicURL(broker, topic), "--rate", "300/s", "--for", "1s", "--payload", "file:"+file, "--fresh", "--json", "--quiet").succeeded(t)
	count := make(map[string]int)
	for _, r := range broker.Consume(t, 300, topic) {
		count[r.Value]++
	}
	assert.True(t, len(count) == 3 && count["alpha"] == 100 && count["beta"] == 100 && count["gamma"] == 100,
		"the counts of the lines are %v", count)
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
	} {
		e := run(t, append([]string{"run", to, "--rate", "5k/s", "--count", "20k", "--verify", "--json"}, strings.Fields(line)...)...).wantOneOf(t, 0, 3)
		assert.Has(t, e.stdout, `"topics": 10`, `"acked": 20000`)
	}
	e := run(t, "run", to, "--op", "consume", "--until-end", "--json").wantOneOf(t, 0, 3)
	assert.Has(t, e.stdout, `"consumed": 80000`)
}

// A stage is what the tests read of a pipeline's stage.
type stage struct {
	Name   string `json:"name"`
	Totals counts `json:"totals"`
}

// stages returns the stages of a pipeline's report.
func stages(t *testing.T, e ended) (send, read stage) {
	t.Helper()
	var d struct {
		Parts []stage `json:"parts"`
	}
	if err := json.Unmarshal([]byte(e.stdout), &d); err != nil || len(d.Parts) != 2 || d.Parts[0].Name != "send" || d.Parts[1].Name != "read" {
		t.Fatalf("%v, stages %+v\n%s", err, d.Parts, e.stderr)
	}
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
