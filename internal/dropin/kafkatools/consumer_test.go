package kafkatools

import (
	"context"
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

// began is the start of the made-up run.
var began = time.Date(2018, 4, 18, 8, 30, 0, 123e6, time.Local)

// consumed reports a made-up run: 12 s at 1,000 records of 100 bytes per second, its
// first 500 ms and 200 ms of the second row without an assignment. If more than
// 12,000 records are requested, it ends by its timeout.
func consumed(d *workload.Document, observer dropin.Observer) *report.Document {
	count := setTo(d, "count")
	observer.Opened()
	var total measure.Counts
	snapshot := func(at time.Duration, n uint64) {
		total.Add(measure.Counts{Consumed: n, Bytes: 100 * n})
		joining := 500 * time.Millisecond
		if at > 5*time.Second {
			joining += 200 * time.Millisecond
		}
		observer.Interval(load.Snapshot{At: at, Total: total, Rebalance: joining})
	}
	snapshot(5*time.Second, 5000)
	snapshot(10*time.Second, 5000)
	doc := &report.Document{
		StartedAt: began, Stopped: load.ByEvents, Trust: measure.Trust{OK: true},
		Totals: report.Totals{
			Counts: measure.Counts{Consumed: 12_000, Bytes: 1_200_000}, ElapsedS: 12, RebalanceS: 0.5,
			EventsPerS: 1000, BytesPerS: 100_000,
		},
		Settings: []report.Setting{{Name: "client-id", Value: "c"}},
		Logs:     []load.LogResult{{Log: "t-0", Lag: 7}},
		Clients:  []measure.Client{{Broker: "1 h:9092", Requests: 3}},
	}
	if count != "12000" {
		snapshot(15*time.Second, 2000)
		snapshot(20*time.Second, 0)
		snapshot(22*time.Second+time.Millisecond, 0)
		doc.Stopped, doc.Totals.Missing = load.ByIdle, 1
		doc.Checks = []report.Check{{Name: "count", Text: "1 event missing from the number asked for"}}
		return doc
	}
	snapshot(12*time.Second+30*time.Millisecond, 2000)
	return doc
}

func setTo(d *workload.Document, name string) (text string) {
	for _, e := range d.Entries {
		if e.Name == name {
			text = strings.Join(e.Values, " ")
		}
	}
	return text
}

// toolsAtBegan are the tools with a clock that shows that time.
func toolsAtBegan() (tool, share *dropin.Tool) {
	now := func() time.Time { return began }
	t, s := Consumer, Share
	t.Main, s.Main = consumerAt(now), shareAt(now)
	return &t, &s
}

func runConsumerTool(t *testing.T, p dropin.Program, args ...string) dropintest.Result {
	t.Helper()
	tool, _ := toolsAtBegan()
	return runWith(t, tool, p, args, func(d *workload.Document, observer dropin.Observer) (*report.Document, error) {
		return consumed(d, observer), nil
	})
}

// runWith runs a tool and adds the error that carronade prints to stderr.
func runWith(t *testing.T, tool *dropin.Tool, p dropin.Program, args []string, run dropintest.Reports) dropintest.Result {
	t.Helper()
	p.Args = args
	s := dropintest.Run(t.Context(), t, tool, p, run)
	if s.Err != nil {
		s.Errs += s.Err.Error()
	}
	return s
}

const (
	header     = "start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec"
	detail     = "time, threadId, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec"
	newColumns = ", rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
	late       = "WARNING: Exiting before consuming the expected number of records: timeout (10000 ms) exceeded. You can use the --timeout option to increase the timeout.\n"
)

func TestConsumerLines(t *testing.T) {
	for _, tt := range []struct {
		name   string
		strict bool
		args   string
		code   int
		out    string
	}{
		{"4.3", false, "--bootstrap-server h:1 --topic t --num-records 12000", 0, header + newColumns + `
2018-04-18 08:30:00:123, 2018-04-18 08:30:12:123, 1.1444, 0.0954, 12000, 1000.0000, 500, 11500, 0.0995, 1043.4783
`},
		{"4.1", false, "--bootstrap-server h:1 --topic t --messages 12000", 0, header + newColumns + `
2018-04-18 08:30:00:123, 2018-04-18 08:30:12:123, 1.1444, 0.0954, 12000, 1000.0000, 500, 11500, 0.0995, 1043.4783
`},
		{"2018", false, "--zookeeper h:1 --topic t --messages 12000", 0, header + `
2018-04-18 08:30:00:123, 2018-04-18 08:30:12:123, 1.1444, 0.0954, 12000, 1000.0000
`},
		{
			"no header, another date", false, "--bootstrap-server h:1 --topic t --num-records 12000 --hide-header --date-format HH.mm.ss", 0,
			"08.30.00, 08.30.12, 1.1444, 0.0954, 12000, 1000.0000, 500, 11500, 0.0995, 1043.4783\n",
		},
		{"in detail", false, "--bootstrap-server h:1 --topic t --num-records 12000 --show-detailed-stats", 0, detail + newColumns + `
2018-04-18 08:30:05:123, 0, 0.4768, 0.0954, 5000, 1000.0000, 500, 4500, 0.1060, 1111.1111
2018-04-18 08:30:10:123, 0, 0.9537, 0.0954, 10000, 1000.0000, 200, 4800, 0.0993, 1041.6667
2018-04-18 08:30:12:123, 0, 1.1444, 0.0954, 12000, 1000.0000, 0, 2000, 0.0954, 1000.0000
`},
		{"in detail, strict", true, "--bootstrap-server h:1 --topic t --num-records 12000 --show-detailed-stats", 0, detail + newColumns + `
2018-04-18 08:30:05:123, 0, 0.4768, 0.0954, 5000, 1000.0000, 500, 4500, 0.1060, 1111.1111
2018-04-18 08:30:10:123, 0, 0.9537, 0.0954, 10000, 1000.0000, 0, 5000, 0.0954, 1000.0000
`},
		{"in detail, 2018", false, "--zookeeper h:1 --topic t --messages 12000 --show-detailed-stats", 0, detail + `
2018-04-18 08:30:05:123, 0, 0.4768, 0.0954, 5000, 1000.0000
2018-04-18 08:30:10:123, 0, 0.9537, 0.0954, 10000, 1000.0000
2018-04-18 08:30:12:123, 0, 1.1444, 0.0954, 12000, 1000.0000
`},
		{"too few", false, "--bootstrap-server h:1 --topic t --num-records 12001", 1, header + newColumns + "\n" + late +
			"2018-04-18 08:30:00:123, 2018-04-18 08:30:12:123, 1.1444, 0.0954, 12000, 1000.0000, 500, 11500, 0.0995, 1043.4783\n"},
		{"too few, strict: the wait included", true, "--bootstrap-server h:1 --topic t --num-records 12001", 0, header + newColumns + "\n" + late +
			"2018-04-18 08:30:00:123, 2018-04-18 08:30:22:123, 1.1444, 0.0520, 12000, 545.4545, 500, 21500, 0.0532, 558.1395\n"},
		{"too few in 2018: no warning among the rows", false, "--zookeeper h:1 --topic t --messages 12001", 1, header + `
2018-04-18 08:30:00:123, 2018-04-18 08:30:12:123, 1.1444, 0.0954, 12000, 1000.0000
`},
		{"too few in detail: a row per interval", false, "--bootstrap-server h:1 --topic t --messages 12001 --show-detailed-stats", 1, detail + newColumns + `
2018-04-18 08:30:05:123, 0, 0.4768, 0.0954, 5000, 1000.0000, 500, 4500, 0.1060, 1111.1111
2018-04-18 08:30:10:123, 0, 0.9537, 0.0954, 10000, 1000.0000, 200, 4800, 0.0993, 1041.6667
2018-04-18 08:30:15:123, 0, 1.1444, 0.0381, 12000, 400.0000, 0, 5000, 0.0381, 400.0000
2018-04-18 08:30:20:123, 0, 1.1444, 0.0000, 12000, 0.0000, 0, 5000, 0.0000, 0.0000
` + strings.Replace(late, "records", "messages", 1)},
		{"none asked for", false, "--bootstrap-server h:1 --topic t --num-records 0 --hide-header --date-format d", 0, "18, 18, 0.0000, 0.0000, 0, 0.0000, 0, 0, 0.0000, 0.0000\n"},
		{"old options", false, "--bootstrap-server h:1 --topic t --messages 12000 --consumer.config FILE --command-property a=b --hide-header --date-format D", 1, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := runConsumerTool(t, dropin.Program{Strict: tt.strict}, strings.Fields(tt.args)...)
			want := tt.out
			assert.True(t, tt.code == got.Code && (got.Out == want || tt.out == ""),
				"exit %d, stderr %q, stdout:\n%s\nwant:\n%s", got.Code, got.Errs, got.Out, want)
		})
	}
}

