package standin

import (
	"bytes"
	"encoding/binary"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"carronade/internal/otlp/wire"
	"carronade/internal/standin"
	"carronade/test/testkit/assert"
)

func begin(t testing.TB, o Options) *Server {
	t.Helper()
	o.Listen = "127.0.0.1:0"
	s := assert.Value(Start(o))(t)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// request has three log records.
func request() []byte { return (&wire.Content{Services: 1}).Make(wire.Logs, 0, 3).Bytes }

const jsonRequest = `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":"a"}},{}]}]}]}`

// ask posts a request, and returns status, body and headers of the answer.
func ask(t testing.TB, url, media string, body []byte, headers ...string) (int, string, http.Header) {
	t.Helper()
	req := assert.Value(http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(body)))(t)
	req.Header.Set("Content-Type", media)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	client := http.Client{Transport: &http.Transport{Protocols: new(http.Protocols), DisableKeepAlives: true}}
	grpc := strings.HasPrefix(media, typeGRPC)
	client.Transport.(*http.Transport).Protocols.SetUnencryptedHTTP2(grpc)
	client.Transport.(*http.Transport).Protocols.SetHTTP1(!grpc)
	defer client.CloseIdleConnections()
	res, err := client.Do(req)
	if err != nil {
		return 0, err.Error(), nil
	}
	defer res.Body.Close()
	text := assert.Value(io.ReadAll(res.Body))(t)
	for k, v := range res.Trailer {
		res.Header[k] = v
	}
	return res.StatusCode, string(text), res.Header
}

// TestAnswers: requests over HTTP, and what the Collector answers to them.
func TestAnswers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, rule, path, media string
		body                    []byte
		headers                 []string
		status                  int
		want                    string
		events                  uint64
	}{
		{"protobuf", "", "/v1/logs", typeProto, request(), nil, 200, "", 3},
		{"nothing", "", "/v1/logs", typeProto, nil, nil, 200, "", 0},
		{"JSON", "", "/v1/logs", typeJSON + "; charset=utf-8", []byte(jsonRequest), nil, 200, `{"partialSuccess":{}}`, 2},
		{"JSON of another signal", "", "/v1/traces", typeJSON, []byte(jsonRequest), nil, 200, "", 0},
		{"empty JSON", "", "/v1/logs", typeJSON, []byte("{}"), nil, 200, "", 0},
		{"bad JSON", "", "/v1/logs", typeJSON, []byte(`{"resourceLogs":1}`), nil, 400, "want a list", 0},
		{"invalid", "", "/v1/logs", typeProto, []byte("x"), nil, 400, "ends within a field", 0},
		{"another type", "", "/v1/logs", "text/plain", request(), nil, 415, "unsupported media type", 0},
		{"another path", "", "/v2/logs", typeProto, request(), nil, 404, "", 0},
		{"another encoding", "", "/v1/logs", typeProto, request(), []string{"Content-Encoding", "br"}, 400, "unsupported Content-Encoding", 0},
		{"not gzip", "", "/v1/logs", typeProto, request(), []string{"Content-Encoding", "gzip"}, 400, "gzip", 0},
		{"too large", "", "/v1/logs", typeProto, make([]byte, 2000), nil, 413, "too large", 0},
		{"full", "queue-full@100%", "/v1/logs", typeProto, request(), nil, 503, "queue is full", 0},
		{"partial", "partial@100%", "/v1/logs", typeProto, request(), nil, 200, "refused by a rule", 2},
		{"partial in JSON", "partial@100%", "/v1/logs", typeJSON, []byte(jsonRequest), nil, 200, `"rejectedLogRecords":"1"`, 1},
		{"reset", "reset@100%", "/v1/logs", typeProto, request(), nil, 0, "EOF", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := Options{MaxBody: 1000, RetryAfter: 1500 * time.Millisecond}
			if tt.rule != "" {
				r := assert.Value(ParseErrorRule(tt.rule))(t)
				o.Errors = []ErrorRule{r}
			}
			s := begin(t, o)
			status, text, header := ask(t, "http://"+s.Addr()+tt.path, tt.media, tt.body, tt.headers...)
			assert.Equal(t, status, tt.status, "status")
			assert.True(t, strings.Contains(text, tt.want), "answered %q, want %q", text, tt.want)
			assert.Equal(t, s.Counts().Events(), tt.events, "accepted events")
			if status == 503 {
				assert.Equal(t, header.Get("Retry-After"), "2", "Retry-After")
			}
		})
	}
}

