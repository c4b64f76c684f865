package mongoose

import (
	"bufio"
	"context"
	"errors"
	"fmt"
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

// A list has places if they were written with it, and it did not change since.
func TestPlaces(t *testing.T) {
	write := func(t *testing.T, withOffsets bool) string {
		t.Helper()
		list := filepath.Join(t.TempDir(), "items.csv")
		w := assert.Value(newListWriter(list, "t"))(t)
		for i := range int64(5) {
			offset := 10 + i
			if !withOffsets && i == 3 {
				offset = -1
			}
			assert.OK(t, w.add(fmt.Appendf(nil, "t/%d,%d,10,0/0\n", i, i), int32(i/2), offset))
		}
		assert.OK(t, w.close())
		return list
	}
	check := func(t *testing.T, list, topic string) error {
		t.Helper()
		items := assert.Value(readItems(list))(t)
		return (&step{topic: topic, items: items}).checkPlaces(list)
	}
	list := write(t, true)
	assert.OK(t, check(t, list, "t"))
	if text, err := os.ReadFile(placesOf(list)); err != nil || !strings.Contains(string(text), "\n0,10,2\n1,12,2\n2,14\n# of the list with 5 lines, crc32c ") {
		t.Errorf("the places are %q (%v)", text, err)
	}
	assert.Equal(t, check(t, list, "other"), errOther, "another topic") //nolint:errorlint // it is not wrapped
	_, err := os.Stat(placesOf(write(t, false)))
	assert.True(t, os.IsNotExist(err), "a record has no offset: %v", err)
	for name, change := range map[string]func(text string) string{
		"a line less":  func(text string) string { return text[:strings.LastIndex(text[:len(text)-1], "\n")+1] },
		"another size": func(text string) string { return strings.Replace(text, ",10,", ",11,", 1) },
	} {
		list := write(t, true)
		assert.OK(t, os.WriteFile(list, []byte(change(string(assert.Value(os.ReadFile(list))(t)))), 0o600))
		assert.Equal(t, check(t, list, "t"), errOther, "%s", name) //nolint:errorlint // it is not wrapped
	}
	list = write(t, true)
	text, _ := os.ReadFile(placesOf(list))
	assert.OK(t, os.WriteFile(placesOf(list), []byte(strings.Replace(string(text), "1,12,2", "1,12,x", 1)), 0o600))
	assert.ErrorHas(t, check(t, list, "t"), `items.csv.places:4: "x" is not a number of records`, "a wrong line")
}

// A list with places is read by them, at a rate if one is given.
func TestReadsByPlaces(t *testing.T) {
	t.Chdir(t.TempDir())
	dir := assert.Value(os.Getwd())(t)
	list := filepath.Join(dir, "items.csv")
	w := assert.Value(newListWriter(list, "t"))(t)
	assert.OK(t, w.add([]byte("t/a,1,10,0/0\n"), 0, 3))
	assert.OK(t, w.close())
	v, err := parse([]string{"--read", "--item-input-file=" + list, "--load-op-limit-rate=7", "--storage-driver-limit-concurrency=3", "--load-op-recycle"}, t.Logf)
	assert.OK(t, err)
	s := assert.Value(newStep(v, false, "", began, func(f string, args ...any) { t.Errorf("warning: "+f, args...) }))(t)
	got := map[string]string{}
	for _, e := range s.workload(false).Entries {
		got[e.Name] = strings.Join(e.Values, " ")
	}
	for name, want := range map[string]string{"op": "read", "items-in": placesOf(list), "rate": "7/s", "max-in-flight": "3", "recycle": "true", "failures": "100000"} {
		assert.Equal(t, got[name], want, "%s", name)
	}
}
