package mongoose

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"carronade/internal/dropin"
	"carronade/internal/report"
	"carronade/internal/scenario"
	"carronade/internal/workload"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// A testAPI is a remote API whose runs last until they are stopped, after an interval of 7,500 records.
type testAPI struct {
	*api
	t       *testing.T
	handler http.Handler
	seen    chan struct{} // an interval was measured
}

func newTestAPI(t *testing.T, args ...string) *testAPI {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	v := assert.Value(parse(args, t.Logf))(t)
	a := &testAPI{t: t, seen: make(chan struct{}, 8)}
	var out bytes.Buffer
	p := &dropin.Program{Called: "mongoose", Out: &out, Err: &out}
	p.Run = func(ctx context.Context, _ *workload.Document, o dropin.Observer) (*report.Document, error) {
		o.Interval(interval(0, false, false))
		a.seen <- struct{}{}
		<-ctx.Done()
		return document(), nil
	}
	a.api = newAPI(p, v)
	a.handler = a.api.handler()
	t.Cleanup(a.end)
	return a
}

func (a *testAPI) ask(method, path string, headers map[string]string, body ...string) *httptest.ResponseRecorder {
	a.t.Helper()
	var text bytes.Buffer
	m := multipart.NewWriter(&text)
	for i, part := range body {
		w, err := m.CreateFormFile([]string{"defaults", "scenario", "more"}[i], "file")
		if err == nil {
			_, err = io.WriteString(w, part)
		}
		assert.OK(a.t, err)
	}
	m.Close()
	r := httptest.NewRequestWithContext(a.t.Context(), method, path, &text)
	if len(body) > 0 {
		r.Header.Set("Content-Type", m.FormDataContentType())
	} else {
		r.Body = http.NoBody
	}
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	a.handler.ServeHTTP(w, r)
	return w
}

// etagOf is the ETag as it is sent.
func etagOf(w *httptest.ResponseRecorder) string {
	return strings.Join(w.Header()["ETag"], ",") //nolint:staticcheck // not as Go would write it
}

// times are what differs in each run.
var times = regexp.MustCompile(`\b1[0-9]{12}\b|[0-9]{8}\.[0-9]{6}\.[0-9]{3}`)

// golden compares an answer with the expected one.
func golden(t *testing.T, name string, w *httptest.ResponseRecorder) {
	t.Helper()
	var got strings.Builder
	fmt.Fprintf(&got, "%d\n", w.Code)
	for _, header := range []string{"Content-Type", "Content-Range"} {
		if text := w.Header().Get(header); text != "" {
			fmt.Fprintf(&got, "%s: %s\n", header, text)
		}
	}
	got.WriteString("\n" + times.ReplaceAllString(w.Body.String(), "TIME"))
	testkit.Golden(t, filepath.Join("testdata", name), got.String())
}

