package kafkatools

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"carronade/internal/dropin"
	"carronade/internal/dropin/dropintest"
	"carronade/internal/report"
	"carronade/internal/workload"
	"carronade/load"
	"carronade/test/testkit/assert"
)

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

func TestShareLines(t *testing.T) {
	const head = "start.time, end.time, data.consumed.in.MB, MB.sec, nMsg.sec, data.consumed.in.nMsg, fetch.time.ms\n"
	const total = "2018-04-18 08:30:00:123, 2018-04-18 08:30:12:123, 1.1444, 0.0954, 1000.0000, 12000, 12000\n"
	for _, tt := range []struct {
		name   string
		strict bool
		args   string
		code   int
		out    string
	}{
		{"4.3", false, "--num-records 12000", 0, head + total},
		{"in detail", false, "--num-records 12000 --show-detailed-stats", 0, head +
			"2018-04-18 08:30:00:123, 2018-04-18 08:30:05:123, 0.4768, 0.0954, 1000.0000, 5000, 5000 for share consumer 1\n" +
			"2018-04-18 08:30:05:123, 2018-04-18 08:30:10:123, 0.9537, 0.0954, 1000.0000, 10000, 5000 for share consumer 1\n" +
			"2018-04-18 08:30:10:123, 2018-04-18 08:30:12:153, 1.1444, 0.0940, 985.2217, 12000, 2030 for share consumer 1\n" + total},
		{
			"each consumer", false, "--num-records 12000 --threads 2 --show-consumer-stats --hide-header", 0,
			"Share consumer 1 having client id perf-share-consumer-client-1 consumption metrics- 2018-04-18 08:30:00:123, 2018-04-18 08:30:12:123, 0.6676, 0.0556, 583.3333, 7000, 12000\n" +
				"Share consumer 2 having client id perf-share-consumer-client-2 consumption metrics- 2018-04-18 08:30:00:123, 2018-04-18 08:30:12:123, 0.4768, 0.0397, 416.6667, 5000, 12000\n" + total,
		},
		{
			"each consumer, 4.1", false, "--messages 12000 --threads 2 --show-consumer-stats --hide-header", 0,
			"Share consumer 1 consumption metrics- 2018-04-18 08:30:00:123, 2018-04-18 08:30:12:123, 0.6676, 0.0556, 583.3333, 7000, 12000\n" +
				"Share consumer 2 consumption metrics- 2018-04-18 08:30:00:123, 2018-04-18 08:30:12:123, 0.4768, 0.0397, 416.6667, 5000, 12000\n" + total,
		},
		{
			"each consumer, 4.2", false, "--generation 4.2 --num-records 12000 --threads 2 --show-consumer-stats --hide-header", 0,
			"Share consumer 1 consumption metrics- 2018-04-18 08:30:00:123, 2018-04-18 08:30:12:123, 0.6676, 0.0556, 583.3333, 7000, 12000\n" +
				"Share consumer 2 consumption metrics- 2018-04-18 08:30:00:123, 2018-04-18 08:30:12:123, 0.4768, 0.0397, 416.6667, 5000, 12000\n" + total,
		},
		{"too few", false, "--num-records 12001", 1, head + late + total},
		{"too few, 4.2", false, "--generation 4.2 --num-records 12001 --hide-header", 1, late + total},
		{"too few, 4.1", false, "--messages 12001 --hide-header", 1, strings.Replace(late, "records", "messages", 1) + total},
		{"too few, strict: the wait included", true, "--num-records 12001 --hide-header", 0, late +
			"2018-04-18 08:30:00:123, 2018-04-18 08:30:22:123, 1.1444, 0.0520, 545.4545, 12000, 22000\n"},
		{"none asked for", false, "--num-records 0 --hide-header --date-format mm", 0, "30, 30, 0.0000, 0.0000, 0.0000, 0, 0\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			args, o, err := Share.Split(strings.Fields("--bootstrap-server h:1 --topic t " + tt.args))
			assert.OK(t, err)
			got := runShareTool(t, dropin.Program{Strict: tt.strict, Generation: o.Generation}, args...)
			assert.True(t, got.Out == tt.out && got.Code == tt.code,
				"exit %d, stderr %q, stdout:\n%s\nwant:\n%s", got.Code, got.Errs, got.Out, tt.out)
		})
	}
}

