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
	"strings"
	"testing"

	"carronade/test/testkit/assert"
	"carronade/test/testkit/kafkatest"
)

// A mongooseNode is an additional node of mongoose with its remote API.
type mongooseNode struct {
	*session
	addr, api string
}

// startNode starts a node on a free port, in a home.
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

// ask makes a request of the remote API.
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
	a, err := http.DefaultClient.Do(r)
	assert.OK(n.t, err)
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
	if found["Node Count"] != "2" || found["Operations Count/Successful"] != "1000" || found["Operations Count/Failed"] != "0" || found["Transfer Size"] != "1000KB" {
		t.Errorf("results: %v", found)
	}
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