// TestAPI: the answers of the remote API before, in and after a run.
func TestAPI(t *testing.T) {
	a := newTestAPI(t, "--storage-net-node-addrs=a,b", "--run-comment=a \"word\"")
	yes := map[string]string{"Accept": "application/json"}
	golden(t, "api_config.yaml", a.ask("GET", "/config", nil))
	golden(t, "api_config.json", a.ask("GET", "/config", yes))
	golden(t, "api_schema.yaml", a.ask("GET", "/config/schema", nil))
	golden(t, "api_schema.json", a.ask("GET", "/config/schema", yes))
	golden(t, "api_logs.json", a.ask("GET", "/logs", nil))
	golden(t, "api_metrics_none.txt", a.ask("GET", "/metrics", nil))
	if w := a.ask("HEAD", "/run", nil); w.Code != http.StatusNoContent || etagOf(w) != "" {
		t.Errorf("HEAD /run without a run: %d, %v", w.Code, w.Header())
	}
	w := a.ask("POST", "/run", nil, "load:\n  step:\n    id: one\n  op:\n    limit:\n      count: 9000\nitem:\n  data:\n    size: 1KB\n")
	id := etagOf(w)
	assert.Must(t, w.Code == http.StatusAccepted && regexp.MustCompile(`^[0-9]{13}$`).MatchString(id),
		"POST /run: %d, ETag %q: %s", w.Code, id, w.Body)
	<-a.seen
	golden(t, "api_metrics.txt", a.ask("GET", "/metrics", nil))
	golden(t, "api_busy.txt", a.ask("POST", "/run", nil, "{}"))
	other := map[string]string{"If-Match": "17"}
	same := map[string]string{"If-Match": id}
	for _, c := range []struct {
		method string
		with   map[string]string
		status int
	}{
		{"HEAD", nil, 200},
		{"GET", same, 200},
		{"GET", map[string]string{"If-Match": `"` + id + `"`}, 200},
		{"GET", other, 204},
		{"GET", nil, 400},
		{"DELETE", nil, 400},
		{"DELETE", other, 404},
		{"DELETE", same, 200},
	} {
		w := a.ask(c.method, "/run", c.with)
		assert.True(t, w.Code == c.status && (c.status != 200 || etagOf(w) == id), "%s /run with %v: %d, %v, want %d", c.method, c.with, w.Code, w.Header(), c.status)
	}
	a.running.Wait()
	assert.Equal(t, a.ask("GET", "/run", same).Code, http.StatusNoContent, "GET /run after its end")
	golden(t, "api_log_messages.txt", a.ask("GET", "/logs/one/Messages", map[string]string{"Range": "bytes=0-120"}))
	golden(t, "api_log_last.txt", a.ask("GET", "/logs/one/metrics.FileTotal", map[string]string{"Range": "bytes=-5"}))
	golden(t, "api_log_range.txt", a.ask("GET", "/logs/one/Messages", map[string]string{"Range": "bytes=99999999-"}))
	golden(t, "api_log_none.txt", a.ask("GET", "/logs/two/Config", nil))
	golden(t, "api_log_unknown.txt", a.ask("GET", "/logs/one/passwd", nil))
	for _, path := range []string{"/logs/one/Config", "/logs/one/Config"} { // the second is gone
		w := a.ask("DELETE", path, nil)
		again := path == "/logs/one/Config" && w.Code == http.StatusNotFound
		assert.True(t, w.Code == http.StatusOK || again, "DELETE %s: %d", path, w.Code)
	}
	assert.Equal(t, a.ask("GET", "/logs/one/Config", nil).Code, http.StatusNotFound, "a removed log")
	assert.Equal(t, a.ask("GET", "/logs/..%2f..%2f..%2fx/Config", nil).Code, http.StatusNotFound, "a step outside of the folder")
}

