package sangrenel

import (
	"context"
	"errors"
	"io"
	"os"
	"regexp"
	"slices"
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

// A sangrenelFake is a run's data without a run: 10,000 messages of batches in five seconds,
// a tenth of them slower than the rest, unless a test changes it.
type sangrenelFake struct {
	interval  measure.Interval
	report    report.Document
	published []error
}

func newSangrenelFake() *sangrenelFake {
	h := measure.NewHistogram()
	h.RecordN(time.Millisecond, 9000)
	h.RecordN(11*time.Millisecond, 1000)
	return &sangrenelFake{
		interval: measure.Interval{
			Phase: "measurement", End: 5 * time.Second, Set: measure.Set{Service: h},
			Counts: measure.Counts{Sent: 10_002, Acked: 10_001, Failed: 1, Batches: 10_000, Answered: 10_000},
		},
		report: report.Document{Stopped: load.Interrupted, Trust: measure.Trust{OK: true}},
	}
}

// run runs the tool with the fake as its workload's result.
func (f *sangrenelFake) run(t *testing.T, strict bool, args ...string) dropintest.Result {
	t.Helper()
	got := dropintest.Run(t.Context(), t, &Tool, dropin.Program{Args: args, Strict: strict}, func(_ *workload.Document, observer dropin.Observer) (*report.Document, error) {
		assert.Equal(t, observer.ZeroP99, strict, "ZeroP99")
		observer.Opened()
		observer.Interval(load.Snapshot{Phase: "measurement", Interval: f.interval})
		for _, err := range f.published {
			observer.Published(err)
		}
		return &f.report, nil
	})
	assert.OK(t, got.Err)
	return got
}

// matchesAll reports whether a regular expression matches a text as a whole.
func matchesAll(want, got string) bool {
	return regexp.MustCompile(`\A` + want + `\z`).MatchString(got)
}

const date = `\d{4}/\d\d/\d\d \d\d:\d\d:\d\d `

func TestSangrenelCases(t *testing.T) {
	refused := func(f *sangrenelFake) {
		f.interval.Set = measure.Set{FailedService: f.interval.Service}
		f.interval.Acked, f.interval.Failed = 0, 10_002
	}
	data := map[string]func(*sangrenelFake){
		"":        func(*sangrenelFake) {},
		"nothing": func(f *sangrenelFake) { f.interval.Set, f.interval.Counts = measure.Set{}, measure.Counts{} },
		"refused": refused,
		"outage":  func(f *sangrenelFake) { refused(f); f.interval.Sent = 0 },
		"failed": func(f *sangrenelFake) {
			f.interval.Sent, f.interval.Failed, f.interval.Unknown, f.interval.Acked = 100, 5_000, 2_500, 2_500
		},
		"unanswered": func(f *sangrenelFake) {
			f.interval.Set = measure.Set{}
			f.interval.Acked, f.interval.Unknown, f.interval.Failed, f.interval.Answered = 0, 10_002, 0, 0
		},
		"even": func(f *sangrenelFake) {
			f.interval.Service = measure.NewHistogram()
			f.interval.Service.RecordN(2*time.Millisecond, 7)
		},
	}
	dropintest.RunCases(t, "sangrenel", "", func(t *testing.T, c *dropintest.Case) dropintest.Result {
		f := newSangrenelFake()
		data[c.Data](f)
		return f.run(t, c.Strict, c.Args...)
	})
	got := newSangrenelFake().run(t, false, "-graphite-ip=::1", "-graphite-port=2013").Last()
	assert.Equal(t, got["graphite"], "[::1]:2013", "graphite")
	assert.Equal(t, got["graphite-prefix"], assert.Value(os.Hostname())(t), "graphite-prefix")
}

// The average of 2014 is that of the samples from int(0.9 n) on.
func TestMeanOfSlowest(t *testing.T) {
	for _, tt := range []struct {
		times []int // ms
		want  time.Duration
	}{
		{[]int{7}, 7 * time.Millisecond},
		{[]int{1, 1, 1, 1, 1, 1, 1, 1, 1, 5}, 5 * time.Millisecond},
		{[]int{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 10, 20}, 15 * time.Millisecond}, // the last two of fifteen
		{[]int{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 31}, 16 * time.Millisecond},
	} {
		h := measure.NewHistogram()
		for _, ms := range tt.times {
			h.Record(time.Duration(ms) * time.Millisecond)
		}
		got := meanOfSlowest(h)
		assert.True(t, got.Round(100*time.Microsecond) == tt.want, "of %v: %s, want %s", tt.times, got, tt.want)
	}
}

// The generation decides how a missing topic is created: by what the flags are of, or by its name.
func TestSangrenelTopicOfGeneration(t *testing.T) {
	for name, want := range map[string]string{"": "partitions=2", "2014": "partitions=2", "2022": "auto"} {
		got := ""
		_, err := Tool.Main(t.Context(), &dropin.Program{
			Called: "sangrenel", Generation: name, Args: []string{"-topic=rep"}, Out: io.Discard, Err: io.Discard,
			Run: func(_ context.Context, d *workload.Document, _ dropin.Observer) (*report.Document, error) {
				for _, entry := range d.Entries {
					if entry.Name == "create-topic" {
						got = strings.Join(entry.Values, " ")
					}
				}
				return &report.Document{Stopped: load.Interrupted, Trust: measure.Trust{OK: true}}, nil
			},
		})
		assert.True(t, err == nil && got == want, "generation %q: create-topic is %q, want %q (%v)", name, got, want, err)
	}
}

// A bin's label shows its two ends; the last bin ends at the longest time.
func TestSangrenelBins(t *testing.T) {
	h := measure.NewHistogram()
	h.Record(time.Millisecond + 1) // so that ten bins end 9 ns before the longest
	h.RecordN(2*time.Millisecond+time.Microsecond, 3)
	h.RecordN(3*time.Millisecond, 5)
	want := strings.Join([]string{
		"           1ms - 1.2ms ----------", "       1.2ms - 1.399ms -", "     1.399ms - 1.599ms -", "     1.599ms - 1.799ms -",
		"     1.799ms - 1.999ms -", "     1.999ms - 2.199ms ------------------------------", "     2.199ms - 2.399ms -",
		"     2.399ms - 2.599ms -", "     2.599ms - 2.799ms -", "         2.799ms - 3ms --------------------------------------------------",
		"",
	}, "\n")
	assert.Equal(t, bins(h), want)
}

// The lines about Graphite have the form of Go's log package.
func TestSangrenelGraphiteLines(t *testing.T) {
	f := newSangrenelFake()
	f.published = []error{nil, errors.New("dial tcp: refused")}
	got := f.run(t, false, "-graphite-ip=10.0.0.1")
	assert.True(t, matchesAll(`(?s).*`+date+`Metrics flushed to Graphite\n`+date+`Graphite unreachable: dial tcp: refused\n`, got.Errs), "stderr:\n%s", got.Errs)
}

// An interrupt, which ends a run, is not a failure; the run's result may be one.
func TestSangrenelExit(t *testing.T) {
	for _, tt := range []struct {
		name string
		bad  func(*report.Document)
		args []string
		want int
		errs string
	}{
		{"all is well", func(*report.Document) {}, nil, host.ExitOK, ""},
		{"some failed", func(d *report.Document) {
			d.Totals.Failed = 3
			d.Failures = []measure.Failure{{Class: "rejected", Text: "INVALID_RECORD", Events: 3}}
		}, nil, host.ExitBroken, "rejected: INVALID_RECORD (3 records)"},
		{"some are unknown", func(d *report.Document) { d.Totals.Unknown = 3 }, nil, host.ExitBroken, ""},
		{"unknown without acks", func(d *report.Document) { d.Totals.Unknown = 3 }, []string{"-required-acks=none"}, host.ExitOK, ""},
		{"a problem", func(d *report.Document) { d.Problems = []string{"no disk"} }, nil, host.ExitFailed, "no disk"},
		{"the target gave up", func(d *report.Document) { d.Stopped = load.ByTarget }, nil, host.ExitFailed, ""},
		{"not trusted", func(d *report.Document) { d.Trust = measure.Trust{Reasons: []string{"too late"}} }, nil, host.ExitUntrusted, "not to be trusted: too late"},
		{"not trusted, and failed", func(d *report.Document) { d.Trust.OK, d.Totals.Failed = false, 1 }, nil, host.ExitBroken, ""},
		{"undetermined", func(d *report.Document) { d.Checks = []report.Check{{CannotTell: true}} }, nil, host.ExitCannotTell, ""},
		{"undetermined, and failed", func(d *report.Document) { d.Totals.Failed, d.Checks = 1, []report.Check{{CannotTell: true}} }, nil, host.ExitBroken, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newSangrenelFake()
			tt.bad(&f.report)
			got := f.run(t, false, tt.args...)
			assert.True(t, got.Code == tt.want && strings.Contains(got.Errs, tt.errs),
				"exit %d, want %d; stderr:\n%s", got.Code, tt.want, got.Errs)
			assert.Equal(t, f.run(t, true, tt.args...).Code, host.ExitOK, "exit code with --strict")
		})
	}
}

