package scenario

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// A fake runs no steps. What becomes of one is in its target.
type fake struct {
	mu      sync.Mutex
	started []string
	stopped int
	begun   chan int // gets the number of each step that begins; may be nil
}

func (f *fake) Start(number int, s *Step) (func(ctx context.Context) *Ended, error) {
	text := s.Kind + " " + s.Target
	for _, o := range s.Options {
		text += fmt.Sprintf(" %s=%s", o.Name, strings.Join(o.Values, ","))
	}
	if s.Name != "" {
		text += " (" + s.Name + ")"
	}
	for _, p := range s.Parts {
		text += " + " + p.Target
		for _, o := range p.Options {
			text += fmt.Sprintf(" %s=%s", o.Name, strings.Join(o.Values, ","))
		}
	}
	f.mu.Lock()
	f.started = append(f.started, text)
	f.mu.Unlock()
	if s.Target == "refused" {
		return nil, &Fault{At: s.At, Text: "it is refused", Hint: "take another"}
	}
	return func(ctx context.Context) *Ended {
		if f.begun != nil {
			f.begun <- number
		}
		switch s.Target {
		case "dead":
			return &Ended{Number: number, Fault: &Fault{Text: "the target is dead"}}
		case "endless":
			<-ctx.Done()
			f.mu.Lock()
			f.stopped++
			f.mu.Unlock()
		}
		return &Ended{Number: number, Report: json.RawMessage(fmt.Sprintf(`{"id":"r%d","totals":{"acked":%d},"response":null}`, number, 100*number))}
	}, nil
}

func (f *fake) Check(at, id string, limits []string) (bool, error) {
	if slices.Contains(limits, "nonsense") {
		return false, &Fault{At: at, Text: "check: it is nonsense"}
	}
	return !slices.Contains(limits, "broken"), nil
}

func (f *fake) Report(_, reference string) (json.RawMessage, error) {
	if reference == "missing" {
		return nil, errors.New("the report does not exist")
	}
	return json.RawMessage(`{"id":"stored"}`), nil
}

// A result is what became of a script.
type result struct {
	reason                   Reason
	fault                    *Fault
	printed, marked, started []string
}

// run runs a script with a fake.
func run(t *testing.T, f *fake, source string, change func(*Options)) result {
	t.Helper()
	exe, err := os.Executable()
	assert.OK(t, err)
	var out result
	o := Options{
		Script:  Script{Path: "test.js", Source: source, Args: []string{"one", "two"}, Seed: 1, Depth: 200},
		Command: []string{exe}, Runner: f, Memory: 64 << 20, Compute: time.Minute, MaxSteps: 100,
		Print: func(text string) { out.printed = append(out.printed, text) },
		Mark: func(at, kind, text string) error {
			out.marked = append(out.marked, strings.TrimSpace(at+": "+kind+" "+text))
			if kind == "broken" {
				return &Fault{At: at, Text: "not a kind"}
			}
			return nil
		},
		Warn: func(text string) { t.Errorf("warned: %s", text) },
	}
	if change != nil {
		change(&o)
	}
	out.reason, out.fault, err = Run(t.Context(), o)
	assert.OK(t, err)
	out.started = f.started
	return out
}

