package wire_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	collogs "go.opentelemetry.io/proto/slim/otlp/collector/logs/v1"
	colmetrics "go.opentelemetry.io/proto/slim/otlp/collector/metrics/v1"
	coltrace "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"carronade/internal/otlp/wire"
	"carronade/test/testkit/assert"
)

// Requests as the Collector's file exporter writes them, with every kind of field.
const (
	jsonTraces  = `{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"a"}},{"key":"n","value":{"intValue":"-7"}},{"key":"b","value":{"bytesValue":"AQI="}},{"key":"l","value":{"arrayValue":{"values":[{"boolValue":true},{"doubleValue":1.5},{"kvlistValue":{"values":[{"key":"x"}]}}]}}}]},"scopeSpans":[{"scope":{"name":"s","version":"1"},"spans":[{"traceId":"0102030405060708090a0b0c0d0e0f10","spanId":"1112131415161718","parentSpanId":"","name":"GET /","kind":2,"startTimeUnixNano":"1700000000000000000","endTimeUnixNano":"1700000000500000000","events":[{"timeUnixNano":"1700000000100000000","name":"e"}],"links":[{"traceId":"1102030405060708090a0b0c0d0e0f10","spanId":"2112131415161718","flags":256}],"status":{"message":"no","code":2},"unknown":{"a":1}},{"traceId":"0102030405060708090a0b0c0d0e0f10","spanId":"3112131415161718","parentSpanId":"1112131415161718","name":"child"}]}],"schemaUrl":"u"}]}`
	jsonMetrics = `{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"name":"g","unit":"1","gauge":{"dataPoints":[{"timeUnixNano":"1700000000000000000","asDouble":0.5},{"timeUnixNano":1700000000000000000,"asInt":"-3"}]}},{"name":"c","sum":{"dataPoints":[{"startTimeUnixNano":"1","asInt":"9","exemplars":[{"asDouble":"NaN","spanId":"1112131415161718"}]}],"aggregationTemporality":2,"isMonotonic":true}},{"name":"h","histogram":{"dataPoints":[{"count":"3","sum":1.5,"bucketCounts":["1","2"],"explicitBounds":[10],"min":0.1,"max":1}],"aggregationTemporality":1}},{"name":"x","exponentialHistogram":{"dataPoints":[{"count":"3","scale":-2,"zeroCount":"1","positive":{"offset":-1,"bucketCounts":["1","1"]}}],"aggregationTemporality":2}},{"name":"s","summary":{"dataPoints":[{"count":"1","sum":2,"quantileValues":[{"quantile":0.5,"value":2}]}]}}]}]}]}`
	jsonLogs    = `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"timeUnixNano":"1700000000000000000","observedTimeUnixNano":"1700000000000000001","severityNumber":9,"severityText":"INFO","body":{"stringValue":"hällo"},"attributes":[{"key":"k","value":{"stringValue":"v"}}],"flags":1,"traceId":"0102030405060708090a0b0c0d0e0f10","spanId":"1112131415161718","eventName":"e"}]}]}]}`
)

func requests(t testing.TB) (of [wire.Signals][]byte) {
	for s, line := range []string{jsonTraces, jsonMetrics, jsonLogs} {
		got, request, err := wire.FromJSON([]byte(line))
		assert.OK(t, err)
		assert.Equal(t, got, wire.Signal(s), "signal")
		of[s] = request
	}
	return of
}

func emptyOf(s wire.Signal) proto.Message {
	return []proto.Message{&coltrace.ExportTraceServiceRequest{}, &colmetrics.ExportMetricsServiceRequest{}, &collogs.ExportLogsServiceRequest{}}[s]
}

// TestFromJSON: the project's own messages and those of OTLP's generated code are the same.
func TestFromJSON(t *testing.T) {
	wants := []int{2, 6, 1}
	parts := []string{`"parentSpanId":"ERITFBUWFxg="`, `"scale":-2`, `"eventName":"e"`}
	for s, request := range requests(t) {
		n := assert.Value(wire.Signal(s).Check(request))(t)
		assert.Equal(t, n, wants[s], "events")
		m := emptyOf(wire.Signal(s))
		assert.OK(t, proto.Unmarshal(request, m))
		assert.Equal(t, len(m.ProtoReflect().GetUnknown()), 0, "unknown bytes")
		var text bytes.Buffer
		assert.OK(t, json.Compact(&text, []byte(protojson.Format(m))))
		assert.True(t, strings.Contains(text.String(), parts[s]), "%s lacks %s", &text, parts[s])
	}
}

func TestFromJSONRefuses(t *testing.T) {
	for _, tt := range []struct{ line, want string }{
		{`{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"01"}]}]}]}`, "resourceSpans: scopeSpans: spans: traceId: it has 1 bytes, want 16"},
		{`{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"severityNumber":"x"}]}]}]}`, "severityNumber: want a whole number"},
		{`{"resourceLogs":{}}`, "resourceLogs: want a list"},
		{`{"resourceLogs":[1]}`, "want an object"},
		{`{"resourceLogs":[{"schemaUrl":3}]}`, "schemaUrl: want a text"},
		{`{"a":1}`, "none of resourceSpans"},
		{`{"resourceLogs":[]}}`, "text after the object"},
	} {
		_, _, err := wire.FromJSON([]byte(tt.line))
		assert.ErrorHas(t, err, tt.want)
	}
}

