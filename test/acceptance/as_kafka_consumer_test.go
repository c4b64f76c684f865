//go:build conformance

package acceptance

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"

	"carronade/test/testkit/assert"
	"carronade/test/testkit/kafkatest"
)

// consumerForms2018 are the lines of kafka-consumer-perf-test of 2018.
var consumerForms2018 = []form{
	line("header", `start\.time, end\.time, data\.consumed\.in\.MB, MB\.sec, data\.consumed\.in\.nMsg, nMsg\.sec`),
	line("total", `(?P<start>`+consumerStamp+`), (?P<end>`+consumerStamp+`), (?P<mb>\d+\.\d{4}), (?P<mbs>\d+\.\d{4}), (?P<messages>\d+), (?P<rate>\d+\.\d{4})`),
}

// Commands published in 2018, with only topics and addresses changed, which are ZooKeeper's there.
func TestPrintedConsumerCommands(t *testing.T) {
	t.Parallel()
	const zookeepers = "172.25.52.170:33181,172.25.52.171:33181,172.25.52.169:33181,172.25.52.168:33181,172.25.52.167:33181"
	broker := kafkatest.Shared(t)
	topic := broker.CreateTopic(t, 3, 1)
	fillTopic(t, broker, topic, 10_000)
	endless := startStandin(t, "kafka", "--discard", "--listen", "127.0.0.1:0", "--topic", "api-test")
	list := func(addr string) string { return strings.TrimSuffix(strings.Repeat(addr+",", 5), ",") }
	for _, p := range []printedCommand{
		{
			name:         "ten thousand messages",
			line:         "./kafka-consumer-perf-test.sh --topic api-test --zookeeper " + zookeepers + " --threads 1 --messages 10000",
			replacements: []string{zookeepers, list(broker.Bootstrap()), "api-test", topic}, forms: consumerForms2018,
			want: []string{"header."}, same: map[string]string{"total.messages": "10000", "total.mb": "0.9537"},
		},
		{
			name:         "ten million messages",
			line:         "./kafka-consumer-perf-test.sh --topic api-test --zookeeper " + zookeepers + " --threads 1 --messages 10000000",
			replacements: []string{zookeepers, list(endless.addr)}, forms: consumerForms2018, want: []string{"header."}, same: map[string]string{"total.messages": "10000000"},
		},
		{
			name:         "a hundred million messages",
			line:         "./kafka-consumer-perf-test.sh --topic api-test --zookeeper " + zookeepers + " --threads 1 --messages 100000000",
			replacements: []string{zookeepers, list(endless.addr)}, forms: consumerForms2018, want: []string{"header."}, same: map[string]string{"total.messages": "100000000"},
		},
	} {
		t.Run(strings.ReplaceAll(p.name, " ", "-"), func(t *testing.T) { p.check(t) })
	}
}

// reported is the part of a report about a run that consumed or made round trips.
type reported struct {
	Totals struct {
		Consumed   uint64  `json:"consumed"`
		Bytes      uint64  `json:"bytes"`
		ElapsedS   float64 `json:"elapsed_s"`
		EventsPerS float64 `json:"events_per_s"`
		RebalanceS float64 `json:"rebalance_s"`
		Missing    uint64  `json:"missing"`
	} `json:"totals"`
	EndToEnd struct {
		Count uint64  `json:"count"`
		Mean  float64 `json:"mean_us"`
		P50   float64 `json:"p50_us"`
		P99   float64 `json:"p99_us"`
		P999  float64 `json:"p999_us"`
	} `json:"end_to_end"`
	Intervals []struct {
		Histograms map[string]string `json:"histograms"`
	} `json:"intervals"`
	Labels map[string]string `json:"labels"`
	System struct {
		ShareGroup struct {
			Events []uint64 `json:"member_events"`
			Bytes  []uint64 `json:"member_bytes"`
		} `json:"share_group"`
	} `json:"facts"`
}

func runAs(t *testing.T, forms []form, code int, args ...string) (side, reported) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.json")
	e := run(t, append([]string{"as"}, append(args, "--report-json", file)...)...)
	assert.Must(t, e.code == code || e.code == 3, "exit %d, want %d\n%s%s", e.code, code, e.stdout, e.stderr)
	s := side{who: "ours", out: e.stdout, errs: e.stderr}
	assert.OK(t, s.parse(forms), "%s", e.stdout)
	data := assert.Value(os.ReadFile(file))(t)
	var d reported
	assert.OK(t, json.Unmarshal(data, &d))
	assert.Equal(t, d.Labels["as"], args[0], "the label as of %q", d.Labels)
	return s, d
}

