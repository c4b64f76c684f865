package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"carronade/internal/cli"
	"carronade/internal/workload"
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
		if err := json.Unmarshal(data, &d); err != nil || d.Op != s.op || d.Totals.Acked+d.Totals.Consumed != 1e4 {
			t.Errorf("run %d: %+v, want %s of 10,000 (%v)", i+1, d, s.op, err)
		}
	}
}
