//go:build conformance

package acceptance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"mime/multipart"
	"net"
	"net/http"
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

// results parses mongoose's document of results by its format: the value of each label, by the path of labels.
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
		r.report = assert.Value(os.ReadFile(file))(t)
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
		least := r.number(t, "Operations Duration [us]/Min")
		assert.True(t, r.results["Operations Count/Successful"] == "50" && least >= 100_000, "a record took %v us, want the linger at least: %v", least, r.results)
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

// A mongooseNode is an additional node of mongoose with its remote API.
type mongooseNode struct {
	*session
	addr, api string
}

func startNode(t *testing.T, home string, more ...string) *mongooseNode {
	t.Helper()
	n := &mongooseNode{session: startMongoose(t, home, append([]string{"--run-node", "--load-step-node-port=0", "--run-port=0"}, more...)...)}
	n.awaitStdout(1, "remote API at ")
	for line := range strings.Lines(n.stdout.String()) {
		if rest, ok := strings.CutPrefix(line, "node "); ok {
			n.addr, _, _ = strings.Cut(rest, ": ")
		}
		if rest, ok := strings.CutPrefix(line, "remote API at "); ok {
			n.api = strings.TrimSpace(rest)
		}
	}
	return n
}

// An apiAnswer is an answer of the remote API.
type apiAnswer struct {
	status   int
	id, text string
}

func (n *mongooseNode) ask(method, path, id string, parts map[string]string) apiAnswer {
	n.t.Helper()
	var body bytes.Buffer
	m := multipart.NewWriter(&body)
	for name, text := range parts {
		assert.OK(n.t, m.WriteField(name, text))
	}
	m.Close()
	r := assert.Value(http.NewRequestWithContext(n.t.Context(), method, n.api+path, &body))(n.t)
	r.Header.Set("Content-Type", m.FormDataContentType())
	if id != "" {
		r.Header.Set("If-Match", id)
	}
	a := assert.Value(http.DefaultClient.Do(r))(n.t) //nolint:bodyclose // it is closed below
	defer a.Body.Close()
	text := assert.Value(io.ReadAll(a.Body))(n.t)
	return apiAnswer{a.StatusCode, a.Header.Get("ETag"), string(text)}
}