// endToEnd are all end-to-end times of a report, in microseconds and sorted, from the histograms of its intervals.
func (d *reported) endToEnd(t *testing.T) (us []float64) {
	t.Helper()
	for _, iv := range d.Intervals {
		text := iv.Histograms["end_to_end"]
		if text == "" {
			continue
		}
		h := assert.Value(hdrhistogram.Decode([]byte(text)))(t)
		for _, bar := range h.Distribution() {
			for range bar.Count {
				us = append(us, float64(bar.To))
			}
		}
	}
	slices.Sort(us)
	assert.Must(t, len(us) > 0 && uint64(len(us)) == d.EndToEnd.Count,
		"the intervals have %d times, the report %d", len(us), d.EndToEnd.Count)
	return us
}

func wantClose(t *testing.T, what string, printed, reported, within float64) {
	t.Helper()
	assert.True(t, math.Abs(printed-reported) <= within, "%s: printed %g, the report has %g", what, printed, reported)
}

// The consumer's rows agree with the report.
func TestConsumerAgreesWithReport(t *testing.T) {
	t.Parallel()
	const records = 60_000
	s := startStandin(t, "kafka", "--in-memory", "--listen", "127.0.0.1:0")
	run(t, "run", "kafka://"+s.addr+"/t", "--count", strconv.Itoa(records), "--size", "200", "--quiet").wantOneOf(t, 0, 3)
	from := []string{"kafka-consumer-perf-test", "--bootstrap-server", s.addr, "--topic", "t", "--timeout", "4000"} // longer than a busy machine stops
	simple, d := runAs(t, consumerForms, 0, append(from, "--num-records", "50000")...)
	assert.True(t, d.Totals.Consumed == 50_000 && d.Totals.Missing == 0, "the report has %+v", d.Totals)
	wantClose(t, "messages", simple.number(t, "total.messages"), float64(d.Totals.Consumed), 0)
	wantClose(t, "MB", simple.number(t, "total.mb"), float64(d.Totals.Bytes)/(1<<20), 5e-5)
	wantClose(t, "messages a second", simple.number(t, "total.rate"), d.Totals.EventsPerS, 1e-3)
	wantClose(t, "rebalance", simple.number(t, "total.rebalance"), d.Totals.RebalanceS*1e3, 0.5)
	wantClose(t, "fetch", simple.number(t, "total.fetch"), (d.Totals.ElapsedS-d.Totals.RebalanceS)*1e3, 1)
	// The last row of the intervals contains the totals. Here there are too few records.
	rows, d := runAs(t, consumerDetails, 1, append(from, "--num-records", "70000", "--show-detailed-stats", "--reporting-interval", "20")...)
	assert.True(t, d.Totals.Consumed == records && d.Totals.Missing == 10_000 && len(rows.fields["late.ms"]) == 1,
		"the report has %+v", d.Totals)
	wantClose(t, "messages in the last row", rows.number(t, "row.messages"), float64(d.Totals.Consumed), 0)
	wantClose(t, "MB in the last row", rows.number(t, "row.mb"), float64(d.Totals.Bytes)/(1<<20), 5e-5)
	joined := 0.0
	for _, ms := range rows.fields["row.rebalance"] {
		x := assert.Value(strconv.ParseFloat(ms, 64))(t)
		joined += x
	}
	wantClose(t, "rebalance of all rows", joined, d.Totals.RebalanceS*1e3, 0.5*float64(len(rows.fields["row.rebalance"])))
}

// The output of the end-to-end tool agrees with the report.
func TestLatencyAgreesWithReport(t *testing.T) {
	t.Parallel()
	// With delayed answers, the percentiles are above 0.
	s := startStandin(t, "kafka", "--in-memory", "--listen", "127.0.0.1:0", "--delay", "3ms")
	for _, strict := range []bool{false, true} {
		args := []string{"kafka-e2e-latency", s.addr, "t" + strconv.FormatBool(strict), "400", "1", "100"}
		if strict {
			args = append(args, "--strict")
		}
		lines, d := runAs(t, latencyForms, 0, args...)
		assert.True(t, d.EndToEnd.Count == 400 && lines.fields["thousandth.i"][0] == "0" && lines.lines[0] == "made",
			"%d round trips in the report; lines %q", d.EndToEnd.Count, lines.lines)
		// A histogram's mean is within a part in a thousand.
		wantClose(t, "mean", lines.number(t, "mean.ms"), d.EndToEnd.Mean/1e3, d.EndToEnd.Mean/1e6+1e-4)
		all := d.endToEnd(t)
		for field, p := range map[string]float64{"percentiles.p50": 0.5, "percentiles.p99": 0.99, "percentiles.p999": 0.999} {
			us, below, above := map[float64]float64{0.5: d.EndToEnd.P50, 0.99: d.EndToEnd.P99, 0.999: d.EndToEnd.P999}[p], 0.501, 0.501
			if strict { // truncated, and one rank higher
				us, below, above = all[int(p*float64(len(all)))], 1, 0
			}
			// A histogram's value is the upper end of a bucket, which is a thousandth wide.
			got := lines.number(t, field)
			assert.True(t, got >= us/1e3*0.998-below && got <= us/1e3+above, "strict %v: %s is %g, the report has %g us", strict, field, got, us)
		}
	}
}

