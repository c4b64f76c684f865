//go:build conformance

package otlp

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"carronade/internal/otlp/standin"
	"carronade/internal/otlp/wire"
	"carronade/load"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// collectorConfig is a Collector's configuration: the addresses for gRPC, HTTP and its metrics' port, more processors,
// their names, and the exporter.
const collectorConfig = `
receivers:
  otlp:
    protocols:
      grpc: {endpoint: %q}
      http: {endpoint: %q}
processors:
  batch: {}
%s
exporters:
%s
service:
  telemetry:
    metrics:
      readers:
        - pull: {exporter: {prometheus: {host: 127.0.0.1, port: %s}}}
  pipelines:
    traces: &pipeline {receivers: [otlp], processors: [%s], exporters: [%s]}
    metrics: *pipeline
    logs: *pipeline
`

// A collector is a running OpenTelemetry Collector.
type collector struct {
	t                         testing.TB
	grpc, http, metrics, file string
	cmd                       *exec.Cmd
}

// startCollector builds the Collector of testdata, once on a machine, and starts one.
func startCollector(t testing.TB, processors, names, exporters, exporter string) *collector {
	t.Helper()
	c := &collector{t: t, grpc: free(t), http: free(t), metrics: free(t), file: filepath.Join(t.TempDir(), "config.yaml")}
	_, port, _ := strings.Cut(c.metrics, ":")
	assert.OK(t, os.WriteFile(c.file, fmt.Appendf(nil, collectorConfig, c.grpc, c.http, processors, exporters, port, names, exporter), 0o600))
	c.start()
	t.Cleanup(func() { c.kill() })
	return c
}

func free(t testing.TB) string {
	t.Helper()
	ln := assert.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer ln.Close()
	return ln.Addr().String()
}

func (c *collector) start() {
	c.t.Helper()
	path := assert.Value(testkit.Make(testkit.Collector, testkit.BuildGo(filepath.Join("testdata", "otelcol"))))(c.t)
	c.cmd = exec.Command(path, "--config", c.file)
	c.cmd.Stderr = c.t.Output()
	assert.OK(c.t, testkit.Launch(c.cmd))
	testkit.Until(c.t, "the Collector listens", func() bool {
		nc, err := net.Dial("tcp", c.http)
		if err == nil {
			nc.Close()
		}
		_, ok := c.counter("otelcol_process_uptime")
		return err == nil && ok
	})
}

func (c *collector) kill() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}

// counter is the sum of a counter's values, whatever its labels.
func (c *collector) counter(name string) (sum uint64, found bool) {
	res, err := http.Get("http://" + c.metrics + "/metrics")
	if err != nil {
		return 0, false
	}
	defer res.Body.Close()
	text, _ := io.ReadAll(res.Body)
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, name) {
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndexByte(strings.TrimSpace(line), ' '):]), 64)
		if err == nil {
			sum, found = sum+uint64(v), true
		}
	}
	return sum, found
}

// accepted is what the receiver has accepted of all signals.
func (c *collector) accepted() (sum uint64) {
	for s := range wire.Signals {
		n, _ := c.counter("otelcol_receiver_accepted_" + s.Events())
		sum += n
	}
	return sum
}

// allMetrics has every kind of metric.
const allMetrics = "gauge=1,sum=1,sum-delta=1,histogram=1,histogram-delta=1,exponential=1,exponential-delta=1"