// What scripts do well: what they print, and which steps they start.
func TestScripts(t *testing.T) {
	t.Setenv("SCENARIO_TEST_WORD", "hello")
	for _, tt := range []struct {
		name, source     string
		printed, started []string
	}{
		{"nothing", ``, nil, nil},
		{
			"a run", `import { run } from "carronade"; const r = await run("null://", {rate: 5000, for: "1s", verify: true}); console.log(r.id, r.totals.acked, r.response);`,
			[]string{"r1 100 null"},
			[]string{"run null:// rate=5000 for=1s verify=true"},
		},
		{
			"values", `import { find as search } from "carronade"; await search("x", {name: "s", slo: ["p99<1s", "failed=0"], label: {a: 1, b: true}, size: 0.5, count: 1e15, op: undefined, key: null});`,
			nil,
			[]string{"find x slo=p99<1s,failed=0 label=a=1,b=true size=0.5 count=1000000000000000 (s)"},
		},
		{
			"an order", `import * as c from "carronade"; for (let i = 0; i < 3; i++) { const r = await c.run("t" + i); console.log(r.id); }`,
			[]string{"r1", "r2", "r3"},
			[]string{"run t0", "run t1", "run t2"},
		},
		{
			"side by side", `import { run, parallel } from "carronade"; const [a, b] = await parallel(run("a"), () => run("b")); console.log(a.id, b.id);`,
			[]string{"r1 r2"},
			[]string{"run a", "run b"},
		},
		{
			"a load in the background", `import { run, sleep } from "carronade"; const back = run("endless"); await run("a"); await sleep("1ms"); console.log((await back.stop()).id); back.stop();`,
			[]string{"r1"},
			[]string{"run endless", "run a"},
		},
		{
			"a step that is not awaited", `import { run } from "carronade"; run("a").then((r) => console.log(r.id));`,
			[]string{"r1"},
			[]string{"run a"},
		},
		{
			"faults that are caught",
			`import { run, check } from "carronade";
try { run("refused"); } catch (e) { console.log(e.message); }
try { await run("dead"); } catch (e) { console.log(e.message); }
try { check(await run("a"), "nonsense"); } catch (e) { console.log(e.message); }`,
			[]string{"test.js:2:10: it is refused", "test.js:3:16: the target is dead", "test.js:4:12: check: it is nonsense"},
			[]string{"run refused", "run dead", "run a"},
		},
		{
			"checks", `import { run, check } from "carronade"; const r = await run("a"); console.log(check(r, "fine"), check(r, "fine", "broken"));`,
			[]string{"true false"},
			[]string{"run a"},
		},
		{"a stored report", `import { report } from "carronade"; console.log(report("last").id);`, []string{"stored"}, nil},
		{"its arguments", `import { args, env } from "carronade"; console.log(args, env.SCENARIO_TEST_WORD, env.SCENARIO_TEST_NOTHING, Object.keys(env).length);`, []string{`["one","two"] hello undefined 0`}, nil},
		{
			"a computed name of a variable",
			`import { env } from "carronade"; console.log(env["SCENARIO_TEST_" + "WORD"], "SCENARIO_TEST_" + "WORD" in env);`,
			[]string{"undefined false"},
			nil,
		},
		{
			"a pipeline", `import { pipeline } from "carronade"; await pipeline("x", {name: "p", rate: 5});`,
			nil,
			[]string{"run x rate=5 op=pipeline (p)"},
		},
		{
			"weights", `import { weighted } from "carronade"; const r = await weighted([{weight: 1, name: "w"}, {target: "y", weight: 4, op: "read"}], {target: "x", name: "both", rate: 5}); console.log(r.id);`,
			[]string{"r1"},
			[]string{"run x rate=5 (both) +  weight=1 name=w + y weight=4 op=read"},
		},
		{"what it prints", `console.log("a", 1, {b: [2]}, null, undefined, new Error("c"), () => 1); console.warn();`, []string{`a 1 {"b":[2]} null undefined Error: c () => 1`, ""}, nil},
		{"no files and no timers", `console.log(typeof require, typeof setTimeout, typeof fetch, typeof process);`, []string{"undefined undefined undefined undefined"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := run(t, &fake{}, tt.source, nil)
			assert.True(t, got.reason == ByScript && got.fault == nil, "got %s, %v", got.reason, got.fault)
			assert.Same(t, got.printed, tt.printed, "printed")
			assert.Same(t, got.started, tt.started, "started")
		})
	}
}

