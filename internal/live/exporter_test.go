package live

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	metricspb "go.opentelemetry.io/proto/slim/otlp/collector/metrics/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// snapshot is the n-th interval of a run, from 1: 1,000 events sent in batches of ten, each answered after n milliseconds.
func counted(n int) load.Snapshot {
	h := measure.NewHistogram()
	h.RecordN(time.Duration(n)*time.Millisecond, 100)
	iv := measure.Interval{
		Phase: "measurement", Start: time.Duration(n-1) * time.Second, End: time.Duration(n) * time.Second,
		Counts:   measure.Counts{Offered: 1000, Sent: 1000, Acked: 990, Failed: 10, Batches: 100, Answered: 100, Bytes: 100_000, AckedBytes: 99_000, WireBytes: 120_000},
		Set:      measure.Set{Service: h},
		InFlight: uint64(n), LagEvents: -1,
		Generator: measure.Usage{CPU: 100 * time.Millisecond, RSS: 20 << 20},
	}
	iv.Statuses.Add(202, 99, 990)
	iv.Statuses.Add(503, 1, 10)
	s := load.Snapshot{At: iv.End, Phase: "measurement", Interval: iv}
	for range n {
		s.Total.Add(iv.Counts)
	}
	return s
}

var exported = ExportedRun{ID: "k3f9z0ab", Target: "kafka://127.0.0.1:9092/t", Op: "produce", Labels: map[string]string{"branch": "main", "a-b": "c"}, Repetition: 2}

// openedExporter opens an exporter and shows it three intervals.
func openedExporter(t *testing.T, o ExporterOptions) *Exporter {
	t.Helper()
	o.Version = "v1"
	h := assert.Value(OpenExporter(o))(t)
	h.Begin(exported)
	for n := range 3 {
		h.Show(counted(n + 1))
	}
	return h
}

// scrape reads the page with the parser of Prometheus's client libraries.
func scrape(t *testing.T, addr, accept string) map[string]*dto.MetricFamily {
	t.Helper()
	r, _ := http.NewRequest(http.MethodGet, "http://"+addr+"/metrics", nil)
	r.Header.Set("Accept", accept)
	resp := assert.Value(http.DefaultClient.Do(r))(t) //nolint:bodyclose // it is closed below
	defer resp.Body.Close()
	out := make(map[string]*dto.MetricFamily)
	d := expfmt.NewDecoder(resp.Body, expfmt.ResponseFormat(resp.Header))
	for {
		var f dto.MetricFamily
		if err := d.Decode(&f); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatal(err)
		}
		out[f.GetName()] = &f
	}
}