// TestMongooseNodes: an additional node and an entry node, with the flags of the driver's
// documentation, fire one load, and refuse what they do not allow.
func TestMongooseNodes(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	broker := startStandin(t, "kafka", "--listen", "127.0.0.1:0", "--in-memory")
	topic := kafkatest.TopicName(t)
	node := startNode(t, home)
	entry := func(more ...string) *session {
		return startMongoose(t, home, append([]string{
			"--load-step-node-addrs=" + node.addr, "--storage-net-node-addrs=" + broker.addr,
			"--storage-driver-create-key-enabled=false", "--storage-driver-compression-type=none",
			"--item-data-size=1KB", "--item-output-path=" + topic, "--load-op-limit-count=1000", "--load-op-limit-rate=500",
		}, more...)...)
	}
	file := filepath.Join(home, "report.json")
	e := entry("--report-json", file, "--load-step-id=both").wait(runTimeout).wantOneOf(t, 0, 3)
	found := results(t, e.stdout)
	assert.True(t, found["Node Count"] == "2" && found["Operations Count/Successful"] == "1000" &&
		found["Operations Count/Failed"] == "0" && found["Transfer Size"] == "1000KB", "results: %v", found)
	text := assert.Value(os.ReadFile(file))(t)
	var r struct {
		Fleet struct {
			Agents []struct {
				Name, State string
				Acked       uint64
			}
		}
	}
	assert.OK(t, json.Unmarshal(text, &r))
	assert.Equal(t, fmt.Sprint(r.Fleet.Agents), fmt.Sprintf("[{entry complete 500} {%s complete 500}]", node.addr), "the machines")

	start := node.ask("POST", "/run", "", map[string]string{"defaults": fmt.Sprintf(
		`{"storage": {"net": {"node": {"addrs": [%q]}}}, "item": {"data": {"size": "1KB"}, "output": {"path": %q}}, "load": {"op": {"limit": {"rate": 100}}, "step": {"id": "api"}}}`, broker.addr, topic)})
	id := start.id
	assert.Must(t, start.status == http.StatusAccepted && id != "", "POST /run: %+v", start)
	a := node.ask("POST", "/run", "", nil)
	assert.True(t, a.status == http.StatusConflict, "a second run: %+v", a)
	entry().wait(runTimeout).want(t, 2).says(t, "busy with run "+id+" of its remote API")
	for measured := false; !measured; { // the test's own time ends it
		text := node.ask("GET", "/metrics", "", nil).text
		measured = strings.Contains(text, `mongoose_success_op_count{load_step_id="api",load_op_type="CREATE"`) && !strings.Contains(text, `"} 0.0`+"\n# HELP mongoose_success_op_rate_mean")
	}
	a = node.ask("DELETE", "/run", id, nil)
	assert.True(t, a.status == http.StatusOK, "DELETE /run: %+v", a)
	for active := true; active; {
		active = node.ask("GET", "/run", id, nil).status == http.StatusOK
	}
	if text := node.ask("GET", "/logs/api/Messages", "", nil).text; !strings.Contains(text, "# Results ####") {
		t.Errorf("the messages of the run: %s", text)
	}

	// A scenario does not see the environment, and its steps are the node's.
	t.Log("a scenario")
	start = node.ask("POST", "/run", "", map[string]string{
		"defaults": fmt.Sprintf(`{"storage": {"net": {"node": {"addrs": [%q]}}}}`, broker.addr),
		"scenario": `print("the home is " + typeof HOME); Load.config({"item": {"data": {"size": "1KB"}, "output": {"path": "` + topic + `"}}, "load": {"op": {"limit": {"count": 10}}, "step": {"id": "scripted"}}}).run();`,
	})
	id = start.id
	assert.Must(t, start.status == http.StatusAccepted, "a scenario: %+v", start)
	for active := true; active; {
		active = node.ask("GET", "/run", id, nil).status == http.StatusOK
	}
	if text := node.ask("GET", "/logs/scripted/metrics.FileTotal", "", nil).text; !strings.Contains(text, ",CREATE,1,1,") {
		t.Errorf("the total of the scenario's step: %s", text)
	}
	logs, err := filepath.Glob(filepath.Join(home, ".mongoose/4.2.11/log/none_*/messages.log"))
	assert.Must(t, err == nil && len(logs) == 1, "logs of the scenario: %v, %v", logs, err)
	said, err := os.ReadFile(logs[0])
	assert.True(t, err == nil && strings.Contains(string(said), "the home is undefined"), "the script says %s, %v", said, err)

	t.Log("what is refused")
	other := startNode(t, t.TempDir()) // another user's
	entry("--load-step-node-addrs="+other.addr).wait(runTimeout).want(t, 2).says(t, "node "+other.addr+" has another key than ")
	entry("--load-step-node-addrs=127.0.0.1:1").wait(runTimeout).want(t, 2).says(t, "no node answers at 127.0.0.1:1: connection refused")
	entry("--load-step-node-addrs=192.0.2.1").wait(runTimeout).want(t, 2).says(t, "192.0.2.1:1099 is not an address of this machine alone", "--node-key=FILE")
	strict := startNode(t, home, "--allow-target=10.0.0.*")
	entry("--load-step-node-addrs="+strict.addr).wait(runTimeout).want(t, 2).says(t, "this agent does not allow runs to connect to "+broker.addr)
	startMongoose(t, home, "--run-node", "--node-listen=0.0.0.0:0", "--run-port=0").wait(runTimeout).want(t, 2).says(t, "a node there needs a key")
	startMongoose(t, home, "--run-node", "--node-listen=0.0.0.0:0", "--run-port=0", "--node-key=k").wait(runTimeout).want(t, 2).says(t, "--allow-target")
	node.signal(os.Interrupt)
	node.wait(runTimeout).want(t, 0)
}

