//go:build conformance

package acceptance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
	"carronade/test/testkit/kafkatest"
)

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
	a := assert.Value(http.DefaultClient.Do(r))(n.t)
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
	assert.Equal(t, fmt.Sprint(r.Fleet.Agents), fmt.Sprintf("[{entry complete 500} {%s complete 500}]", node.addr),
		"the machines")

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
	if said, err := os.ReadFile(logs[0]); err != nil || !strings.Contains(string(said), "the home is undefined") {
		t.Errorf("the script says %s, %v", said, err)
	}

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
