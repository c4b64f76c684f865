package sangrenel

import (
	"bytes"
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"carronade/internal/compat"
	"carronade/internal/report"
	"carronade/internal/workload"
	"carronade/load"
	"carronade/measure"
)

// fired runs the tool against a run that never was: 10,000 messages of shots
// in five seconds, a tenth of them slower than the rest.
func fired(t *testing.T, strict bool, args ...string) (out, errs string, code int, settings map[string]string) {
	t.Helper()
	settings = make(map[string]string)
	var o, e bytes.Buffer
	p := &compat.Program{
		Called: "sangrenel", Args: args, Strict: strict, Out: &o, Err: &e,
		Fire: func(_ context.Context, d *workload.Document, eyes compat.Eyes) (*report.Document, error) {
			for _, entry := range d.Entries {
				settings[entry.Name] = strings.Join(entry.Values, " ")
			}
			eyes.Opened()
			h := measure.NewHistogram()
			h.RecordN(time.Millisecond, 9000)
			h.RecordN(11*time.Millisecond, 1000)
			iv := measure.Interval{
				Phase: "hold", End: 5 * time.Second, Set: measure.Set{Service: h},
				Counts: measure.Counts{Sent: 10_002, Acked: 10_001, Failed: 1, Shots: 10_000, Answered: 10_000},
			}
			eyes.Interval(load.Snapshot{Phase: "hold", Interval: iv})
			return &report.Document{Stopped: load.Interrupted}, nil
		},
	}
	code, err := Tool.Main(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	return o.String(), e.String(), code, settings
}

func TestLines(t *testing.T) {
	for _, tt := range []struct {
		name   string
		strict bool
		args   []string
		want   string // a regular expression of all that is printed
	}{
		{"2014", false, []string{"-size=1000", "-workers=2", "-topic=rep"}, `
::: Sangrenel :::
Starting 2 workers
Message size 1000 bytes

client_1 connected
client_2 connected
\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(Z|[+-]\d\d:\d\d) Producing 15Mb/sec raw data @ 2000 messages/sec \| topic: rep \| 2\.00ms avg latency

client_1 shutting down
client_2 shutting down
`},
		{"2014, with its average", true, []string{"-size", "10"}, `
::: Sangrenel :::
Starting 1 workers
Message size 10 bytes

client_1 connected
\S+ Producing 20KB/sec raw data @ 2000 messages/sec \| topic: sangrenel \| 11\.00ms avg latency

client_1 shutting down
`},
		{"2014, nothing sent", false, []string{"--noop=true"}, `
::: Sangrenel :::
Starting 1 workers
Message size 300 bytes

\S+ Producing 5Mb/sec raw data @ 2000 messages/sec \| topic: sangrenel \| 0\.00ms avg latency

`},
		{"2022", false, []string{"-message-size", "1000", "-workers", "2", "-api-version", "2.8.0"}, `
Starting 2 client workers, 5 writers per worker
Message size 1000 bytes, 500 message limit per batch
API Version: 2\.8\.0, Compression: none, RequiredAcks: local
\d{4}/\d\d/\d\d \d\d:\d\d:\d\d worker_1 connected
\d{4}/\d\d/\d\d \d\d:\d\d:\d\d worker_2 connected

\d{4}/\d\d/\d\d \d\d:\d\d:\d\d \[ topic: sangrenel \]
> Messages: 15Mb/sec @ 2000 msgs/sec\. \| error rate 0\.01%
> Batches: 2000\.00 batches/sec\. \| 11ms p99 \| 1\.1ms HMean \| 1ms Min \| 11ms Max
 {13}1ms - 2ms -{50}
(.* \n){8} +10ms - 11ms -{6}
`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, errs, code, _ := fired(t, tt.strict, tt.args...)
			if !regexp.MustCompile(`\A`+tt.want+`\z`).MatchString(out) || errs != "" || code != 0 {
				t.Errorf("exit %d, stderr %q, stdout:\n%s", code, errs, out)
			}
		})
	}
}

// The arguments are said in carronade's words.
func TestWorkload(t *testing.T) {
	for _, tt := range []struct {
		name string
		args []string
		want map[string]string // "" is absent
	}{
		{"nothing", nil, map[string]string{
			"target": "kafka://localhost:9092/sangrenel", "callers": "5", "clients": "1", "events-per-shot": "1", "size": "300", "acks": "1", "interval": "5s", "rate": "",
		}},
		{"the seed's", []string{"--size=2500", "--workers=8", "--topic=rep", "--brokers=a:1, b:2"}, map[string]string{
			"target": "kafka://a:1,b:2/rep", "callers": "40", "clients": "8", "size": "2500",
		}},
		{"noop", []string{"-noop"}, map[string]string{"target": "null://noop", "callers": "", "rate": ""}},
		{"the last one's", []string{
			"-message-batch-size=100", "-produce-rate=5000", "-compression=gzip", "-required-acks=all", "-writers-per-worker=3", "-interval=2",
			"-tls", "-tls-ca-cert=ca.pem", "-graphite-ip=10.0.0.1", "-graphite-metrics-prefix=lab",
		}, map[string]string{
			"rate": "5000/s", "callers": "", "events-per-shot": "100", "compression": "gzip", "acks": "all", "max-in-flight": "3", "interval": "2s",
			"tls": "true", "tls-ca": "ca.pem", "tls-cert": "", "graphite": "10.0.0.1:2003", "graphite-prefix": "lab",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, _, _, got := fired(t, false, tt.args...)
			for name, want := range tt.want {
				if got[name] != want {
					t.Errorf("%s is %q, want %q", name, got[name], want)
				}
			}
		})
	}
}

// Usage errors are sangrenel's own.
func TestUsage(t *testing.T) {
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
		{"no number", []string{"-workers=many"}, "", "invalid value \"many\" for flag -workers: parse error\n", 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, errs, code, settings := fired(t, false, tt.args...)
			if out != tt.out || !strings.HasPrefix(errs, tt.errs) || code != tt.code || len(settings) > 0 {
				t.Errorf("exit %d, stdout %q, stderr %q, settings %v", code, out, errs, settings)
			}
		})
	}
}
