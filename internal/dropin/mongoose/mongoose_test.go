package mongoose

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"carronade/internal/dropin"
	"carronade/internal/host"
	"carronade/internal/report"
	"carronade/internal/run/trace"
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

// runTool runs the tool on made-up data: 12 s and at most 90,000 records of a
// kibibyte, of which twelve failed; or the requested topics, of which every seventh
// fails.
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

// Every option is tested: it becomes a setting, changes the output, causes a
// warning or ends the program.
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
			if got.code != host.ExitFailed || got.err != nil || !matches(stamp, got.out) || !strings.HasPrefix(strings.TrimLeft(text, " "), tt.want) || len(got.settings) > 0 {
				t.Errorf("exit %d, %v, stdout:\n%s", got.code, got.err, got.out)
			}
		})
	}
	if got := runTool(t, dropin.Program{}, "--help"); got.code != 0 || !strings.Contains(got.out, "--load-op-limit-rate=<double> (0)") || !strings.Contains(got.out, "--strict ") {
		t.Errorf("help: exit %d:\n%s", got.code, got.out)
	}
	got := runTool(t, dropin.Program{Generation: "5"})
	assert.True(t, got.err != nil && strings.Contains(got.err.Error(), "4.2 and 4.3"), "another generation: %v", got.err)
}