// A flag without effect causes a warning.
func TestSangrenelUnusedFlags(t *testing.T) {
	for _, tt := range []struct {
		name string
		args []string
		want []string // the subjects of the warnings
	}{
		{"all have an effect", []string{"-brokers=a:1", "-tls", "-tls-ca-cert=x", "-graphite-ip=h", "-graphite-port=1", "-produce-rate=5"}, nil},
		{"a version", []string{"-api-version=0.10.2.0"}, []string{"-api-version"}},
		{"no TLS", []string{"-tls-ca-cert=x", "-tls-insecure-skip-verify"}, []string{"-tls-ca-cert", "-tls-insecure-skip-verify"}},
		{"no key", []string{"-tls", "-tls-cert-file=x"}, []string{"-tls-cert-file"}},
		{"no certificate", []string{"-tls", "-tls-key-file=x"}, []string{"-tls-key-file"}},
		{"no Graphite", []string{"-graphite-port=1", "-graphite-metrics-prefix=x"}, []string{"-graphite-port", "-graphite-metrics-prefix"}},
		{"no network", []string{"-noop", "-brokers=a:1", "-compression=gzip", "-required-acks=all", "-produce-rate=1", "-tls"}, []string{"-brokers", "-compression", "-required-acks", "-tls", "-produce-rate"}},
		{"an argument", []string{"-message-size=9", "stray", "-workers=9"}, []string{`"stray" is not a flag`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := newSangrenelFake().run(t, false, tt.args...)
			var warned []string
			for line := range strings.Lines(got.Errs) {
				if text, ok := strings.CutPrefix(line, "warning: "); ok {
					what, _, _ := strings.Cut(text, " does nothing")
					what, _, _ = strings.Cut(what, ":")
					warned = append(warned, what)
				}
			}
			assert.True(t, slices.Equal(warned, tt.want), "got %q, want %q", warned, tt.want)
		})
	}
}

