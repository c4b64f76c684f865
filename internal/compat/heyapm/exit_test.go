package heyapm

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"carronade/internal/compat"
	"carronade/internal/report"
	"carronade/internal/workload"
	"carronade/load"
	"carronade/measure"
)

// taken is a report whose requests were all accepted.
func taken() *report.Document {
	d := answered()
	t := &d.Totals
	t.Counts = measure.Counts{Offered: 12_000, Sent: 12_000, Acked: 12_000, Batches: 1000, Answered: 1000, Bytes: 38_000_000, AckedBytes: 38_000_000}
	t.Statuses, d.Failures = measure.Statuses{{Code: 202, Batches: 1000, Events: 12_000}}, nil
	t.EventsPerS, t.BytesPerS, t.AnswersPerS = 970*12/10., 970*38_000/10., 97
	return d
}

// A run that failed is not 0, but with --strict.
func TestExit(t *testing.T) {
	refused := func() *report.Document {
		d := taken()
		d.Totals.Acked, d.Totals.Failed, d.Totals.AckedBytes, d.Totals.EventsPerS, d.Totals.BytesPerS = 0, d.Totals.Sent, 0, 0, 0
		d.Totals.Statuses = measure.Statuses{{Code: 503, Batches: 1000, Events: 12_000}}
		d.Failures = []measure.Failure{{Class: "throttled", Text: "503 Service Unavailable: queue is full", Events: 12_000, Batches: 1000}}
		return d
	}
	silent := func() *report.Document {
		d := taken()
		d.Totals.Acked, d.Totals.Unknown = 11_988, 12
		return d
	}
	stopped := func() *report.Document {
		d := refused()
		d.Stopped = load.Interrupted
		return d
	}
	untrusted := func(became func() *report.Document) func() *report.Document {
		return func() *report.Document {
			d := became()
			d.Trust.OK = false
			return d
		}
	}
	for _, tt := range []struct {
		name   string
		became func() *report.Document
		strict bool
		want   int
		said   string
	}{
		{"all taken", taken, false, 0, ""},
		{"all refused", refused, false, 1, "warning: of 12000 events sent 12000 were not accepted\n"},
		{"all refused, strict", refused, true, 0, ""},
		{"a request without an answer", silent, false, 1, "warning: of 12000 events sent 12 were not accepted\n"},
		{"interrupted", stopped, false, 130, ""},
		{"not to be trusted", untrusted(taken), false, 3, ""},
		{"not to be trusted, and all refused", untrusted(refused), false, 1, "warning: of 12000 events sent 12000 were not accepted\n"},
	} {
		for mode, args := range map[string][]string{
			"profile": {"-base-url", "http://h:1"}, "test": {"-base-url", "http://h:1", "test", "1s", "1", "2", "3", "4"}, "agents": {"-apm-url", "http://h:1"},
		} {
			t.Run(tt.name+"/"+mode, func(t *testing.T) {
				got := triedWith(t, tt.became, tt.strict, args...)
				if got.Code != tt.want || got.Err != nil {
					t.Errorf("exit %d, %v, want %d", got.Code, got.Err, tt.want)
				}
				if said := "were not accepted"; !strings.Contains(got.Errs, tt.said) || tt.want == 0 && !tt.strict && strings.Contains(got.Errs, said) {
					t.Errorf("stderr has no %q:\n%s", tt.said, got.Errs)
				}
			})
		}
	}
	if got := tried(t, true, "-base-url", "http://nobody:1"); got.Code != 1 || got.Err == nil {
		t.Errorf("nobody is there, strict: exit %d, %v", got.Code, got.Err)
	}
}

// What refers to a secret is distinguished by the flag that it came from.
func TestSecretsOfFlags(t *testing.T) {
	got := tried(t, false, "-api-key", "env:TOKEN", "-apm-es-url", "http://es:9200", "-apm-es-auth", "u:env:ES", "-es-url", "http://es:9200", "-es-auth", "u:env:ES")
	for name, want := range map[string]string{"api-key": "-api-key", "index-user": "-apm-es-auth", "index-password": "-apm-es-auth", "store": "-es-url"} {
		if said := got.said[0][name]; said != want {
			t.Errorf("%s is said by %q, want %q", name, said, want)
		}
	}
}