func TestPrometheus(t *testing.T) {
	h := openedExporter(t, ExporterOptions{MetricsAddr: "0"})
	defer h.Close(context.Background())
	assert.True(t, strings.HasPrefix(h.Addr(), "127.0.0.1:"), "listens on %s", h.Addr())
	for _, accept := range []string{"text/plain", string(expfmt.NewFormat(expfmt.TypeProtoDelim))} {
		t.Run(accept, func(t *testing.T) {
			got := scrape(t, h.Addr(), accept)
			for name, want := range map[string]float64{
				"carronade_offered_events_total": 3000, "carronade_acked_events_total": 2970, "carronade_failed_events_total": 30,
				"carronade_batches_total": 300, "carronade_retries_total": 0, "carronade_answered_batches_total": 300, "carronade_wire_bytes_total": 360_000, "carronade_in_flight_events": 3,
				"carronade_run_active": 1, "carronade_generator_cpu_seconds_total": 0.3,
			} {
				f := got[name]
				if f == nil {
					assert.Equal(t, want, 0, "%s is missing", name)
					continue
				}
				m := f.Metric[0]
				v := m.GetCounter().GetValue() + m.GetGauge().GetValue()
				assert.True(t, math.Abs(v-want) <= 1e-9, "%s is %v, want %v", name, v, want)
			}
			service := got["carronade_service_seconds"].GetMetric()[0].GetHistogram()
			assert.True(t, service.GetSampleCount() == 300 && math.Abs(service.GetSampleSum()-0.6) <= 1e-9,
				"service: %d samples of %v s, want 300 of 0.6", service.GetSampleCount(), service.GetSampleSum())
			for _, b := range service.Bucket {
				want := uint64(0)
				for n := 1; n <= 3; n++ {
					if float64(n)*1e-3 <= b.GetUpperBound()*1.0000001 {
						want += 100
					}
				}
				assert.Equal(t, b.GetCumulativeCount(), want, "up to %v", b.GetUpperBound())
			}
			assert.True(t, accept == "text/plain" || service.GetSchema() == scale && len(service.PositiveSpan) > 0,
				"no native buckets: %v", service)
			assert.True(t, got["carronade_response_seconds"] == nil, "there are response times of a run that has none")
			labels := make(map[string]string)
			for _, l := range got["carronade_run_info"].GetMetric()[0].GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			assert.True(t, labels["id"] == exported.ID && labels["label_branch"] == "main" &&
				labels["label_a_b"] == "c" && labels["repetition"] == "2", "run_info has %v", labels)
			codes := got["carronade_answers_total"].GetMetric()
			assert.True(t, len(codes) == 2 && codes[0].GetCounter().GetValue() == 297, "answers %v", codes)
		})
	}
	h.End()
	if got := scrape(t, h.Addr(), "text/plain"); got["carronade_run_active"].Metric[0].GetGauge().GetValue() != 0 || got["carronade_acked_events_total"] == nil {
		t.Error("after its end, the run is shown as active, or its metrics are gone")
	}
	assert.True(t, model.LegacyValidation.IsValidMetricName("carronade_acked_events_total"), "a name that Prometheus does not accept")
}

// listen receives lines.
func listen(t *testing.T) (addr string, lines <-chan string) {
	t.Helper()
	ln := assert.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { ln.Close() })
	to := make(chan string, 1000)
	go func() {
		defer close(to)
		c, err := ln.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		s := bufio.NewScanner(c)
		for s.Scan() {
			to <- s.Text()
		}
	}()
	return ln.Addr().String(), to
}

func TestGraphite(t *testing.T) {
	addr, lines := listen(t)
	h := openedExporter(t, ExporterOptions{Graphite: addr, Prefix: "lab.node 1"})
	w := h.Close(context.Background())
	assert.True(t, w == nil, "warnings %q", w)
	got := make(map[string][]string)
	for l := range lines {
		f := strings.Fields(l)
		assert.Must(t, len(f) == 3, "line %q", l)
		at, err := strconv.ParseInt(f[2], 10, 64)
		assert.True(t, err == nil && time.Since(time.Unix(at, 0)).Abs() <= time.Minute, "line %q", l)
		name, _, _ := strings.Cut(f[0], ";")
		got[name] = append(got[name], f[1])
	}
	for name, want := range map[string]string{
		"lab.node_1.sangrenel.rate":                    "990.000000",
		"lab.node_1.sangrenel.error_rate":              "1.000000",
		"lab.node_1.sangrenel.output":                  "99000.000000",
		"lab.node_1.carronade.acked_events_per_s":      "990.000000",
		"lab.node_1.carronade.wire_bytes_per_s":        "120000.000000",
		"lab.node_1.carronade.batches_batches_per_s":   "",
		"lab.node_1.carronade.in_flight_events":        "1.000000",
		"lab.node_1.carronade.service_p50_ms":          "1.000000",
		"lab.node_1.sangrenel.p99":                     "1.000000",
		"lab.node_1.carronade.response_p99_ms":         "",
		"lab.node_1.carronade.behind_events":           "",
		"lab.node_1.carronade.retries_per_s":           "0.000000",
		"lab.node_1.carronade.acked_event_bytes_per_s": "99000.000000",
		"lab.node_1.carronade.event_bytes_per_s":       "100000.000000",
		"lab.node_1.carronade.answered_batches_per_s":  "100.000000",
		"lab.node_1.carronade.batches_per_s":           "100.000000",
		"lab.node_1.carronade.dropped_events_per_s":    "0.000000",
		"lab.node_1.carronade.consumed_events_per_s":   "0.000000",
		"lab.node_1.carronade.offered_events_per_s":    "1000.000000",
		"lab.node_1.carronade.unknown_events_per_s":    "0.000000",
		"lab.node_1.carronade.end_to_end_p50_ms":       "",
		"lab.node_1.carronade.failed_events_per_s":     "10.000000",
		"lab.node_1.carronade.service_p99_ms":          "1.000000",
		"lab.node_1.carronade.sent_events_per_s":       "1000.000000",
		"lab.node_1.carronade.unsent_events_per_s":     "0.000000",
	} {
		v := got[name]
		if want == "" {
			assert.True(t, v == nil, "%s was sent", name)
			continue
		}
		assert.True(t, len(v) == 3 && v[0] == want, "%s is %q, want %s first of three", name, v, want)
	}
}

