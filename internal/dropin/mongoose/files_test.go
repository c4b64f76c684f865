package mongoose

import (
	"bufio"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"carronade/internal/dropin"
	"carronade/internal/host"
	"carronade/internal/report"
	"carronade/internal/workload"
	"carronade/test/testkit/assert"
)

// The first error of writing during a step is kept, and the exit code is 2.
func TestFullDisk(t *testing.T) {
	m := &topicMeter{meter: newMeter(&step{op: "CREATE"}), failures: make(map[string]*failedTopics), trace: bufio.NewWriterSize(full{}, 16)}
	for range 1000 {
		m.done(dropin.TopicDone{Name: "a-topic-of-a-name", At: 1, InFlight: 1})
	}
	assert.True(t, m.err != nil && m.err.Error() == "no space", "got %v", m.err)
}

// full is a disk without space.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space") }

// A file that cannot be written ends the program before anything is sent; one that
// can no longer be written is a problem at the end.
func TestUnwritable(t *testing.T) {
	for _, args := range [][]string{
		{"--item-output-file=gone/items.csv"},
		{"--item-output-file=gone/topics.csv", "--item-type=path", "--load-op-limit-count=3"},
	} {
		if got := runTool(t, dropin.Program{}, args...); got.code != host.ExitFailed || got.err == nil || len(got.settings) > 0 || got.topics != nil ||
			got.err.Error() != "--item-output-file: cannot write "+args[0][len("--item-output-file="):]+": no such file or directory" {
			t.Errorf("%v: exit %d, %v, %v", args, got.code, got.err, got.settings)
		}
	}
	for _, tt := range []struct {
		file         string // a folder of this name is in its place
		before       bool   // the run
		strict, code int    // exit codes
		args         []string
	}{
		{"metrics.csv", true, 2, 2, nil},
		{"metrics.total.csv", true, 2, 2, nil},
		{"op.trace.csv", true, 2, 2, []string{"--output-metrics-trace-persist"}},
		{"metrics.threshold.csv", true, 2, 2, []string{"--output-metrics-threshold=0.5"}},
		{"metrics.threshold.total.csv", true, 2, 2, []string{"--output-metrics-threshold=0.5"}},
		{"op.trace.csv", true, 0, 0, nil},
		{"metrics.total.csv", false, 0, 2, nil},
		{"op.trace.csv", false, 0, 2, []string{"--output-metrics-trace-persist"}},
		{"op.trace.csv", false, 0, 2, []string{"--output-metrics-trace-persist", "--item-type=path"}},
	} {
		for _, strict := range []bool{false, true} {
			home := t.TempDir()
			t.Setenv("HOME", home)
			dir := filepath.Join(home, ".mongoose/4.2.11/log/s")
			assert.OK(t, os.MkdirAll(dir, 0o755))
			block := func() {
				assert.OK(t, os.MkdirAll(filepath.Join(dir, tt.file), 0o755))
			}
			if tt.before {
				block()
			}
			started := false
			var out, errs strings.Builder
			p := &dropin.Program{Called: "mongoose", Args: append([]string{"--load-step-id=s", "--load-op-limit-count=3"}, tt.args...), Strict: strict, Out: &out, Err: &errs}
			p.Run = func(_ context.Context, _ *workload.Document, observer dropin.Observer) (*report.Document, error) {
				started = true
				if tt.file == "op.trace.csv" && !tt.before {
					block() // before its first row
				}
				sendRows(observer)
				iv := interval(0, false, false)
				iv.Interval.Failed = 0
				observer.Interval(iv)
				if tt.file != "op.trace.csv" && !tt.before {
					block()
				}
				return document(), nil
			}
			p.Topics = func(_ context.Context, _ *workload.Document, l dropin.TopicLoad) (*dropin.TopicResult, error) {
				started = true
				l.Started(time.Now())
				assert.OK(t, os.Remove(filepath.Join(dir, "metrics.csv")))
				assert.OK(t, os.Mkdir(filepath.Join(dir, "metrics.total.csv"), 0o755)) // its trace is open already
				return &dropin.TopicResult{Done: 3, Elapsed: time.Second}, nil
			}
			want := tt.code
			if strict {
				want = tt.strict
			}
			code, err := Tool.Main(t.Context(), p)
			assert.True(t, code == want && started != (want == 2 && tt.before) && (err != nil) == (want == 2 && tt.before),
				"%s is a folder, %v, strict %v: exit %d, %v, started %v: %s", tt.file, tt.args, strict, code, err, started, errs.String())
			assert.True(t, tt.before || strings.Contains(errs.String(), "not all files of the step could be written"),
				"%s: %s", tt.file, errs.String())
		}
	}
}
