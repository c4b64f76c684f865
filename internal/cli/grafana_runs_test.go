//go:build unix

package cli_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"carronade/test/testkit/assert"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	metricspb "go.opentelemetry.io/proto/slim/otlp/collector/metrics/v1"
	commonpb "go.opentelemetry.io/proto/slim/otlp/common/v1"
	otlppb "go.opentelemetry.io/proto/slim/otlp/metrics/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// A publishedRun is a run that serves its metrics at addr.
type publishedRun struct {
	*process
	addr string
}

var metricsAt = regexp.MustCompile(`metrics for Prometheus at http://(\S+)/metrics`)

// publishedRuns starts programs whose runs together export every metric: two runs of null://, one after the
// other, one whose system answers with codes, one that reads its events back, and one that only reads them.
// All but the last send for this length of time. Their pages stay after the runs.
func publishedRuns(t *testing.T, pushes *pushes, length string) (runs []publishedRun) {
	t.Helper()
	sends := []string{"--rate", "500/s", "--for", length}
	orders := "kafka://" + spawn(t, "kafka") + "/orders"
	for _, args := range [][]string{
		append(sends, "null://", "--label", "team=ingest", "--repeat", "2"),
		append(sends, "apm+http://"+spawn(t, "apm")),
		append(sends, orders, "--op", "roundtrip"),
		{orders, "--op", "consume", "--create-topic", "auto", "--count", "100"},
	} {
		args = append([]string{"run", "--interval", "100ms", "--quiet", "--metrics-addr", "0", "--metrics-linger", "1m", "--otlp", pushes.URL}, args...)
		r := publishedRun{process: startTrusted(t, args...)}
		r.until(t, "metrics for Prometheus at")
		r.addr = metricsAt.FindStringSubmatch(r.said.String())[1]
		runs = append(runs, r)
	}
	return runs
}

func scrapePage(t *testing.T, addr string) (out []*dto.MetricFamily) {
	t.Helper()
	r := assert.Value(http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+"/metrics", nil))(t)
	r.Header.Set("Accept", string(expfmt.NewFormat(expfmt.TypeProtoDelim)))
	resp := assert.Value(http.DefaultClient.Do(r))(t) //nolint:bodyclose // it is closed below
	defer resp.Body.Close()
	d := expfmt.NewDecoder(resp.Body, expfmt.ResponseFormat(resp.Header))
	for {
		var f dto.MetricFamily
		if err := d.Decode(&f); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatal(err)
		}
		out = append(out, &f)
	}
}

// family adds the series that Prometheus makes of a family. A histogram has native buckets, and may have classic ones.
func (e exports) family(f *dto.MetricFamily, more ...string) {
	for _, m := range f.Metric {
		labels := slices.Clone(more)
		for _, l := range m.Label {
			labels = append(labels, l.GetName())
		}
		e.add(f.GetName(), labels...)
		if h := m.Histogram; h != nil && len(h.Bucket) > 0 {
			e.add(f.GetName()+"_bucket", append(labels, "le")...)
			e.add(f.GetName()+"_sum", labels...)
			e.add(f.GetName()+"_count", labels...)
		}
	}
}

// pushes is a small receiver of OTLP. It has the last push of each run.
type pushes struct {
	*httptest.Server
	mu   sync.Mutex
	last map[string]*otlppb.ResourceMetrics // by the run's ID
}

// newPushes starts a receiver. It also serves, at /metrics, what Prometheus would make of the pushes.
func newPushes(t *testing.T) *pushes {
	p := &pushes{last: make(map[string]*otlppb.ResourceMetrics)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/metrics", func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var got metricspb.ExportMetricsServiceRequest
		if err == nil {
			err = protojson.Unmarshal(body, &got)
		}
		if err != nil {
			t.Error(err)
			return
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, m := range got.ResourceMetrics {
			p.last[attributes(m.Resource.Attributes)["service.instance.id"]] = m
		}
	})
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		format := expfmt.NewFormat(expfmt.TypeProtoDelim)
		var page bytes.Buffer
		e := expfmt.NewEncoder(&page, format)
		for _, f := range p.families() {
			err := e.Encode(f)
			assert.True(t, err == nil, "%v", err)
		}
		w.Header().Set("Content-Type", string(format))
		_, _ = page.WriteTo(w) // Prometheus may have ended
	})
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	return p
}