// TestCollectorAccepts: a Collector has accepted exactly what was acked, with its own counters.
func TestCollectorAccepts(t *testing.T) {
	c := startCollector(t, "", "batch", "  nop: {}", "nop")
	for _, tt := range []struct {
		grpc    bool
		options map[string]string
	}{
		{false, map[string]string{"signal": "traces", "span-events": "2", "span-links": "1", "statuses": "unset=1,ok=1,error=1"}},
		{true, map[string]string{"signal": "traces", "trace-spans": "33", "scope-attributes": "3"}},
		{false, map[string]string{"signal": "metrics", "metric": allMetrics}},
		{true, map[string]string{"signal": "metrics", "metric": allMetrics, "series-per-second": "1k"}},
		{false, map[string]string{"signal": "logs", "severities": "trace=1,debug=1,info=1,warn=1,error=1,fatal=1"}},
		{true, map[string]string{"signal": "logs", "body-size": "5KiB", "attributes": "30"}},
		{false, map[string]string{"signal": "traces=1,metrics=1,logs=1", "compression": "gzip"}},
		{true, map[string]string{"signal": "traces=1,metrics=1,logs=1", "compression": "gzip"}},
		{false, map[string]string{"signal": "logs", "compression": "zstd", "clients": "20"}},
		{true, map[string]string{"signal": "logs", "compression": "zstd", "max-in-flight": "50", "clients": "2"}},
		{false, map[string]string{"signal": "logs", "events": "7", "max-in-flight": "5"}},
		{true, map[string]string{"signal": "logs", "events": "3000", "clients": "1", "max-in-flight": "4"}},
	} {
		url, before := "otlp+http://"+c.http, c.accepted()
		if tt.grpc {
			url = "otlp+grpc://" + c.grpc
		}
		r := send(t, url, 20000, tt.options)
		counted(t, r, 20000, 0, 0)
		assert.Equal(t, c.accepted()-before, 20000, fmt.Sprintf("events that the receiver accepted with %v", tt.options))
	}
}

// TestCollectorRefuses: a memory limiter that refuses everything is a class of its own, over both transports.
func TestCollectorRefuses(t *testing.T) {
	c := startCollector(t, "  memory_limiter: {check_interval: 10ms, limit_mib: 1}", "memory_limiter, batch", "  nop: {}", "nop")
	for _, url := range []string{"otlp+http://" + c.http, "otlp+grpc://" + c.grpc} {
		r := send(t, url, 500, map[string]string{"signal": "logs"})
		counted(t, r, 0, 500, 0)
		assert.Equal(t, r.Classes[load.Throttled.String()], 500, "throttled")
	}
	assert.Equal(t, c.accepted(), 0, "accepted")
}

// TestCollectorQueueFull: what a full sending queue refuses is not acked.
func TestCollectorQueueFull(t *testing.T) {
	exporter := "  otlp_http: {endpoint: 'http://" + free(t) + "', sending_queue: {queue_size: 3, num_consumers: 1}, retry_on_failure: {enabled: true, initial_interval: 1m}}"
	c := startCollector(t, "", "", exporter, "otlp_http")
	for _, url := range []string{"otlp+http://" + c.http, "otlp+grpc://" + c.grpc} {
		before := c.accepted()
		r := send(t, url, 2000, map[string]string{"signal": "logs", "clients": "1"})
		m := &r.Measurement
		assert.Equal(t, m.Acked+m.Counts.Failed, 2000, "acked and failed")
		assert.True(t, m.Counts.Failed > 0, "nothing was refused")
		assert.Equal(t, c.accepted()-before, m.Acked, "accepted")
	}
}

// TestCollectorKilled: after a kill -9 and a restart, the run goes on, and what was in flight is unknown.
func TestCollectorKilled(t *testing.T) {
	for _, grpc := range []bool{false, true} {
		c := startCollector(t, "", "batch", "  nop: {}", "nop")
		url := "otlp+http://" + c.http
		if grpc {
			url = "otlp+grpc://" + c.grpc
		}
		s := openSpec(t, specOf(t, url, map[string]string{"signal": "logs", "clients": "4"}))
		var first, after uint64
		restarted := false
		r := fire(t, s, load.Plan{Concurrency: 4, Measurement: load.Limits{Events: 200000}, Observe: func(out []load.Outcome) {
			for i := range out {
				if acked := uint64(out[i].Acked); restarted {
					after += acked
				} else {
					first += acked
				}
			}
			if first > 50000 && !restarted {
				c.kill()
				c.start()
				restarted = true
			}
		}})
		assert.OK(t, s.Close())
		m := &r.Measurement
		assert.Equal(t, m.Acked+m.Counts.Failed+m.Unknown, 200000, "events")
		assert.True(t, after > 0, "nothing was acked after the restart")
		accepted := c.accepted()
		assert.True(t, accepted >= after-min(after, 400) && accepted <= after+m.Unknown, "the new Collector accepted %d, and %d were acked since", accepted, after)
	}
}

