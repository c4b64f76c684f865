//go:build conformance

package acceptance

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"carronade/test/testkit/assert"
)

func runProducer(t *testing.T, code int, args ...string) (side, *document) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.json")
	e := run(t, append([]string{"as", "kafka-producer-perf-test", "--report-json", file}, args...)...)
	assert.Must(t, e.code == code || e.code == 3, "exit %d, want %d\n%s%s", e.code, code, e.stdout, e.stderr)
	s := side{who: carronadeSide, out: e.stdout, errs: e.stderr}
	forms := steadyForms
	if slices.Contains(args, "2018") { // its windows have another form
		forms = producerForms2018
	}
	assert.OK(t, s.parse(forms), "%s", e.stdout)
	data := assert.Value(os.ReadFile(file))(t)
	d := assert.Value(parseDocument(string(data)))(t)
	return s, d
}

// TestAsKafkaProducerSums: the numbers in the output agree with the report.
func TestAsKafkaProducerSums(t *testing.T) {
	t.Parallel()
	server := startStandin(t, "kafka", "--listen", "127.0.0.1:0", "--in-memory")
	for _, tt := range []struct {
		name string
		args string
		warm bool
	}{
		{"a rate", "--num-records 9000 --record-size 100 --throughput 4000", false},
		{"a warm-up", "--num-records 9000 --record-size 100 --throughput 4000 --warmup-records 2000", true},
		{"as fast as it goes", "--num-records 300000 --record-size 100 --throughput -1", false},
		{"numbers, in transactions", "--num-records 3000 --payload-monotonic --throughput 2000 --transaction-duration-ms 200", false},
	} {
		t.Run(strings.ReplaceAll(tt.name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			args := append(strings.Fields(tt.args), "--topic", strings.NewReplacer(" ", "-", ",", "").Replace(tt.name), "--reporting-interval", "500", "--bootstrap-server", server.addr)
			s, d := runProducer(t, 0, args...)
			total := d.wholeRun()
			times := d.Service
			if tt.name != "as fast as it goes" {
				times = d.Response
			}
			last := "total"
			wantClose(t, "records", s.number(t, "total.records"), float64(total.Acked), 0)
			if tt.warm {
				last = "steady"
				wantClose(t, "steady records", s.number(t, "steady.records"), float64(d.Totals.Acked), 0)
			}
			wantClose(t, "mean", s.number(t, last+".avg"), times.MeanUS/1e3, 0.006)
			wantClose(t, "longest", s.number(t, last+".max"), times.MaxUS/1e3, 0.006)
			wantClose(t, "median", s.number(t, last+".p50"), times.P50US/1e3, 0.501+times.P50US/1e5)
			wantClose(t, "99th", s.number(t, last+".p99"), times.P99US/1e3, 0.501+times.P99US/1e5)
			wantClose(t, "99.9th", s.number(t, last+".p999"), times.P999US/1e3, 0.501+times.P999US/1e5)
			seconds, bytes := s.number(t, "total.records")/s.number(t, "total.rate"), s.number(t, "total.mb")*(1<<20)
			began, ended := math.Inf(1), 0.0
			for _, p := range d.Phases {
				began, ended = min(began, p.StartS), max(ended, p.EndS)
			}
			wantClose(t, "seconds", seconds, ended-began, 0.002)
			wantClose(t, "bytes a second", bytes, float64(total.AckedBytes)/seconds, 0.006*(1<<20))
			if tt.warm {
				return
			}
			// The windows are the complete intervals of the report.
			var got, want []uint64
			for _, text := range s.fields["window.records"] {
				n, _ := strconv.ParseUint(text, 10, 64)
				got = append(got, n)
			}
			for _, iv := range d.Intervals {
				if iv.Phase == "measurement" && iv.EndS-iv.StartS > 0.5-1e-9 && iv.Acked > 0 {
					want = append(want, iv.Acked)
				}
			}
			assert.Must(t, len(got) == len(want), "windows of %d, the report has intervals of %d", got, want)
			for i := range got {
				assert.Equal(t, got[i], want[i], "windows of %d, the report has intervals of %d", got, want)
			}
		})
	}
}