// TestCheckRefuses: what the Collector refuses, is refused.
func TestCheckRefuses(t *testing.T) {
	record := func(field []byte) []byte {
		return wire.AppendMessage(nil, 1, wire.AppendMessage(nil, 2, wire.AppendMessage(nil, 2, field)))
	}
	for _, tt := range []struct {
		name    string
		request []byte
		want    string
	}{
		{"unknown field", record(wire.AppendUint(nil, 99, 5)), ""},
		{"empty group", record([]byte{0x9b, 0x06, 0x9c, 0x06}), ""},
		{"group with a value", record([]byte{0x9b, 0x06, 0x98, 0x06, 0x01, 0x9c, 0x06}), "wire type 4"},
		{"type", record(wire.AppendUint(nil, 1, 5)), "timeUnixNano: it has the wire type 0, want 1"},
		{"text", record(wire.AppendString(nil, 3, "\xff")), ""},
		{"trace id", record(wire.AppendString(nil, 9, "abc")), "traceId: it has 3 bytes, want 16"},
		{"span id", record(wire.AppendString(nil, 10, "abc")), "spanId: it has 3 bytes, want 8"},
		{"cut", record(wire.AppendFixed64(nil, 1, 5))[:9], "ends within a field"},
		{"field number", record([]byte{0, 1}), "field number 0"},
		{"group without end", record([]byte{0x9b, 0x06}), "ends within a field"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n, err := wire.Logs.Check(tt.request)
			if tt.want == "" {
				assert.OK(t, err)
				assert.Equal(t, n, 1, "events")
				return
			}
			assert.ErrorHas(t, err, tt.want)
		})
	}
}

// TestStamp: times are shifted, equal ids stay equal, and those of two requests differ.
func TestStamp(t *testing.T) {
	request := requests(t)[wire.Traces]
	places, latest, err := wire.Traces.Places(request, map[string]uint64{})
	assert.OK(t, err)
	assert.Equal(t, latest, int64(1700000000500000000), "latest time")
	for form, n := range map[wire.Form]int{wire.FormTime: 3, wire.FormTraceID: 3, wire.FormSpanID: 4} {
		assert.Equal(t, len(places[form]), n, "places of form %d", form)
	}
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()
	stamped := func(batch uint64) *coltrace.ExportTraceServiceRequest {
		b := bytes.Clone(request)
		(&wire.Stamp{Key: wire.NewKey(1), Batch: batch, Time: now}).Put(b, &places)
		m := &coltrace.ExportTraceServiceRequest{}
		assert.OK(t, proto.Unmarshal(b, m))
		return m
	}
	a, b := stamped(1).ResourceSpans[0].ScopeSpans[0].Spans, stamped(2).ResourceSpans[0].ScopeSpans[0].Spans
	assert.Equal(t, a[0].EndTimeUnixNano, uint64(now), "end")
	assert.Equal(t, a[0].EndTimeUnixNano-a[0].StartTimeUnixNano, 500000000, "duration")
	assert.Equal(t, a[1].StartTimeUnixNano, 0, "a time that was not set")
	assert.Same(t, a[1].ParentSpanId, a[0].SpanId)
	assert.Same(t, a[1].TraceId, a[0].TraceId)
	assert.True(t, !bytes.Equal(a[0].TraceId, b[0].TraceId) && !bytes.Equal(a[0].SpanId, b[0].SpanId), "two requests share ids")
}

func TestStampForms(t *testing.T) {
	b := make([]byte, 40)
	s := wire.Stamp{Time: 5e9, Start: 3e9, Points: 7, Series: 10, First: 20}
	s.Put(b, &wire.Places{wire.FormStart: {{At: 0}}, wire.FormCount: {{At: 8, Val: 3}}, wire.FormSeries: {{At: 16, Val: 4}}})
	assert.Equal(t, binary.LittleEndian.Uint64(b), uint64(3e9), "start")
	assert.Equal(t, binary.LittleEndian.Uint64(b[8:]), 6000, "count after 2,000 ms")
	assert.Equal(t, string(b[16:26]), "0000000021", "series")
}

func TestAnswers(t *testing.T) {
	for _, p := range []wire.Partial{{}, {Rejected: 3, Message: "no"}, {Message: "a warning"}} {
		got := assert.Value(wire.ReadAnswer(wire.AppendAnswer(nil, p)))(t)
		assert.Same(t, got, p)
	}
	for _, s := range []wire.Status{{}, {Code: 14, Message: "busy"}, {Code: 8, Retry: 1500 * time.Millisecond, Retries: true}, {Code: 8, Retries: true}} {
		got := assert.Value(wire.ReadStatus(wire.AppendStatus(nil, s)))(t)
		assert.Same(t, got, s)
	}
}