// The records of each consumer of a share group agree with the report, and their sum is at least the number counted.
func TestShareConsumerAgreesWithReport(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Shared(t)
	topic := broker.CreateTopic(t, 4, 1)
	fillTopic(t, broker, topic, 20_000)
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

// After Ctrl-C the program prints the row of what was consumed and keeps the report; with --strict it just ends, as a JVM does.
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
			n := got.number(t, "total.messages")
			assert.True(t, n != 0 && n == float64(d.Totals.Consumed), "the row has %g records, the report %d", n, d.Totals.Consumed)
		})
	}
}

// If brokers do not answer, the exit code is 2 and the reason is printed once, with and without --strict.
func TestAsKafkaUnreachable(t *testing.T) {
	t.Parallel()
	const unreachable = "127.0.0.1:1"
	for _, tt := range []struct{ name, args string }{
		{"consumer", "kafka-consumer-perf-test --bootstrap-server " + unreachable + " --topic t --num-records 5 --timeout 500"},
		{"consumer, strict", "kafka-consumer-perf-test --strict --bootstrap-server " + unreachable + " --topic t --num-records 5 --timeout 500"},
		{"share consumer", "kafka-share-consumer-perf-test --bootstrap-server " + unreachable + " --topic t --num-records 5 --timeout 500"},
		{"latency", "kafka-e2e-latency " + unreachable + " t 5 1 10"},
		{"producer", "kafka-producer-perf-test --generation 4.3 --topic t --num-records 5 --record-size 5 --throughput 5 --bootstrap-server " + unreachable},
		{"producer, strict", "kafka-producer-perf-test --strict --topic t --num-records 5 --record-size 5 --throughput 5 --bootstrap-server " + unreachable},
		{"producer of 2018", "kafka-producer-perf-test --generation 2018 --topic t --num-records 5 --record-size 5 --throughput 5 --producer-props bootstrap.servers=" + unreachable},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := run(t, append([]string{"as"}, strings.Fields(tt.args)...)...).want(t, 2)
			if n := strings.Count(e.stderr, "connection refused"); n != 1 || !strings.Contains(e.stderr, "hint: ") || strings.Contains(e.stdout, "0.00") {
				t.Errorf("the reason is printed %d times:\n%s%s", n, e.stdout, e.stderr)
			}
		})
	}
}

// Warnings about a command line are printed once, although the report contains them too, and never contain what may be a secret.
func TestAsKafkaConsumersSay(t *testing.T) {
	t.Parallel()
	server := startStandin(t, "kafka", "--in-memory", "--listen", "127.0.0.1:0")
	run(t, "run", "kafka://"+server.addr+"/t", "--count", "100", "--size", "10", "--quiet").wantOneOf(t, 0, 3)
	file := filepath.Join(t.TempDir(), "client.properties")
	assert.OK(t, os.WriteFile(file, []byte("made.up=1\n"), 0o600))
	for _, args := range []string{
		"kafka-consumer-perf-test --bootstrap-server PLAINTEXT://" + server.addr + " --topic t --num-records 100 --command-config " + file + " ssl.key.password=hunter2",
		"kafka-e2e-latency --bootstrap-server PLAINTEXT://" + server.addr + " --topic t --num-records 10 --producer-acks 1 --record-size 10 --command-config " + file + " ssl.key.password=hunter2",
		"kafka-producer-perf-test --topic t --num-records 100 --record-size 10 --throughput -1 --bootstrap-server " + server.addr + " --command-config " + file,
	} {
		e := run(t, append([]string{"as"}, strings.Fields(args)...)...).wantOneOf(t, 0, 3)
		if n := strings.Count(e.stderr, "warning: the client property made.up has no meaning"); n != 1 || strings.Contains(args, "hunter2") != strings.Contains(e.stderr, "warning: unknown option ssl.key.password") || strings.Contains(e.stderr+e.stdout, "hunter2") {
			t.Errorf("%s: %d times:\n%s", args, n, e.stderr)
		}
	}
}
