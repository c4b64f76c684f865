package otlp

import (
	"testing"

	"carronade/internal/otlp/wire"
	"carronade/test/testkit/assert"
)

// TestRecorded: settings that fit recorded requests, which a run accepts.
func TestRecorded(t *testing.T) {
	lines := []string{
		`{"resourceLogs":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"a"}},{"key":"n","value":{"intValue":"1"}}]},"scopeLogs":[{"logRecords":[` +
			`{"timeUnixNano":"1700000000000000000","severityNumber":9,"body":{"stringValue":"12345678"},"attributes":[{"key":"k","value":{"stringValue":"1234"}}]},` +
			`{"timeUnixNano":1700000001000000000,"severityNumber":17,"body":{"stringValue":"1234"},"attributes":[{"key":"k","value":{"stringValue":"12"}}]}]}]}]}`,
		`{"resourceSpans":[{"scopeSpans":[{"scope":{"attributes":[{"key":"s"}]},"spans":[` +
			`{"traceId":"0102030405060708090a0b0c0d0e0f10","endTimeUnixNano":"1700000002000000000","events":[{},{}],"status":{"code":2}},` +
			`{"traceId":"0102030405060708090a0b0c0d0e0f10","links":[{},{}]}]}]}]}`,
		`{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"name":"g","gauge":{"dataPoints":[{"asInt":"1"},{"attributes":[{"key":"x"}]}]}},{"name":"h","histogram":{"aggregationTemporality":1,"dataPoints":[{},{"timeUnixNano":"5"}]}}]}]}]}`,
	}
	r := recorded.New()
	var times []int64
	events := 0
	for _, line := range lines {
		assert.True(t, recorded.Begins([]byte(line)), "not recognized: %s", line)
		n := assert.Value(r.Add([]byte(line), func(at int64) { times = append(times, at) }))(t)
		events += n
	}
	assert.Equal(t, events, 8, "events")
	assert.Same(t, times, []int64{1700000000000000000, 1700000001000000000, 1700000002000000000, 5}, "times")
	got := map[string]string{}
	for _, f := range r.Fit() {
		got[f.Name] = f.Value
	}
	assert.Same(t, got, map[string]string{
		"signal": "traces=1,metrics=1,logs=1", "events": "3", "services": "1", "resource-attributes": "1", "scope-attributes": "0", "attributes": "0", "attribute-size": "3",
		"trace-spans": "2", "span-events": "1", "span-links": "1", "statuses": "unset=1,error=1", "metric": "gauge=2,histogram-delta=2", "series": "3", "body-size": "6", "severities": "info=1,error=1",
	}, "settings")
	spec := specOf(t, "otlp+http://127.0.0.1:1", got)
	assert.Value(newPool(spec.Options, spec, true))(t)
	for _, text := range []string{`{"resource":1}`, `["resourceSpans"]`, ``, `{"metadata":{}}`} {
		assert.True(t, !wire.IsJSON([]byte(text)), "%q is recognized", text)
	}
	_, err := r.Add([]byte(`{"resourceLogs":1}`), nil)
	assert.ErrorHas(t, err, "want a list")
}
