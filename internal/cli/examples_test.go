package cli_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"carronade/internal/cli"
	"carronade/internal/workload"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// The workloads in examples are valid.
func TestExampleWorkloads(t *testing.T) {
	files, err := filepath.Glob("../../examples/workloads/*.yaml")
	assert.Must(t, err == nil && len(files) != 0, "got %v and %v, want some", files, err)
	for _, path := range files {
		docs, err := workload.ReadFile(path)
		assert.True(t, err == nil, "%v", err)
		for _, doc := range docs {
			assert.Value(workload.Resolve(cli.Kinds(), nil, doc))(t, "%s", path)
		}
	}
}

// The series of workloads goes from 10^4 to 10^8 events, as the documents say, and
// each size is consumed as it was produced. Its own trial, with fewer events, runs.
func TestExampleSeries(t *testing.T) {
	t.Parallel()
	text := assert.Value(os.ReadFile("../../examples/workloads/series.yaml"))(t)
	docs := assert.Value(workload.Read("series.yaml", bytes.NewReader(text)))(t)
	type step struct {
		op    string
		count uint64
	}
	var got []step
	topics := map[string][]string{}
	for _, doc := range docs {
		w := assert.Value(workload.Resolve(cli.Kinds(), nil, doc))(t)
		got = append(got, step{w.Op, w.Count("count")})
		topics[w.Target()] = append(topics[w.Target()], w.Op)
	}
	want := []step{
		{"produce", 1e4}, {"consume", 1e4}, {"produce", 1e7}, {"consume", 1e7}, {"produce", 1e8}, {"consume", 1e8},
	}
	assert.NoDiff(t, cmp.Diff(want, got, cmp.AllowUnexported(step{})))
	assert.Equal(t, len(topics), 3, "topics, of which each size has one: %v", topics)
	const trial = "carronade run -f series.yaml --count 10k --label series=trial"
	assert.True(t, bytes.Contains(text, []byte("#   "+trial+"\n")), "the file does not have %q", trial)
	dir := t.TempDir()
	server := child(t, "kafka", "--in-memory")
	text = bytes.ReplaceAll(text, []byte("127.0.0.1:9092"), []byte(server.Addr()))
	assert.OK(t, os.WriteFile(filepath.Join(dir, "series.yaml"), text, 0o600))
	c := exec.CommandContext(t.Context(), "sh", "-c", strings.Replace(trial, "carronade", carronade(t), 1)+" --json-file report.json")
	c.Dir = dir
	c.Env = append(os.Environ(), "HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir, "CARRONADE_TEST_UNTRUSTED=none")
	out, err := c.CombinedOutput()
	assert.Must(t, err == nil, "%v:\n%s", err, out)
	for i, s := range want {
		data := assert.Value(os.ReadFile(filepath.Join(dir, fmt.Sprintf("report.%d.json", i+1))))(t)
		var d struct {
			Op     string
			Totals struct{ Acked, Consumed uint64 }
		}
		err := json.Unmarshal(data, &d)
		assert.True(t, err == nil && d.Op == s.op && d.Totals.Acked+d.Totals.Consumed == 1e4, "run %d: %+v, want %s of 10,000 (%v)", i+1, d, s.op, err)
	}
}

// exampleStore is the address of Elasticsearch in the examples.
const exampleStore = "127.0.0.1:9200"

// exampleCluster is the address of a real cluster in the examples, which stores reports.
const exampleCluster = "search.example:9200"

// startStore starts a server that imitates Elasticsearch: it only accepts and counts documents.
func startStore(t *testing.T) (addr string) {
	t.Helper()
	var documents atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/_bulk":
			text, _ := io.ReadAll(r.Body)
			n := bytes.Count(text, []byte("\n")) / 2
			documents.Add(int64(n))
			fmt.Fprintf(w, `{"items":[%s]}`, strings.TrimSuffix(strings.Repeat(`{"create":{"status":201}},`, n), ","))
		case strings.HasSuffix(r.URL.Path, "/_count"):
			fmt.Fprintf(w, `{"count":%d,"_shards":{"failed":0}}`, documents.Load())
		default:
			fmt.Fprint(w, `{"version":{"number":"9.6.0"},"status":"green"}`)
		}
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// exampleServer is built by the repository of the examples: a server that accepts and ignores an APM Server's flags.
const exampleServer = "#!/bin/sh\nexec carronade standin apm --listen 127.0.0.1:8200 --index http://" + exampleStore + "\n"

// exampleRepository creates the folder apm-server of the examples, a repository whose make builds a server.
func exampleRepository(t *testing.T, dir string, swap *strings.Replacer) {
	t.Helper()
	dir = filepath.Join(dir, "apm-server")
	assert.OK(t, os.Mkdir(dir, 0o755))
	for name, text := range map[string]string{
		"Makefile":   "apm-server: server.sh\n\tcp server.sh apm-server\n\tchmod +x apm-server\n",
		"server.sh":  swap.Replace(exampleServer),
		".gitignore": "apm-server\n",
	} {
		assert.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "."}, {"commit", "-qm", "a server"}, {"branch", "trace-apm-server"}} {
		cmd := exec.Command(testkit.Program(t, "git"), append([]string{"-C", dir, "-c", "user.name=t", "-c", "user.email=t@localhost"}, args...)...)
		out, err := cmd.CombinedOutput()
		assert.Must(t, err == nil, "git %v: %v\n%s", args, err, out)
	}
	out, err := exec.Command(testkit.Program(t, "make"), "-C", dir).CombinedOutput()
	assert.Must(t, err == nil, "make: %v\n%s", err, out)
}

