package live

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"carronade/internal/conn"
	"carronade/measure"
	"carronade/protocol"
)

// A collector gets metrics by OTLP over HTTP with JSON bodies, one request per
// interval (https://opentelemetry.io/docs/specs/otlp/#otlphttp; the messages are
// those of opentelemetry-proto's metrics.proto in protobuf's JSON mapping, where
// 64-bit numbers are strings).
type collector struct {
	*sender
	url     string
	headers []Header
	version string
	client  *http.Client
}

func newCollector(o ExporterOptions) (*collector, error) {
	u, err := url.Parse(o.OTLP)
	switch {
	case err != nil:
		return nil, &protocol.Error{Doing: "read --otlp", Err: errors.New("it is not a URL"), Hint: otlpHint}
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, &protocol.Error{Doing: "read --otlp", Err: fmt.Errorf("%s is not an http:// or https:// URL", u.Redacted()), Hint: otlpHint}
	case u.User != nil:
		return nil, &protocol.Error{Doing: "read --otlp", Err: errors.New("a password in a URL is visible to others"), Hint: "give --otlp-header 'Authorization=env:NAME'"}
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/metrics" // the specification's path for a base URL
	}
	c := &collector{url: u.String(), headers: o.Headers, version: o.Version}
	c.client = conn.HTTPClient(http.DefaultTransport.(*http.Transport).Clone())
	c.client.Timeout = collectorTimeout
	c.sender = newSender("the OTLP collector at "+u.Redacted(), o.Logf, nil, c.send)
	return c, nil
}

const otlpHint = "give the base URL of a collector, such as http://127.0.0.1:4318, or its whole URL for metrics"

func (c *collector) send(ctx context.Context, p *point) error {
	body, err := json.Marshal(c.request(p))
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "carronade")
	for _, h := range c.headers {
		r.Header.Set(h.Name, h.Value)
	}
	resp, err := c.client.Do(r)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err // the message already names the URL
		}
		return err
	}
	defer resp.Body.Close()
	reply, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	if resp.StatusCode/100 != 2 {
		text := strings.Join(strings.Fields(string(reply)), " ")
		if len(text) > 200 {
			text = text[:200]
		}
		return fmt.Errorf("it answered %d %s: %s", resp.StatusCode, http.StatusText(resp.StatusCode), strconv.QuoteToGraphic(text))
	}
	var answer struct {
		PartialSuccess struct {
			Rejected any    `json:"rejectedDataPoints"`
			Message  string `json:"errorMessage"`
		} `json:"partialSuccess"`
	}
	if json.Unmarshal(reply, &answer) == nil {
		switch fmt.Sprint(answer.PartialSuccess.Rejected) { // a number, or a string of one
		case "<nil>", "0", "":
		default:
			return fmt.Errorf("it accepted only a part: %s", strconv.QuoteToGraphic(answer.PartialSuccess.Message))
		}
	}
	return nil
}

// The parts of the messages that are used.
type (
	otlpRequest struct {
		ResourceMetrics []otlpResourceMetrics `json:"resourceMetrics"`
	}
	otlpResourceMetrics struct {
		Resource     otlpResource       `json:"resource"`
		ScopeMetrics []otlpScopeMetrics `json:"scopeMetrics"`
	}
	otlpResource struct {
		Attributes []otlpAttribute `json:"attributes"`
	}
	otlpScopeMetrics struct {
		Scope   otlpScope    `json:"scope"`
		Metrics []otlpMetric `json:"metrics"`
	}
	otlpScope struct {
		Name    string `json:"name"`
		Version string `json:"version,omitempty"`
	}
	otlpAttribute struct {
		Key   string    `json:"key"`
		Value otlpValue `json:"value"`
	}
	otlpValue struct {
		String string `json:"stringValue"`
	}
	otlpMetric struct {
		Name        string           `json:"name"`
		Description string           `json:"description,omitempty"`
		Unit        string           `json:"unit,omitempty"`
		Sum         *otlpSum         `json:"sum,omitempty"`
		Gauge       *otlpGauge       `json:"gauge,omitempty"`
		Exponential *otlpExponential `json:"exponentialHistogram,omitempty"`
	}
	otlpSum struct {
		Points      []otlpNumber `json:"dataPoints"`
		Temporality int          `json:"aggregationTemporality"`
		Monotonic   bool         `json:"isMonotonic"`
	}
	otlpGauge struct {
		Points []otlpNumber `json:"dataPoints"`
	}
	otlpNumber struct {
		Attributes []otlpAttribute `json:"attributes,omitempty"`
		Start      string          `json:"startTimeUnixNano,omitempty"`
		Time       string          `json:"timeUnixNano"`
		Int        string          `json:"asInt,omitempty"`
		Double     *float64        `json:"asDouble,omitempty"`
	}
	otlpExponential struct {
		Points      []otlpExponentialPoint `json:"dataPoints"`
		Temporality int                    `json:"aggregationTemporality"`
	}
	otlpExponentialPoint struct {
		Attributes []otlpAttribute `json:"attributes,omitempty"`
		Start      string          `json:"startTimeUnixNano"`
		Time       string          `json:"timeUnixNano"`
		Count      string          `json:"count"`
		Sum        float64         `json:"sum"`
		Scale      int             `json:"scale"`
		Zero       string          `json:"zeroCount"`
		Positive   otlpBuckets     `json:"positive"`
		Min        float64         `json:"min"`
		Max        float64         `json:"max"`
	}
	otlpBuckets struct {
		Offset int      `json:"offset"`
		Counts []string `json:"bucketCounts"`
	}
)

