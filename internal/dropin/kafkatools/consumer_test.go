package kafkatools

import (
	"context"
	"errors"
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

// consumed reports a made-up run: 12 s at 1,000 records of 100 bytes per second, its first 500 ms and 200 ms of the
// second row without an assignment. If more than 12,000 records are requested, it ends by its timeout.
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

func TestConsumerCases(t *testing.T) {
	dropintest.AsPrinted(t, "consumer", "--hide-header", runConsumerTool)
	got := runConsumerTool(t, dropin.Program{Strict: true}, strings.Fields("--zookeeper a:1 --topic t --messages 5 --threads 3")...)
	assert.True(t, got.Last()["count"] == "15", "three threads of five each count %q", got.Last()["count"])
	got = runConsumerTool(t, dropin.Program{}, strings.Fields("--bootstrap-server a:1 --topic t --num-records 5")...)
	assert.True(t, regexp.MustCompile(`\Aperf-consumer-\d{1,5}\z`).MatchString(got.Last()["group"]), "group %q", got.Last()["group"])
	allTested(t, "testdata/cases/consumer.txt", consumerOptions, func(o consumerOption) string { return o.name })
}

// The 4.3 tool's message about deprecated options.
func TestConsumerDeprecated(t *testing.T) {
	got := runConsumerTool(t, dropin.Program{Generation: "4.3"}, strings.Fields("--bootstrap-server h:1 --topic t --messages 12000 --hide-header")...)
	want := "Warning: --messages is deprecated. Use --num-records instead.\n2018"
	assert.True(t, strings.HasPrefix(got.Out, want), "stdout %q", got.Out)
}

// Runs of both consumers that fail or are interrupted.
func TestConsumerExit(t *testing.T) {
	args := strings.Fields("--bootstrap-server h:1 --topic t --num-records 5 --hide-header")
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tt := range []struct {
		name       string
		strict     bool
		tools      []*dropin.Tool
		ctx        context.Context
		doc        *report.Document
		err        error
		code, rows int
		errs       string
	}{
		{name: "refused", err: errors.New("connection refused")},
		{name: "refused, strict", strict: true, err: errors.New("connection refused")},
		{name: "interrupted before the run", ctx: stopped, err: context.Canceled, code: 130},
		{name: "interrupted", doc: &report.Document{Stopped: load.Interrupted}, code: 130, rows: 1},
		{name: "interrupted, strict", strict: true, doc: &report.Document{Stopped: load.Interrupted}, code: 130},
		{name: "the generator was at its limit", doc: &report.Document{Stopped: load.ByEvents}, code: 3, rows: 1},
		{name: "the generator was at its limit, strict", strict: true, doc: &report.Document{Stopped: load.ByEvents}, rows: 1},
		{name: "the brokers went away", tools: []*dropin.Tool{&Consumer}, strict: true, doc: &report.Document{Stopped: load.ByTarget}, code: 1, rows: 1},
		{name: "nothing came", tools: []*dropin.Tool{&Share}, strict: true, doc: &report.Document{Stopped: load.ByIdle}, rows: 1, errs: "hint: a share group begins at the end of its topics"},
	} {
		if tt.tools == nil {
			tt.tools = []*dropin.Tool{&Consumer, &Share}
		}
		if tt.ctx == nil {
			tt.ctx = t.Context()
		}
		for _, tool := range tt.tools {
			t.Run(tool.Name+"/"+tt.name, func(t *testing.T) {
				got := dropintest.Run(tt.ctx, t, tool, dropin.Program{Args: args, Strict: tt.strict}, func(*workload.Document, dropin.Observer) (*report.Document, error) {
					return tt.doc, tt.err
				})
				assert.True(t, got.Code == tt.code && strings.Count(got.Out, "\n") == tt.rows && (got.Err != nil) == (tt.err != nil && got.Code == 0) && strings.HasPrefix(got.Errs, tt.errs),
					"exit %d, error %v, stdout %q, stderr %q", got.Code, got.Err, got.Out, got.Errs)
			})
		}
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

// A topic that does not exist: nothing is consumed within --timeout, and there is a row of zeros.
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
			assert.True(t, got.Err == nil && got.Code == tt.code && got.Out == tt.want && strings.Contains(got.Errs, "warning: count: 5 events missing"),
				"exit %d, error %v, stderr %q, stdout:\n%s\nwant:\n%s", got.Code, got.Err, got.Errs, got.Out, tt.want)
		})
	}
}

func runShareTool(t *testing.T, p dropin.Program, args ...string) dropintest.Result {
	t.Helper()
	_, share := toolsAtBegan()
	return runWith(t, share, p, args, func(d *workload.Document, observer dropin.Observer) (*report.Document, error) {
		doc := consumed(d, observer)
		// The types of a report that was written and read.
		doc.Facts = map[string]any{"share_group": map[string]any{"member_events": []any{7000.0, 5000.0}, "member_bytes": []any{700_000.0, 500_000.0}}}
		return doc, nil
	})
}

func TestShareCases(t *testing.T) {
	dropintest.AsPrinted(t, "share", "--show-consumer-stats", runShareTool)
	got := runShareTool(t, dropin.Program{Generation: "4.3"}, strings.Fields("--bootstrap-server a:1 --topic t --messages 12000 --hide-header --consumer.config testdata/acks.properties")...)
	want := "Warning: --messages is deprecated. Use --num-records instead.\nWarning: --consumer.config is deprecated. Use --command-config instead.\n2018"
	assert.True(t, strings.HasPrefix(got.Out, want), "stdout %q", got.Out)
	allTested(t, "testdata/cases/share.txt", shareOptions(), func(o joptOption) string { return o.name })
}

// Each consumer of a share group has a separate table.
func TestShareMetrics(t *testing.T) {
	got := runShareTool(t, dropin.Program{}, strings.Fields("--bootstrap-server h:1 --topic t --num-records 12000 --threads 2 --print-metrics --hide-header")...)
	tables := strings.Split(got.Out, "\n\n")
	assert.Must(t, len(tables) == 3, "%d tables:\n%s", len(tables)-1, got.Out)
	for i, n := range []string{"7000", "5000"} {
		id := "{client-id=perf-share-consumer-client-" + string(rune('1'+i)) + "}"
		for _, want := range []string{"consumer-share-fetch-manager-metrics:records-consumed-total:" + id + " : " + n + ".000", "consumer-share-fetch-manager-metrics:bytes-consumed-total:" + id + " +: " + n + "00.000"} {
			assert.True(t, regexp.MustCompile(want).MatchString(tables[i+1]), "no %q in\n%s", want, tables[i+1])
		}
		assert.True(t, !strings.Contains(tables[i+1], "consumer-fetch-manager-metrics"), "a group of another client:\n%s", tables[i+1])
	}
}

// roundTrips reports a made-up run: 1,500 messages, of which 15 took 2.6 ms and the others 0.75 ms, on a topic created for it.
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

func TestLatencyCases(t *testing.T) {
	dropintest.AsPrinted(t, "latency", "--num-headers", runLatencyTool)
	allTested(t, "testdata/cases/latency.txt", latencyOptions, func(o joptOption) string { return o.name })
}

// Every generation runs the workload of its arguments; 4.2 is 4.3.
func TestLatencyGenerations(t *testing.T) {
	for generation, out := range map[string]string{"": "", "2018": "", "4.1": "", "4.2": positionalDeprecated, "4.3": positionalDeprecated} {
		got := runLatencyTool(t, dropin.Program{Generation: generation}, strings.Fields("a:1 t 5 all 20")...)
		assert.True(t, got.Last()["acks"] == "all" && got.Last()["count"] == "5" && strings.HasPrefix(got.Out, "WARNING") == (out != "") && strings.HasPrefix(got.Out, out),
			"%q: exit %d, workloads %v, stdout %q, stderr %q", generation, got.Code, got.Workloads, got.Out, got.Errs)
	}
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