// TestCollectorAgrees: the Collector and the stand-in answer mutated requests over both transports with the same status
// or code, and accept as many events of them.
func TestCollectorAgrees(t *testing.T) {
	c := startCollector(t, "", "", "  nop: {}", "nop")
	s := start(t, standin.Options{})
	rng := rand.New(rand.NewPCG(1, 2))
	content := &wire.Content{
		Services: 3, ResourceAttributes: 2, ScopeAttributes: 1, Attributes: 2, AttributeSize: 9, BodySize: 20, TraceSpans: 5, SpanEvents: 1, SpanLinks: 1,
		Statuses: [3]int{1, 1, 1}, Metrics: [wire.MetricKinds]int{1, 1, 1, 1, 1, 1, 1},
	}
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	defer transport.CloseIdleConnections()
	grpc := &http.Client{Transport: transport}
	var accepted, refused int
	for n := range uint64(10000) {
		signal := wire.Signal(n % uint64(wire.Signals))
		body := content.Make(signal, n/30, 1+rng.IntN(4))
		b := mutated(rng, body.Bytes)
		before := s.Counts().Events()
		got, want := post(t, "http://"+s.Addr()+signal.Path(), b), post(t, "http://"+c.http+signal.Path(), b)
		assert.True(t, got == want, "request %d: the stand-in answers %d, the Collector %d: %v %x", n, got, want, signal, b)
		code, wanted := codeOf(t, grpc, s.GRPCAddr(), signal, b), codeOf(t, grpc, c.grpc, signal, b)
		assert.True(t, code == wanted, "request %d over gRPC: the stand-in answers %s, the Collector %s: %v %x", n, code, wanted, signal, b)
		if got == http.StatusOK {
			accepted += int(s.Counts().Events() - before)
		} else {
			refused++
		}
	}
	assert.Equal(t, c.accepted(), uint64(accepted), "events that the Collector accepted")
	assert.True(t, refused > 1000 && accepted > 1000, "%d requests refused, %d events accepted: the mutations prove little", refused, accepted)
}

// mutated is a request with some bytes changed, removed or added.
func mutated(rng *rand.Rand, b []byte) []byte {
	for range rng.IntN(4) {
		switch at := rng.IntN(len(b)); rng.IntN(4) {
		case 0:
			b[at] ^= 1 << rng.IntN(8)
		case 1:
			b[at] = byte(rng.IntN(256))
		case 2:
			b = append(b[:at], b[min(len(b), at+1+rng.IntN(3)):]...)
		default:
			b = slices.Insert(b, at, byte(rng.IntN(256)))
		}
		if len(b) == 0 {
			break
		}
	}
	return b
}

// post posts a request, and returns the status of the answer.
func post(t testing.TB, url string, b []byte) int {
	res := assert.Value(http.Post(url, "application/x-protobuf", bytes.NewReader(b)))(t) //nolint:bodyclose // it is closed below
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode
}

// codeOf calls a method of gRPC, and returns the code of the answer.
func codeOf(t testing.TB, client *http.Client, addr string, s wire.Signal, b []byte) string {
	message := append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(b))), b...)
	req := assert.Value(http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr+s.Method(), bytes.NewReader(message)))(t)
	req.Header.Set("Content-Type", "application/grpc")
	req.Header.Set("Te", "trailers")
	res := assert.Value(client.Do(req))(t) //nolint:bodyclose // it is closed below
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body)
	return res.Header.Get("Grpc-Status") + res.Trailer.Get("Grpc-Status")
}
