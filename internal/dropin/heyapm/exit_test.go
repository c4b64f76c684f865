package heyapm

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"carronade/internal/dropin"
	"carronade/internal/host"
	"carronade/internal/report"
	"carronade/internal/workload"
	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

// heyAccepted is a report whose requests were all accepted.
func heyAccepted() *report.Document {
	d := heyAnswered()
	t := &d.Totals
	t.Counts = measure.Counts{Offered: 12_000, Sent: 12_000, Acked: 12_000, Batches: 1000, Answered: 1000, Bytes: 38_000_000, AckedBytes: 38_000_000}
	t.Statuses, d.Failures = measure.Statuses{{Code: 202, Batches: 1000, Events: 12_000}}, nil
	t.EventsPerS, t.BytesPerS, t.AnswersPerS = 970*12/10., 970*38_000/10., 97
	return d
}

// The exit code of a failed run is 0 only with --strict.
func TestHeyExit(t *testing.T) {
	refused := func() *report.Document {
		d := heyAccepted()
		d.Totals.Acked, d.Totals.Failed, d.Totals.AckedBytes, d.Totals.EventsPerS, d.Totals.BytesPerS = 0, d.Totals.Sent, 0, 0, 0
		d.Totals.Statuses = measure.Statuses{{Code: 503, Batches: 1000, Events: 12_000}}
		d.Failures = []measure.Failure{{Class: "throttled", Text: "503 Service Unavailable: queue is full", Events: 12_000, Batches: 1000}}
		return d
	}
	unanswered := func() *report.Document {
		d := heyAccepted()
		d.Totals.Acked, d.Totals.Unknown = 11_988, 12
		return d
	}
	stopped := func() *report.Document {
		d := refused()
		d.Stopped = load.Interrupted
		return d
	}
	untrusted := func(reportOf func() *report.Document) func() *report.Document {
		return func() *report.Document {
			d := reportOf()
			d.Trust.OK = false
			return d
		}
	}
	for _, tt := range []struct {
		name     string
		reportOf func() *report.Document
		strict   bool
		want     int
		warning  string
	}{
		{"all accepted", heyAccepted, false, 0, ""},
		{"all refused", refused, false, 1, "warning: of 12000 events sent 12000 were not accepted\n"},
		{"all refused, strict", refused, true, 0, ""},
		{"a request without an answer", unanswered, false, 1, "warning: of 12000 events sent 12 were not accepted\n"},
		{"interrupted", stopped, false, 130, ""},
		{"not to be trusted", untrusted(heyAccepted), false, 3, ""},
		{"not to be trusted, and all refused", untrusted(refused), false, 1, "warning: of 12000 events sent 12000 were not accepted\n"},
	} {
		for mode, args := range map[string][]string{
			"profile": {"-base-url", "http://h:1"}, "test": {"-base-url", "http://h:1", "test", "1s", "1", "2", "3", "4"}, "agents": {"-apm-url", "http://h:1"},
		} {
			t.Run(tt.name+"/"+mode, func(t *testing.T) {
				got := runHeyToolWith(t, tt.reportOf, tt.strict, args...)
				assert.True(t, got.Code == tt.want && got.Err == nil, "exit %d, %v, want %d", got.Code, got.Err, tt.want)
				if !strings.Contains(got.Errs, tt.warning) || tt.want == 0 && !tt.strict && strings.Contains(got.Errs, "were not accepted") {
					t.Errorf("stderr has no %q:\n%s", tt.warning, got.Errs)
				}
			})
		}
	}
	got := runHeyTool(t, true, "-base-url", "http://unreachable:1")
	assert.True(t, got.Code == 1 && got.Err != nil, "unreachable, strict: exit %d, %v", got.Code, got.Err)
}

// References to secrets are attributed to the flags that gave them.
func TestHeySecretsOfFlags(t *testing.T) {
	got := runHeyTool(t, false, "-api-key", "env:TOKEN", "-apm-es-url", "http://es:9200", "-apm-es-auth", "u:env:ES", "-es-url", "http://es:9200", "-es-auth", "u:env:ES")
	for name, want := range map[string]string{"api-key": "-api-key", "index-user": "-apm-es-auth", "index-password": "-apm-es-auth", "store": "-es-url"} {
		assert.Equal(t, got.flags[0][name], want, "the flag %s", name)
	}
}