// An absent collector does not delay the run, and causes a warning.
func TestAbsent(t *testing.T) {
	const addr = testkit.ClosedPort
	logged := make(chan string, 10)
	h := assert.Value(OpenExporter(ExporterOptions{Graphite: addr, OTLP: "http://" + addr, Logf: func(f string, a ...any) { logged <- fmt.Sprintf(f, a...) }}))(t)
	h.Begin(exported)
	for n := range 3 {
		h.Show(counted(n + 1))
	}
	w := h.Close(context.Background())
	assert.True(t, len(w) == 2 && strings.Contains(w[0], "did not get 3 intervals") && strings.Contains(w[1], "refused"), "warnings %q", w)
	assert.Equal(t, len(logged), 2, "messages")
}

// A collector that does not answer is given up, and the run is not delayed.
func TestStuck(t *testing.T) {
	block := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-block }))
	defer s.Close()
	defer close(block)
	h := assert.Value(OpenExporter(ExporterOptions{OTLP: s.URL}))(t)
	h.Begin(exported)
	for n := range 100 {
		h.Show(counted(n + 1))
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	w := h.Close(ctx)
	assert.True(t, len(w) == 1 && strings.Contains(w[0], "100 intervals"), "warnings %q", w)
}

func TestOTLP(t *testing.T) {
	type sent struct {
		path, auth string
		body       otlpRequest
	}
	got := make(chan sent, 10)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var one sent
		one.path, one.auth = r.URL.Path, r.Header.Get("Authorization")
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(body, &one.body)
		}
		assert.True(t, err == nil, "%v", err)
		// It must be a valid message for OpenTelemetry's types, without unknown fields.
		var parsed metricspb.ExportMetricsServiceRequest
		err = protojson.Unmarshal(body, &parsed)
		assert.True(t, err == nil, "%v", err)
		ms := parsed.ResourceMetrics[0].ScopeMetrics[0].Metrics
		assert.True(t, len(ms) >= len(measure.Counters) && ms[0].GetSum() != nil, "as OpenTelemetry reads it: %v", &parsed)
		got <- one
		io.WriteString(w, "{}")
	}))
	defer s.Close()
	h := openedExporter(t, ExporterOptions{OTLP: s.URL, Headers: []Header{{"Authorization", "Bearer x"}}})
	w := h.Close(context.Background())
	assert.True(t, w == nil, "warnings %q", w)
	var last sent
	for range 3 {
		last = <-got
	}
	assert.True(t, last.path == "/v1/metrics" && last.auth == "Bearer x", "sent to %s with %q", last.path, last.auth)
	of := last.body.ResourceMetrics[0]
	values := make(map[string]otlpMetric)
	for _, m := range of.ScopeMetrics[0].Metrics {
		values[m.Name] = m
	}
	m := values["carronade.acked_events"]
	assert.True(t, m.Sum != nil && m.Sum.Points[0].Int == "2970" && m.Sum.Monotonic && m.Sum.Temporality == cumulative, "acked %+v", m.Sum)
	p := values["carronade.service"].Exponential.Points[0]
	assert.True(t, p.Count == "300" && p.Scale == scale && math.Abs(p.Sum-0.6) <= 1e-9 && p.Min == 1e-3 && p.Max == 3e-3, "service %+v", p)
	var n int64
	for i, text := range p.Positive.Counts {
		c, _ := strconv.ParseInt(text, 10, 64)
		n += c
		end := math.Exp2(float64(p.Positive.Offset+i+1) / (1 << scale)) // the bucket's end, by the specification
		assert.True(t, c == 0 || end >= 1e-3*0.999999 && end <= 3e-3*1.025, "bucket up to %v has %d", end, c)
	}
	assert.Equal(t, n, 300, "in buckets")
	attrs := make(map[string]string)
	for _, a := range of.Resource.Attributes {
		attrs[a.Key] = a.Value.String
	}
	assert.True(t, attrs["service.name"] == "carronade" && attrs["carronade.label.branch"] == "main", "resource %v", attrs)
}