// TestAPIRefuses: what a run over the API may not be.
func TestAPIRefuses(t *testing.T) {
	a := newTestAPI(t)
	for _, c := range []struct {
		name, defaults, script, more string
		status                       int
		want                         string
	}{
		{name: "no document", defaults: "a: [", status: 400, want: "neither YAML nor JSON"},
		{name: "unknown", defaults: "load:\n  op:\n    limit:\n      counts: 1\n", status: 400, want: "mongoose has no option load.op.limit.counts (did you mean load.op.limit.count?)"},
		{name: "a type", defaults: `{"load": {"op": {"limit": {"count": "many"}}}}`, status: 400, want: `load.op.limit.count: "many" is not a long`},
		{name: "a section", defaults: "load: 7", status: 400, want: "load is a section of options"},
		{name: "a value", defaults: "load:\n  batch:\n    size: 0\n", status: 400, want: "--load-batch-size: must be at least 1"},
		{name: "a file outside", defaults: "item:\n  output:\n    file: ../../.ssh/authorized_keys\n", status: 400, want: "names only files in "},
		{name: "an absolute file", defaults: "item:\n  input:\n    file: /etc/passwd\n", status: 400, want: "names only files in "},
		{name: "a file outside, as an expression", defaults: "item:\n  output:\n    file: '%{string:format(\"%c%c%c\",46,46,47)}x'\n", status: 400, want: "names only files in "},
		{name: "a file that ends a setting", defaults: "item:\n  input:\n    file: 'x),file:y'\n", status: 400, want: "names files without "},
		{name: "the environment", defaults: `{"run": {"comment": "%{env:get('HOME')}"}}`, status: 400, want: "--run-comment: a run of the remote API does not see the environment"},
		{name: "what the environment has not", defaults: `{"run": {"comment": "%{env:get('NO_SUCH_NAME')}"}}`, status: 400, want: "--run-comment: a run of the remote API does not see the environment"},
		{name: "the environment in names", defaults: `{"item": {"naming": {"prefix": "${env:get('HOME')}"}}}`, status: 400, want: "--item-naming-prefix: a run of the remote API does not see the environment"},
		{name: "the environment in changing names", defaults: `{"item": {"naming": {"prefix": "${path:random(16,2)}${env:get('HOME')}"}}}`, status: 400, want: "--item-naming-prefix: a run of the remote API does not see the environment"},
		{name: "the environment in a header", defaults: `{"storage": {"driver": {"record": {"headers": {"a": "${env:get('HOME')}"}}}}}`, status: 400, want: "--storage-driver-record-headers: a run of the remote API does not see the environment"},
		{name: "the environment in the name of a header", defaults: `{"storage": {"driver": {"create": {"headers": {"#{env:get('HOME')}": "a"}}}}}`, status: 400, want: "--storage-driver-create-headers: a run of the remote API does not see the environment"},
		{name: "aliases", defaults: "a: &a [x, x]\nb: &b [*a, *a]\nload:\n  op:\n    type: [*b, *b]\n", status: 400, want: "have no anchors, aliases, tags and merged maps"},
		{name: "a tag", defaults: "load:\n  op:\n    type: !!str create\n", status: 400, want: "have no anchors, aliases, tags and merged maps"},
		{name: "merged maps", defaults: "load:\n  <<: {op: {type: create}}\n", status: 400, want: "have no anchors, aliases, tags and merged maps"},
		{name: "lists in a list", defaults: "output:\n  metrics:\n    quantiles: [[0.5], [0.9]]\n", status: 400, want: "a list or a map is within a value"},
		{name: "a map in a map", defaults: `{"storage": {"driver": {"record": {"headers": {"a": {"b": "c"}}}}}}`, status: 400, want: "a list or a map is within a value"},
		{name: "brackets", defaults: strings.Repeat("[", 65), status: 400, want: "the sections are too deep"},
		{name: "no sections", defaults: "- load", status: 400, want: "options:1: must be sections of options"},
		{name: "a number for a name", defaults: "load:\n  1: 2\n", status: 400, want: `options:2: "1" is not the name of an option`},
		{name: "an option twice", defaults: "load:\n  op: {}\n  op: {}\n", status: 400, want: "options:3: op: has a value already, in line 2"},
		{name: "many options", defaults: strings.Repeat("#", mostOptions+1), status: 400, want: "the options have at most 64 KiB"},
		{name: "another part", defaults: "{}", script: "x", more: "y", status: 400, want: `no part "more"`},
		{name: "a large scenario", defaults: "{}", script: strings.Repeat("x", scenario.MostSource+1), status: 400, want: "at most 1 MiB"},
		{name: "too large", defaults: strings.Repeat("x", mostBody+1), status: 413, want: "at most 2 MiB"},
	} {
		t.Run(c.name, func(t *testing.T) {
			parts := []string{c.defaults}
			if c.script != "" {
				parts = append(parts, c.script)
			}
			if c.more != "" {
				parts = append(parts, c.more)
			}
			w := a.ask("POST", "/run", nil, parts...)
			assert.True(t, w.Code == c.status && strings.Contains(w.Body.String(), c.want), "%d, %s, want %d, %s", w.Code, w.Body, c.status, c.want)
		})
	}
	release := assert.Value(a.claim("7"))(t)
	if w := a.ask("POST", "/run", nil, "{}"); w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), "busy with run 7 of another machine") {
		t.Errorf("in a run of another machine: %d, %s", w.Code, w.Body)
	}
	release()
	w := a.ask("POST", "/run", nil, "{}")
	assert.True(t, w.Code == http.StatusAccepted, "after it: %d, %s", w.Code, w.Body)
	<-a.seen
	_, err := a.claim("8")
	assert.ErrorHas(t, err, "busy with run ", "another machine in a run of the API")
}

