package mongoose

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"carronade/internal/dropin"
	"carronade/internal/host"
	"carronade/internal/report"
	"carronade/internal/run/trace"
	"carronade/internal/scenario"
	"carronade/internal/workload"
	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

// A request creates as many topics as may be in flight at once; the topics of a
// list are read and deleted.
func TestTopics(t *testing.T) {
	got := runTool(t, dropin.Program{}, "--item-type=path", "--load-op-limit-count=100", "--storage-driver-limit-concurrency=100", "--output-metrics-trace-persist")
	if l := got.topics; l.Op != "create" || l.Times != 100 || len(got.names) != 100 || l.PerRequest != 100 || l.Concurrency != 1 || l.Spec.Partitions != 1 || l.Spec.Replicas != 1 || l.Failures != 100_000 {
		t.Errorf("got %+v", l)
	}
	if s := value(t, got.out, "Count", "Successful"); s != "86" || value(t, got.out, "Count", "Failed") != "14" || got.code != host.ExitBroken {
		t.Errorf("exit %d:\n%s", got.code, got.out)
	}
	lines := strings.Split(got.files["op.trace.csv"], "\n")
	if len(lines) != 101 || !matches(`^127\.0\.0\.1:9092,[0-9a-z]{9,12},1,4,\d{16},900,800,,$`, lines[0]) || !matches(`,1,10,\d{16},900,800,,$`, lines[6]) {
		t.Errorf("op.trace.csv: %q", lines[:7])
	}
	list := filepath.Join(t.TempDir(), "list.csv")
	assert.OK(t, os.WriteFile(list, []byte("one\n/two/\n\n"), 0o644))
	for _, tt := range []struct {
		args  []string
		op    string
		want  string
		times int
	}{
		{[]string{"--item-type=path", "--load-op-type=delete", "--item-input-file=" + list}, "delete", "one two", 0},
		{[]string{"--item-type=path", "--load-op-type=read", "--item-input-file=" + list, "--load-op-recycle", "--load-op-limit-count=3"}, "read", "one two one", 3},
		{[]string{"--item-type=path", "--load-op-type=read", "--item-input-path=/three"}, "read", "three", 0},
		{[]string{"--item-type=path", "--load-op-type=read", "--item-input-path=/three", "--load-op-recycle"}, "read", "again", -1},
		{[]string{"--item-type=path", "--load-op-type=read", "--item-input-file=" + list, "--load-op-limit-count=1"}, "read", "one", 0},
		{[]string{"--load-op-type=delete", "--item-input-path=four"}, "delete-records", "four", 0},
		{[]string{"--item-type=path", "--load-op-type=list", "--load-op-limit-count=4"}, "list", "   ", 4},
		{[]string{"--item-type=path", "--load-op-type=list", "--load-op-limit-count=300000"}, "list", strings.Repeat(" ", 299_999), 300_000},
		{[]string{"--item-type=path", "--load-op-type=list"}, "list", "", 0},
		{[]string{"--item-type=path", "--load-op-type=list", "--load-step-limit-time=5"}, "list", "again", -1},
		{[]string{"--item-type=path", "--load-step-limit-time=5"}, "create", "", -1},
	} {
		got := runTool(t, dropin.Program{}, tt.args...)
		if got.err != nil || got.topics == nil || got.topics.Op != tt.op || got.topics.Times != tt.times || strings.Join(got.names, " ") != tt.want {
			t.Errorf("%v: %v, %+v, %d names", tt.args, got.err, got.topics, len(got.names))
		}
	}
	got = runTool(t, dropin.Program{}, "--item-type=path")
	assert.True(t, got.err != nil && strings.Contains(got.err.Error(), "without end"), "topics without end: %v", got.err)
}

// A huge number of topics starts at once: names are made when they are needed,
// without duplicates while others are left.
func TestManyTopics(t *testing.T) {
	got := runTool(t, dropin.Program{}, "--item-type=path", "--load-op-limit-count=9223372036854775807", "--item-naming-length=2")
	assert.Must(t, got.err == nil && got.topics.Times == math.MaxInt && len(got.names) == 1000, "%v, %+v", got.err, got.topics)
	slices.Sort(got.names)
	assert.Equal(t, len(slices.Compact(got.names)), 1000, "different names")
}

