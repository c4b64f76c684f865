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
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// A result is the result of a command line.
type result struct {
	out, errs string
	code      int
	err       error
	settings  map[string]string
	topics    *dropin.TopicLoad
	names     []string          // of the topics that were requested
	dir       string            // of the step's files
	files     map[string]string // contents by name
}

// runTool runs the tool on made-up data: 12 s and at most 90,000 records of a kibibyte, of which twelve failed; or the requested
// topics, of which every seventh fails.
func runTool(t *testing.T, p dropin.Program, args ...string) result {
	t.Helper()
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Chdir(home)
	got := result{settings: make(map[string]string)}
	var out, errs bytes.Buffer
	p.Called, p.Args, p.Out, p.Err = "mongoose", args, &out, &errs
	p.Run = func(_ context.Context, d *workload.Document, observer dropin.Observer) (*report.Document, error) {
		for _, e := range d.Entries {
			if old, ok := got.settings[e.Name]; ok && (e.Name == "label" || e.Name == "header") {
				e.Values = append([]string{old}, e.Values...)
			}
			got.settings[e.Name] = strings.Join(e.Values, " ")
		}
		sendRows(observer)
		for i := range 12 {
			if observer.Completed != nil {
				observer.Completed([]load.Outcome{
					{Batch: load.Batch{Events: 5000}, Done: 2 * time.Millisecond, Acked: 5000},
					{Batch: load.Batch{Events: 2501}, Done: 6 * time.Millisecond, Acked: 2500, Failed: 1},
				})
			}
			if observer.Arrived != nil { // 5,000 records 3 ms after the previous poll, and 2,500 after 7 ms
				at := time.Duration(i) * 10 * time.Millisecond
				observer.Arrived(0, []load.Arrival{{Events: 3000, At: at + 3*time.Millisecond}, {Log: 1, Events: 2000, At: at + 3*time.Millisecond}})
				observer.Arrived(0, []load.Arrival{{Events: 2500, At: at + 10*time.Millisecond}})
			}
			observer.Interval(interval(time.Duration(i)*time.Second, got.settings["rate"] != "", got.settings["op"] == workload.Consume))
		}
		return document(), nil
	}
	p.Topics = func(_ context.Context, d *workload.Document, l dropin.TopicLoad) (*dropin.TopicResult, error) {
		for _, e := range d.Entries {
			got.settings[e.Name] = strings.Join(e.Values, " ")
		}
		r := &dropin.TopicResult{Elapsed: 2 * time.Second}
		names := l.Names
		switch {
		case l.Next != nil:
			for range min(max(l.Times, 0), 1000) {
				names = append(names, l.Next())
			}
		case l.Times < 0:
			names = []string{"again"}
		case l.Op == "list":
			names = make([]string, max(l.Times, 1))
		case l.Times > 0:
			for i := len(names); i < l.Times; i++ {
				names = append(names, names[i-len(l.Names)])
			}
		}
		l.Started(time.Now())
		got.names = names
		for i, name := range names {
			at := time.Duration(i+1) * time.Millisecond
			done := dropin.TopicDone{Name: name, Due: at - 900*time.Microsecond, Sent: at - 800*time.Microsecond, At: at, Bytes: 100, InFlight: 1}
			if i%7 == 6 {
				done.Class, done.Err = "rejected", errors.New("topic exists")
				r.Failed++
			} else {
				r.Done++
			}
			l.Each(done)
		}
		got.topics = &l
		return r, nil
	}
	p.Node = func(context.Context, dropin.NodeOptions) (*dropin.Node, error) {
		return nil, errors.New("no node here")
	}
	p.Nodes = func(context.Context, dropin.NodesOptions) (*dropin.Nodes, error) {
		return nil, errors.New("no nodes here")
	}
	got.code, got.err = Tool.Main(t.Context(), &p)
	got.out, got.errs = out.String(), errs.String()
	got.files = make(map[string]string)
	_ = filepath.WalkDir(home, func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			data, _ := os.ReadFile(path)
			got.files[e.Name()] = string(data)
			if e.Name() == "config.yaml" {
				got.dir = filepath.Dir(strings.TrimPrefix(path, home))
			}
		}
		return nil
	})
	return got
}

// interval is a second of 7,500 records.
func interval(at time.Duration, due, consumed bool) load.Snapshot {
	service, response := measure.NewHistogram(), measure.NewHistogram()
	service.RecordN(2*time.Millisecond, 5000)
	service.RecordN(6*time.Millisecond, 2500)
	response.RecordN(3*time.Millisecond, 5000)
	response.RecordN(7*time.Millisecond, 2500)
	iv := measure.Interval{
		Phase: "measurement", Start: at, End: at + time.Second, InFlight: 4, Set: measure.Set{Service: service},
		Counts: measure.Counts{Sent: 7501, Acked: 7500, Failed: 1, AckedBytes: 7500 << 10, Bytes: 7501 << 10},
	}
	if due {
		iv.Response = response
	}
	if consumed {
		iv.Counts, iv.Set = measure.Counts{Consumed: 7500, Bytes: 7500 << 10}, measure.Set{}
	}
	return load.Snapshot{At: at + time.Second, Phase: "measurement", Interval: iv}
}