// What scripts do wrong: each fault has its place.
func TestFaults(t *testing.T) {
	testkit.Need(t, "some seconds")
	const api = "import { run, find, pipeline, weighted, parallel, sleep, check, report, mark } from \"carronade\";\n"
	for _, tt := range []struct {
		name, source, at, text, hint string
	}{
		{"syntax", "let a = 1;\nlet = = 2;", "test.js:2:7", "syntax error: Unexpected token =", ""},
		{"syntax found late", "let a = 1;\nlet a = 2;", "test.js:2:5", "syntax error: ", ""},
		{"no module", `import { readFileSync } from "fs";`, "test.js:1:1", `the module "fs" does not exist`, "one file"},
		{"no export", "let a;\nimport { chek } from \"carronade\";", "test.js:2:1", `no export "chek"`, "did you mean check?"},
		{"a name that does not exist", "\n  nothing();", "test.js:2:10", "ReferenceError: nothing is not defined", ""},
		{"throw", "function f() {\n  throw new Error(\"boom\");\n}\nf();", "test.js:2:9", "Error: boom", ""},
		{"throw after a step", api + "await run(\"a\");\nthrow new TypeError(\"boom\");", "test.js:3:7", "TypeError: boom", ""},
		{"throw a text", "\nthrow \"boom\";", "test.js:2:1", "thrown: boom", ""},
		{"throw a number in a function, after a step", api + "const f = async () => {\n  throw 7;\n};\nawait run(\"a\");\nawait f();", "test.js:3:3", "thrown: 7", ""},
		{"a field of nothing", api + "const r = await run(\"a\");\nr.response.p99_us;", "test.js:3:12", "TypeError: Cannot read property 'p99_us' of", ""},
		{"a step that is refused", api + "  run(\"refused\");", "test.js:2:6", "it is refused", "take another"},
		{"a step that fails", api + "await run(\"a\");\nawait run(\"dead\");", "test.js:3:10", "the target is dead", ""},
		{"a step that fails and is not awaited", api + "run(\"dead\");", "test.js:2:4", "the target is dead", ""},
		{"steps of which one fails", api + "await parallel(run(\"a\"), run(\"dead\"));", "test.js:2:29", "the target is dead", ""},
		{"no target", api + "run({rate: 1});", "test.js:2:4", "run takes a target and options", "such as run("},
		{"options that are not an object", api + "run(\"a\", \"b\");", "test.js:2:4", "the options of run must be an object", "such as {"},
		{"too many arguments", api + "find(\"a\", {}, {});", "test.js:2:5", "not 3 arguments", "one object"},
		{"an option of a wrong type", api + "run(\"a\", {rate: () => 1});", "test.js:2:4", "rate must be", ""},
		{"an option that is not a number", api + "run(\"a\", {rate: 0/0});", "test.js:2:4", "rate must be a text, a number, true or false, not NaN", ""},
		{"a list without values", api + "run(\"a\", {slo: []});", "test.js:2:4", "slo has no value", "leave it out"},
		{"no unit", api + "await sleep(5);", "test.js:2:12", "sleep takes a time with a unit", "such as sleep("},
		{"a time that is not a duration", api + "await sleep(\"soon\");", "test.js:2:12", "sleep: ", ""},
		{"a check of a promise", api + "check(run(\"a\"), \"p99<1s\");", "test.js:2:6", "a step in progress", "write await"},
		{"a check of nothing", api + "check(undefined, \"p99<1s\");", "test.js:2:6", "check takes a report and limits", ""},
		{"parallel with a report", api + "await parallel(await run(\"a\"));", "test.js:2:15", "argument 1 of parallel is not a step", "leave out await"},
		{"a pipeline with another operation", api + "pipeline(\"a\", {op: \"read\"});", "test.js:2:9", "the operation of pipeline is pipeline", "call run"},
		{"weights without a list", api + "weighted({weight: 1});", "test.js:2:9", "weighted takes a list of parts", "such as weighted("},
		{"no weights", api + "weighted([]);", "test.js:2:9", "weighted takes at least one part", "such as weighted("},
		{"a part that is not an object", api + "weighted([\"a\"]);", "test.js:2:9", "the options of a part must be an object", ""},
		{"weights with more", api + "weighted([{}], {}, {});", "test.js:2:9", "not 3 arguments", "one object"},
		{"a mark that is not a text", api + "mark(5);", "test.js:2:5", "mark takes a text", "such as mark("},
		{"a mark without a name", api + "mark(\"fault\", \"\");", "test.js:2:5", "mark takes a text, or a kind and a name", "such as mark("},
		{"a mark with a time", api + "mark(\"fault\", \"x\", 5);", "test.js:2:5", "mark takes a text, or a kind and a name", "such as mark("},
		{"a mark of no kind", api + "mark(\"broken\", \"x\");", "test.js:2:5", "not a kind", ""},
		{"a mark that is too long", api + "mark(\"x\".repeat(1025));", "test.js:2:5", "a mark has more than 1024 bytes", "console.log"},
		{"a limit that is too long", api + "check(await run(\"a\"), \"x\".repeat(1025));", "test.js:2:6", "a limit has more than 1024 bytes", "such as"},
		{"a name that is too long", api + "run(\"a\", {name: \"x\".repeat(201)});", "test.js:2:4", "the name of a step has more than 200 bytes", "a short name"},
		{"options that are too large", api + "run(\"a\", {note: \"x\".repeat(2 ** 20)});", "test.js:2:4", "the options of a step have more than 1 MiB", "to a file"},
		{"a report that is missing", api + "report(\"missing\");", "test.js:2:7", "the report does not exist", ""},
		{"a promise that nothing settles", "await new Promise(() => {});", "test.js", "awaits a promise that nothing settles", ""},
		{"calls without end", "function f() {\n  return f() + 1;\n}\nf();", "test.js:2:1", "calls are nested more than 200 deep", "without end"},
		{"calls without end after a step", api + "await run(\"a\");\nconst f = () => f() + 1;\nf();", "test.js:3:1", "calls are nested more than 200 deep", "without end"},
		{"an import while it runs", "await import(\"fs\");", "test.js", "", ""},
		{"another language", "<html>", "test.js:1:1", "syntax error: Unexpected token <", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := run(t, &fake{}, tt.source, nil)
			assert.Must(t, got.reason == ByFault && got.fault != nil, "got %s, %v", got.reason, got.fault)
			same := got.fault.At == tt.at || tt.text == "" && strings.HasPrefix(got.fault.At, tt.at) || strings.HasSuffix(tt.at, ":1") && strings.HasPrefix(got.fault.At, strings.TrimSuffix(tt.at, "1"))
			assert.True(t, same && strings.Contains(got.fault.Text, tt.text) && strings.Contains(got.fault.Hint, tt.hint),
				"got %q: %q (%q), want %q: %q (%q)", got.fault.At, got.fault.Text, got.fault.Hint, tt.at, tt.text, tt.hint)
		})
	}
}