// cumulative is AGGREGATION_TEMPORALITY_CUMULATIVE: counts since the start.
const cumulative = 2

// request makes the message of a point.
func (c *collector) request(p *point) otlpRequest {
	start, at := nanos(p.began), nanos(p.at)
	series := []otlpAttribute{attribute("target", p.run.Target), attribute("op", p.run.Op)} // also in the resource, which many stores do not show with a series
	var metrics []otlpMetric
	for _, k := range measure.Counters {
		metrics = append(metrics, otlpMetric{
			Name: "carronade." + k.Metric, Description: k.Help, Unit: map[string]string{"events": "{event}", "batches": "{batch}", "bytes": "By"}[k.Unit],
			Sum: &otlpSum{Temporality: cumulative, Monotonic: true, Points: []otlpNumber{{Attributes: series, Start: start, Time: at, Int: formatUint(k.Of(&p.counts))}}},
		})
	}
	if len(p.statuses) > 0 {
		m := otlpMetric{Name: "carronade.answers", Description: "Batches answered, by status code.", Unit: "{batch}", Sum: &otlpSum{Temporality: cumulative, Monotonic: true}}
		for _, s := range p.statuses {
			m.Sum.Points = append(m.Sum.Points, otlpNumber{Attributes: append(slices.Clone(series), attribute("code", strconv.Itoa(s.Code))), Start: start, Time: at, Int: formatUint(s.Batches)})
		}
		metrics = append(metrics, m)
	}
	gauge := func(name, help, unit string, n uint64) {
		metrics = append(metrics, otlpMetric{Name: "carronade." + name, Description: help, Unit: unit, Gauge: &otlpGauge{Points: []otlpNumber{{Attributes: series, Time: at, Int: formatUint(n)}}}})
	}
	gauge("run_active", "1 during the run, 0 after it.", "1", uint64(oneIf(p.running)))
	gauge("in_flight_events", "Events sent and not yet done.", "{event}", p.inFlight)
	if p.behind >= 0 && p.counts.Consumed > 0 {
		gauge("behind_events", "Consuming: events behind the end of the logs.", "{event}", uint64(p.behind))
	}
	for _, g := range p.groups {
		of := append(slices.Clone(series), attribute("group", g.name))
		metrics = append(metrics, otlpMetric{
			Name: "carronade.group_consumed_events", Description: groupConsumedHelp, Unit: "{event}",
			Sum: &otlpSum{Temporality: cumulative, Monotonic: true, Points: []otlpNumber{{Attributes: of, Start: start, Time: at, Int: formatUint(g.consumed)}}},
		}, otlpMetric{
			Name: "carronade.group_backlog_events", Description: groupBacklogHelp, Unit: "{event}",
			Gauge: &otlpGauge{Points: []otlpNumber{{Attributes: of, Time: at, Int: formatUint(g.backlog)}}},
		})
	}
	gauge("generator.resident_memory", "Resident memory of the generator.", "By", p.usage.RSS)
	cpu := p.usage.CPU.Seconds()
	metrics = append(metrics, otlpMetric{
		Name: "carronade.generator.cpu_time", Description: "Processor time of the generator.", Unit: "s",
		Sum: &otlpSum{Temporality: cumulative, Monotonic: true, Points: []otlpNumber{{Attributes: series, Start: start, Time: at, Double: &cpu}}},
	})
	for i := range p.times {
		metrics = append(metrics, p.times[i].otlp(series, start, at))
	}
	return otlpRequest{ResourceMetrics: []otlpResourceMetrics{{
		Resource:     otlpResource{Attributes: c.resource(p.run)},
		ScopeMetrics: []otlpScopeMetrics{{Scope: otlpScope{Name: "carronade", Version: c.version}, Metrics: metrics}},
	}}}
}

// resource are the attributes that identify the run.
func (c *collector) resource(r ExportedRun) []otlpAttribute {
	out := []otlpAttribute{
		attribute("service.name", "carronade"), attribute("service.instance.id", r.ID),
		attribute("carronade.target", r.Target), attribute("carronade.op", r.Op),
		attribute("carronade.repetition", strconv.Itoa(max(r.Repetition, 1))),
	}
	if c.version != "" {
		out = append(out, attribute("service.version", c.version))
	}
	for _, k := range slices.Sorted(maps.Keys(r.Labels)) {
		out = append(out, attribute("carronade.label."+k, r.Labels[k]))
	}
	return out
}

func attribute(key, value string) otlpAttribute {
	return otlpAttribute{Key: key, Value: otlpValue{String: value}}
}

// otlp converts the histogram to a metric.
func (e *exponential) otlp(series []otlpAttribute, start, at string) otlpMetric {
	p := otlpExponentialPoint{
		Attributes: series, Start: start, Time: at, Count: formatUint(e.count), Sum: e.sum, Scale: scale, Zero: "0",
		Min: e.min, Max: e.max, Positive: otlpBuckets{Counts: []string{}},
	}
	if len(e.buckets) > 0 {
		lo, hi := 1<<30, -1<<30
		for i := range e.buckets {
			lo, hi = min(lo, i), max(hi, i)
		}
		p.Positive.Offset = lo - 1 // OTLP's bucket i begins where Prometheus's ends
		for i := lo; i <= hi; i++ {
			p.Positive.Counts = append(p.Positive.Counts, strconv.FormatInt(e.buckets[i], 10))
		}
	}
	return otlpMetric{
		Name: "carronade." + e.name, Description: e.help, Unit: "s",
		Exponential: &otlpExponential{Temporality: cumulative, Points: []otlpExponentialPoint{p}},
	}
}

func formatUint(n uint64) string { return strconv.FormatUint(n, 10) }

func nanos(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }
