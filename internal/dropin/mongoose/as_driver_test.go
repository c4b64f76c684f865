package mongoose

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"carronade/internal/dropin"
	"carronade/internal/report"
	"carronade/internal/run/trace"
	"carronade/internal/scenario"
	"carronade/internal/workload"
	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

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