// Scripts that do not end by themselves are ended, with the steps that they started.
func TestScriptsWithoutEnd(t *testing.T) {
	testkit.Need(t, "some seconds")
	// Their garbage may be more than 64 MiB when the collector is late, on a busy machine.
	short := func(o *Options) { o.Compute, o.Memory = 5*time.Second, 256<<20 }
	long := func(o *Options) { o.For = time.Hour } // a busy machine may need minutes for the seconds of computing
	for _, tt := range []struct {
		name, source string
		change       func(*Options)
		at, text     string
	}{
		{"a loop", "let n = 0;\nfor (;;) n++;", short, "test.js:", "the script computes for more than 5 s"},
		// Between the end of one function and the start of the next no line can be reported.
		{"a loop of promises", "const f = () => { Promise.resolve().then(f); };\nf();\nawait new Promise(() => {});", short, "test.js", "the script computes for more than 5 s"},
		{"a loop that prints", "for (;;) console.log(\"x\");", nil, "test.js", "the script prints more than 1000 B without"},
		{"a loop that checks", "const r = await run(\"a\");\nfor (;;) check(r, \"fine\", \"fine\");", nil, "test.js:2:", "the script checks more than 100 limits"},
		{"a loop that marks", "for (;;) mark(\"x\");", nil, "test.js:1:", "the script makes more than 100 marks"},
		{"a loop that sleeps", "for (;;) await sleep(\"0s\");", nil, "test.js", "the script asks for more than 2,000 things without starting a step"},
		{"a loop that starts steps", "for (;;) run(\"endless\");", func(o *Options) { o.MaxSteps = 1e6 }, "test.js:1:", "10 steps are in progress"},
		{"a regular expression that backtracks", "/^(?!b)(a+)+$/.test(\"a\".repeat(64) + \"c\");", short, "test.js", "the script computes for more than 5 s"},
		{"many small allocations", "const all = [];\nfor (;;) all.push(\"x\".repeat(1000) + all.length);", nil, "test.js", "the script needs more than 64 MiB of memory"},
		{"one large allocation", "let a = \"x\".repeat(1 << 29);\na += a;\na += a;\na.split(\"\");", nil, "test.js", "the script needs more than 64 MiB of memory"},
		{"an array of any size", "new Array(1 << 30).fill(1);", nil, "test.js", "the script needs more than 64 MiB of memory"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := &fake{}
			got := run(t, f, "import { run, check, mark, sleep } from \"carronade\"; await run(\"a\"); run(\"endless\");"+tt.source, func(o *Options) {
				long(o)
				o.Bounds = Bounds{Checks: 100, Marks: 100, AtOnce: 10, Requests: 2000, Printed: 1000}
				if tt.change != nil {
					tt.change(o)
				}
			})
			assert.True(t, got.reason == ByFault && got.fault != nil && strings.HasPrefix(got.fault.At, tt.at) &&
				strings.Contains(got.fault.Text, tt.text) && got.fault.Hint != "", "got %s, %+v", got.reason, got.fault)
			assert.True(t, f.stopped != 0 && slices.Equal(f.started[:2], []string{"run a", "run endless"}),
				"%v were started, %d stopped", f.started, f.stopped)
		})
	}
}