func TestShareWorkload(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.properties")
	assert.OK(t, os.WriteFile(file, []byte("acks=1\n"), 0o600))
	const acks = `warning: the client property acks has no meaning for the operation consume and is ignored\n`
	for _, tt := range []struct {
		name, args string
		want       map[string]string // "" is absent
		errs       string
	}{
		{"defaults", "--num-records 12000", map[string]string{
			"target": "kafka://a:1,b:2/t", "op": "consume", "engine": "client", "count": "12000", "share-group": "perf-share-consumer", "group": "", "from": "",
			"clients": "1", "client-id": "perf-share-consumer-client", "fetch-max": "1048576", "fetch-partition-max": "1048576", "recv-buffer": "2097152", "idle-timeout": "10000ms",
		}, ``},
		{"the size of an answer", "--num-records 12000 --fetch-size 65536 --command-property fetch.max.bytes=5", map[string]string{"fetch-max": "65536", "fetch-partition-max": "65536"}, `warning: the tool's option overrides the client property fetch\.max\.bytes\n`},
		{"all options", "--num-records 12000 --group g --threads 3 --fetch-size 9 --socket-buffer-size 8 --timeout 700 --reporting-interval 600 --print-metrics --show-detailed-stats --command-property a=b", map[string]string{
			"share-group": "g", "clients": "3", "fetch-partition-max": "9", "recv-buffer": "8", "idle-timeout": "700ms", "interval": "600ms", "client-metrics": "true", "client-property": "a=b",
		}, `warning: --show-detailed-stats: the rows are of all consumers together, and say share consumer 1\n`},
		{"a file", "--num-records 12000 --command-config " + file, map[string]string{"client-config": file}, acks},
		{"a file, 4.1", "--messages 12000 --consumer.config " + file, map[string]string{"client-config": file, "count": "12000"}, acks},
		{"a surplus argument", "--num-records 12000 more", nil, `warning: unknown option more is ignored\n`},
		{"a secret in a surplus argument", "--num-records 12000 ssl.key.password=hunter2=", nil, `warning: unknown option ssl\.key\.password is ignored\n`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := runShareTool(t, dropin.Program{}, strings.Fields("--bootstrap-server a:1,b:2 --topic t "+tt.args)...)
			for name, want := range tt.want {
				assert.Equal(t, got.Last()[name], want, "%s", name)
			}
			errs := strings.ReplaceAll(got.Errs, "warning: count: 1 event missing from the number asked for\n", "")
			assert.True(t, regexp.MustCompile(`\A`+tt.errs+`\z`).MatchString(errs), "stderr %q, want %q", got.Errs, tt.errs)
		})
	}
	got := runShareTool(t, dropin.Program{Generation: "4.3"}, strings.Fields("--bootstrap-server a:1 --topic t --messages 12000 --hide-header --consumer.config "+file)...)
	want := "Warning: --messages is deprecated. Use --num-records instead.\nWarning: --consumer.config is deprecated. Use --command-config instead.\n2018"
	assert.True(t, strings.HasPrefix(got.Out, want), "stdout %q", got.Out)
}

