package sangrenel

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
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

// A sangrenelResult is what the tool printed, returned and asked to run.
type sangrenelResult struct {
	out, errs string
	code      int
	settings  map[string]string
}

// run runs the tool with the fake as its workload's result.
func (f *sangrenelFake) run(t *testing.T, strict bool, args ...string) sangrenelResult {
	t.Helper()
	r := sangrenelResult{settings: make(map[string]string)}
	var o, e bytes.Buffer
	p := &dropin.Program{
		Called: "sangrenel", Args: args, Strict: strict, Out: &o, Err: &e,
		Run: func(_ context.Context, d *workload.Document, observer dropin.Observer) (*report.Document, error) {
			for _, entry := range d.Entries {
				r.settings[entry.Name] = strings.Join(entry.Values, " ")
			}
			assert.Equal(t, observer.ZeroP99, strict, "ZeroP99")
			observer.Opened()
			observer.Interval(load.Snapshot{Phase: "measurement", Interval: f.interval})
			for _, err := range f.published {
				observer.Published(err)
			}
			return &f.report, nil
		},
	}
	var err error
	r.code, err = Tool.Main(t.Context(), p)
	assert.OK(t, err)
	r.out, r.errs = o.String(), e.String()
	return r
}

// matchesAll reports whether a regular expression matches a text as a whole.
func matchesAll(want, got string) bool {
	return regexp.MustCompile(`\A` + want + `\z`).MatchString(got)
}

const date = `\d{4}/\d\d/\d\d \d\d:\d\d:\d\d `

func TestSangrenelLines(t *testing.T) {
	nothing := func(f *sangrenelFake) { f.interval.Set, f.interval.Counts = measure.Set{}, measure.Counts{} }
	refused := func(f *sangrenelFake) {
		f.interval.Set = measure.Set{FailedService: f.interval.Service}
		f.interval.Acked, f.interval.Failed = 0, 10_002
	}
	for _, tt := range []struct {
		name   string
		strict bool
		args   []string
		bad    func(*sangrenelFake)
		want   string // regular expressions of all that is printed
		errs   string
	}{
		{"2014", false, []string{"-size=1000", "-workers=2", "-topic=rep"}, nil, `
::: Sangrenel :::
Starting 2 workers
Message size 1000 bytes

client_1 connected
client_2 connected
\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(Z|[+-]\d\d:\d\d) Producing 15Mb/sec raw data @ 2000 messages/sec \| topic: rep \| 11\.00ms avg latency

client_1 shutting down
client_2 shutting down
`, ``},
		{"2014, with its average", true, []string{"-size", "10"}, nil, `
::: Sangrenel :::
Starting 1 workers
Message size 10 bytes

client_1 connected
\S+ Producing 20KB/sec raw data @ 2000 messages/sec \| topic: sangrenel \| 11\.00ms avg latency

client_1 shutting down
`, ``},
		{"2014, nothing sent", false, []string{"--noop=true"}, nil, `
::: Sangrenel :::
Starting 1 workers
Message size 300 bytes

client_1 connected
\S+ Producing 5Mb/sec raw data @ 2000 messages/sec \| topic: sangrenel \| 0\.00ms avg latency

client_1 shutting down
`, ``},
		{"2014, nothing taken", false, nil, nothing, `(?s).* @ 0 messages/sec \| topic: sangrenel \| 0\.00ms avg latency\n.*`, ``},
		{"2014, the average of nothing", true, nil, nothing, `(?s).* @ 0 messages/sec \| topic: sangrenel \| NaNms avg latency\n.*`, ``},
		{"2022", false, []string{"-message-size", "1000", "-workers", "2", "-api-version", "2.8.0"}, nil, `
Starting 2 client workers, 5 writers per worker
Message size 1000 bytes, 500 message limit per batch
API Version: 2\.8\.0, Compression: none, RequiredAcks: local

> Messages: 15Mb/sec @ 2000 msgs/sec\. \| error rate 0\.01%
> Batches: 2000\.00 batches/sec\. \| 11ms p99 \| 1\.1ms HMean \| 1ms Min \| 11ms Max
 {13}1ms - 2ms -{50}
( {13}\dms - \dms -\n){7}( {12}\dms - \d+ms -\n) {11}10ms - 11ms -{6}

`, `warning: -api-version does nothing: .*
` + date + `worker_1 connected
` + date + `worker_2 connected
` + date + `\[ topic: sangrenel \]
`},
		{"2022, nothing sent", false, []string{"-noop", "-message-size=300"}, nil, `
Starting 1 client workers, 5 writers per worker
Message size 300 bytes, 500 message limit per batch
API Version: , Compression: none, RequiredAcks: local

> Messages: 5Mb/sec @ 2000 msgs/sec\. \| error rate 0\.01%
`, date + `\[ topic: sangrenel \]\n`},
		{"2022, no answers", false, []string{"-required-acks=none"}, func(f *sangrenelFake) {
			f.interval.Set = measure.Set{}
			f.interval.Acked, f.interval.Unknown, f.interval.Failed, f.interval.Answered = 0, 10_002, 0, 0
		}, `(?s).*
> Messages: 5Mb/sec @ 2000 msgs/sec\. \| error rate 0\.00%
> Batches: 2000\.00 batches/sec\. \| 0s p99 \| 0s HMean \| 0s Min \| 0s Max

`, `(?s).*note: with -required-acks none nothing is answered: .*\n`},
		{"2022, all refused", false, []string{"-message-batch-size=1"}, refused, `(?s).*
> Messages: 0KB/sec @ 0 msgs/sec\. \| error rate 100\.00%
> Batches: 0\.00 batches/sec\. \| 0s p99 \| 0s HMean \| 0s Min \| 0s Max

`, `(?s).*`},
		{"2022, the end of an outage", false, []string{"-message-batch-size=1"}, func(f *sangrenelFake) {
			refused(f)
			f.interval.Sent = 0
		}, `(?s).*
> Messages: 0KB/sec @ 0 msgs/sec\. \| error rate 100\.00%
.*`, `(?s).*`},
		{"2022, more failed than was sent", false, []string{"-message-batch-size=1"}, func(f *sangrenelFake) {
			f.interval.Sent, f.interval.Failed, f.interval.Unknown, f.interval.Acked = 100, 5_000, 2_500, 2_500
		}, `(?s).*
> Messages: .* \| error rate 75\.00%
.*`, `(?s).*`},
		{"2022, all refused and counted", true, []string{"-message-batch-size=1"}, refused, `(?s).*
> Messages: 5Mb/sec @ 2000 msgs/sec\. \| error rate 100\.00%
> Batches: 2000\.00 batches/sec\. \| 11ms p99 .*
 {13}1ms - 2ms -{50}\n.*`, `(?s).*`},
		{"2022, all took the same", false, []string{"-message-batch-size=1"}, func(f *sangrenelFake) {
			f.interval.Service = measure.NewHistogram()
			f.interval.Service.RecordN(2*time.Millisecond, 7)
		}, `(?s).* 2ms Max
 {13}2ms - 2ms -{50}

`, `(?s).*`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newSangrenelFake()
			if tt.bad != nil {
				tt.bad(f)
			}
			got := f.run(t, tt.strict, tt.args...)
			assert.True(t, matchesAll(tt.want, got.out) && matchesAll(tt.errs, got.errs) && got.code == 0,
				"exit %d, stderr:\n%s\nstdout:\n%s", got.code, got.errs, got.out)
		})
	}
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