// Times of operations on topics start when the brokers were reached, however long
// that took.
func TestTopicsClock(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	synctest.Test(t, func(t *testing.T) {
		var out, errs strings.Builder
		var start time.Time
		p := &dropin.Program{Called: "mongoose", Out: &out, Err: &errs, Args: []string{
			"--item-type=path", "--load-op-limit-count=20", "--load-step-id=s", "--output-metrics-trace-persist", "--output-metrics-average-period=5s",
		}}
		p.Topics = func(_ context.Context, _ *workload.Document, l dropin.TopicLoad) (*dropin.TopicResult, error) {
			<-time.After(7300 * time.Millisecond)
			start = time.Now()
			l.Started(start)
			for range 20 {
				<-time.After(999 * time.Millisecond)
				at := time.Since(start)
				l.Each(dropin.TopicDone{Name: "t", Due: at - time.Millisecond, Sent: at - time.Millisecond, At: at, InFlight: 1})
			}
			return &dropin.TopicResult{Done: 20, Elapsed: time.Since(start)}, nil
		}
		if code, err := Tool.Main(t.Context(), p); code != host.ExitOK || err != nil {
			t.Fatalf("exit %d, %v", code, err)
		}
		got, rate := value(t, out.String(), "Duration", "Elapsed"), value(t, out.String(), "Throughput", "Mean")
		assert.True(t, got == "19.98" && rate == "1.001001001001001", "20 in 19.98 s: %s s, %s per second", got, rate)
		data, err := os.ReadFile(filepath.Join(home, ".mongoose/4.2.11/log/s/op.trace.csv"))
		if want := "," + strconv.FormatInt(start.Add(998*time.Millisecond).UnixMicro(), 10) + ",1000,1000,"; err != nil || !strings.Contains(strings.Split(string(data), "\n")[0], want) {
			t.Errorf("%v: no %s in the first row of\n%s", err, want, data)
		}
		rows, err := os.ReadFile(filepath.Join(home, ".mongoose/4.2.11/log/s/metrics.csv"))
		if n := strings.Count(string(rows), "\n"); err != nil || n != 4 || !matches(`(?m)^"[^"]+",CREATE,(?:[^,]*,){4}5,0,0,5\.0,`, string(rows)) {
			t.Errorf("%v: %d lines, and the row of 5 s among them:\n%s", err, n, rows)
		}
	})
}

// Operations with an unknown outcome count as failed in mongoose's single count.
func TestTopicsUnknown(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	for _, strict := range []bool{false, true} {
		var out, errs strings.Builder
		p := &dropin.Program{Called: "mongoose", Out: &out, Err: &errs, Strict: strict, Args: []string{
			"--item-type=path", "--load-op-limit-count=3", "--load-op-limit-fail-count=1",
		}}
		p.Topics = func(_ context.Context, _ *workload.Document, l dropin.TopicLoad) (*dropin.TopicResult, error) {
			l.Started(time.Now())
			for range 2 {
				l.Each(dropin.TopicDone{Name: "t", At: time.Millisecond, Class: "timeout", Err: errors.New("late"), InFlight: 1})
			}
			return &dropin.TopicResult{Unknown: 2, Unsent: 1, Elapsed: time.Second}, nil
		}
		want := host.ExitBroken
		if strict {
			want = host.ExitOK
		}
		code, err := Tool.Main(t.Context(), p)
		assert.True(t, code == want && err == nil, "strict %v: exit %d, %v, want %d", strict, code, err, want)
		if !strings.Contains(errs.String(), "2 topics failed (the first is ") || value(t, out.String(), "Count", "Failed") != "2" {
			t.Errorf("strict %v:\n%s\n%s", strict, out.String(), errs.String())
		}
	}
}

// The rows of a pipeline's reading come as time passes, with times, and go on while only the rest is read.
func TestPipelineRows(t *testing.T) {
	option := func(name, value string) scenario.Option { return scenario.Option{Name: name, Values: []string{value}} }
	parts := []scenario.Part{
		{Options: []scenario.Option{option("item-output-path", "t"), option("load-op-limit-count", "9"), option("output-metrics-average-period", "1s"), option("load-step-id", "rows")}},
		{Options: []scenario.Option{option("load-op-type", "read"), option("item-input-path", "t")}},
	}
	a := newTestAPI(t)
	var out bytes.Buffer
	p := *a.program
	p.Out = &out
	p.Run = func(_ context.Context, _ *workload.Document, o dropin.Observer) (*report.Document, error) {
		o.Found(map[string]any{})
		const ms = time.Millisecond
		for i, phase := range []string{measure.Measurement, measure.Measurement, measure.Drain, measure.Drain} {
			o.Rows(began, &trace.Row{Sent: 2 * ms, Done: 5 * ms, Due: -1, Acked: 1, Requested: 6 * ms, Consumed: 13 * ms, Partition: -1, Offset: -1, Event: uint64(i)})
			at := time.Duration(i+1) * time.Second
			iv := measure.Interval{Phase: phase, Start: at - time.Second, End: at, Set: measure.Set{Service: measure.NewHistogram()}, Counts: measure.Counts{Consumed: 1}}
			if phase == measure.Measurement {
				iv.Acked = 2
			}
			o.Interval(load.Snapshot{At: at, Phase: phase, Interval: iv})
		}
		return document(), nil
	}
	run := assert.Value(newRunner(t.Context(), &p, a.defaults, nil).Start(1, &scenario.Step{Kind: pipelineLoad, Parts: parts}))(t)
	ended := run(t.Context())
	assert.Must(t, ended.Fault == nil, "%v", ended.Fault)
	var reads []string // counts and times of the rows
	for _, row := range regexp.MustCompile(`(?m)^.*\|READ  \|.*$`).FindAllString(out.String(), -1) {
		cells := strings.Split(row, "|")
		reads = append(reads, strings.TrimSpace(cells[5])+" "+strings.TrimSpace(cells[7])+" "+strings.TrimSpace(cells[10]))
	}
	assert.Equal(t, strings.Join(reads, ", "), "1 1.0 7000, 2 2.0 7000, 3 3.0 7000, 4 4.0 7000, 4 4.0 7000", "rows of\n%s", out.String())
}

// list writes the names of the topics to --item-output-file.
func TestListToFile(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	file := filepath.Join(t.TempDir(), "topics.csv")
	var out, errs bytes.Buffer
	p := dropin.Program{Called: "mongoose", Args: []string{"--item-type=path", "--load-op-type=list", "--item-output-file=" + file}, Out: &out, Err: &errs}
	p.Topics = func(_ context.Context, _ *workload.Document, l dropin.TopicLoad) (*dropin.TopicResult, error) {
		l.Started(time.Now())
		l.Each(dropin.TopicDone{At: time.Millisecond, InFlight: 1})
		r := &dropin.TopicResult{Done: 1, Elapsed: time.Second}
		r.Topics = slices.Grow(r.Topics, 2)[:2]
		r.Topics[0].Name, r.Topics[1].Name = "orders", "payments"
		return r, nil
	}
	code, err := Tool.Main(t.Context(), &p)
	assert.Must(t, code == 0 && err == nil && errs.String() == "", "exit %d, %v, %s", code, err, errs.String())
	assert.Equal(t, string(assert.Value(os.ReadFile(file))(t)), "orders\npayments\n", "the list")
}

// Forms of mongoose 4.0: steps are called without new, and Command is an error that names the form of 4.2.
// Logins do nothing, and names of options with event are those with record.
func TestFormsOf40(t *testing.T) {
	got := play(t, dropin.Program{}, write(t, `Load().config({load: {op: {limit: {count: 3}}}}).run(); new Load().run()`))
	assert.Must(t, got.err == nil && got.code == 0 && len(got.runs) == 2, "exit %d, %v, %v\n%s", got.code, got.err, got.runs, got.errs)
	assert.Equal(t, got.runs[0]["count"], "3", "count")
	for _, src := range []string{`Command.value("sleep 1").run()`, `Command("sleep 1")`} {
		got = play(t, dropin.Program{}, write(t, src))
		assert.True(t, got.code == 2 && strings.Contains(got.errs, `Command is of mongoose 4.0 (in 4.2 it is new java.lang.ProcessBuilder(`), "%s: exit %d\n%s", src, got.code, got.errs)
	}
	got = play(t, dropin.Program{}, write(t, `Load.config({storage: {auth: {uid: "u"}, driver: {event: {key: {enabled: true}, timeoutMillis: 500, headers: {a: "b"}}}}}).run()`))
	assert.Must(t, got.err == nil && got.code == 0 && len(got.runs) == 1, "exit %d, %v\n%s", got.code, got.err, got.errs)
	assert.True(t, got.runs[0]["key"] != "" && got.runs[0]["header"] == "a=b" && got.runs[0]["delivery-timeout"] == "500ms", "%v", got.runs[0])
}
