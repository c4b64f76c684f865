package mongoose

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"carronade/internal/dropin"
	"carronade/internal/kafka"
	"carronade/internal/null"
	"carronade/internal/report"
	"carronade/internal/scenario"
	"carronade/internal/workload"
	"carronade/load"
	"carronade/measure"
	"carronade/protocol"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// childEnv makes the test program the process of a script.
const childEnv = "CARRONADE_TEST_SCRIPT"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		os.Exit(scenario.Main(os.Stdin, os.Stdout, map[string]scenario.Language{Language: RunScript}))
	}
	os.Exit(m.Run())
}

// A played is the result of a scenario.
type played struct {
	result
	runs []map[string]string // the settings of each, by name: all values in order, separated by blanks
}

// play runs a scenario in an empty folder: its script in a process, and its steps on made-up reports.
func play(t *testing.T, p dropin.Program, script string, args ...string) (got played) {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	t.Setenv(childEnv, "1")
	exe := assert.Value(os.Executable())(t)
	p.Args = append([]string{"--run-scenario=" + script}, args...)
	p.Scenario = func(ctx context.Context, o scenario.Options) (scenario.Reason, *scenario.Fault, error) {
		o.Command = []string{exe}
		return scenario.Run(ctx, o)
	}
	kinds := []protocol.Kind{kafka.Kind{}, null.Kind{}}
	p.Resolve = func(d *workload.Document) error { _, err := workload.Resolve(kinds, d, nil); return err }
	var out, errs bytes.Buffer
	p.Called, p.Out, p.Err = Tool.Name, &out, &errs
	p.Run = func(_ context.Context, d *workload.Document, _ dropin.Observer) (*report.Document, error) {
		settings := make(map[string]string)
		for _, e := range d.Entries {
			settings[e.Name] = strings.TrimSpace(settings[e.Name] + " " + strings.Join(e.Values, " "))
		}
		got.runs = append(got.runs, settings)
		return &report.Document{Stopped: load.ByEvents, Trust: measure.Trust{OK: true}}, nil
	}
	p.Topics = func(_ context.Context, d *workload.Document, l dropin.TopicLoad) (*dropin.TopicResult, error) {
		fmt.Fprintf(&out, "deleted %s\n", strings.Join(l.Names, ","))
		l.Started(time.Now())
		l.Each(dropin.TopicDone{At: time.Millisecond, InFlight: 1})
		return &dropin.TopicResult{Done: 1, Elapsed: time.Second}, nil
	}
	got.code, got.err = Tool.Main(t.Context(), &p)
	got.out, got.errs = out.String(), errs.String()
	return got
}

// write writes a script into an empty folder, which becomes the current one, and returns its name.
func write(t *testing.T, src string) string {
	t.Helper()
	t.Chdir(t.TempDir())
	assert.OK(t, os.WriteFile("s.js", []byte(src), 0o644))
	return "s.js"
}