// Arguments become a workload's settings.
func TestConsumerWorkload(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.properties")
	assert.OK(t, os.WriteFile(file, []byte("fetch.max.bytes=1000\nclient.id=me\nlinger.ms=5\ngroup.id=x\n"), 0o600))
	for _, tt := range []struct {
		name string
		args string
		want map[string]string // "" is absent
		errs string            // a regular expression for all of stderr
	}{
		{"4.3", "--bootstrap-server a:1,b:2 --topic t --num-records 5", map[string]string{
			"target": "kafka://a:1,b:2/t", "op": "consume", "engine": "client", "count": "5", "clients": "1", "from": "earliest",
			"fetch-partition-max": "1048576", "recv-buffer": "2097152", "idle-timeout": "10000ms", "interval": "5000ms", "client-id": "perf-consumer-client",
			"fetch-max": "50MiB", "client-config": "", "client-metrics": "", "wait-topic": "10000ms",
		}, ``},
		{"all options", "--bootstrap-server a:1 --topic t --num-records 5 --group g --fetch-size 9 --from-latest --socket-buffer-size 8 --timeout 700 --reporting-interval 600 --print-metrics --command-property a=b=c --command-property d", map[string]string{
			"group": "g", "fetch-partition-max": "9", "from": "latest", "recv-buffer": "8", "idle-timeout": "700ms", "interval": "600ms",
			"client-metrics": "true", "client-property": "a=b=c d=",
		}, ``},
		{"the system's buffer, no timeout", "--bootstrap-server a:1 --topic t --num-records 5 --socket-buffer-size -1 --timeout 0 --reporting-interval 1", map[string]string{
			"recv-buffer": "", "idle-timeout": "1ms", "interval": "10ms",
		}, `warning: --reporting-interval 1: the shortest is 10 here\n`},
		{"--timeout alone", "--bootstrap-server a:1 --topic t --num-records 5 --timeout", map[string]string{"idle-timeout": "10000ms"}, ``},
		{"--include", `--bootstrap-server a:1 --include ^a\.b$ --num-records 5`, map[string]string{"target": "kafka://a:1", "topics": `^a\.b$`}, ``},
		{
			"a file", "--bootstrap-server a:1 --topic t --num-records 5 --command-config " + file,
			map[string]string{"client-config": file, "fetch-max": "", "client-id": ""},
			`warning: the client property linger\.ms has no meaning for the operation consume and is ignored\nwarning: the tool's option overrides the client property group\.id\n`,
		},
		{"a file, 4.1", "--bootstrap-server a:1 --topic t --messages 5 --consumer.config " + file, map[string]string{"client-config": file}, `(?s).*`},
		{"2018", "--zookeeper a:1 --topic t --messages 5 --threads 3", map[string]string{"target": "kafka://a:1/t", "clients": "3", "count": "5"}, `hint: .* brokers are needed: .*\n`},
		{"2018, threads by default", "--zookeeper a:1 --topic t --messages 5", map[string]string{"clients": "10"}, `hint: .*\n`},
		{"2018, a path in ZooKeeper", "--zookeeper a:1,b:2/chroot/x --topic t --messages 5 --threads 1", map[string]string{"target": "kafka://a:1,b:2/t"}, `hint: .* brokers are needed: .*\nhint: the part after the / of --zookeeper is a path in ZooKeeper and is ignored\n`},
		{"brokers in Java's form", "--bootstrap-server PLAINTEXT://a:1,SSL://b:2 --topic t --num-records 5", map[string]string{"target": "kafka://a:1,b:2/t"}, ``},
		{"ZooKeeper and brokers", "--zookeeper z:1 --broker-list a:1 --topic t --messages 5", map[string]string{"target": "kafka://a:1/t"}, `warning: --zookeeper is ignored: .* --broker-list names the brokers\n`},
		{"ZooKeeper and a server", "--zookeeper z:1 --bootstrap-server a:1 --topic t --messages 5", map[string]string{"target": "kafka://a:1/t"}, `warning: --zookeeper is ignored: .* --bootstrap-server names the brokers\n`},
		{
			"brokers by the old option", "--broker-list a:1 --topic t --messages 5 --num-fetch-threads 2",
			map[string]string{"target": "kafka://a:1/t", "clients": "1"},
			`warning: --num-fetch-threads has no meaning and is ignored\n`,
		},
		{
			"options without effect", "--zookeeper a:1 --topic t --messages 5 --new-consumer --message-size 1 --batch-size 2 --compression-codec 0",
			map[string]string{"count": "5"},
			`(warning: --\S+ has no meaning and is ignored\n){4}hint: .*\n`,
		},
		{"2018, rows", "--zookeeper a:1 --topic t --messages 5 --show-detailed-stats --reporting-interval 1000000", map[string]string{"interval": "1000000ms"}, `hint: .*\nwarning: --reporting-interval 1000000 is in milliseconds, .* it was in messages\n`},
		{"2018, no rows", "--zookeeper a:1 --topic t --messages 5 --reporting-interval 1000000", nil, `hint: .*\n`},
		{"2018, rows at the default interval", "--zookeeper a:1 --topic t --messages 5 --show-detailed-stats", nil, `hint: .*\n`},
		{"4.3, rows", "--bootstrap-server a:1 --topic t --num-records 5 --show-detailed-stats --reporting-interval 1000", map[string]string{"interval": "1000ms"}, ``},
		{"a surplus argument", "--bootstrap-server a:1 --topic t --num-records 5 more", map[string]string{"count": "5"}, `warning: unknown option more is ignored\n`},
		{"a secret in a surplus argument", "--bootstrap-server a:1 --topic t --num-records 5 --command-property a=b ssl.key.password=hunter2=", nil, `warning: unknown option ssl\.key\.password is ignored\n`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := runConsumerTool(t, dropin.Program{}, strings.Fields(tt.args)...)
			for name, want := range tt.want {
				assert.Equal(t, got.Last()[name], want, "%s", name)
			}
			errs := strings.ReplaceAll(got.Errs, "warning: count: 1 event missing from the number asked for\n", "")
			assert.True(t, regexp.MustCompile(`\A`+tt.errs+`\z`).MatchString(errs), "stderr %q, want %q", errs, tt.errs)
		})
	}
	got := runConsumerTool(t, dropin.Program{Strict: true}, strings.Fields("--zookeeper a:1 --topic t --messages 5 --threads 3")...)
	assert.True(t, got.Last()["count"] == "15", "three threads of five each count %q", got.Last()["count"])
	if got := runConsumerTool(t, dropin.Program{}, strings.Fields("--bootstrap-server a:1 --topic t --num-records 5")...); !regexp.MustCompile(`\Aperf-consumer-\d{1,5}\z`).MatchString(got.Last()["group"]) {
		t.Errorf("group %q", got.Last()["group"])
	}
}

