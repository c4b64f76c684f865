package kafkatools

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"carronade/internal/dropin"
	"carronade/internal/dropin/dropintest"
	"carronade/internal/report"
	"carronade/internal/workload"
	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

// roundTrips reports a made-up run: 1,500 messages, of which 15 took 2.6 ms and the
// others 0.75 ms, on a topic created for it.
func roundTrips(observer dropin.Observer) *report.Document {
	observer.Found(map[string]any{"topic": map[string]any{"created_by": "carronade"}})
	h := measure.NewHistogram()
	for i := range 1500 {
		d := 750 * time.Microsecond
		if i%100 == 99 {
			d = 2600 * time.Microsecond
		}
		observer.RoundTrip(d)
		h.Record(d)
	}
	d := &report.Document{Stopped: load.ByEvents, Trust: measure.Trust{OK: true}}
	d.EndToEnd = measure.Summarize(h, nil, nil)
	d.Totals.Acked, d.Totals.Consumed = 1500, 1500
	return d
}

func runLatencyTool(t *testing.T, p dropin.Program, args ...string) dropintest.Result {
	t.Helper()
	p.Args = args
	s := dropintest.Run(t.Context(), t, &Latency, p, func(_ *workload.Document, observer dropin.Observer) (*report.Document, error) {
		return roundTrips(observer), nil
	})
	if s.Err != nil { // carronade prints it
		s.Errs += s.Err.Error()
	}
	return s
}

func TestLatencyLines(t *testing.T) {
	const created = "Topic \"t\" does not exist. Will create topic with 1 partition(s) and replication factor = 1\n0\t0.75\n1000\t0.75\n"
	for _, tt := range []struct {
		name       string
		strict     bool
		generation string
		args       string
		out        string
	}{
		{"by place", false, "", "h:1 t 1500 1 20", created + "Avg latency: 0.7685 ms\nPercentiles: 50th = 1, 99th = 1, 99.9th = 3\n"},
		{"by place, cut off", true, "", "h:1 t 1500 1 20", created + "Avg latency: 0.7685 ms\nPercentiles: 50th = 0, 99th = 2, 99.9th = 2\n"},
		{"by place, 4.3", false, "4.3", "h:1 t 1500 1 20", positionalDeprecated + "\n" + created + "Avg latency: 0.7685 ms\nPercentiles: 50th = 1, 99th = 1, 99.9th = 3\n"},
		{"by name", false, "", "--bootstrap-server h:1 --topic t --num-records 1500 --producer-acks all --record-size 20", created + "Avg latency: 0.7685 ms\nPercentiles: 50th = 1, 99th = 1, 99.9th = 3\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := runLatencyTool(t, dropin.Program{Strict: tt.strict, Generation: tt.generation}, strings.Fields(tt.args)...)
			assert.True(t, got.Out == tt.out && got.Code == 0 && got.Errs == "",
				"exit %d, stderr %q, stdout:\n%s\nwant:\n%s", got.Code, got.Errs, got.Out, tt.out)
		})
	}
}