// The script for CI in docs/reports.md ends at the first command that fails. It reaches the gate if some
// repetitions were not trusted and were replaced, and ends before it if not enough are left.
func TestGateOfCI(t *testing.T) {
	t.Parallel()
	text := assert.Value(os.ReadFile(root + "/docs/reports.md"))(t)
	script := ""
	for _, b := range examples(string(text)) {
		if b.command == "cat gate.sh" {
			script = strings.Join(b.want, "\n")
		}
	}
	assert.Must(t, strings.Contains(script, "set -e\n") && strings.Contains(script, "--repeat 8 "), "the script is %q", script)
	for _, tt := range []struct {
		name      string
		untrusted string // runs
		code      int
		files     []string
	}{
		{"all trusted", "none", 0, []string{"gate.xml", "nightly.txt"}},
		{"one is not", "3", 0, []string{"gate.xml", "nightly.txt"}},
		{"nor is its replacement", "3,9", 0, []string{"gate.xml", "nightly.txt"}},
		{"none is", "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16", 3, []string{"nightly.txt"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			swap := strings.NewReplacer(append([]string{"--for 30s", "--for 100ms"}, addresses(t, script)...)...)
			cmd := exec.CommandContext(t.Context(), "bash", "-c", swap.Replace(script))
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_DATA_HOME="+filepath.Join(dir, "data"), "XDG_CONFIG_HOME="+dir, "NO_COLOR=1", "CARRONADE_TEST_UNTRUSTED="+tt.untrusted)
			var words bytes.Buffer
			cmd.Stderr = &words
			code := 0
			if err := cmd.Run(); err != nil {
				var exit *exec.ExitError
				assert.Must(t, errors.As(err, &exit), "%v", err)
				code = exit.ExitCode()
			}
			assert.True(t, code == tt.code, "got %d, want %d\n%s", code, tt.code, words.String())
			found := assert.Value(filepath.Glob(filepath.Join(dir, "*.*")))(t)
			for i := range found {
				found[i] = filepath.Base(found[i])
			}
			diff := cmp.Diff(tt.files, found)
			assert.True(t, diff == "", "it wrote (-want +got):\n%s\n%s", diff, words.String())
		})
	}
}
