package heyapm

import (
	"bytes"
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"carronade/internal/dropin"
	"carronade/internal/dropin/dropintest"
	"carronade/internal/host"
	"carronade/internal/report"
	"carronade/internal/workload"
	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

// The time per request is not the inverse of the request rate.
func TestHeyTested(t *testing.T) {
	assert.True(t, heyTestedForm.MatchString(heySample), "the grammar rejects the sample")
	for _, tt := range []struct {
		name   string
		strict bool
		want   string
	}{{"right", false, "\n9.50 ms / request\n"}, {"one by the rate", true, " ms / request\n"}} {
		t.Run(tt.name, func(t *testing.T) {
			got := runHeyTool(t, tt.strict, "-base-url", "http://h:1", "test", "30s", "1", "2", "3", "4")
			assert.True(t, heyTestedForm.MatchString(got.Out) && strings.Contains(got.Out, tt.want) && got.Err == nil,
				"no %q, or the wrong form: %v\n%s", tt.want, got.Err, got.Out)
		})
	}
	d := heyAnswered()
	for _, tt := range []struct {
		name string
		of   heyVolumes
		want []string
	}{
		{"strict", heyStrictVolumes(d, 10), []string{"pushed 3.8Mb / sec , accepted 3.4Mb / sec\n", "(100.00 rps)\n", "\n11.11 ms / request\n"}},
		{"during sending", heyVolumesOf(d), []string{"pushed 3.4Mb / sec , accepted 3.1Mb / sec\n", "(90.00 rps)\n", "\n9.50 ms / request\n"}},
	} {
		for _, want := range tt.want {
			text := heyTestReport([]string{"30s"}, "http://h:1/", d, tt.of)
			assert.True(t, strings.Contains(text, want), "%s: no %q:\n%s", tt.name, want, text)
		}
	}
	// The sample's numbers: 15,385 of 19,431 documents in 30 s, and 157.7 MB.
	d.Indexed = &report.Indexed{Docs: 15_385, Expected: 19_431, Share: new(15_385. / 19_431), PerS: 512.83}
	d.System = &report.System{PeakRSSBytes: 157_700_000, Efficiency: new(0.596), Facts: map[string]any{"branch": "trace-apm-server"}}
	for name, tt := range map[string]struct {
		of   heyVolumes
		want []string
	}{
		"right": {heyVolumesOf(d), []string{
			"on branch trace-apm-server , cmd = [30s]\n", "\n15385 docs indexed (512.83 / sec)  (79.18% of expected)\n9.50 ms / request\n157.7Mb (max RSS)\n0.596 memory efficiency (accepted data volume per minute / memory used)\n",
		}},
		"strict": {heyStrictVolumes(d, 30), []string{"\n15385 docs indexed (512.83 / sec)  (79.18% of expected)\n33.33 ms / request\n154.0Mb (max RSS)\n0.444 memory efficiency"}},
	} {
		text := heyTestReport([]string{"30s"}, "http://h:1/", d, tt.of) + heyKeptLines(dropin.Kept{Place: "elasticsearch://h:1/a"})
		for _, want := range tt.want {
			assert.True(t, strings.Contains(text, want) && heyTestedForm.MatchString(text),
				"%s: no %q, or the wrong form:\n%s", name, want, text)
		}
	}
	v := heyVolumesOf(heyAccepted())
	assert.True(t, v.pushed == v.accepted && v.pushed != 0, "all was accepted: pushed %v, accepted %v", v.pushed, v.accepted)
	got := runHeyTool(t, false, "-base-url", "http://h:1", "test", "30s", "0", "0", "0", "4")
	for name, want := range map[string]string{"events": "1", "spans": "0", "frames": "1", "concurrency": "4", "for": "30s", "intake": "auto"} {
		assert.Must(t, len(got.Workloads) == 1 && got.Workloads[0][name] == want, "%s is not %q: %v", name, want, got.Workloads)
	}
}

// The last lines say where the report is. It goes where -es-url says.
func TestHeyKeptLines(t *testing.T) {
	const test = "test 1s 1 2 3 4"
	for _, tt := range []struct{ args, store, want string }{
		{"-es-url http://es:9200 -es-auth elastic:env:ES", "elasticsearch://es:9200?user=elastic&password=env:ES", "saving report\nreport indexed in elasticsearch\n"},
		{"-es-url https://es:9200", "elasticsearch+https://es:9200", "saving report\nreport indexed in elasticsearch\n"},
		{"-base-url http://h:1", "", "saving report\nreport abcd1234 saved in /home/a/reports.db\n"},
	} {
		got := runHeyTool(t, false, strings.Fields(tt.args+" "+test)...)
		assert.True(t, strings.HasSuffix(got.Out, " ms / request\n"+tt.want) && got.Last()["store"] == tt.store && got.Err == nil,
			"%s: store %q, %v, want %q and\n%s\n%s", tt.args, got.Last()["store"], got.Err, tt.store, tt.want, got.Out)
	}
	for _, c := range []dropin.Kept{{Why: "it could not be stored"}, {Why: "the store is turned off (no-store)"}} {
		assert.Equal(t, heyKeptLines(c), "not saving this report: "+c.Why+"\n")
	}
	for place, want := range map[string]string{
		"elasticsearch.db": "saved in elasticsearch.db", "/a/elasticsearch": "saved in /a/elasticsearch",
		"elasticsearch://h:1/a": "indexed in elasticsearch", "elasticsearch+https://h:1/a": "indexed in elasticsearch",
	} {
		got := heyKeptLines(dropin.Kept{ID: "a", Place: place})
		assert.True(t, strings.HasSuffix(got, want+"\n"), "%s: got %q, want %q", place, got, want)
	}
	if got := runHeyTool(t, false, strings.Fields("-es-auth elastic:env:ES "+test)...); !strings.Contains(got.Errs, "warning: -es-auth has no effect here without -es-url\n") {
		t.Errorf("no warning:\n%s", got.Errs)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	got := dropintest.Run(ctx, t, &Tool, dropin.Program{Args: strings.Fields(test)}, func(*workload.Document, dropin.Observer) (*report.Document, error) {
		return nil, context.Canceled
	})
	assert.True(t, strings.HasSuffix(got.Out, "work cancelled\nnot saving this report: work cancelled\n") && got.Code == host.ExitInterrupted,
		"exit %d:\n%s", got.Code, got.Out)
}

// Bodies are as large as those of the tool of 2018, whose sizes these are, since its volumes are compared.
func TestHeyBodySizes(t *testing.T) {
	for _, c := range []struct{ events, spans, frames, bytes int }{
		{1, 1, 1, 2761}, {1, 2, 1, 3807}, {1, 2, 3, 7259}, {5, 5, 5, 119213}, {10, 10, 10, 894373}, {1, 0, 1, 2547}, {1, 0, 3, 4273}, {10, 0, 10, 99027},
	} {
		file := filepath.Join(t.TempDir(), "body.json")
		got := runHeyTool(t, false, "dump", file, strconv.Itoa(c.events), strconv.Itoa(c.spans), strconv.Itoa(c.frames))
		assert.Must(t, got.Code == 0 && got.Err == nil, "%+v", got)
		size := len(assert.Value(os.ReadFile(file))(t))
		assert.True(t, math.Abs(float64(size)/float64(c.bytes)-1) < 0.05, "%+v has %d bytes", c, size)
	}
	got := runHeyTool(t, false, "test", "1s", "1", "2", "3", "4")
	assert.True(t, got.Last()["frame-size"] == "863B" && got.Last()["event-size"] == "1240B", "%+v", got.Last())
	got = runHeyTool(t, false, "-profile", "tiny")
	assert.Equal(t, got.Last()["frame-size"], "", "profiles have their own numbers of frames")
}

// The server's version decides the intake; the URL and the size that are printed are those that were used.
func TestHeyTestIntake(t *testing.T) {
	facts := map[string]any{"request": map[string]any{"path": "/prefix/intake/v2/events", "bytes": 7300.}}
	got := dropintest.Run(t.Context(), t, &Tool, dropin.Program{Args: []string{"-base-url", "http://h:1/prefix/", "test", "1s", "1", "2", "3", "4"}}, func(_ *workload.Document, o dropin.Observer) (*report.Document, error) {
		o.Found(facts)
		d := heyAnswered()
		d.Facts = facts
		return d, nil
	})
	assert.Equal(t, got.Last()["intake"], "auto", "intake")
	assert.Equal(t, got.Last()["request-timeout"], "30s", "as in the tool's test; profiles have 3 s")
	assert.Has(t, got.Out, "started new work, payload size is 7.3kb...\non branch", "\nhttp://h:1/prefix/intake/v2/events 0\n")
}

// A test without one accepted request says that its report counts for nothing.
func TestHeyTestRefused(t *testing.T) {
	got := dropintest.Run(t.Context(), t, &Tool, dropin.Program{Args: []string{"test", "1s", "1", "2", "3", "4"}}, func(_ *workload.Document, o dropin.Observer) (*report.Document, error) {
		o.Kept(dropin.Kept{ID: "k3v9x2ab", Place: "a.db"})
		d := heyAnswered()
		d.Totals.Statuses = d.Totals.Statuses[1:]
		return d, nil
	})
	assert.True(t, strings.HasSuffix(got.Out, "\nnot saving this report: no accepted requests\n"), "%s", got.Out)
}

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

// The exit code is that of the worst round, in any order. An interrupt in a pause ends the benchmark as in a round.
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