// Arguments become a workload's settings.
func TestLatencyWorkload(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.properties")
	assert.OK(t, os.WriteFile(file, []byte("linger.ms=5\nmax.poll.records=1\n"), 0o600))
	const named = "--bootstrap-server a:1,b:2 --topic t --num-records 5 --producer-acks all --record-size 20 "
	for _, tt := range []struct {
		name, args string
		want       map[string]string // "" is absent
		errs       string
	}{
		{"by place", "a:1,b:2 t 5 1 20", map[string]string{
			"target": "kafka://a:1,b:2/t", "op": "roundtrip", "concurrency": "1", "batch-events": "1", "count": "5", "acks": "1", "size": "20",
			"linger": "0s", "fetch-wait": "0s", "create-topic": "partitions=1,replicas=1", "verify": "true", "payload": "letters", "fresh": "true", "client-config": "", "key": "", "header": "",
		}, ``},
		{"by name", named, map[string]string{"target": "kafka://a:1,b:2/t", "count": "5", "acks": "all", "size": "20"}, ``},
		{"a file by place", "a:1 t 5 1 20 " + file, map[string]string{"client-config": file, "linger": "0s"}, `warning: the tool's own setting overrides the client property linger\.ms\n`},
		{"a file by name", named + "--command-config " + file, map[string]string{"client-config": file}, `warning: .*\n`},
		{"keys", named + "--record-key-size 4", map[string]string{"key": "uniform(10000)", "partitioner": "murmur2"}, ``},
		{"long keys", named + "--record-key-size 40", map[string]string{"key": "uniform(1000000000000000)"}, `warning: --record-key-size 40: keys have 15 bytes, .*\n`},
		{"headers", named + "--num-headers 2 --record-header-key-size 3 --record-header-size 2", map[string]string{"header": "AAA=AA BBB=BB"}, ``},
		{"empty headers", named + "--num-headers 1", map[string]string{"header": "A="}, `warning: --record-header-key-size 0: .*\n`},
		{"null headers", named + "--num-headers 1 --record-header-key-size 1 --record-header-size -1", map[string]string{"header": "A="}, `warning: --record-header-size -1: .*\n`},
		{"a surplus argument", named + "more", map[string]string{"count": "5"}, `warning: unknown option more is ignored\n`},
		{"a secret in a surplus argument", named + "ssl.key.password=hunter2=", nil, `warning: unknown option ssl\.key\.password is ignored\n`},
		{"brokers in Java's form", "PLAINTEXT://a:1,SSL://b:2 t 5 1 20", map[string]string{"target": "kafka://a:1,b:2/t"}, ``},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := runLatencyTool(t, dropin.Program{}, strings.Fields(tt.args)...)
			for name, want := range tt.want {
				assert.Equal(t, got.Last()[name], want, "%s", name)
			}
			assert.True(t, regexp.MustCompile(`\A`+tt.errs+`\z`).MatchString(got.Errs), "stderr %q, want %q", got.Errs, tt.errs)
		})
	}
}

// Wrong usage has the tool's messages and exit code.
func TestLatencyUsage(t *testing.T) {
	const named = "--bootstrap-server a:1 --topic t --num-records 5 --producer-acks 1 --record-size 20 "
	refused(t, runLatencyTool, "--num-headers", []refusal{
		{"nothing", "", "", aboutLatency + "\n", true},
		{"help", "", "--help", aboutLatency + "\n", true},
		{"help among others", "", named + "--help", aboutLatency + "\n", true},
		{"too few", "", "a:1 t 5", "Invalid number of arguments. Expected 5 or 6 positional arguments, but got 3. Usage: bootstrap-server topic num-records producer-acks record-size [optional] command-config\n", false},
		{"too few by name", "", "--bootstrap-server a:1 --topic t --num-records 5 --producer-acks 1", `Missing required argument "[record-size]"` + "\n", true},
		{"acks", "", "a:1 t 5 0 20", "Invalid value for --producer-acks. Latency testing requires synchronous acknowledgement. Please use '1' or 'all'.\n", true},
		{"no messages", "", "a:1 t 0 1 20", "Value for --num-records must be a positive integer.\n", true},
		{"no number", "", "a:1 t five 1 20", "Cannot parse argument 'five' of option num-records\n", false},
		{"no size", "", "a:1 t 5 1 -1", "Value for --record-size must be a non-negative integer.\n", true},
		{"no header", "", named + "--record-header-size -2", "Value for --record-header-size must be a non-negative integer or -1 for null header value.\n", true},
		{"no such option", "", named + "--foo", "foo is not a recognized option\n", true},
		{"names too early", "4.1", named, "USAGE: java org.apache.kafka.tools.EndToEndLatency broker_list topic", false},
		{"too few, 2018", "2018", "a:1 t 5", "USAGE: java org.apache.kafka.tools.EndToEndLatency broker_list topic", false},
		{"acks, 2018", "2018", "a:1 t 5 0 10", `Exception in thread "main" java.lang.IllegalArgumentException: Latency testing requires synchronous acknowledgement. Please use 1 or all` + "\n", false},
		{"acks, 4.1", "4.1", "a:1 t 5 0 10", "Latency testing requires synchronous acknowledgement. Please use 1 or all\n", false},
		{"no number, 4.1", "4.1", "a:1 t five 0 10", `For input string: "five"` + "\n", false},
		{"no number, 2018", "2018", "a:1 t 5 1 3000000000", `Exception in thread "main" java.lang.NumberFormatException: For input string: "3000000000"` + "\n", false},
		{"a negative number, 4.1", "4.1", "a:1 t -5 1 10", "-5\n", false},
		{"no size, 2018", "2018", "a:1 t 5 1 -1", `Exception in thread "main" java.lang.NegativeArraySizeException: -1` + "\n", false},
		{"no messages, 4.1", "4.1", "a:1 t 0 1 10", "Index 0 out of bounds for length 0: there are no messages to measure\n", false},
		{"no topic", "", "a:1 t?x=1 5 1 20", "Topic name is invalid: 't?x=1' contains", false},
		{"no topic, 2018", "2018", "a:1 t/u 5 1 20", "Topic name is invalid: 't/u' contains", false},
		{"no such file", "", "a:1 t 5 1 20 /no/such", "read the client's properties: open /no/such: no such file or directory\n", false},
		{"an empty topic", "", "--bootstrap-server a:1 --topic= --num-records 5 --producer-acks 1 --record-size 20", "The given topic name '' cannot be represented in a request.\n", false},
		{"no broker", "", "a:1/x t 5 1 20", "Invalid url in bootstrap.servers: a:1/x\n", false},
		{"no such generation", "5", named, "--generation 5: this tool has 2018, 4.1 and 4.3", false},
	})
	got := runLatencyTool(t, dropin.Program{}, "--version")
	assert.True(t, got.Code == 0 && got.Out == "4.3.1\n", "--version: exit %d, %q", got.Code, got.Out)
}