// Wrong usage has the tool's messages and exit code, and nothing runs.
func TestConsumerUsage(t *testing.T) {
	const b = "--bootstrap-server h:1 "
	refused(t, runConsumerTool, "--hide-header", []refusal{
		{"nothing", "", "", "This tool is used to verify the consumer performance.\n", true},
		{"help", "", "--help", "This tool is used to verify the consumer performance.\n", true},
		{"no brokers", "", "--topic t --num-records 5", `Missing required argument "[bootstrap-server]"` + "\n", true},
		{"no brokers, 4.1", "", "--topic t --messages 5", `Missing required argument "[bootstrap-server]"` + "\n", true},
		{"no brokers, 2018", "2018", "--topic t --messages 5", `Missing required argument "[broker-list]"` + "\n", true},
		{"no topic", "", b + "--num-records 5", "Exactly one of the following arguments is required: [topic], [include]\n", true},
		{"no topic, 4.1", "", b + "--messages 5", `Missing required argument "[topic]"` + "\n", true},
		{"two topics", "", b + "--topic t --include u --num-records 5", "Exactly one of the following arguments is required: [topic], [include]\n", true},
		{"no count", "", b + "--topic t", "Exactly one of the following arguments is required: [messages], [num-records]\n", true},
		{"no count, 2018", "", "--zookeeper h:1 --topic t", `Missing required argument "[messages]"` + "\n", true},
		{"two counts", "", b + "--topic t --messages 5 --num-records 5", "Exactly one of the following arguments is required: [messages], [num-records]\n", true},
		{"two files", "", b + "--topic t --num-records 5 --consumer.config a --command-config b", `Option "[consumer.config]" can't be used with option "[command-config]"` + "\n", true},
		{"no such option", "", "--foo", "foo is not a recognized option\n", true},
		{"a newer option", "4.1", b + "--topic t --num-records 5", "num-records is not a recognized option\n", true},
		{"a removed option", "4.3", b + "--topic t --num-records 5 --threads 2", "threads is not a recognized option\n", true},
		{"two generations", "", "--zookeeper h:1 --topic t --num-records 5", "zookeeper belongs to 2018 and num-records to 4.3: use options of one generation\n", true},
		{"no value", "", b + "--topic t --num-records", "Option num-records requires an argument\n", true},
		{"no number", "", b + "--topic t --messages five", "Cannot parse argument 'five' of option messages\n", false},
		{"too large", "", b + "--topic t --num-records 5 --fetch-size 3000000000", "Cannot parse argument '3000000000' of option fetch-size\n", false},
		{"no interval", "", b + "--topic t --num-records 5 --reporting-interval 0", "Reporting interval must be greater than 0.\n", false},
		{"a negative timeout", "", b + "--topic t --num-records 5 --timeout -1", "--timeout -1: must not be negative\n", false},
		{"a fetch size of 0", "", b + "--topic t --num-records 5 --fetch-size 0", "--fetch-size 0: must hold a record\n", false},
		{"no threads", "", "--zookeeper h:1 --topic t --messages 5 --threads 0", "--threads 0: there must be at least one\n", false},
		{"no date", "", b + "--topic t --num-records 5 --date-format qqq", "Illegal pattern character 'q'\n", false},
		{"no expression", "", b + "--include [ --num-records 5", "--include: open brackets: [\n", false},
		{"no such file", "", b + "--topic t --num-records 5 --command-config /no/such", "read the client's properties: open /no/such: no such file or directory\n", false},
		{"an empty topic", "", b + "--topic= --num-records 5", "Topic collection to subscribe to cannot contain null or empty topic\n", false},
		{"an empty topic, 2018", "", "--zookeeper h:1 --topic= --messages 5", "Topic collection to subscribe to cannot contain null or empty topic\n", false},
		{"an empty expression", "", b + "--include= --num-records 5", "Topic pattern to subscribe to cannot be empty\n", false},
		{"empty brokers", "", "--bootstrap-server= --topic t --num-records 5", "Configuration 'bootstrap.servers' must not be empty. Valid values include: any non-empty value\n", false},
		{"no broker", "", "--bootstrap-server h:1/x --topic t --num-records 5", "Invalid url in bootstrap.servers: h:1/x\n", false},
		{"no look-around", "", b + "--include (?<=b)c --num-records 5", "--include: look-around ((?<=...)) cannot be used here\n", false},
		{"an invalid topic", "", b + "--topic cons?x=1 --num-records 5", "Topic name is invalid: 'cons?x=1' contains one or more characters", false},
		{"an invalid topic, 2018", "", "--zookeeper h:1 --topic a/b --messages 5", "Topic name is invalid: 'a/b' contains one or more characters", false},
		{"a removed option, 4.2", "4.2", b + "--topic t --num-records 5 --threads 2", "threads is not a recognized option\n", true},
		{"no such generation", "5.0", b + "--topic t --num-records 5", "--generation 5.0: this tool has 2018, 4.1 and 4.3", false},
	})
	got := runConsumerTool(t, dropin.Program{}, "--version")
	assert.True(t, got.Code == 0 && got.Out == "4.3.1\n", "--version: exit %d, %q", got.Code, got.Out)
}