// The benchmark is eight rounds, the first to warm up.
func TestHeyBenchmark(t *testing.T) {
	var o, e bytes.Buffer
	var labels []string
	var o2 heyOptions
	o2.flagSet("hey-apm")
	a := &heyAgents{target: "apm+http://h:1", pause: time.Millisecond}
	a.heyRun = &heyRun{
		heyOptions: &o2, log: &heyLogger{w: &e},
		p: &dropin.Program{Out: &o, Err: &e, RunTogether: func(_ context.Context, ws []*workload.Document) (ds []*report.Document, _ error) {
			for _, w := range ws {
				for _, entry := range w.Entries {
					if entry.Name == "label" {
						labels = append(labels, entry.Values...)
					}
				}
				ds = append(ds, heyAnswered())
			}
			return ds, nil
		}},
	}
	code, err := a.benchmark(t.Context())
	assert.True(t, code == 1 && err == nil, "exit %d, %v", code, err)
	for _, want := range []string{"bench=warm up", "bench=large transactions", "bench=transactions spans and errors high load"} {
		assert.True(t, slices.Contains(labels, want), "no label %q in %q", want, labels)
	}
	assert.Equal(t, strings.Count(o.String(), "transactions sent ."), len(heyRounds()), "results")
}

// A benchmark ends at an interrupt, and warns of flags without effect.
func TestHeyBenchmarkInterrupted(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	var o, e bytes.Buffer
	rounds := 0
	p := &dropin.Program{
		Called: "hey-apm", Args: []string{"-bench", "-t", "3", "-rm", "2"}, Out: &o, Err: &e,
		RunTogether: func(_ context.Context, ws []*workload.Document) (ds []*report.Document, _ error) {
			rounds++
			stop()
			for range ws {
				d := heyAnswered()
				d.Stopped = load.Interrupted
				ds = append(ds, d)
			}
			return ds, nil
		},
	}
	code, err := Tool.Main(ctx, p)
	assert.True(t, code == host.ExitInterrupted && err == nil && rounds == 1, "exit %d, %v, after %d rounds", code, err, rounds)
	assert.Has(t, e.String(),
		"warning: -t has no effect with -bench\n", "warning: -rm has no effect here", "warning: -bench does not delete documents", "interrupted: the benchmark is incomplete\n")
}

// The exit code is that of the worst round, in any order. An interrupt in a pause
// ends the benchmark as in a round.
func TestHeyBenchmarkExit(t *testing.T) {
	for _, tt := range []struct {
		name   string
		codes  []int // of the first rounds; the others are 0
		stop   bool  // in the first pause
		strict bool
		want   int
	}{
		{"nothing", nil, false, false, 0},
		{"the worst is the first", []int{1, 3}, false, false, 1},
		{"the worst is the second", []int{3, 1}, false, false, 1},
		{"untrusted, then undetermined", []int{3, 4}, false, false, 3},
		{"undetermined, then untrusted", []int{4, 3}, false, false, 3},
		{"undetermined", []int{4}, false, false, 4},
		{"interrupted in a pause", []int{3}, true, false, 130},
		{"interrupted in a pause, strict", []int{3}, true, true, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			var o, e bytes.Buffer
			var opts heyOptions
			opts.flagSet("hey-apm")
			round := 0
			a := &heyAgents{heyRun: &heyRun{heyOptions: &opts}, target: "apm+http://h:1", pause: time.Millisecond}
			a.log = &heyLogger{w: writerFunc(func(line []byte) {
				if tt.stop && bytes.Contains(line, []byte("waiting ")) {
					stop()
				}
			})}
			if tt.stop {
				a.pause = time.Hour
			}
			a.p = &dropin.Program{Strict: tt.strict, Out: &o, Err: &e, RunTogether: func(_ context.Context, ws []*workload.Document) (ds []*report.Document, _ error) {
				for range ws {
					d := heyAccepted()
					if round < len(tt.codes) {
						d.Trust.OK = tt.codes[round] != 3
						if tt.codes[round] == 1 {
							d.Totals.Failed = 1
						}
						d.Checks = []report.Check{{OK: tt.codes[round] != 4, CannotTell: true}}
					}
					ds = append(ds, d)
				}
				round++
				return ds, nil
			}}
			code, err := a.benchmark(ctx)
			assert.True(t, code == tt.want && err == nil, "exit %d, %v, want %d", code, err, tt.want)
			assert.True(t, !tt.stop || round != len(heyRounds()), "the benchmark continued after the interrupt")
		})
	}
}

// A writerFunc is a function as an io.Writer.
type writerFunc func([]byte)

func (w writerFunc) Write(b []byte) (int, error) { w(b); return len(b), nil }