// TestAPIIDs: an id that is wanted is that of one run; others get new ones.
func TestAPIIDs(t *testing.T) {
	a := newTestAPI(t, "--run-id=5")
	var ids []string
	for range 3 {
		w := a.ask("POST", "/run", nil, "{}")
		<-a.seen
		id := etagOf(w)
		metrics := a.ask("GET", "/metrics", nil).Body.String()
		assert.True(t, strings.Contains(metrics, `run_id="`+id+`"`), "no run %s in\n%s", id, metrics)
		ids = append(ids, id)
		a.ask("DELETE", "/run", map[string]string{"If-Match": id})
		a.running.Wait()
	}
	assert.True(t, ids[0] == "5" && ids[1] != "5" && ids[1] != ids[2], "got the runs %q", ids)
}

// TestAPIEnd: a request that comes after the end starts no run.
func TestAPIEnd(t *testing.T) {
	a := newTestAPI(t)
	a.end()
	w := a.ask("POST", "/run", nil, "{}")
	assert.True(t, w.Code == http.StatusServiceUnavailable && a.active() == 0, "got %d, %s", w.Code, w.Body)
}

// TestAPINames: which names of a machine requests may have.
func TestAPINames(t *testing.T) {
	a := newTestAPI(t)
	own := assert.Value(os.Hostname())(t)
	handler := guarded(a.handler, "0.0.0.0:9999", []string{"load-1"})
	for host, status := range map[string]int{"load-1:9999": 200, own: 200, "localhost": 200, "0.0.0.0:9999": 421, "evil.example": 421} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/logs", http.NoBody)
		r.Host = host
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		assert.True(t, w.Code == status && (status != 421 || strings.Contains(w.Body.String(), "--api-name=HOST")),
			"%s: got %d, %s, want %d", host, w.Code, w.Body, status)
	}
	_, f, err := splitNode([]string{"--api-name=a", "--api-name=b"})
	assert.True(t, err == nil && strings.Join(f.apiNames, " ") == "a b", "got %q, %v", f.apiNames, err)
	_, _, err = splitNode([]string{"--api-name=a:1"})
	assert.True(t, err != nil, "a port is taken as a part of a name")
	got := runTool(t, dropin.Program{}, "--api-name=a")
	assert.True(t, got.err != nil && strings.Contains(got.err.Error(), "--api-listen"), "without the API: %v", got.err)
}

// TestAPISecrets: secrets of the node's command line are not in answers.
func TestAPISecrets(t *testing.T) {
	a := newTestAPI(t, "--storage-driver-record-headers=Authorization:Bearer abcdef123456,zone:eu-1")
	a.ask("POST", "/run", nil, `{"load": {"step": {"id": "one"}}}`)
	<-a.seen
	for _, path := range []string{"/config", "/logs/one/Config"} {
		for _, accept := range []string{"application/yaml", "application/json"} {
			text := a.ask("GET", path, map[string]string{"Accept": accept}).Body.String()
			assert.True(t, !strings.Contains(text, "abcdef") && strings.Contains(text, "***") && strings.Contains(text, "eu-1"),
				"%s as %s:\n%s", path, accept, text)
		}
	}
	got := runTool(t, dropin.Program{}, "--run-node", "--storage-auth-secret=abcdef")
	assert.True(t, got.err != nil && !strings.Contains(got.err.Error()+got.errs+got.out, "abcdef"), "a node with a password: %v", got.err)
}

