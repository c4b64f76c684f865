package otlp

import (
	"encoding/binary"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	collogs "go.opentelemetry.io/proto/slim/otlp/collector/logs/v1"
	colmetrics "go.opentelemetry.io/proto/slim/otlp/collector/metrics/v1"
	coltrace "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"carronade/internal/otlp/standin"
	"carronade/internal/otlp/wire"
	"carronade/load"
	"carronade/protocol"
	"carronade/protocol/protocoltest"
	"carronade/test/testkit/assert"
)

// A recorder keeps the requests over HTTP.
type recorder struct {
	*httptest.Server
	mu     sync.Mutex
	heads  []http.Header
	bodies [][]byte
	paths  []string
}

func newRecorder(t testing.TB) *recorder {
	t.Helper()
	k := &recorder{}
	k.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body := make([]byte, max(0, r.ContentLength))
		for n := 0; n < len(body); {
			m, err := r.Body.Read(body[n:])
			if n += m; err != nil {
				break
			}
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		if len(body) > 0 { // no probe
			k.heads, k.bodies, k.paths = append(k.heads, r.Header), append(k.bodies, body), append(k.paths, r.URL.Path)
		}
	}))
	t.Cleanup(k.Close)
	return k
}

// sent sends events and returns the bodies of a signal.
func (k *recorder) sent(t testing.TB, events uint64, given map[string]string) *recorder {
	t.Helper()
	given["clients"] = "1"
	counted(t, send(t, "otlp+"+k.URL, events, given), events, 0, 0)
	k.Close() // waits for the handlers
	return k
}

// decoded decodes the bodies.
func decoded[M proto.Message](t testing.TB, k *recorder, empty func() M) (list []M) {
	t.Helper()
	for _, b := range k.bodies {
		m := empty()
		assert.OK(t, proto.Unmarshal(b, m))
		list = append(list, m)
	}
	return list
}

// TestFresh: no id is sent twice, and times are those of sending.
func TestFresh(t *testing.T) {
	t.Parallel()
	began := time.Now()
	k := newRecorder(t).sent(t, 1000, map[string]string{"events": "10", "trace-spans": "5", "pool": "1KiB"})
	seen := map[string]bool{}
	for _, m := range decoded(t, k, func() *coltrace.ExportTraceServiceRequest { return &coltrace.ExportTraceServiceRequest{} }) {
		for _, s := range m.ResourceSpans[0].ScopeSpans[0].Spans {
			assert.True(t, !seen[string(s.SpanId)], "a span's id is sent twice")
			seen[string(s.SpanId)] = true
			at := time.Unix(0, int64(s.EndTimeUnixNano))
			assert.True(t, at.After(began.Add(-time.Second)) && at.Before(time.Now().Add(time.Second)), "a span of %v", at)
		}
	}
	assert.Equal(t, len(seen), 1000, "spans")
}

// TestSeries: as many series as were asked for, and new ones as time goes on.
func TestSeries(t *testing.T) {
	for _, tt := range []struct {
		perSecond string
		more      bool
	}{{"0", false}, {"1000000", true}} {
		k := newRecorder(t).sent(t, 500, map[string]string{"signal": "metrics", "events": "10", "series": "30", "series-per-second": tt.perSecond, "attributes": "0"})
		seen := map[string]bool{}
		for _, m := range decoded(t, k, func() *colmetrics.ExportMetricsServiceRequest { return &colmetrics.ExportMetricsServiceRequest{} }) {
			for _, p := range m.ResourceMetrics[0].ScopeMetrics[0].Metrics[0].GetGauge().DataPoints {
				seen[p.Attributes[0].Value.GetStringValue()] = true
			}
		}
		assert.True(t, tt.more && len(seen) > 30 || !tt.more && len(seen) == 30, "%d series with %s new ones each second", len(seen), tt.perSecond)
	}
}

// TestHeaders: tenants differ between requests, and secrets come from the environment.
func TestHeaders(t *testing.T) {
	t.Setenv("OTLP_TOKEN", "Bearer s3cret")
	k := newRecorder(t)
	s := protocoltest.Spec(t, options(), "otlp+"+k.URL, map[string][]string{
		"events": {"1"}, "clients": {"1"}, "header": {"X-Scope-OrgID: t-${rnd.nextInt(5)}", "Authorization: env:OTLP_TOKEN"},
	})
	counted(t, fire(t, openSpec(t, s), load.Plan{Measurement: load.Limits{Events: 200}}), 200, 0, 0)
	k.Close() // waits for the handlers
	tenants := map[string]bool{}
	for _, h := range k.heads {
		tenants[h.Get("X-Scope-OrgID")] = true
		assert.Equal(t, h.Get("Authorization"), "Bearer s3cret", "authorization")
	}
	assert.Equal(t, len(tenants), 5, "tenants")
}