func attributes(list []*commonpb.KeyValue) map[string]string {
	out := make(map[string]string)
	for _, a := range list {
		out[a.Key] = a.Value.GetStringValue()
	}
	return out
}

// families are the last pushes as Prometheus stores them: names and labels by
// https://opentelemetry.io/docs/specs/otel/compatibility/prometheus_and_openmetrics/, which is what Prometheus's own receiver
// does by default. The resource becomes target_info, and job and instance of all series.
func (p *pushes) families() (out []*dto.MetricFamily) {
	p.mu.Lock()
	defer p.mu.Unlock()
	byName := make(map[string]*dto.MetricFamily)
	add := func(name string, kind dto.MetricType, m *dto.Metric) {
		f := byName[name]
		if f == nil {
			f = &dto.MetricFamily{Name: &name, Type: &kind}
			byName[name], out = f, append(out, f)
		}
		f.Metric = append(f.Metric, m)
	}
	for _, r := range p.last {
		resource := attributes(r.Resource.Attributes)
		all := map[string]string{"job": resource["service.name"], "instance": resource["service.instance.id"]}
		delete(resource, "service.name")
		delete(resource, "service.instance.id")
		labels := func(of map[string]string) (out []*dto.LabelPair) {
			for _, from := range []map[string]string{all, of} {
				for k, v := range from {
					out = append(out, &dto.LabelPair{Name: new(strings.ReplaceAll(k, ".", "_")), Value: &v})
				}
			}
			return out
		}
		add("target_info", dto.MetricType_GAUGE, &dto.Metric{Label: labels(resource), Gauge: &dto.Gauge{Value: proto.Float64(1)}})
		for _, m := range r.ScopeMetrics[0].Metrics {
			name := prometheusName(m)
			for _, v := range m.GetSum().GetDataPoints() {
				add(name, dto.MetricType_COUNTER, &dto.Metric{Label: labels(attributes(v.Attributes)), Counter: &dto.Counter{Value: number(v)}})
			}
			for _, v := range m.GetGauge().GetDataPoints() {
				add(name, dto.MetricType_GAUGE, &dto.Metric{Label: labels(attributes(v.Attributes)), Gauge: &dto.Gauge{Value: number(v)}})
			}
			for _, v := range m.GetExponentialHistogram().GetDataPoints() {
				add(name, dto.MetricType_HISTOGRAM, &dto.Metric{Label: labels(attributes(v.Attributes)), Histogram: native(v)})
			}
		}
	}
	return out
}

// prometheusName adds the unit, if the name does not contain it, and what the kind of metric
// asks for. A unit in braces is only a remark.
func prometheusName(m *otlppb.Metric) string {
	words := strings.FieldsFunc(m.Name, func(r rune) bool { return r == '.' || r == '_' })
	if unit := map[string]string{"s": "seconds", "By": "bytes"}[m.Unit]; unit != "" && !slices.Contains(words, unit) {
		words = append(words, unit)
	}
	if m.GetSum().GetIsMonotonic() {
		words = append(words, "total")
	}
	if m.Unit == "1" && m.GetGauge() != nil {
		words = append(words, "ratio")
	}
	return strings.Join(words, "_")
}

func number(p *otlppb.NumberDataPoint) *float64 {
	v := p.GetAsDouble()
	if i, ok := p.Value.(*otlppb.NumberDataPoint_AsInt); ok {
		v = float64(i.AsInt)
	}
	return &v
}

// native makes a native histogram. Its buckets have an index one higher than in OTLP.
func native(p *otlppb.ExponentialHistogramDataPoint) *dto.Histogram {
	h := &dto.Histogram{
		SampleCount: &p.Count, SampleSum: new(p.GetSum()), Schema: &p.Scale,
		ZeroThreshold: proto.Float64(0), ZeroCount: &p.ZeroCount,
		PositiveSpan: []*dto.BucketSpan{{Offset: new(p.Positive.Offset + 1), Length: new(uint32(len(p.Positive.BucketCounts)))}},
	}
	last := int64(0)
	for _, n := range p.Positive.BucketCounts {
		h.PositiveDelta = append(h.PositiveDelta, int64(n)-last)
		last = int64(n)
	}
	return h
}