// TestAPIMetrics: steps of all types have metrics while they run; one that failed before has none.
func TestAPIMetrics(t *testing.T) {
	options := func(texts ...string) (all []scenario.Option) {
		for i := 0; i < len(texts); i += 2 {
			all = append(all, scenario.Option{Name: texts[i], Values: []string{texts[i+1]}})
		}
		return all
	}
	create := scenario.Part{Options: options("item-output-path", "t", "load-op-limit-count", "9")}
	read := scenario.Part{Options: options("load-op-type", "read", "item-input-path", "t")}
	for _, c := range []struct {
		name string
		step scenario.Step
		fail bool
		want string // operations
	}{
		{name: "records", step: scenario.Step{Kind: linearLoad}, want: "CREATE"},
		{name: "weighted", step: scenario.Step{Kind: weightedLoad, Parts: []scenario.Part{create, read}}, want: "MIX"},
		{name: "pipeline", step: scenario.Step{Kind: pipelineLoad, Parts: []scenario.Part{create, read}}, want: "CREATE READ"},
		{name: "topics", step: scenario.Step{Kind: linearLoad, Options: options("item-type", "path", "load-op-limit-count", "2")}, want: "CREATE"},
		{name: "failed", step: scenario.Step{Kind: linearLoad}, fail: true},
		{name: "failed pipeline", step: scenario.Step{Kind: pipelineLoad, Parts: []scenario.Part{create, read}}, fail: true},
		{name: "failed topics", step: scenario.Step{Kind: linearLoad, Options: options("item-type", "path", "load-op-limit-count", "2")}, fail: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newTestAPI(t)
			ops := func() string {
				var all []string
				for _, m := range regexp.MustCompile(`mongoose_success_op_count\{[^}]*load_op_type="([A-Z]+)"`).FindAllStringSubmatch(a.ask("GET", "/metrics", nil).Body.String(), -1) {
					all = append(all, m[1])
				}
				return strings.Join(all, " ")
			}
			p := *a.program
			p.Run = func(_ context.Context, _ *workload.Document, o dropin.Observer) (*report.Document, error) {
				if c.fail {
					return nil, errors.New("no connection")
				}
				sendRows(o)
				o.Interval(interval(0, false, false))
				assert.Equal(t, ops(), c.want, "during the run")
				return document(), nil
			}
			p.Topics = func(_ context.Context, _ *workload.Document, l dropin.TopicLoad) (*dropin.TopicResult, error) {
				if c.fail {
					return nil, errors.New("no connection")
				}
				l.Started(time.Now())
				l.Each(dropin.TopicDone{Name: "t", At: time.Millisecond, InFlight: 1})
				return &dropin.TopicResult{Done: 1, Elapsed: time.Second}, nil
			}
			ctx := context.WithValue(t.Context(), apiKey{}, a.api)
			run := assert.Value(newRunner(ctx, &p, a.defaults, nil).Start(1, &c.step))(t)
			ended := run(ctx)
			assert.True(t, (ended.Fault != nil) == c.fail, "it ended with %v", ended.Fault)
			assert.Equal(t, ops(), c.want, "at the end")
			for _, m := range a.measured {
				assert.True(t, m.over, "%s is not over", m.s.op)
			}
		})
	}
}

