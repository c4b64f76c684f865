package mongoose

import (
	"bytes"
	"context"
	"fmt"
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

// play runs a scenario in an empty folder: its script in a process, and its steps on made-up
// reports.
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
	p.Resolve = func(d *workload.Document) error {
		_, err := workload.Resolve(kinds, d, nil)
		return err
	}
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

// steps are the steps that a check printed, each once: the names of their types, with ! if they
// cannot run.
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

// An example is a scenario of mongoose's, of its driver for Kafka or of its documentation, with
// what a check of it says.
type example struct {
	file  string
	env   string // names and values
	args  string
	steps string // different ones, see steps
	exit  int
	says  []string // texts in stdout and stderr
}

var examples = []example{
	{file: "examples/default.js", steps: "Load", says: []string{"writes records to kafka://127.0.0.1:9092/", "1 step\n"}},
	{
		file: "examples/backward_compatibility.js", steps: "Load",
		says: []string{
			"ignored: mongoose's driver never logged in to Kafka",
			"load.limit.count = 100", "load.limit.count is deprecated, it is load.op.limit.count",
			"load.threads is deprecated, it is storage.driver.limit.concurrency", "storage.node.addrs = 127.0.0.1,127.0.0.2",
		},
	},
	{file: "examples/concurrent_path_listing.js", env: "CONCURRENCY_LEVEL=3 ITEM_INPUT_PATH=t LOAD_STEP_ID=listing", steps: "Load Load Load", says: []string{"sends nothing", "listing_2", "3 steps\n"}},
	{file: "examples/infinite_loop.js", steps: "Load", says: []string{"--for 1000ms", "100 steps; then the check ended, and the script goes on"}},
	{
		file: "examples/rampup.js", exit: 2,
		says: []string{"concurrency 100, size 10GB", "60 steps, ", "mongoose has no load.step.limit.count; it is load.op.limit.count here", "--count 1000000 --count-at-most", "object storage only"},
	},
	{
		file: "examples/parameterized/s3-multiuser.js", exit: 2,
		says: []string{`s3-multiuser.js:9:31: a comma is missing after "limit": {...}`, "hint: --repair inserts it"},
	},
	{
		file: "examples/parameterized/s3-multiuser.js", args: "--repair", steps: "Load!", exit: 2,
		says: []string{"it was inserted", "storage.auth"},
	},
	{file: "examples/endurance/infinite_loop_test.js", steps: "Load", says: []string{"/endurance_1", "--for 5000ms"}},
	{file: "examples/endurance/pipeline_test.js", steps: "PipelineLoad!", exit: 2, says: []string{"object storage only"}},
	{file: "examples/endurance/parallel_pipeline_and_infinite_loop_test.js", steps: "PipelineLoad! Load", exit: 2, says: []string{"100 steps, 1 of them cannot run"}},
	{
		file: "examples/system/circular_append_test.js", env: "ITEM_LIST_FILE_0=a.csv ITEM_LIST_FILE_1=b.csv ITEM_DATA_SIZE=10KB BASE_ITEMS_COUNT=100 APPEND_COUNT=7",
		steps: "PreconditionLoad UpdateLoad!", exit: 2, says: []string{"item.data.ranges.fixed = -10KB-", "load.op.limit.count = 700", "refused: object storage only"},
	},
	{file: "examples/system/circular_read_limit_by_time_test.js", env: "FILE_NAME=a.csv", steps: "PreconditionLoad ReadLoad", says: []string{"load.step.node.addrs = null", "--for 60000ms", "reading goes on beyond the end"}},
	{file: "examples/system/copy_using_input_path_test.js", env: "ITEM_SRC_PATH=src ITEM_DST_PATH=dst", steps: "PreconditionLoad Load", says: []string{"--bytes 1073741824", "--for 30000ms", "item.input.path = src", "ignored: records are written"}},
	{file: "examples/system/multipart_create_test.js", env: "ITEM_OUTPUT_FILE=a.csv PART_SIZE=5MB SIZE_LIMIT=1GB", steps: "Load!", exit: 2, says: []string{"item.data.ranges.threshold = 5MB"}},
	{
		file: "examples/system/multiple_fixed_update_and_single_fixed_read_test.js", env: "COUNT_LIMIT=10 STEP_ID_UPDATE=u STEP_ID_READ=r", args: "--allow-exec",
		steps: "PreconditionLoad process UpdateLoad! process ReadVerifyLoad!", exit: 2, says: []string{"sleep 5", "0-15,32-63,128-255,512-1KB,2KB-4KB"},
	},
	{
		file: "examples/system/multiple_fixed_update_and_single_fixed_read_test.js", env: "COUNT_LIMIT=10 STEP_ID_UPDATE=u STEP_ID_READ=r",
		steps: "PreconditionLoad", exit: 2, says: []string{"_test.js:4:54: the script may not start processes (--allow-exec permits it)"},
	},
	{
		file: "examples/system/multiple_random_update_and_multiple_fixed_read_test.js", env: "COUNT_LIMIT=10 STEP_ID_UPDATE=u STEP_ID_READ=r", args: "--allow-exec",
		steps: "PreconditionLoad process UpdateLoad! process ReadVerifyLoad!", exit: 2,
	},
	{file: "examples/system/single_fixed_update_and_single_random_read_test.js", env: "STEP_ID_UPDATE=u STEP_ID_READ=r", steps: "PreconditionLoad UpdateLoad! ReadVerifyRandomRangeLoad!", exit: 2},
	{file: "examples/system/single_random_update_and_multiple_random_read_test.js", env: "COUNT_LIMIT=10 STEP_ID_UPDATE=u STEP_ID_READ=r", steps: "PreconditionLoad UpdateRandomRangeLoad! ReadVerifyLoad!", exit: 2},
	{file: "examples/system/pipeline_with_delay_test.js", env: "ZONE1_ADDRS=a ZONE2_ADDRS=b", steps: "PipelineLoad", says: []string{"--read-delay 20000ms", "--read-from kafka://b:9092/delayed"}},
	{file: "examples/system/read_custom_content_verification_fail_test.js", steps: "PreconditionLoad UpdateLoad! ReadVerifyLoad", exit: 2, says: []string{"--decode"}},
	{
		file: "examples/system/read_using_variable_path_test.js", env: "ITEM_LIST_FILE=a.csv ITEM_DATA_SIZE=1KB ITEM_OUTPUT_PATH=/p STEP_LIMIT_COUNT=10",
		steps: "PreconditionLoad! ReadVerifyLoad!", exit: 2, says: []string{"the expression has no end: /p/${path:random(16, 2) was read as /p/${path:random(16, 2)}"},
	},
	{file: "examples/system/read_verification_after_circular_update_test.js", env: "STEP_ID_CREATE=c STEP_ID_UPDATE=u STEP_ID_READ=r", steps: "PreconditionLoad UpdateLoad! ReadVerifyLoad!", exit: 2, says: []string{"circular_1.csv: no such file"}},
	{file: "examples/system/tls_read_using_input_file_test.js", env: "ITEM_LIST_FILE=a.csv", steps: "PreconditionLoad ReadLoad", says: []string{"--tls"}},
	{file: "examples/system/unlimited_concurrency_limit_by_rate_test.js", steps: "Load", says: []string{"--rate 1000/s", "--count 1000000 --count-at-most", "--for 60000ms"}},
	{file: "examples/system/weighted_load_test.js", env: "ITEM_OUTPUT_PATH=w", steps: "PreconditionLoad WeightedLoad", says: []string{"--weight 20", "--weight 80", "--op read", "--recycle", "--for 50000ms"}},
	{file: "examples/types/parallel_shell_commands.js", args: "--allow-exec", steps: "process process"},
	{file: "examples/types/parallel_shell_commands.js", exit: 2, says: []string{"--allow-exec permits it"}},
	{file: "examples/types/pipeline.js", steps: "PipelineLoad", says: []string{"--op pipeline"}},
	{file: "examples/types/pipeline_with_delay_using_env_vars.js", env: "ZONE1_ADDRS=a ZONE2_ADDRS=b", steps: "PipelineLoad", says: []string{"--read-delay 60000ms"}},
	{file: "examples/types/weighted.js", steps: "PreconditionLoad WeightedLoad", says: []string{"mongoose has no load.op.recycle.enabled; it is load.op.recycle here"}},
	{file: "examples/types/additional/copy_load_using_env_vars.js", env: "ITEM_INPUT_FILE=here.csv ITEM_INPUT_PATH=a ITEM_OUTPUT_PATH=b", steps: "CreateLoad"},
	{file: "examples/types/additional/copy_load_using_env_vars.js", env: "ITEM_INPUT_FILE=here.csv ITEM_INPUT_PATH=a", exit: 2, says: []string{":5:24: ReferenceError: ITEM_OUTPUT_PATH is not defined"}},
	{
		file: "examples/types/additional/load_type.js", env: "ITEMS_FILE_0=a.csv ITEMS_FILE_1=b.csv ITEMS_FILE_2=c.csv FIRST_STEP_DURATION_LIMIT=10s UPDATE_RANDOM_RANGES_COUNT=2",
		steps: "CreateLoad UpdateLoad! ReadVerifyLoad! DeleteLoad! NoopLoad!", exit: 2,
	},
	{
		file: "examples/types/additional/update_and_read_variants.js", env: "ITEMS_FILE_0=a.csv ITEMS_FILE_1=b.csv FIRST_STEP_COUNT_LIMIT=10",
		steps: "CreateLoad UpdateLoad! UpdateRandomRangeLoad! ReadRandomRangeLoad! ReadVerifyRandomRangeLoad!", exit: 2,
		says: []string{"test.step.limit.count is deprecated, it is load.op.limit.count"},
	},
	{file: "driver/read.js", steps: "PreconditionLoad ReadLoad", says: []string{"--count 10 --count-at-most"}},
	{file: "listings/e2e_latency.js", args: "--item-data-size=1 --load-step-id=e2e_latency_test", steps: "PipelineLoad", says: []string{"--op pipeline", "load.op.recycle = true", "ignored: the first context of a PipelineLoad has it"}},
	{file: "listings/topics.js", steps: "PreconditionLoad PreconditionLoad ReadLoad", says: []string{"reads topics at kafka://127.0.0.1:9092"}},
	{file: "listings/headers.js", steps: "Load", says: []string{"--header header-name-0=header_value_0 --header header-name-1=header_value_1 --header header-name-N=header_value_N"}},
	{file: "listings/header_expressions.js", steps: "Load", says: []string{`header_expressions.js:6:59: quotes inside of an expression belong to the text: it was read as "${date:format(\"yyyy-MM-dd'T'HH:mm:ssZ\")`}},
}

// Each example is checked: which steps it has, which of them cannot run and why, and the exit
// code. Nothing is sent.
func TestExamples(t *testing.T) {
	testdata := assert.Value(filepath.Abs("testdata"))(t)
	tested := make(map[string]bool)
	for _, e := range examples {
		if testing.Short() && tested[e.file] {
			continue // each file once
		}
		t.Run(strings.TrimSuffix(e.file, ".js")+e.args, func(t *testing.T) {
			t.Chdir(t.TempDir())
			for _, name := range []string{"here.csv", "topic_list.csv"} {
				assert.OK(t, os.WriteFile(name, []byte("topic1\ntopic2\n"), 0o644))
			}
			for pair := range strings.FieldsSeq(e.env) {
				name, value, _ := strings.Cut(pair, "=")
				t.Setenv(name, value)
			}
			got := play(t, dropin.Program{}, filepath.Join(testdata, e.file), append(strings.Fields(e.args), "--check")...)
			assert.True(t, got.err == nil && got.code == e.exit && len(got.runs) == 0,
				"exit %d, want %d; %v, %d runs", got.code, e.exit, got.err, len(got.runs))
			seen := steps(got.out)
			assert.True(t, e.steps == "" || seen == e.steps, "steps %s\nwant  %s", seen, e.steps)
			for _, text := range e.says {
				assert.True(t, strings.Contains(got.out+got.errs, text), "it does not say %q", text)
			}
			if t.Failed() {
				t.Logf("stdout:\n%s\nstderr:\n%s", got.out, got.errs)
			}
		})
		tested[e.file] = true
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
	for _, tt := range []struct {
		name, src string
		args      []string
		strict    bool
		exit      int
		out       string   // of print
		want      []string // settings of the runs: NAME=VALUE, in each
		errs      string
	}{
		{name: "config is a copy", src: `var a = Load.config({item: {output: {path: "a"}}}); a.config({item: {output: {path: "b"}}}); a.run()`, want: []string{"target=kafka://127.0.0.1:9092/a"}},
		{name: "later ones win", src: `Load.config({load: {op: {limit: {count: 1}}}}).config({load: {op: {limit: {count: 2}}}}).run()`, want: []string{"count=2"}},
		{name: "of the command line", src: `Load.run(); Load.config({load: {op: {limit: {count: 3}}}}).run()`, args: []string{"--load-op-limit-count=7"}, want: []string{"count=7", "count=3"}},
		{name: "null is the default", src: `Load.config({load: {op: {limit: {count: null}}}}).run()`, args: []string{"--load-op-limit-count=7"}, want: []string{"count="}},
		{name: "numbers", src: `Load.config({load: {op: {limit: {count: 1e6}}}}).run(); Load.config({load: {op: {limit: {rate: 0.5}}}}).run()`, want: []string{"count=1000000", "rate=0.5/s"}},
		{name: "times", src: `Load.config({load: {step: {limit: {time: "10.seconds"}}}}).run(); Load.config({load: {step: {limit: {time: 5}}}}).run()`, want: []string{"for=10000ms", "for=5000ms"}},
		{name: "lists", src: `Load.config({storage: {net: {node: {addrs: ["a", "b"]}}}}).run(); Load.config({storage: {net: {node: {addrs: new java.util.ArrayList(["c"])}}}}).run()`, want: []string{"target=kafka://a:9092,b:9092/", "target=kafka://c:9092/"}},
		{name: "headers keep their names", src: `Load.config({storage: {driver: {record: {headers: {"x-a": 1, "b": "d:e,f=g"}}}}}).run()`, want: []string{"header=x-a=1 b=d:e,f=g"}},
		{name: "no = in names", src: `Load.config({storage: {driver: {record: {headers: {"a=b": 1}}}}}).run()`, exit: 2, errs: "storage.driver.record.headers: the name a=b contains ="},
		{name: "expressions", src: `Load.config({item: {output: {path: "%{string:format(\"t%d\", 7)}"}}, storage: {driver: {record: {headers: {"x-${math:random(3)}": "${rnd.nextInt(9) == 1}"}}}}}).run()`, want: []string{"target=kafka://127.0.0.1:9092/t7"}},
		{name: "a path that varies", src: `Load.config({item: {output: {path: "${path:random(16, 2)"}}}).run()`, exit: 2, errs: "item.output.path: ${path:random(16, 2)} names another topic for each record, and a step sends to one: give one, or a WeightedLoad"},
		{name: "a pattern of version 3", src: `Load.config({item: {output: {path: "a%d(1){00}[0-99]"}}}).run()`, exit: 2, errs: "item.output.path: patterns in braces are not supported"},
		{name: "precondition", src: `PreconditionLoad.run()`, want: []string{"size=1048576"}},
		{name: "noop", src: `NoopLoad.run()`, want: []string{"target=null://mongoose"}},
		{name: "sloppy", src: `n = 2; for (i = 0; i < n; i++) print("step", i)`, out: "step 0\nstep 1\n"},
		{name: "start and await", src: `var s = Load.start(); print(s.await()); s.close(); print(s)`, out: "true\nLoad\n", want: []string{"size=1048576"}},
		{name: "a failed step", src: `Load.config({load: {op: {type: "update"}}}).run(); print("on"); Load.run()`, out: "on\n", exit: 2, want: []string{"size=1048576"}, errs: "s.js:1:48: step 1 (Load) cannot run: load.op.type=update: object storage only"},
		{name: "a failed step, strictly", src: `Load.config({load: {op: {type: "update"}}}).run(); print("on")`, out: "on\n", strict: true},
		{name: "unknown path", src: "\nLoad.config({load: {op: {limits: {count: 1}}}})", exit: 2, errs: "s.js:2:12: mongoose has no option load.op.limits.count (did you mean load.op.limit.count?)"},
		{name: "a section", src: `Load.config({load: {op: 5}})`, exit: 2, errs: "load.op is a section of options, not an option (such as load.op."},
		{name: "wrong type", src: `Load.config({load: {op: {limit: {count: "many"}}}})`, exit: 2, errs: `load.op.limit.count: "many" is not a whole number`},
		{name: "no map", src: `Load.config("x")`, exit: 2, errs: "config(...) needs a map of options"},
		{name: "undefined", src: `Load.config({load: {op: {type: undefined}}})`, exit: 2, errs: "load.op.type is undefined"},
		{name: "a pipeline that deletes", src: `PipelineLoad.append({item: {output: {path: "t"}}}).append({load: {op: {type: "delete"}}}).run()`, want: []string{"target=kafka://127.0.0.1:9092/t"}, out: "deleted t\n"},
		{name: "a pipeline that reads and deletes", src: `PipelineLoad.append({item: {output: {path: "t"}}}).append({load: {op: {type: "read"}}}).append({load: {op: {type: "delete"}}}).run()`, want: []string{"op=pipeline"}, out: "deleted t\n"},
		{name: "a pipeline that deletes first", src: `PipelineLoad.append({load: {op: {type: "delete"}}, item: {input: {path: "t"}}}).append({load: {op: {type: "read"}}, item: {input: {path: "t"}}}).run()`, exit: 2, errs: "creates, and then reads them, deletes them, or both"},
		{name: "config after append", src: `PipelineLoad.append({}).config({})`, exit: 2, errs: "config(...) must come before any append(...) call"},
		{name: "one context", src: `WeightedLoad.append({}).run()`, exit: 2, errs: "a WeightedLoad needs at least two contexts"},
		{name: "twice", src: `var s = Load.start(); s.start()`, exit: 2, errs: "the step runs already", want: []string{"size=1048576"}},
		{name: "thrown", src: "try { throw 'a' } catch (e) { print(e) }\nthrow 'b'", exit: 2, out: "a\n", errs: "s.js:2:1: b"},
		{name: "no method", src: `Load.fire()`, exit: 2, errs: "Object has no member 'fire'"},
		{name: "lenient", src: `Load.config({load: {step: {limit: {count: 4}}}}).run()`, want: []string{"count=4"}, errs: "mongoose has no load.step.limit.count; it is load.op.limit.count here"},
		{name: "lenient, strictly", src: `Load.config({load: {step: {limit: {count: 4}}}}).run()`, strict: true, exit: 2, errs: "mongoose has no option load.step.limit.count"},
		{name: "no class", src: `java.lang.System.exit(1)`, exit: 2, errs: "scenarios have no java.lang.System (there are java.io.BufferedReader, "},
		{name: "java list", src: `var l = new java.util.ArrayList(); l.add("a"); print(l.size(), l.get(0), l.isEmpty(), Java.type("java.util.ArrayList") != null)`, out: "1 a false true\n"},
		{name: "endless", src: `for (;;) Load.run()`, args: []string{"--max-steps=3"}, want: []string{"size=1048576", "size=1048576", "size=1048576"}},
		{name: "quotes", src: `print("${f("a")}")`, out: "${f(\"a\")}\n", errs: `s.js:1:7: quotes inside of an expression belong to the text: it was read as "${f(\"a\")}"`},
		{name: "quotes, strictly", src: `print("${f("a")}")`, strict: true, exit: 2, errs: "s.js:1:13: syntax error"},
		{name: "processes", src: `p = new java.lang.ProcessBuilder("sh", "-c", "echo a; echo b >&2; exit 3").start(); r = new java.io.BufferedReader(new java.io.InputStreamReader(p.getErrorStream())); print(r.readLine(), r.readLine(), p.waitFor())`, args: []string{"--allow-exec"}, out: "b null 3\n"},
		{name: "inherited", src: `new java.lang.ProcessBuilder().command(["sh", "-c", "echo $CARRONADE_TEST_WORD"]).inheritIO().start().waitFor()`, args: []string{"--allow-exec"}, out: "word\n"},
		{name: "no program", src: `new java.lang.ProcessBuilder("/no/such").start().waitFor()`, args: []string{"--allow-exec"}, exit: 2, errs: "cannot run /no/such: no such file"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if strings.Contains(tt.src, `"sh"`) {
				testkit.Program(t, "sh")
			}
			t.Setenv("CARRONADE_TEST_WORD", "word")
			got := play(t, dropin.Program{Strict: tt.strict}, write(t, tt.src), append(tt.args, "--output-color=false")...)
			var printed strings.Builder
			for line := range strings.Lines(got.out) {
				if slices.Contains(strings.Split(tt.out, "\n"), strings.TrimSuffix(line, "\n")) && line != "\n" {
					printed.WriteString(line)
				}
			}
			ok := got.err == nil && got.code == tt.exit && printed.String() == tt.out && strings.Contains(got.errs, tt.errs) && len(got.runs) == len(tt.want)
			for i, want := range tt.want {
				name, value, _ := strings.Cut(want, "=")
				ok = ok && i < len(got.runs) && strings.HasPrefix(got.runs[i][name], value) && (value != "" || got.runs[i][name] == "")
			}
			assert.True(t, ok, "exit %d, %v; runs %v\nstdout:\n%s\nstderr:\n%s", got.code, got.err, got.runs, got.out, got.errs)
		})
	}
}