func TestShareUsage(t *testing.T) {
	const b = "--bootstrap-server h:1 --topic t "
	refused(t, runShareTool, "--show-consumer-stats", []refusal{
		{"nothing", "", "", aboutShare + "\n", true},
		{"help", "", "--help", aboutShare + "\n", true},
		{"no brokers", "", "--topic t --num-records 5", `Missing required argument "[bootstrap-server]"` + "\n", true},
		{"no topic", "", "--bootstrap-server h:1 --num-records 5", `Missing required argument "[topic]"` + "\n", true},
		{"no count", "", b, "Exactly one of the following arguments is required: [messages], [num-records]\n", true},
		{"no such option", "", b + "--from-latest", "from-latest is not a recognized option\n", true},
		{"a newer option", "4.1", b + "--num-records 5", "num-records is not a recognized option\n", true},
		{"no number", "", b + "--num-records x", "Cannot parse argument 'x' of option num-records\n", false},
		{"no threads", "", b + "--num-records 5 --threads 0", "--threads 0: there must be at least one\n", false},
		{"no date", "", b + "--num-records 5 --date-format qqq", "Illegal pattern character 'q'\n", false},
		{"no interval, and no rows", "", b + "--num-records 5 --reporting-interval 0", "Reporting interval must be greater than 0.\n", false},
		{"no topic and no brokers", "", "--num-records 5", `Missing required argument "[topic]"` + "\n", true},
		{"a newer option, with --messages", "4.1", b + "--messages 5 --command-config x", "command-config is not a recognized option\n", true},
		{"no count, 4.1", "4.1", b, `Missing required argument "[messages]"` + "\n", true},
		{"no interval", "", b + "--num-records 5 --show-detailed-stats --reporting-interval 0", "Reporting interval must be greater than 0.\n", false},
		{"an empty topic", "", "--bootstrap-server h:1 --topic= --num-records 5", "Topic collection to subscribe to cannot contain null or empty topic\n", false},
		{"no broker", "", "--bootstrap-server h:1/x --topic t --num-records 5", "Invalid url in bootstrap.servers: h:1/x\n", false},
		{"two topics", "", b + "--topic u --num-records 5", "Found multiple arguments for option topic, but you asked for only one\n", false},
		{"no such file", "", b + "--num-records 5 --command-config /no/such", "read the client's properties: open /no/such: no such file or directory\n", false},
		{"an invalid topic", "", "--bootstrap-server h:1 --topic a?b --num-records 5", "Topic name is invalid: 'a?b' contains one or more characters", false},
		{"no such generation", "2018", b + "--num-records 5", "--generation 2018: this tool has 4.1, 4.2 and 4.3", false},
	})
	got := runShareTool(t, dropin.Program{}, "--version")
	assert.True(t, got.Code == 0 && got.Out == "4.3.1\n", "--version: exit %d, %q", got.Code, got.Out)
	allTested(t, "share_test.go", shareOptions(), func(o joptOption) string { return o.name })
}

func TestShareExit(t *testing.T) {
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
		errs   string
	}{
		{"refused", false, t.Context(), nil, errors.New("connection refused"), 0, 0, ""},
		{"interrupted before the run", false, stopped, nil, context.Canceled, 130, 0, ""},
		{"interrupted", false, t.Context(), &report.Document{Stopped: load.Interrupted}, nil, 130, 1, ""},
		{"interrupted, strict", true, t.Context(), &report.Document{Stopped: load.Interrupted}, nil, 130, 0, ""},
		{"nothing came", true, t.Context(), &report.Document{Stopped: load.ByIdle}, nil, 0, 1, "hint: a share group begins at the end of its topics"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := dropin.Program{Args: strings.Fields("--bootstrap-server h:1 --topic t --num-records 5 --hide-header"), Strict: tt.strict}
			got := dropintest.Run(tt.ctx, t, &Share, p, func(*workload.Document, dropin.Observer) (*report.Document, error) { return tt.doc, tt.err })
			if got.Code != tt.code || strings.Count(got.Out, "\n") != tt.rows || (got.Err != nil) != (tt.err != nil && got.Code == 0) || !strings.HasPrefix(got.Errs, tt.errs) {
				t.Errorf("exit %d, error %v, stdout %q, stderr %q", got.Code, got.Err, got.Out, got.Errs)
			}
		})
	}
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
		assert.True(t, !strings.Contains(tables[i+1], "consumer-fetch-manager-metrics"),
			"a group of another client:\n%s", tables[i+1])
	}
}