// Failed records do not count as sent, and the exit code is 1; with --strict it is 0, as with the old tool.
func TestAsKafkaProducerFails(t *testing.T) {
	t.Parallel()
	server := startStandin(t, "kafka", "--listen", "127.0.0.1:0", "--in-memory")
	args := []string{"--topic", "large", "--num-records", "10", "--record-size", "2000000", "--throughput", "50", "--bootstrap-server", server.addr}
	for _, strict := range []bool{false, true} {
		code, given := 1, args
		if strict {
			code, given = 0, append([]string{"--strict"}, args...)
		}
		s, d := runProducer(t, code, given...)
		if n := s.number(t, "total.records"); n != 0 || d.wholeRun().Acked != 0 || !strings.Contains(s.errs, "(10 records)") {
			t.Errorf("%g records were sent of %d; %s", n, d.wholeRun().Acked, s.errs)
		}
		assert.Equal(t, s.fields["total.avg"][0], map[bool]string{false: "0.00", true: "NaN"}[strict],
			"the mean of no records")
	}
}

// Ctrl-C ends the program as it ends a JVM: with exit code 130 and no summary. The report is kept.
func TestAsKafkaProducerInterrupted(t *testing.T) {
	t.Parallel()
	server := startStandin(t, "kafka", "--listen", "127.0.0.1:0", "--in-memory")
	file := filepath.Join(t.TempDir(), "report.json")
	s := start(t, "as", "kafka-producer-perf-test", "--report-json", file, "--topic", "t", "--num-records", "1000000", "--record-size", "10", "--throughput", "100",
		"--reporting-interval", "400", "--bootstrap-server", server.addr)
	s.awaitStdout(1, " records sent, ")
	s.signal(syscall.SIGINT)
	e := s.wait(runTimeout).want(t, 130)
	got := side{out: e.stdout}
	if err := got.parse(producerForms); err != nil || len(got.lines) > 0 || len(got.fields["window.records"]) == 0 {
		t.Errorf("%v, lines %q:\n%s", err, got.lines, e.stdout)
	}
	assert.Value(os.Stat(file))(t)
}

// enoughRecords is the number of records in which no two have the same value.
const enoughRecords = 100_000

// equalValues reads n records of a topic and returns how many of them have the value of an earlier one.
func equalValues(t *testing.T, addr, topic string, n int) (equal int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), runTimeout)
	defer cancel()
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableClientMetrics())
	assert.OK(t, err)
	defer cl.Close()
	seen := make(map[string]bool, n)
	for read := 0; read < n; {
		fetches := cl.PollFetches(ctx)
		assert.OK(t, fetches.Err(), "read %d of %d records", read, n)
		fetches.EachRecord(func(r *kgo.Record) {
			if read++; seen[string(r.Value)] {
				equal++
			}
			seen[string(r.Value)] = true
		})
	}
	return equal
}

