//go:build conformance

package acceptance

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"carronade/test/testkit/assert"
	"carronade/test/testkit/kafkatest"
)

// The records of each consumer of a share group agree with the report, and their
// sum is at least the number counted.
func TestShareConsumerAgreesWithReport(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Shared(t)
	topic := broker.CreateTopic(t, 4, 1)
	fillTopic("20000")(t, broker, topic, "")
	broker.Tool(t, "kafka.admin.ConfigCommand", "--alter", "--entity-type", "groups", "--entity-name", topic, "--add-config", "share.auto.offset.reset=earliest")
	s, d := runAs(t, shareForms, 0, "kafka-share-consumer-perf-test", "--bootstrap-server", broker.Bootstrap(), "--topic", topic, "--group", topic,
		"--num-records", "15000", "--threads", "2", "--show-consumer-stats", "--timeout", "30000")
	assert.Equal(t, d.Totals.Consumed, 15_000, "events consumed")
	wantClose(t, "records", s.number(t, "total.messages"), float64(d.Totals.Consumed), 0)
	wantClose(t, "MB", s.number(t, "total.mb"), float64(d.Totals.Bytes)/(1<<20), 5e-5)
	wantClose(t, "records a second", s.number(t, "total.rate"), d.Totals.EventsPerS, 1e-3)
	wantClose(t, "ms", s.number(t, "total.fetch"), d.Totals.ElapsedS*1e3, 0.5)

	members := d.System.ShareGroup
	assert.Must(t, len(s.fields["consumer.messages"]) == 2 && len(members.Events) == 2 && len(members.Bytes) == 2,
		"consumers %q, members %+v", s.fields["consumer.messages"], members)
	sum := uint64(0)
	for i, text := range s.fields["consumer.messages"] {
		n := assert.Value(strconv.ParseUint(text, 10, 64))(t)
		mb := assert.Value(strconv.ParseFloat(s.fields["consumer.mb"][i], 64))(t)
		assert.Equal(t, n, members.Events[i], "consumer %d records, the report", i+1)
		wantClose(t, "MB of a consumer", mb, float64(members.Bytes[i])/(1<<20), 5e-5)
		sum += n
	}
	assert.True(t, sum >= d.Totals.Consumed && sum <= 20_000,
		"the consumers have %d records together, all of them %d", sum, d.Totals.Consumed)
}

// After Ctrl-C the program prints the row of what was consumed and keeps the report;
// with --strict it just ends, as a JVM does.
func TestAsKafkaConsumerInterrupted(t *testing.T) {
	t.Parallel()
	server := startStandin(t, "kafka", "--discard", "--listen", "127.0.0.1:0", "--topic", "t")
	for _, strict := range []bool{false, true} {
		t.Run("strict="+strconv.FormatBool(strict), func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "report.json")
			args := []string{
				"as", "kafka-consumer-perf-test", "--report-json", file, "--bootstrap-server", server.addr, "--topic", "t",
				"--num-records", "100000000000", "--reporting-interval", "300",
			}
			if strict {
				args = append(args, "--strict", "--show-detailed-stats")
			}
			s := start(t, args...)
			if strict {
				s.awaitStdout(1, ", 0, ") // a row, of thread 0
			} else {
				awaitIntervals(t, s.home, 1)
			}
			s.signal(syscall.SIGINT)
			e := s.wait(runTimeout).want(t, 130)
			data := assert.Value(os.ReadFile(file))(t)
			var d reported
			assert.OK(t, json.Unmarshal(data, &d))
			forms := consumerForms
			if strict {
				forms = consumerDetails
			}
			got := side{who: carronadeSide, out: e.stdout}
			assert.OK(t, got.parse(forms), "%s", e.stdout)
			if strict {
				if last := got.number(t, "row.messages"); last <= 0 || last > float64(d.Totals.Consumed) || len(got.lines) != 1 {
					t.Errorf("the last row has %g of %d records; lines %q", last, d.Totals.Consumed, got.lines)
				}
				return
			}
			if n := got.number(t, "total.messages"); n == 0 || n != float64(d.Totals.Consumed) {
				t.Errorf("the row has %g records, the report %d", n, d.Totals.Consumed)
			}
		})
	}
}

// If brokers do not answer, the exit code is 2 and the reason is printed once, with
// and without --strict.
func TestAsKafkaUnreachable(t *testing.T) {
	t.Parallel()
	const unreachable = "127.0.0.1:1"
	for _, tt := range []struct{ name, args string }{
		{"consumer", "kafka-consumer-perf-test --bootstrap-server " + unreachable + " --topic t --num-records 5 --timeout 500"},
		{"consumer, strict", "kafka-consumer-perf-test --strict --bootstrap-server " + unreachable + " --topic t --num-records 5 --timeout 500"},
		{"share consumer", "kafka-share-consumer-perf-test --bootstrap-server " + unreachable + " --topic t --num-records 5 --timeout 500"},
		{"latency", "kafka-e2e-latency " + unreachable + " t 5 1 10"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := run(t, append([]string{"as"}, strings.Fields(tt.args)...)...).want(t, 2)
			if n := strings.Count(e.stderr, "connection refused"); n != 1 || strings.Contains(e.stdout, "0.0000") {
				t.Errorf("the reason is printed %d times:\n%s%s", n, e.stdout, e.stderr)
			}
		})
	}
}

// Warnings about a command line are printed once, although the report contains them
// too, and never contain what may be a secret.
func TestAsKafkaConsumersSay(t *testing.T) {
	t.Parallel()
	server := startStandin(t, "kafka", "--in-memory", "--listen", "127.0.0.1:0")
	run(t, "run", "kafka://"+server.addr+"/t", "--count", "100", "--size", "10", "--quiet").wantOneOf(t, 0, 3)
	file := filepath.Join(t.TempDir(), "client.properties")
	assert.OK(t, os.WriteFile(file, []byte("made.up=1\n"), 0o600))
	for _, args := range []string{
		"kafka-consumer-perf-test --bootstrap-server PLAINTEXT://" + server.addr + " --topic t --num-records 100 --command-config " + file + " ssl.key.password=hunter2",
		"kafka-e2e-latency --bootstrap-server PLAINTEXT://" + server.addr + " --topic t --num-records 10 --producer-acks 1 --record-size 10 --command-config " + file + " ssl.key.password=hunter2",
	} {
		e := run(t, append([]string{"as"}, strings.Fields(args)...)...).wantOneOf(t, 0, 3)
		if n := strings.Count(e.stderr, "warning: the client property made.up has no meaning"); n != 1 || !strings.Contains(e.stderr, "warning: unknown option ssl.key.password") || strings.Contains(e.stderr+e.stdout, "hunter2") {
			t.Errorf("%s: %d times:\n%s", args, n, e.stderr)
		}
	}
}