// The tests above use every option.
func TestConsumerEveryOptionIsTested(t *testing.T) {
	allTested(t, "consumer_test.go", consumerOptions, func(o consumerOption) string { return o.name })
}

// The 4.3 tool's message about deprecated options.
func TestConsumerDeprecated(t *testing.T) {
	got := runConsumerTool(t, dropin.Program{Generation: "4.3"}, strings.Fields("--bootstrap-server h:1 --topic t --messages 12000 --hide-header")...)
	want := "Warning: --messages is deprecated. Use --num-records instead.\n2018"
	assert.True(t, strings.HasPrefix(got.Out, want), "stdout %q", got.Out)
}

// Runs that fail or are interrupted.
func TestConsumerExit(t *testing.T) {
	args := strings.Fields("--bootstrap-server h:1 --topic t --num-records 5")
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tt := range []struct {
		name   string
		strict bool
		ctx    context.Context
		doc    *report.Document
		err    error
		code   int
		rows   int
	}{
		{"refused", false, t.Context(), nil, errors.New("connection refused"), 0, 0},
		{"refused, strict", true, t.Context(), nil, errors.New("connection refused"), 0, 0},
		{"interrupted before the run", false, stopped, nil, context.Canceled, 130, 0},
		{"interrupted", false, t.Context(), &report.Document{Stopped: load.Interrupted}, nil, 130, 1},
		{"interrupted, strict", true, t.Context(), &report.Document{Stopped: load.Interrupted}, nil, 130, 0},
		{"the generator was at its limit", false, t.Context(), &report.Document{Stopped: load.ByEvents}, nil, 3, 1},
		{"the generator was at its limit, strict", true, t.Context(), &report.Document{Stopped: load.ByEvents}, nil, 0, 1},
		{"the brokers went away", true, t.Context(), &report.Document{Stopped: load.ByTarget}, nil, 1, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := dropintest.Run(tt.ctx, t, &Consumer, dropin.Program{Args: append(args, "--hide-header"), Strict: tt.strict}, func(*workload.Document, dropin.Observer) (*report.Document, error) {
				return tt.doc, tt.err
			})
			if got.Code != tt.code || strings.Count(got.Out, "\n") != tt.rows || (got.Err != nil) != (tt.err != nil && got.Code == 0) {
				t.Errorf("exit %d, error %v, stdout %q", got.Code, got.Err, got.Out)
			}
		})
	}
}