// TestCorpus: recorded requests are replayed, as lines of JSON and in protobuf.
func TestCorpus(t *testing.T) {
	t.Parallel()
	const line = `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"timeUnixNano":"1000","body":{"stringValue":"a"},"traceId":"0102030405060708090a0b0c0d0e0f10"},{"timeUnixNano":"900","traceId":"0102030405060708090a0b0c0d0e0f10"}]}]}]}`
	_, request, err := wire.FromJSON([]byte(line))
	assert.OK(t, err)
	dir := t.TempDir()
	files := map[string][]byte{
		"json":  []byte(line + "\n\n" + line), // the last line has no end
		"proto": append(binary.BigEndian.AppendUint32(nil, uint32(len(request))), request...),
		"cut":   append(binary.BigEndian.AppendUint32(nil, uint32(len(request))), request[:9]...),
		"bad":   []byte(line + "\n{\"resourceLogs\":[1]}\n"),
		"empty": []byte("{\"resourceLogs\":[]}\n"),
	}
	for name, data := range files {
		assert.OK(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
	for _, tt := range []struct{ file, want string }{
		{"json", ""}, {"proto", ""}, {"cut", "request 1: the message ends within a field"}, {"bad", "request 2: resourceLogs: want an object"}, {"empty", "there are no events"}, {"none", "no such file"},
	} {
		k := newRecorder(t)
		options := map[string]string{"corpus": filepath.Join(dir, tt.file), "signal": "logs"}
		if tt.want != "" {
			assert.ErrorHas(t, Kind{}.Check(specOf(t, "otlp+"+k.URL, options)), tt.want)
			continue
		}
		k.sent(t, 8, options)
		traces := map[string]bool{}
		for _, m := range decoded(t, k, func() *collogs.ExportLogsServiceRequest { return &collogs.ExportLogsServiceRequest{} }) {
			r := m.ResourceLogs[0].ScopeLogs[0].LogRecords
			assert.Equal(t, r[0].TimeUnixNano-r[1].TimeUnixNano, 100, "time between two records")
			assert.True(t, time.Since(time.Unix(0, int64(r[0].TimeUnixNano))) < time.Hour, "an old time")
			assert.Same(t, r[0].TraceId, r[1].TraceId)
			traces[string(r[0].TraceId)] = true
		}
		assert.Equal(t, k.paths[0], "/v1/logs", "path")
		assert.Equal(t, len(traces), map[string]int{"json": 2, "proto": 4}[tt.file], "passes over the file")
	}
	s := openSpec(t, specOf(t, "otlp+"+newRecorder(t).URL, map[string]string{"corpus": filepath.Join(dir, "json"), "clients": "1"}))
	r := fire(t, s, load.Plan{Measurement: load.Limits{Events: 3}})
	assert.Equal(t, r.Measurement.Acked, 2, "events of whole requests")
	assert.Equal(t, len(s.Warnings()), 1, "warnings")
}

// TestMix: signals are sent by their weights.
func TestMix(t *testing.T) {
	t.Parallel()
	s := start(t, standin.Options{})
	counted(t, send(t, "otlp+http://"+s.Addr(), 10000, map[string]string{"signal": "traces=1,metrics=2,logs=2", "events": "10", "pool": "300KiB", "clients": "1"}), 10000, 0, 0)
	c := s.Counts()
	for signal, share := range []float64{0.2, 0.4, 0.4} {
		got := float64(c.Accepted[signal]) / 10000
		assert.True(t, got > share-0.05 && got < share+0.05, "%v of the events are %v, want %v", got, wire.Signal(signal), share)
	}
}

// TestRefusedSettings: what is wrong is said before anything is sent, with the way out.
func TestRefusedSettings(t *testing.T) {
	t.Parallel()
	const http = "otlp+http://127.0.0.1:1"
	for _, tt := range []struct {
		url         string
		given       map[string]string
		error, hint string
	}{
		{"otlp+http://127.0.0.1:1/v1/traces", nil, "no path of a signal", "--signal"},
		{"otlp+grpc://127.0.0.1:1/x", nil, "has no path", "otlp+grpc://host:4317"},
		{"otlp+http://a:b@127.0.0.1:1", nil, "user or a password", "--header"},
		{http, map[string]string{"signal": "profiles"}, `"profiles": want one of traces, metrics, logs`, "--signal"},
		{http, map[string]string{"signal": "traces=0"}, "all weights are 0", "--signal"},
		{http, map[string]string{"metric": "gauge=x"}, "a weight is a whole number", "--metric"},
		{http, map[string]string{"events": "0"}, "1 to 100000", "--help-all"},
		{http, map[string]string{"clients": "70000"}, "out of range", "65536"},
		{http, map[string]string{"tls-ca": "x"}, "without TLS", "otlp+https"},
		{http, map[string]string{"header": "Authorization: abc"}, "is a secret", "env:NAME"},
		{http, map[string]string{"header": "X-A: ${nope("}, "at ", "X-Scope-OrgID"},
	} {
		protocoltest.Explained(t, Kind{}.Check(specOf(t, tt.url, tt.given)), tt.error, tt.hint)
	}
}

// TestHeaderOfEnvironment: a variable cannot begin another header.
func TestHeaderOfEnvironment(t *testing.T) {
	t.Setenv("OTLP_TENANT", "a\r\nX-B: b")
	err := Kind{}.Check(specOf(t, "otlp+http://127.0.0.1:1", map[string]string{"header": "X-A: ${env:get('OTLP_TENANT')}"}))
	protocoltest.Explained(t, err, "contains a line break", "one line of text")
}

// TestUnreachable: what cannot take requests is found before the run, with what to check.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	s := start(t, standin.Options{})
	secure := newFront(t, s, true)
	other := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(other.Close)
	wants := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	t.Cleanup(wants.Close)
	for _, tt := range []struct{ url, error, hint string }{
		{"otlp+http://127.0.0.1:1", "connection refused", "nothing listens there"},
		{"otlp+grpc://127.0.0.1:1", "connection refused", "nothing listens there"},
		{"otlp+" + other.URL, "404 Not Found", "no OTLP receiver answers there"},
		{"otlp+" + wants.URL, "401 Unauthorized", "--header 'Authorization: env:NAME'"},
		{"otlp+grpc://" + other.Listener.Addr().String(), "", "port"},
		{"otlp+http://" + secure.Listener.Addr().String(), "speaks TLS", "otlp+https://"},
		{"otlp+https://" + s.Addr(), "", "otlp+http://"},
		{"otlp+grpcs://" + secure.Listener.Addr().String(), "certificate", "--tls-ca"},
	} {
		_, err := Kind{}.Open(t.Context(), specOf(t, tt.url, nil))
		protocoltest.Explained(t, err, tt.error, tt.hint)
		_, err = Kind{}.Inspect(t.Context(), specOf(t, tt.url, nil))
		protocoltest.Explained(t, err, tt.error, tt.hint)
	}
	inspect := protocoltest.Inspector(t, Kind{})
	inspect("HTTP", specOf(t, "otlp+http://"+s.Addr(), nil), "receiver", protocol.LevelOK, "stand-in")
	inspect("gRPC", specOf(t, "otlp+grpc://"+s.GRPCAddr(), nil), "receiver", protocol.LevelOK, "stand-in")
	inspect("one of two", specOf(t, "otlp+http://"+s.Addr()+",127.0.0.1:1", nil), "address 127.0.0.1:1", protocol.LevelError, "does not answer as an OTLP receiver")
}

// TestNeeds: large requests are priced without making them, from below, and those that no server takes are refused.
func TestNeeds(t *testing.T) {
	t.Parallel()
	for _, options := range []map[string]string{
		{"signal": "traces", "span-events": "3", "span-links": "2", "attributes": "40"},
		{"signal": "metrics", "metric": "gauge=1,histogram=1,exponential=1"},
		{"signal": "logs", "attributes": "0", "resource-attributes": "0"},
		{"signal": "logs", "body-size": "1MiB", "events": "3", "pool": "1"},
		{"signal": "traces=1,logs=1", "attributes": "20", "attribute-size": "50KiB", "events": "1"},
	} {
		spec := specOf(t, "otlp+http://127.0.0.1:1", options)
		p := assert.Value(newPool(spec.Options, spec, true))(t)
		p.make()
		made := int64(0)
		for _, b := range p.bodies {
			made = max(made, int64(len(b.Bytes)))
		}
		price := protocol.MemoryOf(Kind{}.Needs(spec)[:1])
		assert.True(t, price <= 2*made && price > made/2, "%v: a request of %d bytes is priced as %d", options, made, price)
	}
	spec := specOf(t, "otlp+http://127.0.0.1:1", map[string]string{"attributes": "1000", "attribute-size": "1MiB"})
	_, err := newPool(spec.Options, spec, true)
	assert.ErrorHas(t, err, "one has more than 1 GiB")
}