// TestMongooseScenarios runs the scenarios in the documentation of mongoose's driver against a
// real Kafka, with only the names of topics and the number of records changed. It does not run next to
// other tests: a hundred thousand records one at a time take half a minute by themselves.
func TestMongooseScenarios(t *testing.T) {
	broker := kafkatest.Shared(t)
	home := t.TempDir()
	brokers := "--storage-net-node-addrs=" + broker.Bootstrap()
	write := func(t *testing.T, name, text string) {
		t.Helper()
		assert.OK(t, os.WriteFile(filepath.Join(home, name), []byte(text), 0o644))
	}
	play := func(t *testing.T, name string, swap []string, args ...string) ended {
		t.Helper()
		text := assert.Value(os.ReadFile(filepath.Join("../compat/mongoose/testdata/listings", name)))(t)
		write(t, name, strings.NewReplacer(swap...).Replace(string(text)))
		return startMongoose(t, home, append(args, brokers, "--run-scenario="+name)...).wait(runTimeout).wantOneOf(t, 0, 3)
	}
	write(t, "values.txt", strings.Repeat("v", 64)) // values are pieces of it

	// The rows of the trace are joined as the tool for end-to-end latency joins them.
	t.Run("end-to-end latency", func(t *testing.T) {
		const records = 100_000
		topic := kafkatest.TopicName(t)
		e := play(t, "e2e_latency.js", []string{"1000000", strconv.Itoa(records), "end_to_end", topic},
			"--item-data-size=1", "--load-step-id=e2e", "--storage-driver-limit-concurrency=1000")
		n := strings.Count(e.stdout, "    Successful:                "+strconv.Itoa(records)+"\n")
		assert.True(t, n == 2, "%d results of %d records, want 2:\n%s", n, records, e.stdout)
		readRows := func(name string, want int) [][]string {
			rows := testkit.CSV(t, filepath.Join(home, ".mongoose/4.2.11/log/e2e", name))
			assert.Must(t, len(rows) == want, "%s: %d rows, want %d", name, len(rows), want)
			return rows
		}
		rows := readRows("op.trace.csv", 2*records)
		number := func(row []string, column int) int64 {
			if row[column] == "" {
				return 0
			}
			n := assert.Value(strconv.ParseInt(row[column], 10, 64))(t, "row %v", row)
			return n
		}
		const path, op, status, start, duration, latency = 1, 2, 3, 4, 5, 6
		created, began, took := make(map[string]int64), make(map[string]int64), make(map[string]int64)
		read, later := 0, 0
		for _, row := range rows {
			assert.Must(t, row[status] == "4", "row %v: not a success", row)
			if row[op] == "1" {
				began[row[path]] = number(row, start)
				created[row[path]] = number(row, start) + number(row, duration)
				continue
			}
			acked, ok := created[row[path]]
			assert.Must(t, ok && row[op] == "2", "row %v: read before it was created", row)
			took[row[path]] = number(row, start) + number(row, latency) - acked
			if read++; number(row, start)+number(row, latency) > acked {
				later++
			}
		}
		// e2e.csv has what that tool makes of the trace: path, time of creation, time to the read.
		base := int64(-1)
		for _, row := range readRows("e2e.csv", records) {
			at := began[row[0]] - number(row, 1)
			if base < 0 {
				base = at
			}
			if want, ok := took[row[0]]; !ok || number(row, 2) != want || at != base {
				t.Fatalf("e2e.csv: row %v, want a latency of %d, known %v; creation is counted from %d and from %d", row, want, ok, at, base)
			}
			delete(took, row[0])
		}
		if got := broker.EndSum(t, topic); read != records || len(created) != records || got != records || later == 0 {
			t.Errorf("%d read, %d later than they were acknowledged, %d created; the broker has %d", read, later, len(created), got)
		}
	})

	t.Run("topics", func(t *testing.T) {
		one, two := kafkatest.TopicName(t), kafkatest.TopicName(t)
		write(t, "topic_list.csv", one+"\n"+two+"\n")
		e := play(t, "topics.js", []string{"topic1", one, "topic2", two}, "--item-data-size=1")
		_, last, _ := strings.Cut(e.stdout, "  Operation Type:              READ\n")
		assert.True(t, strings.Contains(last, "    Successful:                2\n") &&
			strings.Contains(last, "  Transfer Size:               10B\n"), "results of reading:\n%s", last)
	})

	for file, want := range map[string]string{
		"headers.js":            `^header-name-0:header_value_0,header-name-1:header_value_1,header-name-N:header_value_N$`,
		"header_expressions.js": `^x-amz-meta-([1-9]|[12][0-9]|30):[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\+0000$`,
	} {
		t.Run(file, func(t *testing.T) {
			topic := kafkatest.TopicName(t)
			play(t, file, nil, "--item-data-input-file=values.txt", "--item-data-size=5", "--item-output-path="+topic, "--load-op-limit-count=20")
			form, different := regexp.MustCompile(want), make(map[string]bool)
			for _, r := range broker.Consume(t, 20, topic) {
				different[r.Headers] = true
				assert.True(t, form.MatchString(r.Headers) && r.Value == "vvvvv", "%+v does not have the headers %s", r, want)
			}
			assert.Equal(t, file == "header_expressions.js", (len(different) > 1), "headers that differ")
		})
	}

	t.Run("endless, until Ctrl-C", func(t *testing.T) {
		write(t, "endless.js", `var small = Load.config({item: {output: {path: "`+kafkatest.TopicName(t)+`"}, data: {size: 10}}});
while (true) {
	small.config({load: {op: {limit: {count: 10}}}}).run();
	small.run();
}`)
		s := startMongoose(t, home, brokers, "--run-scenario=endless.js")
		s.awaitStderr("until Ctrl-C")
		s.signal(os.Interrupt)
		e := s.wait(runTimeout)
		assert.True(t, e.code == 130 && strings.Contains(e.stdout, "# Results"), "exit %d:\n%s%s", e.code, e.stdout, e.stderr)
	})
}