// Metrics are sorted by name, and their values are aligned.
func TestConsumerMetrics(t *testing.T) {
	got := runConsumerTool(t, dropin.Program{}, strings.Fields("--bootstrap-server h:1 --topic t --num-records 12000 --print-metrics --hide-header")...)
	_, table, ok := strings.Cut(got.Out, "\n\n")
	lines := strings.Split(strings.TrimSuffix(table, "\n"), "\n")
	assert.Must(t, ok && len(lines) >= 8, "no table of metrics:\n%s", got.Out)
	value := strings.Index(lines[0], "Value")
	for i, line := range lines[1:] {
		if !regexp.MustCompile(`\A[a-z-]+:[a-z-]+:\{client-id=perf-consumer-client(, node-id=node-1|, topic=t, partition=0)?\} +: (\d+\.\d{3}|carronade .*)\z`).MatchString(line) || line[value-3:value] != " : " {
			t.Errorf("row %q", line)
		}
		if i > 0 && line < lines[i] {
			t.Errorf("%q after %q", line, lines[i])
		}
	}
	for _, want := range []string{
		"consumer-fetch-manager-metrics:records-consumed-total:{client-id=perf-consumer-client} +: 12000.000",
		"consumer-fetch-manager-metrics:bytes-consumed-rate:{client-id=perf-consumer-client} +: 100000.000",
		"consumer-fetch-manager-metrics:records-lag:{client-id=perf-consumer-client, topic=t, partition=0} : 7.000",
		"carronade:fetch-total:{client-id=perf-consumer-client, node-id=node-1} +: 3.000",
	} {
		assert.True(t, regexp.MustCompile(want).MatchString(table), "no %s:\n%s", want, table)
	}
}