// The generation decides how a missing topic is created: by what the flags are of, or
// by its name.
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
		"           1ms - 1.2ms ----------",
		"       1.2ms - 1.399ms -",
		"     1.399ms - 1.599ms -",
		"     1.599ms - 1.799ms -",
		"     1.799ms - 1.999ms -",
		"     1.999ms - 2.199ms ------------------------------",
		"     2.199ms - 2.399ms -",
		"     2.399ms - 2.599ms -",
		"     2.599ms - 2.799ms -",
		"         2.799ms - 3ms --------------------------------------------------",
		"",
	}, "\n")
	assert.Equal(t, bins(h), want)
}

// The lines about Graphite have the form of Go's log package.
func TestSangrenelGraphiteLines(t *testing.T) {
	f := newSangrenelFake()
	f.published = []error{nil, errors.New("dial tcp: refused")}
	got := f.run(t, false, "-graphite-ip=10.0.0.1")
	if !matchesAll(`(?s).*`+date+`Metrics flushed to Graphite\n`+date+`Graphite unreachable: dial tcp: refused\n`, got.errs) {
		t.Errorf("stderr:\n%s", got.errs)
	}
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
			assert.True(t, got.code == tt.want && strings.Contains(got.errs, tt.errs),
				"exit %d, want %d; stderr:\n%s", got.code, tt.want, got.errs)
			assert.Equal(t, f.run(t, true, tt.args...).code, host.ExitOK, "exit code with --strict")
		})
	}
}