// The benchmark is eight rounds, the first to warm up.
func TestBenchmark(t *testing.T) {
	var o, e bytes.Buffer
	var labels []string
	var o2 options
	o2.flags("hey-apm")
	a := &agents{
		options: &o2, log: &logger{w: &e}, secretRefs: newSecretRefs(), target: "apm+http://h:1", pause: time.Millisecond,
		p: &compat.Program{Out: &o, Err: &e, Together: func(_ context.Context, ws []*workload.Document) (ds []*report.Document, _ error) {
			for _, w := range ws {
				for _, entry := range w.Entries {
					if entry.Name == "label" {
						labels = append(labels, entry.Values...)
					}
				}
				ds = append(ds, answered())
			}
			return ds, nil
		}},
	}
	code, err := a.benchmark(t.Context())
	if code != 1 || err != nil {
		t.Errorf("exit %d, %v", code, err)
	}
	for _, want := range []string{"bench=warm up", "bench=large transactions", "bench=transactions spans and errors high load"} {
		if !slices.Contains(labels, want) {
			t.Errorf("no label %q in %q", want, labels)
		}
	}
	if n := strings.Count(o.String(), "transactions sent ."); n != len(rounds()) {
		t.Errorf("%d results, want %d", n, len(rounds()))
	}
}

// It ends at an interrupt, and says what means nothing to it.
func TestBenchmarkInterrupted(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	var o, e bytes.Buffer
	fired := 0
	p := &compat.Program{
		Called: "hey-apm", Args: []string{"-bench", "-t", "3", "-rm", "2"}, Out: &o, Err: &e,
		Together: func(_ context.Context, ws []*workload.Document) (ds []*report.Document, _ error) {
			fired++
			stop()
			for range ws {
				d := answered()
				d.Stopped = load.Interrupted
				ds = append(ds, d)
			}
			return ds, nil
		},
	}
	code, err := Tool.Main(ctx, p)
	if code != report.ExitInterrupted || err != nil || fired != 1 {
		t.Errorf("exit %d, %v, after %d rounds", code, err, fired)
	}
	for _, said := range []string{"warning: -t means nothing with -bench\n", "warning: -rm means nothing here", "warning: -bench does not delete documents", "interrupted: the benchmark is incomplete\n"} {
		if !strings.Contains(e.String(), said) {
			t.Errorf("stderr has no %q:\n%s", said, e.String())
		}
	}
}

// The worst of its rounds is the exit code, whichever is the last; in a pause it
// ends as in a round.
func TestBenchmarkExit(t *testing.T) {
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
		{"untrusted, then nobody can tell", []int{3, 4}, false, false, 3},
		{"nobody can tell, then untrusted", []int{4, 3}, false, false, 3},
		{"nobody can tell", []int{4}, false, false, 4},
		{"interrupted in a pause", []int{3}, true, false, 130},
		{"interrupted in a pause, strict", []int{3}, true, true, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			var o, e bytes.Buffer
			var opts options
			opts.flags("hey-apm")
			fired := 0
			a := &agents{options: &opts, secretRefs: newSecretRefs(), target: "apm+http://h:1", pause: time.Millisecond}
			a.log = &logger{w: writer(func(line []byte) {
				if tt.stop && bytes.Contains(line, []byte("waiting ")) {
					stop()
				}
			})}
			if tt.stop {
				a.pause = time.Hour
			}
			a.p = &compat.Program{Strict: tt.strict, Out: &o, Err: &e, Together: func(_ context.Context, ws []*workload.Document) (ds []*report.Document, _ error) {
				for range ws {
					d := taken()
					if fired < len(tt.codes) {
						d.Trust.OK = tt.codes[fired] != 3
						if tt.codes[fired] == 1 {
							d.Totals.Failed = 1
						}
						d.Checks = []report.Check{{OK: tt.codes[fired] != 4, CannotTell: true}}
					}
					ds = append(ds, d)
				}
				fired++
				return ds, nil
			}}
			if code, err := a.benchmark(ctx); code != tt.want || err != nil {
				t.Errorf("exit %d, %v, want %d", code, err, tt.want)
			}
			if tt.stop && fired == len(rounds()) {
				t.Error("it went on")
			}
		})
	}
}

// A writer is a function that is given what is written.
type writer func([]byte)

func (w writer) Write(b []byte) (int, error) { w(b); return len(b), nil }