// A topic that does not exist: nothing is consumed within --timeout, and there is a
// row of zeros.
func TestConsumerAbsentTopic(t *testing.T) {
	tool, share := toolsAtBegan()
	doc := &report.Document{
		StartedAt: began.Add(2 * time.Second), Stopped: load.ByEnd, Trust: measure.Trust{OK: true}, Totals: report.Totals{Missing: 5},
		Facts: map[string]any{"absent": true}, Checks: []report.Check{{Name: "count", Text: "5 events missing from the number asked for"}},
	}
	const warning = "WARNING: Exiting before consuming the expected number of records: timeout (2000 ms) exceeded. You can use the --timeout option to increase the timeout.\n"
	const at, later = "2018-04-18 08:30:00:123, 2018-04-18 08:30:00:123, ", "2018-04-18 08:30:00:123, 2018-04-18 08:30:02:123, "
	for _, tt := range []struct {
		name   string
		tool   *dropin.Tool
		strict bool
		more   string
		code   int
		want   string
	}{
		{"consumer", tool, false, "", 1, warning + at + "0.0000, 0.0000, 0, 0.0000, 0, 0, 0.0000, 0.0000\n"},
		{"consumer, strict", tool, true, "", 0, warning + later + "0.0000, 0.0000, 0, 0.0000, 0, 2000, 0.0000, 0.0000\n"},
		{"consumer, in detail", tool, true, "--show-detailed-stats", 0, warning},
		{"share", share, false, "", 1, warning + at + "0.0000, 0.0000, 0.0000, 0, 0\n"},
		{"share, strict, each", share, true, "--show-consumer-stats", 0, "Share consumer 1 having client id perf-share-consumer-client-1 consumption metrics- " + later + "0.0000, 0.0000, 0.0000, 0, 2000\n" + warning + later + "0.0000, 0.0000, 0.0000, 0, 2000\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := dropin.Program{Args: strings.Fields("--bootstrap-server h:1 --topic t --num-records 5 --timeout 2000 --hide-header " + tt.more), Strict: tt.strict}
			got := dropintest.Run(t.Context(), t, tt.tool, p, func(*workload.Document, dropin.Observer) (*report.Document, error) { return doc, nil })
			assert.Equal(t, got.Last()["wait-topic"], "2000ms", "wait-topic")
			if got.Err != nil || got.Code != tt.code || got.Out != tt.want || !strings.Contains(got.Errs, "warning: count: 5 events missing") {
				t.Errorf("exit %d, error %v, stderr %q, stdout:\n%s\nwant:\n%s", got.Code, got.Err, got.Errs, got.Out, tt.want)
			}
		})
	}
}