// Arguments become a workload's settings.
func TestSangrenelWorkload(t *testing.T) {
	host := assert.Value(os.Hostname())(t)
	for _, tt := range []struct {
		name string
		args []string
		want map[string]string // "" is absent
	}{
		{"nothing", nil, map[string]string{
			"target": "kafka://localhost:9092/sangrenel", "concurrency": "5", "clients": "1", "batch-events": "1", "size": "300", "payload": sangrenelPayload2014, "acks": "1", "interval": "5s", "rate": "",
			"create-topic": "partitions=2", "fresh": "true",
		}},
		{"flags of 2014", []string{"--size=2500", "--workers=8", "--topic=rep", "--brokers=a:1, b:2"}, map[string]string{
			"target": "kafka://a:1,b:2/rep", "concurrency": "40", "clients": "8", "size": "2500",
		}},
		{"noop", []string{"-noop", "-tls", "-topic=a/b"}, map[string]string{"target": "null://noop", "concurrency": "", "rate": "", "tls": "", "payload": sangrenelPayload, "fresh": "true"}},
		{"noop, large batches", []string{"-noop", "-message-size=2500", "-message-batch-size=1000"}, map[string]string{"batch-size": strconv.Itoa(batchBytes(2500, 1000))}},
		{"large batches", []string{"-message-size=2500", "-message-batch-size=1000"}, map[string]string{"batch-size": "1000000"}},
		{"half a certificate", []string{"-tls", "-tls-cert-file=c.pem"}, map[string]string{"tls": "true", "tls-cert": "", "tls-key": ""}},
		{"a certificate", []string{"-tls", "-tls-cert-file=c.pem", "-tls-key-file=k.pem"}, map[string]string{"tls-cert": "c.pem", "tls-key": "k.pem"}},
		{"this host's series", []string{"-graphite-ip=::1", "-graphite-port=2013"}, map[string]string{"graphite": "[::1]:2013", "graphite-prefix": host}},
		{"flags of 2022", []string{
			"-message-batch-size=100", "-produce-rate=5000", "-compression=gzip", "-required-acks=all", "-writers-per-worker=3", "-interval=2",
			"-tls", "-tls-ca-cert=ca.pem", "-graphite-ip=10.0.0.1", "-graphite-metrics-prefix=lab",
		}, map[string]string{
			"rate": "5000/s", "concurrency": "", "batch-events": "100", "compression": "gzip", "acks": "all", "max-in-flight": "3", "interval": "2s",
			"tls": "true", "tls-ca": "ca.pem", "tls-cert": "", "graphite": "10.0.0.1:2003", "graphite-prefix": "lab", "create-topic": "auto",
		}},
		{"batches that fit", []string{"-message-batch-size=500"}, map[string]string{"batch-events": "500", "batch-size": ""}},
		{"large batches", []string{"-message-size=1000"}, map[string]string{"batch-events": "500", "batch-size": "516061"}},
		{"batches that are too large", []string{"-message-size=2500"}, map[string]string{"batch-events": "500", "batch-size": "1000000"}},
		{"a number that is too large", []string{"-message-batch-size=99999999999"}, map[string]string{"batch-size": "1000000"}},
		{"a large message", []string{"-size=2000000"}, map[string]string{"batch-events": "1", "batch-size": "1000000"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := newSangrenelFake().run(t, false, tt.args...).settings
			for name, want := range tt.want {
				assert.Equal(t, got[name], want, "%s", name)
			}
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
			for line := range strings.Lines(got.errs) {
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
	assert.True(t, strings.Contains(got.errs, note), "stderr lacks %q:\n%s", note, got.errs)
	for _, args := range [][]string{{"-message-size=1900"}, {"-size=2000000"}, {"-noop", "-message-size=2500"}} {
		got := newSangrenelFake().run(t, false, args...)
		assert.True(t, !strings.Contains(got.errs, "note: brokers"), "%v: stderr\n%s", args, got.errs)
	}
}

// Usage errors have sangrenel's wording.
func TestSangrenelUsage(t *testing.T) {
	for _, tt := range []struct {
		name      string
		args      []string
		out, errs string
		code      int
	}{
		{"help", []string{"-h"}, "", "Usage of sangrenel:\n", 0},
		{"no such flag", []string{"-foo"}, "", "flag provided but not defined: -foo\nUsage of sangrenel:\n", 2},
		{"a compression", []string{"-compression=brotli"}, "Invalid compression option: brotli\n", "", 1},
		{"acks", []string{"-required-acks=some"}, "Invalid required-acks option: some\n", "", 1},
		{"an invalid topic", []string{"-topic=cons?x=1"}, "Invalid topic option: cons?x=1\nTopic name is invalid: 'cons?x=1' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'\n", "", 1},
		{"an invalid broker", []string{"-brokers=a:1,,b:2/x"}, "Invalid brokers option: a:1,,b:2/x\n", "", 1},
		{"an invalid version", []string{"-api-version=nonsense"}, "Invalid API version option: nonsense\nOptions: " + fmt.Sprintf("%+q", sangrenelVersions) + "\n", "", 1},
		{"half a version", []string{"-api-version=2.8"}, "Invalid API version option: 2.8\nOptions: " + fmt.Sprintf("%+q", sangrenelVersions) + "\n", "", 1},
		{"no number", []string{"-workers=many"}, "", "invalid value \"many\" for flag -workers: parse error\n", 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := newSangrenelFake().run(t, false, tt.args...)
			if got.out != tt.out || !strings.HasPrefix(got.errs, tt.errs) || got.code != tt.code || len(got.settings) > 0 {
				t.Errorf("exit %d, stdout %q, stderr %q, settings %v", got.code, got.out, got.errs, got.settings)
			}
		})
	}
}