// A scenario ends by its time, its number of steps and the end of its context. The steps in progress end first.
func TestEnds(t *testing.T) {
	testkit.Need(t, "some seconds")
	const source = `import { run, sleep } from "carronade"; run("endless"); for (;;) { await run("a"); await sleep("1ms"); }`
	t.Run("steps", func(t *testing.T) {
		f := &fake{}
		got := run(t, f, source, func(o *Options) { o.MaxSteps = 4 })
		assert.True(t, got.reason == BySteps && got.fault == nil && len(f.started) == 4 && f.stopped == 1,
			"got %s, %v, %v", got.reason, got.fault, f.started)
	})
	t.Run("time", func(t *testing.T) {
		f := &fake{}
		got := run(t, f, source, func(o *Options) { o.For, o.MaxSteps = 100*time.Millisecond, 1e6 })
		assert.True(t, got.reason == ByTime && got.fault == nil && f.stopped == min(1, len(f.started)),
			"got %s, %v, %d steps, %d stopped", got.reason, got.fault, len(f.started), f.stopped)
	})
	t.Run("context", func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		f := &fake{begun: make(chan int)}
		go func() {
			for n := range f.begun {
				if n == 3 {
					stop()
				}
			}
		}()
		exe, _ := os.Executable()
		reason, fault, err := Run(ctx, Options{
			Script: Script{Path: "test.js", Source: source, Depth: 200}, Command: []string{exe}, Runner: f,
			Memory: 64 << 20, Compute: time.Minute, MaxSteps: 1e6,
		})
		close(f.begun)
		assert.True(t, reason == Interrupted && fault == nil && err == nil && f.stopped == 1,
			"got %s, %v, %v, %d stopped", reason, fault, err, f.stopped)
	})
}

// kill ends a process at once.
func kill(t *testing.T, pid string) {
	t.Helper()
	n, err := strconv.Atoi(pid)
	if err != nil {
		t.Error(err)
		return
	}
	p, err := os.FindProcess(n)
	if err == nil {
		err = p.Kill()
	}
	assert.True(t, err == nil, "%v", err)
}

// When the process of the script is killed, the scenario ends with the steps that have ended.
func TestKilledChild(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no signals")
	}
	f := &fake{}
	got := run(t, f, `import { run, env } from "carronade"; await run("a"); run("endless"); console.log("here"); await run("endless");`, func(o *Options) {
		o.Command = []string{testkit.Program(t, "sh"), "-c", `echo $$ >"$1"; exec "$0"`, o.Command[0], t.TempDir() + "/pid"}
		pid := o.Command[4]
		before := o.Print
		o.Print = func(text string) {
			before(text)
			number, err := os.ReadFile(pid)
			assert.True(t, err == nil, "%v", err)
			kill(t, strings.TrimSpace(string(number)))
		}
	})
	assert.True(t, got.reason == ByFault && got.fault != nil && strings.Contains(got.fault.Text, "ended by a signal: killed") && f.stopped != 0 && slices.Contains(f.started, "run a"),
		"got %s, %+v, %v, %d stopped", got.reason, got.fault, f.started, f.stopped)
}

// The same seed gives the same numbers and times, another one gives others. The clock does not move while the script computes.
func TestSeed(t *testing.T) {
	const source = `import { sleep } from "carronade";
const before = Date.now();
for (let i = 0; i < 1e5; i++);
if (Date.now() !== before) throw new Error("the clock moved");
await sleep("2ms");
console.log(Math.random(), before, Date.now() >= before + 2, new Date(before).getUTCFullYear() >= 2000);`
	of := func(seed uint64) string {
		return strings.Join(run(t, &fake{}, source, func(o *Options) { o.Script.Seed = seed }).printed, "\n")
	}
	one := of(1)
	assert.True(t, strings.HasSuffix(one, "true true") && one == of(1) && one != of(2), "got %q, %q, %q", one, of(1), of(2))
}

// A script that only sleeps has an end when it is checked, also if the sleeps are short.
func TestDrySleeps(t *testing.T) {
	bounds := DefaultBounds()
	assert.True(t, bounds.Sleeps > 0 && bounds.Slept > 0, "got %+v, want bounds on sleeps", bounds)
	bounds.Sleeps, bounds.Slept = bounds.Sleeps/20, bounds.Slept/20
	for _, time := range []string{"1s", "10m", "0s"} {
		got := run(t, &fake{}, `import { sleep, run } from "carronade"; await run("a"); while (true) await sleep("`+time+`");`, func(o *Options) {
			o.Script.Dry, o.Bounds = true, bounds
		})
		assert.True(t, got.reason == BySleep && got.fault == nil && len(got.started) == 1,
			"%s: got %s, %v, %v", time, got.reason, got.fault, got.started)
	}
}

// Marks have the place of their call.
func TestMarks(t *testing.T) {
	got := run(t, &fake{}, "import { mark } from \"carronade\";\nmark(\"one\");\n  mark(\"fault\", \"two\");", nil)
	d := cmp.Diff([]string{"test.js:2:5:  one", "test.js:3:7: fault two"}, got.marked)
	assert.True(t, d == "" && got.fault == nil, "%v, marked (-want +got):\n%s", got.fault, d)
}

// A dry run has no waiting: the clock moves by what the steps would take.
func TestDry(t *testing.T) {
	f := &fake{}
	got := run(t, f, `import { sleep } from "carronade"; const from = Date.now(); await sleep("5h"); await Promise.all([sleep("2h"), sleep("1h")]); console.log((Date.now() - from) / 3600e3);`, func(o *Options) { o.Script.Dry = true })
	assert.True(t, got.reason == ByScript && len(got.printed) == 1 && got.printed[0] == "7", "got %+v", got)
}