// A refusal is reported with the collector's message and without our header.
func TestOTLPRefused(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no such tenant", http.StatusUnauthorized)
	}))
	defer s.Close()
	h := openedExporter(t, ExporterOptions{OTLP: s.URL, Headers: []Header{{"Authorization", "Bearer canary"}}})
	w := h.Close(context.Background())
	assert.True(t, len(w) == 1 && strings.Contains(w[0], "401") && strings.Contains(w[0], "no such tenant") &&
		!strings.Contains(w[0], "canary"), "warnings %q", w)
}

// A value lies above its bucket's start and not above its end.
func TestBuckets(t *testing.T) {
	for _, s := range []float64{1e-6, 2e-6, 9.999e-4, 1e-3, 1.0001e-3, 0.5, 1, 1.5, 2, 3600} {
		i := bucket(s)
		low, high := math.Exp2(float64(i-1)/(1<<scale)), math.Exp2(float64(i)/(1<<scale))
		assert.True(t, s > low*(1-1e-9) && s <= high*(1+1e-9), "%v is in the bucket from %v to %v", s, low, high)
	}
}

func TestOpenFails(t *testing.T) {
	ln := assert.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer ln.Close()
	for _, tt := range []struct {
		name string
		give ExporterOptions
		want string
	}{
		{"no port", ExporterOptions{MetricsAddr: "localhost:http9"}, "not a port"},
		{"too large a port", ExporterOptions{MetricsAddr: "localhost:70000"}, "not a port"},
		{"taken", ExporterOptions{MetricsAddr: ln.Addr().String()}, "in use"},
		{"no host and port", ExporterOptions{Graphite: "a:b:c"}, "HOST:PORT"},
		{"no URL", ExporterOptions{OTLP: "collector:4318"}, "http://"},
		{"a password", ExporterOptions{OTLP: "http://a:canary@b"}, "password"},
		{"another scheme", ExporterOptions{OTLP: "grpc://b"}, "http://"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, err := OpenExporter(tt.give)
			if err == nil {
				h.Close(context.Background())
				t.Fatal("it opened")
			}
			assert.True(t, strings.Contains(err.Error(), tt.want) && !strings.Contains(err.Error(), "canary"),
				"error %q, want %q in it", err, tt.want)
		})
	}
}

// Without a destination nothing is published.
func TestNowhere(t *testing.T) {
	h, err := OpenExporter(ExporterOptions{})
	assert.Must(t, h == nil && err == nil, "got %v, %v", h, err)
	h.Begin(exported)
	h.Show(counted(1))
	h.End()
	assert.True(t, h.Addr() == "" && h.Close(context.Background()) == nil, "a nil exporter returned something")
}
