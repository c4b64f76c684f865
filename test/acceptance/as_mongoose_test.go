//go:build conformance

package acceptance

import (
	"encoding/json"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
	"carronade/test/testkit/kafkatest"
)

func startMongoose(t *testing.T, home string, args ...string) *session {
	t.Helper()
	jar := filepath.Join(home, "mongoose-base-4.2.11.jar")
	err := os.Symlink(program, jar)
	assert.Must(t, err == nil || os.IsExist(err), "%v", err)
	s := prepare(t, args...)
	s.cmd = exec.Command(jar, args...)
	s.cmd.Stdout, s.cmd.Dir, s.home = &s.stdout, home, home
	s.begin()
	return s
}

// results parses mongoose's document of results by its format: the value of each
// label, by the path of labels.
func results(t *testing.T, out string) map[string]string {
	t.Helper()
	_, text, ok := strings.Cut(out, "---\n# Results ####")
	_, text, ok2 := strings.Cut(text, "\n")
	text, after, ok3 := strings.Cut(text, "\n...\n")
	assert.Must(t, ok && ok2 && ok3 && after == "", "no results in\n%s", out)
	found := make(map[string]string)
	var above [3]string
	line := regexp.MustCompile(`^((?:- |  )(?:  ){0,2})([A-Z][^:]*): *(\S*)$`)
	for i, l := range strings.Split(text, "\n") {
		m := line.FindStringSubmatch(l)
		assert.Must(t, m != nil && (m[3] == "" || strings.Index(l, m[3]) == 31 || strings.HasSuffix(m[2], m[3])),
			"line %d of the results does not have the format: %q", i+1, l)
		depth := len(m[1])/2 - 1
		above[depth] = m[2]
		if m[3] != "" {
			found[strings.Join(above[:depth+1], "/")] = m[3]
		}
	}
	return found
}

// number is the value of a label as a number.
func (r mongooseStep) number(t *testing.T, label string) float64 {
	t.Helper()
	x := assert.Value(strconv.ParseFloat(r.results[label], 64))(t, "%s, of %v", label, r.results)
	return x
}

// A mongooseStep is a finished step with its results, its files and its report.
type mongooseStep struct {
	ended
	results map[string]string
	report  []byte
	dir     string
}

// row returns the only row of a CSV file of the step, by column.
func (r mongooseStep) row(t *testing.T, name string) map[string]string {
	t.Helper()
	all := testkit.CSV(t, filepath.Join(r.dir, name))
	assert.Must(t, len(all) == 2, "%s: %d lines", name, len(all))
	row := make(map[string]string)
	for i, column := range all[0] {
		row[column] = all[1][i]
	}
	return row
}