// Where batches have fewer messages than the flag says, a line says so.
func TestSangrenelSmallBatches(t *testing.T) {
	const note = "note: brokers take batches of up to 1 MB: those of messages of 2500 bytes have about 394, not 500\n"
	got := newSangrenelFake().run(t, false, "-message-size=2500")
	assert.True(t, strings.Contains(got.Errs, note), "stderr lacks %q:\n%s", note, got.Errs)
	for _, args := range [][]string{{"-message-size=1900"}, {"-size=2000000"}, {"-noop", "-message-size=2500"}} {
		got := newSangrenelFake().run(t, false, args...)
		assert.True(t, !strings.Contains(got.Errs, "note: brokers"), "%v: stderr\n%s", args, got.Errs)
	}
}

// The flags of 2015 and 2016 select their lines and mean what they did.
func TestSangrenel2015(t *testing.T) {
	f := newSangrenelFake()
	got := f.run(t, false, "-size=1000", "-clients=2", "-producers=3", "-rate=5000", "-batch=10", "-compression=gzip", "-topic=rep")
	assert.True(t, matchesAll(`
::: Sangrenel :::

Starting 2 client workers, 3 producers per worker
Message size 1000 bytes, 10 message limit per batch
Compression: GZIP
Killing Connections
`, got.Out), "%s", got.Out)
	for _, line := range []string{"client_1 connected\n", "client_2 connected\n", "Generating 15Mb/sec @ 2000 messages/sec | topic: rep | 11.00ms 90%ile latency\n", "-batch does nothing"} {
		assert.True(t, strings.Contains(got.Errs, line), "no %q in %s", line, got.Errs)
	}
	for name, want := range map[string]string{"size": "1000", "clients": "2", "max-in-flight": "3", "rate": "5000/s", "compression": "gzip", "batch-events": "1", "create-topic": "auto", "payload": sangrenelPayload} {
		assert.Equal(t, got.Last()[name], want, "%s", name)
	}
	for _, c := range []struct{ args, lines string }{
		{"-brokers=a:1 -size=10 -workers=2", sangrenel2014},
		{"-size=10 -compression=none", sangrenel2015},
		{"-workers=2 -rate=5", sangrenel2015},
		{"-compression=gzip", sangrenel2022},
		{"-producers-per-worker=3", sangrenel2022},
		{"-required-acks=all -message-size=5", sangrenel2022},
	} {
		var o sangrenelOptions
		fs := o.flagSet("sangrenel")
		assert.OK(t, fs.Parse(strings.Fields(c.args)))
		o.given = dropin.GivenFlags(fs)
		lines, err := o.generation("")
		assert.True(t, lines == c.lines && err == nil, "%s: %s %v", c.args, lines, err)
	}
}