// Every generation runs the workload of its arguments; 4.2 is 4.3.
func TestLatencyGenerations(t *testing.T) {
	for generation, out := range map[string]string{"": "", "2018": "", "4.1": "", "4.2": positionalDeprecated, "4.3": positionalDeprecated} {
		got := runLatencyTool(t, dropin.Program{Generation: generation}, strings.Fields("a:1 t 5 all 20")...)
		if got.Last()["acks"] != "all" || got.Last()["count"] != "5" || strings.HasPrefix(got.Out, "WARNING") != (out != "") || !strings.HasPrefix(got.Out, out) {
			t.Errorf("%q: exit %d, workloads %v, stdout %q, stderr %q", generation, got.Code, got.Workloads, got.Out, got.Errs)
		}
	}
}

// The tests above use every option.
func TestLatencyEveryOptionIsTested(t *testing.T) {
	allTested(t, "latency_test.go", latencyOptions, func(o joptOption) string { return o.name })
}

func TestLatencyExit(t *testing.T) {
	lost := &report.Document{
		Stopped: load.ByEvents, Trust: measure.Trust{OK: true}, Checks: []report.Check{{Name: "verify", Text: "1 event was lost"}},
		Failures: []measure.Failure{{Class: "broker", Text: "too large", Events: 2}}, Problems: nil, Warnings: []string{"a warning"},
	}
	lost.Totals.Acked, lost.Totals.Consumed = 3, 2
	for _, tt := range []struct {
		name   string
		strict bool
		doc    *report.Document
		err    error
		code   int
		errs   string
	}{
		{"refused", false, nil, errors.New("connection refused"), 0, ""},
		{"interrupted", false, &report.Document{Stopped: load.Interrupted}, nil, 130, ""},
		{"interrupted, strict", true, &report.Document{Stopped: load.Interrupted}, nil, 130, ""},
		{"lost", false, lost, nil, 1, "broker: too large (2 records)\nwarning: verify: 1 event was lost\n"},
		{"lost, strict", true, lost, nil, 1, "broker: too large (2 records)\nwarning: verify: 1 event was lost\n"},
		{"the generator was at its limit", false, &report.Document{Trust: measure.Trust{Reasons: []string{"pauses"}}}, nil, 3, "warning: not to be trusted: pauses\n"},
		{"the generator was at its limit, strict", true, &report.Document{Trust: measure.Trust{Reasons: []string{"pauses"}}}, nil, 0, "warning: not to be trusted: pauses\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := dropintest.Run(t.Context(), t, &Latency, dropin.Program{Args: strings.Fields("h:1 t 5 1 20"), Strict: tt.strict}, func(*workload.Document, dropin.Observer) (*report.Document, error) {
				return tt.doc, tt.err
			})
			assert.True(t, got.Code == tt.code && (got.Err != nil) == (tt.err != nil) && got.Errs == tt.errs && got.Out == "",
				"exit %d, error %v, stdout %q, stderr %q", got.Code, got.Err, got.Out, got.Errs)
		})
	}
}