// awaitRecords waits until a topic has n records.
func awaitRecords(t *testing.T, addr, topic string, n int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), runTimeout)
	defer cancel()
	cl := assert.Value(kgo.NewClient(kgo.SeedBrokers(addr), kgo.DisableClientMetrics()))(t)
	defer cl.Close()
	for has := int64(0); has < n; {
		has = 0
		if ends, err := kadm.NewClient(cl).ListEndOffsets(ctx, topic); err == nil {
			ends.Each(func(o kadm.ListedOffset) { has += max(o.Offset, 0) })
		}
		select {
		case <-ctx.Done():
			t.Fatalf("the topic has %d records, want %d", has, n)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// The old tools make each message as they send it, so no two are equal. So do the
// drop-ins, with a codec and without.
func TestAsPayloadsDiffer(t *testing.T) {
	t.Parallel()
	server := startStandin(t, "kafka", "--listen", "127.0.0.1:0", "--in-memory", "--partitions", "2")
	for _, args := range []string{
		"--command-property compression.type=none",
		"--command-property compression.type=gzip",
		"--command-property compression.type=zstd",
		"--transaction-duration-ms 200",
		"--generation 2018 --producer-props compression.type=gzip",
	} {
		t.Run("producer "+args, func(t *testing.T) {
			t.Parallel()
			topic := strings.NewReplacer(" ", "-", "=", "-").Replace("p" + args)
			all := append([]string{"--topic", topic, "--num-records", fmt.Sprint(enoughRecords), "--record-size", "40", "--throughput", "-1"}, strings.Fields(args)...)
			if strings.Contains(args, "--producer-props") { // a list, which it ends
				all = append(all, "bootstrap.servers="+server.addr)
			} else {
				all = append(all, "--bootstrap-server", server.addr)
			}
			runProducer(t, 0, all...)
			n := equalValues(t, server.addr, topic, enoughRecords)
			assert.True(t, n <= 0, "%d of %d records have the value of an earlier one", n, enoughRecords)
		})
	}
	for _, args := range []string{"-size=40", "-message-size=40 -compression=gzip", "-message-size=40 -workers=3"} {
		t.Run("sangrenel "+args, func(t *testing.T) {
			t.Parallel()
			topic := strings.NewReplacer(" ", "-", "=", "-").Replace("s" + args)
			s := start(t, append([]string{"as", "sangrenel", "-brokers=" + server.addr, "-topic=" + topic}, strings.Fields(args)...)...)
			awaitRecords(t, server.addr, topic, enoughRecords)
			s.signal(syscall.SIGINT)
			s.wait(runTimeout).wantOneOf(t, 0, 3)
			n := equalValues(t, server.addr, topic, enoughRecords)
			assert.True(t, n <= 0, "%d of %d messages have the value of an earlier one", n, enoughRecords)
		})
	}
}

// With a codec, a drop-in sends as many bytes as fresh encoding, and its report says that
// all of the codec's work was measured.
func TestAsKafkaProducerWire(t *testing.T) {
	t.Parallel()
	server := startStandin(t, "kafka", "--listen", "127.0.0.1:0", "--in-memory", "--partitions", "1")
	for _, codec := range []string{"gzip", "zstd"} {
		_, as := runProducer(t, 0, "--topic", "as-"+codec, "--num-records", fmt.Sprint(enoughRecords), "--record-size", "100", "--throughput", "-1",
			"--bootstrap-server", server.addr, "--command-property", "compression.type="+codec)
		file := filepath.Join(t.TempDir(), "report.json")
		run(t, "run", "kafka://"+server.addr+"/fresh-"+codec, "--profile", "java", "--create-topic", "auto", "--payload", "letters", "--size", "100", "--fresh",
			"--compression", codec, "--count", fmt.Sprint(enoughRecords), "--quiet", "--json-file", file).wantOneOf(t, 0, 3)
		data := assert.Value(os.ReadFile(file))(t)
		fresh := assert.Value(parseDocument(string(data)))(t)
		got, want := as.wholeRun(), fresh.wholeRun()
		perRecord, wanted := float64(got.WireBytes)/float64(got.Acked), float64(want.WireBytes)/float64(want.Acked)
		if e := as.Encoding; e.Events != "fresh" || e.Codec != codec || e.CodecMeasured == nil || *e.CodecMeasured != 1 {
			t.Errorf("%s: the report has the encoding %+v", codec, e)
		}
		t.Logf("%s: %.1f bytes a record, fresh %.1f", codec, perRecord, wanted)
		wantClose(t, codec+": bytes a record", perRecord, wanted, wanted/10)
	}
}