// The shell functions in the document replace Java and Docker for calls of mongoose, and for no others.
func TestMongooseTyped(t *testing.T) {
	t.Parallel()
	text := assert.Value(os.ReadFile("../../docs/coming-from/mongoose.md"))(t)
	_, functions, ok := strings.Cut(string(text), "```sh\n")
	functions, _, ok2 := strings.Cut(functions, "```\n")
	assert.Must(t, ok && ok2, "there are no functions in the document")
	bin := t.TempDir()
	for _, name := range []string{"carronade", "java", "docker"} {
		assert.OK(t, os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\nprintf '%s|' "+name+` "$@"`+"\n"), 0o755))
	}
	for typed, want := range map[string]string{
		`java -jar mongoose-base-4.2.11.jar --item-data-size=1 "--run-comment=two words"`: "carronade|as|mongoose|--item-data-size=1|--run-comment=two words|",
		`java -jar other.jar --x`: "java|-jar|other.jar|--x|",
		`java -version`:           "java|-version|",
		`docker run --network host emcmongoose/mongoose-storage-driver-kafka:4.2.8 --load-batch-size=200`: "carronade|as|mongoose|--load-batch-size=200|",
		`docker run --network host alpine ls`: "docker|run|--network|host|alpine|ls|",
		`docker pull emcmongoose/x`:           "docker|pull|emcmongoose/x|",
	} {
		cmd := exec.Command("/bin/sh", "-c", functions+typed)
		cmd.Env = []string{"PATH=" + bin + ":/usr/bin:/bin"}
		got, err := cmd.CombinedOutput()
		assert.True(t, err == nil && string(got) == want, "%s: %v, got %s, want %s", typed, err, got, want)
	}
}

// TestAsMongoose runs the commands in mongoose's documentation against a real Kafka, with only the addresses
// changed. The output, parsed by its format, agrees with the report, the CSV files and the broker.
func TestAsMongoose(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Shared(t)
	host, port, err := net.SplitHostPort(broker.Bootstrap())
	assert.OK(t, err)
	home := t.TempDir()
	steps := 0
	step := func(t *testing.T, args ...string) mongooseStep {
		t.Helper()
		steps++
		id := fmt.Sprintf("step%d", steps)
		file := filepath.Join(home, id+".json")
		args = append(args, "--load-step-id="+id, "--report-json="+file)
		r := mongooseStep{ended: startMongoose(t, home, args...).wait(runTimeout).wantOneOf(t, 0, 3), dir: filepath.Join(home, ".mongoose/4.2.11/log", id)}
		r.results = results(t, r.stdout)
		var err error
		r.report, err = os.ReadFile(file)
		assert.OK(t, err)
		total := r.row(t, "metrics.total.csv")
		for column, label := range map[string]string{
			"CountSucc": "Operations Count/Successful", "CountFail": "Operations Count/Failed", "StepDuration[s]": "Duration [s]/Elapsed",
			"TPAvg[op/s]": "Throughput [op/s]/Mean", "BWAvg[MB/s]": "Bandwidth [MB/s]/Mean", "DurationAvg[us]": "Operations Duration [us]/Avg",
			"DurationMed[us]": "Operations Duration [us]/Med", "LatencyMax[us]": "Operations Latency [us]/Max", "OpType": "Operation Type",
		} {
			assert.Equal(t, total[column], r.results[label], "%s in metrics.total.csv and the results", label)
		}
		return r
	}
	brokers := "--storage-net-node-addrs=" + broker.Bootstrap()

	t.Run("records", func(t *testing.T) {
		topic := kafkatest.TopicName(t)
		r := step(t, "--load-batch-size=200", "--load-op-limit-count=2000000", "--storage-driver-threads=1", "--storage-driver-limit-concurrency=0",
			"--item-data-size=1", "--storage-driver-limit-queue-input=5000", brokers, "--item-output-path="+topic)
		d := assert.Value(parseDocument(string(r.report)))(t)
		if got := r.number(t, "Operations Count/Successful"); got != float64(d.Totals.Acked) || got != 2_000_000 || float64(broker.EndSum(t, topic)) != got {
			t.Errorf("%v records, the report has %d and the broker %d", got, d.Totals.Acked, broker.EndSum(t, topic))
		}
		assert.True(t, r.results["Transfer Size"] == "1.907MB" && d.Totals.AckedBytes == 2_000_000,
			"%s, the report has %d bytes", r.results["Transfer Size"], d.Totals.AckedBytes)
		last := d.Intervals[len(d.Intervals)-1].EndS
		got := r.number(t, "Duration [s]/Elapsed")
		assert.True(t, math.Abs(got-last) <= 0.002, "%v s, the report's last interval ends at %v", got, last)
		got, want := r.number(t, "Throughput [op/s]/Mean"), 2_000_000/last
		assert.True(t, math.Abs(got-want) <= want/500, "%v a second, the report has %v", got, want)
		for label, want := range map[string]float64{"Avg": d.Service.MeanUS, "Min": d.Service.MinUS, "Med": d.Service.P50US, "Max": d.Service.MaxUS} {
			got := r.number(t, "Operations Latency [us]/"+label)
			assert.True(t, math.Abs(got-want) <= 1.01, "%s of the latencies is %v, the report has %v", label, got, want)
		}
	})

	t.Run("trace, and read back", func(t *testing.T) {
		topic := kafkatest.TopicName(t)
		r := step(t, "--storage-driver-type=kafka", "--storage-net-node-addrs="+host, "--storage-net-node-port="+port, "--item-data-size=1KB", "--load-op-limit-count=100",
			"--item-output-path=/"+topic, "--output-metrics-trace-persist", "--item-output-file=items.csv", "--storage-driver-record-key-enabled", "--storage-driver-record-headers=a:b")
		trace := assert.Value(os.ReadFile(filepath.Join(r.dir, "op.trace.csv")))(t)
		items := assert.Value(os.ReadFile(filepath.Join(home, "items.csv")))(t)
		row := regexp.MustCompile(`^` + regexp.QuoteMeta(broker.Bootstrap()) + `,(` + topic + `/\w+),1,4,\d{16},(\d+),(\d+),,1024$`)
		sum, n := 0.0, 0
		for line := range strings.Lines(string(trace)) {
			m := row.FindStringSubmatch(strings.TrimSpace(line))
			assert.Must(t, m != nil && strings.Contains(string(items), m[1]+","),
				"a row of the trace does not have the format, or is not in the list: %q", line)
			us, _ := strconv.ParseFloat(m[2], 64)
			sum, n = sum+us, n+1
		}
		if mean := r.number(t, "Operations Duration [us]/Avg"); n != 100 || math.Abs(sum/float64(n)-mean) > 1 || r.results["Transfer Size"] != "100KB" {
			t.Errorf("%d rows of %v us in the mean, want 100 of %v; %s", n, sum/float64(n), mean, r.results["Transfer Size"])
		}
		back := step(t, "--read", "--item-input-file=items.csv", brokers)
		// with keys of 12 bytes, a few of 11, and headers of 2
		assert.Equal(t, back.results["Transfer Size"], "101.4KB", "read back")
		assert.True(t, back.results["Operations Count/Successful"] == "100" && back.results["Operation Type"] == "READ",
			"read back: %v", back.results)
		if mean := back.number(t, "Operations Duration [us]/Avg"); mean <= 0 || mean > back.number(t, "Duration [s]/Elapsed")*1e6+1000 {
			t.Errorf("reading took %v us in the mean, want above 0 and at most the step: %v", mean, back.results)
		}
	})

	t.Run("linger", func(t *testing.T) {
		r := step(t, "--item-output-path="+kafkatest.TopicName(t), "--item-data-size=100", "--load-op-limit-count=50",
			"--storage-driver-limit-concurrency=10", "--storage-net-linger=100", brokers)
		if least := r.number(t, "Operations Duration [us]/Min"); r.results["Operations Count/Successful"] != "50" || least < 100_000 {
			t.Errorf("a record took %v us, want the linger at least: %v", least, r.results)
		}
	})

	t.Run("topics", func(t *testing.T) {
		created := step(t, "--storage-driver-type=kafka", "--storage-net-node-addrs="+host, "--storage-net-node-port="+port, "--item-type=path",
			"--load-op-limit-count=100", "--storage-driver-limit-concurrency=100", "--item-output-file=topics.csv")
		read := step(t, "--item-type=path", "--read", "--item-input-file=topics.csv", "--load-op-limit-count=2", brokers)
		listed := step(t, "--item-type=path", "--load-op-type=list", brokers)
		deleted := step(t, "--item-type=path", "--delete", "--item-input-file=topics.csv", "--storage-driver-limit-concurrency=100", brokers)
		for _, tt := range []struct {
			r    mongooseStep
			op   string
			done uint64
		}{{created, "CREATE", 100}, {read, "READ", 2}, {listed, "LIST", 1}, {deleted, "DELETE", 100}} {
			var d struct {
				Op        string
				Totals    totals
				Intervals []interval
			}
			assert.OK(t, json.Unmarshal(tt.r.report, &d))
			acked := uint64(0)
			for _, iv := range d.Intervals {
				acked += iv.Acked
			}
			if d.Totals.Acked != tt.done || acked != tt.done || d.Totals.Failed != 0 || d.Op != "topics "+strings.ToLower(tt.op) || tt.r.number(t, "Operations Count/Successful") != float64(tt.done) || tt.r.results["Operation Type"] != tt.op {
				t.Errorf("%s: the report has %+v, the results %v", tt.op, d, tt.r.results)
			}
		}
	})
}