// FuzzCheck: every place of an accepted request is within it, and what is written there keeps it valid.
func FuzzCheck(f *testing.F) {
	for s, request := range requests(f) {
		f.Add(uint8(s), request)
	}
	f.Fuzz(func(t *testing.T, s uint8, request []byte) {
		signal := wire.Signal(s % uint8(wire.Signals))
		if _, err := signal.Check(request); err != nil {
			return
		}
		places, _, err := signal.Places(request, map[string]uint64{})
		assert.OK(t, err)
		b := slices.Clone(request)
		(&wire.Stamp{Batch: 1, Time: 1e18}).Put(b, &places)
		assert.Value(signal.Check(b))(t, "a stamped request is refused")
	})
}

// FuzzFromJSON: what FromJSON accepts, Check accepts.
func FuzzFromJSON(f *testing.F) {
	for _, line := range []string{jsonTraces, jsonMetrics, jsonLogs} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		s, request, err := wire.FromJSON(line)
		if err != nil {
			return
		}
		_, err = s.Check(request)
		assert.Must(t, err == nil || strings.Contains(err.Error(), "nested too deep"), "%x: %v", request, err)
	})
}

// FuzzReadStatus: nothing that a server sends ends the program.
func FuzzReadStatus(f *testing.F) {
	f.Add(wire.AppendStatus(nil, wire.Status{Code: 8, Message: "m", Retry: time.Second, Retries: true}))
	f.Fuzz(func(_ *testing.T, b []byte) { _, _ = wire.ReadStatus(b); _, _ = wire.ReadAnswer(b) })
}

// TestContent: generated requests have their events, and every fresh value is written where its field is.
func TestContent(t *testing.T) {
	all := &wire.Content{
		Services: 3, ResourceAttributes: 3, ScopeAttributes: 1, Attributes: 2, AttributeSize: 9, BodySize: 50, Severities: [6]int{1, 1, 1, 1, 1, 1},
		TraceSpans: 5, SpanEvents: 2, SpanLinks: 1, Statuses: [3]int{1, 1, 1}, Metrics: [wire.MetricKinds]int{1, 1, 1, 1, 1, 1, 1}, Seed: 1,
	}
	for _, c := range []*wire.Content{all, {}} {
		for s := range wire.Signals {
			for _, events := range []int{1, 7, 64} {
				body := c.Make(s, 5, events)
				n := assert.Value(s.Check(body.Bytes))(t)
				assert.Equal(t, n, events, "events")
				assert.True(t, bytes.Equal(body.Bytes, c.Make(s, 5, events).Bytes), "the same body is made again differently")
				now := time.Now().UnixNano()
				(&wire.Stamp{Key: 1, Batch: 1, Time: now, Start: now - 1e9, Series: 10}).Put(body.Bytes, &body.Places)
				m := emptyOf(s)
				assert.OK(t, proto.Unmarshal(body.Bytes, m))
				assert.Equal(t, len(m.ProtoReflect().GetUnknown()), 0, "unknown bytes")
				_, latest, err := s.Places(body.Bytes, map[string]uint64{})
				assert.OK(t, err)
				assert.Equal(t, latest, now, "latest time")
			}
		}
	}
	spans := all.Make(wire.Traces, 0, 12)
	(&wire.Stamp{Time: time.Now().UnixNano()}).Put(spans.Bytes, &spans.Places)
	m := &coltrace.ExportTraceServiceRequest{}
	assert.OK(t, proto.Unmarshal(spans.Bytes, m))
	parents := map[string]string{} // by span: its trace
	for i, s := range m.ResourceSpans[0].ScopeSpans[0].Spans {
		if len(s.ParentSpanId) == 0 {
			assert.Equal(t, i%5, 0, "the place of a root")
		} else {
			assert.Equal(t, parents[string(s.ParentSpanId)], string(s.TraceId), "trace of the parent")
		}
		assert.True(t, s.StartTimeUnixNano <= s.EndTimeUnixNano, "a span ends before it starts")
		parents[string(s.SpanId)] = string(s.TraceId)
	}
	points := all.Make(wire.Metrics, 0, 200)
	(&wire.Stamp{Time: 5e9, Start: 1e9, Series: 1}).Put(points.Bytes, &points.Places)
	k := &colmetrics.ExportMetricsServiceRequest{}
	assert.OK(t, proto.Unmarshal(points.Bytes, k))
	for _, x := range k.ResourceMetrics[0].ScopeMetrics[0].Metrics {
		for _, p := range x.GetHistogram().GetDataPoints() {
			sum := uint64(0)
			for _, n := range p.BucketCounts {
				sum += n
			}
			assert.Equal(t, p.Count, sum, "count of "+x.Name)
		}
		for _, p := range x.GetExponentialHistogram().GetDataPoints() {
			sum := p.ZeroCount
			for _, n := range p.Positive.BucketCounts {
				sum += n
			}
			assert.Equal(t, p.Count, sum, "count of "+x.Name)
		}
	}
}