func document() *report.Document {
	d := &report.Document{Stopped: load.ByTime, Trust: measure.Trust{OK: true}}
	d.Totals.InFlightMean = 3.5
	return d
}

// began is the start of the run.
var began = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)

// sendRows gives rows of four records to what observes a run, if it wants them; the last one failed.
func sendRows(o dropin.Observer) {
	if o.Rows == nil {
		return
	}
	o.Found(map[string]any{})
	const ms = time.Millisecond
	for i, r := range []trace.Row{
		{Sent: 2 * ms, Done: 5 * ms, Acked: 1},
		{Sent: 4 * ms, Done: 9 * ms, Acked: 1},
		{Sent: 3 * ms, Done: 4 * ms, Acked: 1},
		{Sent: 5 * ms, Done: 6 * ms, Class: load.Timeout},
	} {
		r.Event, r.Due, r.Requested, r.Consumed, r.Partition, r.Offset = uint64(i), time.Duration(i+1)*ms, -1, -1, -1, -1
		o.Rows(began, &r)
	}
}

// Every option is tested: it becomes a setting, changes the output, causes a warning or ends the program.
func TestEveryOption(t *testing.T) {
	items := filepath.Join(t.TempDir(), "items.csv")
	assert.OK(t, os.WriteFile(items, []byte("t/one,0,1,0/0\n/t/two,1,1,0/0\n"), 0o644))
	for _, row := range testkit.Table[[]string](t, "testdata/options.yaml") {
		want, args := row[0], row[1:]
		option, value, _ := strings.Cut(strings.TrimPrefix(args[0], "--"), "=")
		if testing.Short() && tested[option] {
			continue // one case of each option
		}
		t.Run(option+"="+filepath.Base(value), func(t *testing.T) {
			for i, arg := range args {
				args[i] = strings.Replace(arg, "ITEMS", items, 1)
			}
			strict := slices.Contains(args, "--strict")
			got := runTool(t, dropin.Program{Strict: strict}, slices.DeleteFunc(args, func(arg string) bool { return arg == "--strict" })...)
			kind, text, _ := strings.Cut(want, " ")
			assert.Must(t, kind == "refused" || got.err == nil, "got %v", got.err)
			var ok bool
			switch kind {
			case "warns":
				ok = strings.Contains(got.errs, "--"+option+" "+text)
			case "said":
				ok = strings.Contains(got.errs, text)
			case "refused":
				ok = got.err != nil && strings.Contains(got.err.Error(), text) && got.code == host.ExitFailed && len(got.settings) == 0
			case "silent":
				ok = !strings.Contains(got.errs, "--"+option)
			case "seen":
				ok = strings.Contains(got.out, text)
			case "topic":
				ok = got.topics != nil && strings.HasPrefix(strings.Join(got.names, " "), text)
			case "rows":
				ok = strings.Count(got.out, "|CREATE|") == int(text[0]-'0')
			case "file":
				ok = got.files[text] != ""
			case "nofile":
				ok = got.files[text] == "" && got.files["config.yaml"] != ""
			default:
				name, value, _ := strings.Cut(want, "=")
				ok = strings.Contains(got.settings[name], value) && (value != "" || got.settings[name] == "")
			}
			assert.True(t, ok,
				"want %s; got %v, exit %d, settings %v, stderr %q, stdout:\n%s", want, got.err, got.code, got.settings, got.errs, got.out)
			tested[option] = true
		})
	}
	for _, o := range options {
		assert.True(t, tested[o.name], "--%s is not tested", o.name)
	}
}

var tested = make(map[string]bool)

// Old names of options select their new ones.
func TestAliases(t *testing.T) {
	for name, a := range aliases {
		assert.True(t, a.to == "" || find(a.to) != nil, "--%s is --%s, which does not exist", name, a.to)
	}
	got := runTool(t, dropin.Program{}, "--test-step-limit-count=5", "--load-limit-concurrency=3", "--storage-driver-remote", "--create")
	if got.settings["count"] != "5" || got.settings["concurrency"] != "3" || strings.Count(got.errs, "\n") != 3 ||
		!strings.Contains(got.errs, "--test-step-limit-count is deprecated, it is --load-op-limit-count") {
		t.Errorf("got %v and %q", got.settings, got.errs)
	}
}

// Usage errors have mongoose's wording.
func TestUsage(t *testing.T) {
	const stamp = `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d,\d{3} F {32}main {27}`
	for _, tt := range []struct {
		name, arg, want string
	}{
		{"no option", "count=5", `Invalid argument: "count=5"` + "\nThe list of all possible args:\n\t--item-data-size=<any>\n"},
		{"no such option", "--load-op-limit-counts=5", `Invalid configuration option: "load-op-limit-counts"` + "\nThe list of all possible args:\n"},
		{"no number", "--load-op-limit-count=5k", `Invalid configuration value type for the option "load-op-limit-count", expected: class java.lang.Long, actual: class java.lang.String` + "\n"},
		{"no switch", "--output-color=red", `Invalid configuration value type for the option "output-color", expected: class java.lang.Boolean`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := runTool(t, dropin.Program{}, tt.arg)
			_, text, _ := strings.Cut(got.out, " main ")
			assert.True(t, got.code == host.ExitFailed && got.err == nil && matches(stamp, got.out) && strings.HasPrefix(strings.TrimLeft(text, " "), tt.want) && len(got.settings) <= 0,
				"exit %d, %v, stdout:\n%s", got.code, got.err, got.out)
		})
	}
	if got := runTool(t, dropin.Program{}, "--help"); got.code != 0 || !strings.Contains(got.out, "--load-op-limit-rate=<double> (0)") || !strings.Contains(got.out, "--strict ") {
		t.Errorf("help: exit %d:\n%s", got.code, got.out)
	}
	got := runTool(t, dropin.Program{Generation: "5"})
	assert.True(t, got.err != nil && strings.Contains(got.err.Error(), "4.2 and 4.3"), "another generation: %v", got.err)
}

// A request creates as many topics as may be in flight at once; the topics of a list are read and deleted.
func TestTopics(t *testing.T) {
	got := runTool(t, dropin.Program{}, "--item-type=path", "--load-op-limit-count=100", "--storage-driver-limit-concurrency=100", "--output-metrics-trace-persist")
	if l := got.topics; l.Op != "create" || l.Times != 100 || len(got.names) != 100 || l.PerRequest != 100 || l.Concurrency != 1 || l.Spec.Partitions != 1 || l.Spec.Replicas != 1 || l.Failures != 100_000 {
		t.Errorf("got %+v", l)
	}
	s := value(t, got.out, "Count", "Successful")
	assert.True(t, s == "86" && value(t, got.out, "Count", "Failed") == "14" && got.code == host.ExitBroken, "exit %d:\n%s", got.code, got.out)
	lines := strings.Split(got.files["op.trace.csv"], "\n")
	if len(lines) != 101 || !matches(`^127\.0\.0\.1:9092,[0-9a-z]{9,12},1,4,\d{16},900,800,,$`, lines[0]) || !matches(`,1,10,\d{16},900,800,,$`, lines[6]) {
		t.Errorf("op.trace.csv: %q", lines[:7])
	}
	list := filepath.Join(t.TempDir(), "list.csv")
	assert.OK(t, os.WriteFile(list, []byte("one\n/two/\n\n"), 0o644))
	for _, tt := range []struct {
		args     []string
		op, want string
		times    int
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
		assert.True(t, got.err == nil && got.topics != nil && got.topics.Op == tt.op && got.topics.Times == tt.times && strings.Join(got.names, " ") == tt.want,
			"%v: %v, %+v, %d names", tt.args, got.err, got.topics, len(got.names))
	}
	got = runTool(t, dropin.Program{}, "--item-type=path")
	assert.True(t, got.err != nil && strings.Contains(got.err.Error(), "without end"), "topics without end: %v", got.err)
}

// A huge number of topics starts at once: names are made when they are needed, without duplicates while others are left.
func TestManyTopics(t *testing.T) {
	got := runTool(t, dropin.Program{}, "--item-type=path", "--load-op-limit-count=9223372036854775807", "--item-naming-length=2")
	assert.Must(t, got.err == nil && got.topics.Times == math.MaxInt && len(got.names) == 1000, "%v, %+v", got.err, got.topics)
	slices.Sort(got.names)
	assert.Equal(t, len(slices.Compact(got.names)), 1000, "different names")
}

// Times of operations on topics start when the brokers were reached, however long that took.
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
		want := "," + strconv.FormatInt(start.Add(998*time.Millisecond).UnixMicro(), 10) + ",1000,1000,"
		assert.True(t, err == nil && strings.Contains(strings.Split(string(data), "\n")[0], want), "%v: no %s in the first row of\n%s", err, want, data)
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
		assert.True(t, strings.Contains(errs.String(), "2 topics failed (the first is ") && value(t, out.String(), "Count", "Failed") == "2",
			"strict %v:\n%s\n%s", strict, out.String(), errs.String())
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