// TestGRPC: calls, and the codes of their answers.
func TestGRPC(t *testing.T) {
	t.Parallel()
	message := func(b []byte) []byte { return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(b))), b...) }
	for _, tt := range []struct {
		name, rule, path string
		body             []byte
		code, text       string
		events           uint64
	}{
		{"accepted", "", wire.Logs.Method(), message(request()), "0", "", 3},
		{"no method", "", "/x.y/Export", message(request()), "12", "unknown method", 0},
		{"cut", "", wire.Logs.Method(), []byte{0, 0}, "13", "message's length", 0},
		{"invalid", "", wire.Logs.Method(), message([]byte("x")), "13", "ends within a field", 0},
		{"throttled", "throttled@100%", wire.Logs.Method(), message(request()), "8", "too many", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := Options{RetryAfter: time.Second}
			if tt.rule != "" {
				r := assert.Value(ParseErrorRule(tt.rule))(t)
				o.Errors = []ErrorRule{r}
			}
			s := begin(t, o)
			_, _, header := ask(t, "http://"+s.GRPCAddr()+tt.path, typeGRPC, tt.body)
			assert.Equal(t, header.Get("Grpc-Status"), tt.code, "code")
			text := assert.Value(url.PathUnescape(header.Get("Grpc-Message")))(t)
			assert.True(t, strings.Contains(text, tt.text), "says %q, want %q", text, tt.text)
			assert.Equal(t, s.Counts().Events(), tt.events, "accepted events")
			assert.Equal(t, header.Get("Grpc-Status-Details-Bin") != "", tt.rule != "", "a RetryInfo")
		})
	}
}

// TestMetrics: the counters have the Collector's names.
func TestMetrics(t *testing.T) {
	t.Parallel()
	s := begin(t, Options{})
	_, _, _ = ask(t, "http://"+s.Addr()+"/v1/logs", typeProto, request())
	res := assert.Value(http.Get("http://" + s.Addr() + "/metrics"))(t) //nolint:bodyclose // it is closed below
	defer res.Body.Close()
	text := assert.Value(io.ReadAll(res.Body))(t)
	assert.True(t, strings.Contains(string(text), "otelcol_receiver_accepted_log_records 3\n"), "%s", text)
	assert.Equal(t, s.Counts().String(), "2 connections, 1 requests (226 bytes); accepted 0 spans, 0 data points, 3 log records", "counts")
}

// TestDiscard: a server that discards says so, and has no counters of events.
func TestDiscard(t *testing.T) {
	t.Parallel()
	s := begin(t, Options{Discard: true})
	status, text, header := ask(t, "http://"+s.Addr()+"/v1/logs", typeProto, []byte("x"))
	assert.True(t, status == 200 && text == "" && header.Get("Server") == discardsName, "over HTTP: %d %q %v", status, text, header)
	_, text, header = ask(t, "http://"+s.GRPCAddr()+wire.Logs.Method(), typeGRPC, []byte("12345x"))
	assert.True(t, text == "\x00\x00\x00\x00\x00" && header.Get("Grpc-Status") == "0" && header.Get("Server") == discardsName, "over gRPC: %q %v", text, header)
	media, metrics := s.metrics()
	assert.Equal(t, media+"; "+string(metrics), "text/plain; version=0.0.4; # TYPE carronade_standin_requests counter\ncarronade_standin_requests 2\n", "metrics")
}

// TestRecord: a row has the events of each request.
func TestRecord(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "record.csv")
	s := begin(t, Options{Record: file})
	_, _, _ = ask(t, "http://"+s.Addr()+"/v1/logs", typeProto, request())
	assert.OK(t, s.Close())
	text := assert.Value(os.ReadFile(file))(t)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	assert.Must(t, len(lines) == 2 && strings.Contains(lines[1], "request") && strings.Contains(lines[1], ",3,"), "%s", text)
}

// TestOptions: what contradicts itself is refused before anything listens.
func TestOptions(t *testing.T) {
	for _, tt := range []struct {
		o    Options
		want string
	}{
		{Options{Listen: "x"}, "want host:port"},
		{Options{MaxBody: 3}, "64B to 1GiB"},
		{Options{Discard: true, Errors: []ErrorRule{{Name: "reset", What: standin.StatusReset, Share: 1}}}, "leave out discard"},
		{Options{RetryAfter: -1}, "0s to 1h"},
		{Options{TLS: standin.TLS{Cert: "x"}}, ""},
	} {
		_, err := Start(tt.o)
		assert.ErrorHas(t, err, tt.want)
	}
	_, err := ParseErrorRule("nope@1%")
	assert.ErrorHas(t, err, "want partial, reset")
}