// TestByteRange: a single range of bytes.
func TestByteRange(t *testing.T) {
	for text, want := range map[string][2]int64{
		"bytes=0-0": {0, 1}, "bytes=2-": {2, 10}, "bytes=-3": {7, 10}, "bytes=-30": {0, 10}, "bytes=4-99": {4, 10},
		"bytes=10-": {}, "bytes=5-4": {}, "bytes=-0": {}, "bytes=-": {}, "bytes=1-2,4-5": {}, "lines=1-2": {}, "bytes=a-b": {}, "bytes=": {},
	} {
		from, to, ok := byteRange(text, 10)
		assert.True(t, ok == (want != [2]int64{}) && (!ok || [2]int64{from, to} == want),
			"%s: %d to %d, %v, want %v", text, from, to, ok, want)
	}
}

// TestNodesOf: how the options of nodes become a run on them.
func TestNodesOf(t *testing.T) {
	for _, c := range []struct {
		name, args, want string // the error, or what the workload has
	}{
		{"concurrency", "--load-step-node-addrs=a,b:7 --storage-driver-limit-concurrency=3", "concurrency=9 nodes=[a:1099 b:7]"},
		{"threads", "--load-step-node-addrs=a --storage-driver-threads=2 --load-step-node-port=9", "clients=4 nodes=[a:9]"},
		{"deprecated", "--storage-driver-addrs=a --storage-driver-port=8", "nodes=[a:8]"},
		{"an address", "--load-step-node-addrs=a/b", "is not HOST:PORT"},
		{"reading", "--load-step-node-addrs=a --read --item-input-path=t", "records are read by one machine"},
		{"topics", "--load-step-node-addrs=a --item-type=path --create --load-op-limit-count=1", "topics are worked on by one machine"},
		{"a list", "--load-step-node-addrs=a --item-output-file=x.csv", "nodes keep no lists"},
		{"a trace", "--load-step-node-addrs=a --output-metrics-trace-persist", "nodes keep no trace"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := assert.Value(parse(strings.Fields(c.args), t.Logf))(t)
			s, err := newStep(v, false, "", time.Now(), t.Logf)
			if err != nil {
				assert.True(t, strings.Contains(err.Error(), c.want), "got %v, want %s", err, c.want)
				return
			}
			var all []string
			for _, e := range s.workload(false).Entries {
				all = append(all, e.Name+"="+strings.Join(e.Values, " "))
			}
			all = append(all, fmt.Sprintf("nodes=%v", s.nodes))
			for want := range strings.SplitSeq(strings.Replace(c.want, " b:7", "|b:7", 1), " ") {
				want = strings.Replace(want, "|", " ", 1)
				assert.True(t, strings.Contains(strings.Join(all, "\n"), want), "got %q, want %s", all, want)
			}
		})
	}
}

// TestReadNumbers: values of a document are as in YAML 1.1 with the exception of base 60.
func TestReadNumbers(t *testing.T) {
	for text, want := range map[string]string{
		"010": "8", "0o10": "8", "0x1F": "31", "1_000": "1000", "1e3": "1000", "1.0": "1", "+5": "5", "18446744073709551615": "18446744073709551615",
		".5": "0.5", "1e-7": "0.0000001", "'010'": "010", "True": "true", "yes": "yes", "1:30": "1:30", "2001-01-01": "2001-01-01", "<<": "<<", "[1_0, b, ~]": "10,b,",
	} {
		v := newValues()
		err := v.read([]byte("run:\n  comment: " + text + "\n"))
		assert.True(t, err == nil && v.text("run-comment") == want, "%s: got %q and %v, want %s", text, v.text("run-comment"), err, want)
	}
}

// FuzzRead: whatever is sent as the options of a run is taken or refused.
func FuzzRead(f *testing.F) {
	for _, text := range []string{"load:\n  op:\n    limit:\n      count: 1\n", `{"storage": {"driver": {"record": {"headers": {"a": "b"}}}}}`, "a: [1, {b: c}]", "item: ~", "? [a]\n: b"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		v := newValues()
		if v.read(text) != nil {
			return
		}
		for name := range v.given {
			assert.True(t, find(name) != nil, "%q gives the option %q, which there is not", text, name)
		}
	})
}