// Help lists the flags of the generation that is asked for.
func TestSangrenelHelpOfGeneration(t *testing.T) {
	help := func(generation string) string {
		var errs strings.Builder
		code, err := Tool.Main(t.Context(), &dropin.Program{Called: "sangrenel", Generation: generation, Args: []string{"-h"}, Err: &errs})
		assert.True(t, code == 0 && err == nil, "exit %d, %v", code, err)
		usage, _, _ := strings.Cut(errs.String(), "flags of carronade")
		return usage
	}
	for generation, c := range map[string]struct{ has, lacks string }{
		"2014": {"-size", "-message-size"}, "2015": {"-producers", "-required-acks"}, "2022": {"-message-size", "-rate"}, "": {"-rate", "-nosuch"},
	} {
		text := help(generation)
		assert.True(t, strings.Contains(text, "  "+c.has+" "), "%s: no %s in\n%s", generation, c.has, text)
		assert.True(t, !strings.Contains(text, "  "+c.lacks+" "), "%s: %s in\n%s", generation, c.lacks, text)
	}
}

// The set of 2014 has a percent sign, and -noop printed its connections.
func TestSangrenel2014(t *testing.T) {
	got := newSangrenelFake().run(t, false, "-noop", "-workers=2")
	assert.True(t, strings.Contains(got.Last()["payload"], "%"), "payload %s", got.Last()["payload"])
	for _, line := range []string{"\nclient_2 connected\n", "\nclient_2 shutting down\n"} {
		assert.True(t, strings.Contains(got.Out, line), "no %q in %s", line, got.Out)
	}
}