// steps are the steps that a check printed, each once: the names of their types, with ! if they cannot run.
func steps(out string) string {
	var names []string
	for line := range strings.Lines(out) {
		text, ok := strings.CutPrefix(line, "step ")
		if !ok {
			if at, ok := strings.CutPrefix(line, "process at "); ok && at != "" {
				names = append(names, "process")
			}
			continue
		}
		_, text, _ = strings.Cut(text, ", ")
		name, rest, _ := strings.Cut(text, " at ")
		if strings.Contains(rest, ": cannot run: ") {
			name += "!"
		}
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

// An example is a scenario of mongoose's, of its driver for Kafka or of its documentation, with what a check of it says.
type example struct {
	File  string
	Env   string // names and values
	Args  string
	Steps string // different ones, see steps
	Exit  int
	Says  []string // texts in stdout and stderr
}

// Each example is checked: which steps it has, which of them cannot run and why, and the exit code. Nothing is sent.
func TestExamples(t *testing.T) {
	testdata := assert.Value(filepath.Abs("testdata"))(t)
	tested := make(map[string]bool)
	for _, e := range testkit.Table[example](t, "testdata/examples.yaml") {
		if testing.Short() && tested[e.File] {
			continue // each file once
		}
		t.Run(strings.TrimSuffix(e.File, ".js")+e.Args, func(t *testing.T) {
			t.Chdir(t.TempDir())
			for _, name := range []string{"here.csv", "topic_list.csv"} {
				assert.OK(t, os.WriteFile(name, []byte("topic1\ntopic2\n"), 0o644))
			}
			for pair := range strings.FieldsSeq(e.Env) {
				name, value, _ := strings.Cut(pair, "=")
				t.Setenv(name, value)
			}
			got := play(t, dropin.Program{}, filepath.Join(testdata, e.File), append(strings.Fields(e.Args), "--check")...)
			assert.True(t, got.err == nil && got.code == e.Exit && len(got.runs) == 0,
				"exit %d, want %d; %v, %d runs", got.code, e.Exit, got.err, len(got.runs))
			seen := steps(got.out)
			assert.True(t, e.Steps == "" || seen == e.Steps, "steps %s\nwant  %s", seen, e.Steps)
			for _, text := range e.Says {
				assert.True(t, strings.Contains(got.out+got.errs, text), "it does not say %q", text)
			}
			if t.Failed() {
				t.Logf("stdout:\n%s\nstderr:\n%s", got.out, got.errs)
			}
		})
		tested[e.File] = true
	}
	err := filepath.WalkDir("testdata", func(path string, _ os.DirEntry, err error) error {
		name, _ := filepath.Rel("testdata", path)
		assert.True(t, filepath.Ext(path) != ".js" || tested[filepath.ToSlash(name)], "%s is not tested", path)
		return err
	})
	assert.True(t, err == nil && len(tested) == 36, "%d scenarios, want 36 (%v)", len(tested), err)
}

// The methods of steps: which runs they start, with which settings, and what they print.
func TestSteps(t *testing.T) {
	for _, tt := range testkit.Table[struct {
		Name, Src string
		Args      []string
		Strict    bool
		Exit      int
		Out       string   // of print
		Want      []string // settings of the runs: NAME=VALUE, in each
		Errs      string
	}](t, "testdata/steps.yaml") {
		t.Run(tt.Name, func(t *testing.T) {
			if strings.Contains(tt.Src, `"sh"`) {
				testkit.Program(t, "sh")
			}
			t.Setenv("CARRONADE_TEST_WORD", "word")
			got := play(t, dropin.Program{Strict: tt.Strict}, write(t, tt.Src), append(tt.Args, "--output-color=false")...)
			var printed strings.Builder
			for line := range strings.Lines(got.out) {
				if slices.Contains(strings.Split(tt.Out, "\n"), strings.TrimSuffix(line, "\n")) && line != "\n" {
					printed.WriteString(line)
				}
			}
			ok := got.err == nil && got.code == tt.Exit && printed.String() == tt.Out && strings.Contains(got.errs, tt.Errs) && len(got.runs) == len(tt.Want)
			for i, want := range tt.Want {
				name, value, _ := strings.Cut(want, "=")
				ok = ok && i < len(got.runs) && strings.HasPrefix(got.runs[i][name], value) && (value != "" || got.runs[i][name] == "")
			}
			assert.True(t, ok, "exit %d, %v; runs %v\nstdout:\n%s\nstderr:\n%s", got.code, got.err, got.runs, got.out, got.errs)
		})
	}
}

// A script with a syntax error is repaired in one way; with commas in two.
func TestParseScript(t *testing.T) {
	for _, tt := range []struct {
		name, src      string
		strict, commas bool
		text           string   // that is run; "": src
		warnings       []string // their ends
		wrong          string   // the error
	}{
		{name: "right", src: `x = "${f("` + `a` + `")}"`, text: `x = "${f(\"a\")}"`, warnings: []string{`s.js:1:5: quotes inside of an expression belong to the text: it was read as "${f(\"a\")}"`}},
		{name: "legal", src: `x = "${" + y + "}"`},
		{name: "legal next to an error", src: "x = \"${\" + y + \"}\"\nz = '%{f('a')}'", text: "x = \"${\" + y + \"}\"\nz = '%{f(\\'a\\')}'", warnings: []string{`it was read as '%{f(\'a\')}'`}},
		{name: "several", src: "a = {\n'x': \"#{f(\"1\")}\",\n'y': \"${g(\"2\", \"}\")}\"\n}", text: "a = {\n'x': \"#{f(\\\"1\\\")}\",\n'y': \"${g(\"2\", \"}\")}\"\n}", wrong: "s.js:3:"},
		{name: "escaped already", src: `x = "${f(\"a\", "b")}"`, text: `x = "${f(\"a\", \"b\")}"`, warnings: []string{`\"b\")}"`}},
		{name: "strict", src: `x = "${f("a")}"`, strict: true, wrong: "s.js:1:11: syntax error: "},
		{name: "no end", src: `x = "${f("a"`, wrong: "s.js:1:11: syntax error: "},
		{name: "in a comment", src: "// \"${f(\"a\")}\nx = ;", wrong: "s.js:2:5: "},
		{name: "a comma", src: "x = {\n\t\"a\": {\"b\": 1}\n\t\"c\": 2\n}", wrong: `s.js:2:15: a comma is missing after "a": {...}`},
		{name: "a comma, inserted", src: "x = {\n\t\"a\": {\"b\": 1}\n\tc: [1]\n\td: 3\n}", commas: true, text: "x = {\n\t\"a\": {\"b\": 1},\n\tc: [1],\n\td: 3\n}", warnings: []string{`s.js:2:15: a comma is missing after "a": {...}: it was inserted`, "s.js:3:8: a comma is missing after c: [...]: it was inserted"}},
		{name: "a comma after a number", src: "x = {a: 1\nb: 2}", wrong: "s.js:1:10: a comma is missing after a: 1"},
		{name: "another error", src: "x = {a: 1", commas: true, wrong: "s.js:1:10: syntax error: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, got, err := parseScript(&scenario.Script{Path: "s.js", Source: tt.src}, tt.strict, tt.commas)
			if tt.wrong != "" {
				assert.True(t, err != nil && strings.HasPrefix(err.Error(), tt.wrong), "error %v, want %s", err, tt.wrong)
				return
			}
			want := tt.text
			if want == "" {
				want = tt.src
			}
			ok := err == nil && got.text == want && len(got.warnings) == len(tt.warnings)
			for i, end := range tt.warnings {
				ok = ok && strings.HasSuffix(got.warnings[i], end)
			}
			assert.True(t, ok, "%v\ngot  %s\nwant %s\nwarnings %q", err, got.text, want, got.warnings)
		})
	}
}

// The names in a script are those outside of comments and strings, but inside of templates.
func TestWords(t *testing.T) {
	got := make(map[string]bool)
	words("a.b /* c */ 'd' + `e ${f}` // g\n= /h\\/[/]/.i\n\"j\\\" k\" l", got)
	for name, want := range map[string]bool{"a": true, "b": true, "c": false, "d": false, "e": true, "f": true, "g": false, "h": false, "i": true, "j": false, "k": false, "l": true} {
		assert.Equal(t, got[name], want, "%s", name)
	}
}

// Any text is read without a panic and in bounded time, and what is read without a warning is the text itself.
func FuzzScript(f *testing.F) {
	for _, src := range []string{`Load.run()`, `x = "${f("a")}"`, "x = {\n'a': {}\n'b': 1}", "`${`${'a'}`}`", `/[/]\//`, "'\\", "\"%{", "{a:1 b:2 c:3}"} {
		f.Add(src, true)
	}
	f.Fuzz(func(t *testing.T, src string, commas bool) {
		s := &scenario.Script{Path: "s.js", Source: src}
		_, got, err := parseScript(s, false, commas)
		assert.True(t, err != nil || len(got.warnings) > 0 || got.text == src, "%q was changed to %q without a warning", src, got.text)
		words(src, make(map[string]bool))
	})
}

// A check has words for every option that has an effect: a setting of the run, or an effect of its own.
func TestEveryEffect(t *testing.T) {
	values := map[string]string{tBool: "true", tInt: "7", tLong: "7", tDouble: "0.5", tString: "serial", tList: "0.5", tAny: "7", tMap: ""}
	for i := range options {
		o := &options[i]
		if o.use != effective || o.name == "run-scenario" {
			continue
		}
		value := values[o.kind]
		switch o.name {
		case "item-type":
			value = "data"
		case "load-op-type":
			value = "create"
		case "storage-driver-type":
			value = "kafka"
		case "storage-driver-compression-type":
			value = "lz4"
		case "item-data-input-seed":
			value = "ff"
		case "item-input-file":
			continue // a file is needed
		}
		of := []scenario.Option{{Name: o.name, Values: []string{value}}}
		if o.kind == tMap {
			of[0].Values = []string{"a", "b"}
		}
		found := false
		for _, base := range [][]scenario.Option{
			{},
			{{Name: "item-type", Values: []string{"path"}}, {Name: "load-op-limit-count", Values: []string{"3"}}},
			{{Name: "load-op-type", Values: []string{"read"}}, {Name: "item-input-path", Values: []string{"t"}}},
			{{Name: "load-op-limit-rate", Values: []string{"5"}}, {Name: "storage-driver-limit-concurrency", Values: []string{"0"}}},
		} {
			r := newRunner(t.Context(), &dropin.Program{Out: io.Discard, Err: io.Discard}, newValues(), nil)
			r.dry = true
			l := &loads{kind: linearLoad}
			if err := r.prepare(l, &scenario.Step{Kind: linearLoad, Options: append(base, of...)}); err != nil {
				continue
			}
			p := l.parts[0]
			for k := range p.paths {
				found = found || p.paths[k].name == o.name && p.becomes(&p.paths[k]) != ""
			}
		}
		if !found {
			t.Errorf("a check does not mention %s", dotted(o.name))
		}
	}
	for name := range effects {
		assert.True(t, find(name) != nil, "there is an effect of %s, which is not an option", name)
	}
}
