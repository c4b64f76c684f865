package otlp

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"carronade/internal/conn/web"
	"carronade/internal/otlp/standin"
	"carronade/internal/otlp/wire"
	"carronade/load"
	"carronade/protocol"
	"carronade/protocol/protocoltest"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// start starts a stand-in on free ports.
func start(t testing.TB, o standin.Options) *standin.Server {
	t.Helper()
	o.Listen, o.GRPCListen = "127.0.0.1:0", "127.0.0.1:0"
	s := assert.Value(standin.Start(o))(t)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// specOf is a spec with options, each with one value.
func specOf(t testing.TB, url string, given map[string]string) protocol.Spec {
	t.Helper()
	lists := map[string][]string{}
	for k, v := range given {
		lists[k] = []string{v}
	}
	return protocoltest.Spec(t, options(), url, lists)
}

// openSpec opens a session that ends with the test.
func openSpec(t testing.TB, s protocol.Spec) *session {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	sess := assert.Value(Kind{}.Open(ctx, s))(t)
	t.Cleanup(func() { _ = sess.Close() })
	return sess.(*session)
}

// fire runs a plan with requests as the options make them.
func fire(t testing.TB, s *session, p load.Plan) *load.Result {
	t.Helper()
	p.BatchEvents = s.cfg.pool.most
	r := assert.Value(load.Fire(t.Context(), p, s.Target()))(t)
	return r
}

// send sends a number of events, and returns the result.
func send(t testing.TB, url string, events uint64, given map[string]string) *load.Result {
	t.Helper()
	s := openSpec(t, specOf(t, url, given))
	r := fire(t, s, load.Plan{Measurement: load.Limits{Events: events}})
	assert.OK(t, s.Close())
	return r
}

// counted checks the counts of events.
func counted(t testing.TB, r *load.Result, acked, failed, unknown uint64) {
	t.Helper()
	type counts struct{ acked, failed, unknown uint64 }
	m := &r.Measurement
	assert.Equal(t, counts{m.Acked, m.Counts.Failed, m.Unknown}, counts{acked, failed, unknown}, "events")
}

// A front answers instead of a stand-in while refuse is set.
type front struct {
	*httptest.Server
	delay  atomic.Int64
	refuse atomic.Bool
}

// newFront puts a front before a stand-in.
func newFront(t testing.TB, s *standin.Server, secure bool) *front {
	t.Helper()
	f := &front{}
	f.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if d := f.delay.Load(); d > 0 {
			<-time.After(time.Duration(d))
		}
		if f.refuse.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		s.ServeHTTP(w, r)
	}))
	f.Config.Protocols = new(http.Protocols)
	f.Config.Protocols.SetHTTP1(true)
	f.Config.Protocols.SetHTTP2(true)
	f.Config.Protocols.SetUnencryptedHTTP2(true)
	if secure {
		f.EnableHTTP2 = true
		f.StartTLS()
	} else {
		f.Start()
	}
	t.Cleanup(f.Close)
	return f
}

// TestSuite is the suite that every kind passes, with all ways to send requests. Its batches have one
// event: the options determine how many a request has, so the engine cannot choose their number.
func TestSuite(t *testing.T) {
	testkit.Need(t, "some seconds")
	t.Parallel()
	for _, tt := range []struct {
		name    string
		secure  bool
		scheme  string
		options map[string]string
	}{
		{"http", false, schemeHTTP, nil},
		{"pipelined", false, schemeHTTP, map[string]string{"max-in-flight": "4"}},
		{"https", true, schemeHTTPS, nil},
		{"gzip", false, schemeHTTP, map[string]string{"compression": "gzip", "signal": "logs"}},
		{"grpc", false, schemeGRPC, nil},
		{"streams", false, schemeGRPC, map[string]string{"max-in-flight": "4", "compression": "gzip"}},
		{"grpcs", true, schemeGRPCS, map[string]string{"max-in-flight": "2", "compression": "zstd"}},
		{"zstd", false, schemeHTTP, map[string]string{"compression": "zstd", "signal": "metrics"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := start(t, standin.Options{})
			f := newFront(t, s, tt.secure)
			options := map[string]string{"events": "1", "trace-spans": "1", "clients": "1"}
			maps.Copy(options, tt.options)
			if tt.secure {
				options["tls-ca"] = authority(t, f)
			}
			protocoltest.Run(t, protocoltest.System{
				Kind: Kind{}, URL: tt.scheme + "://" + f.Listener.Addr().String(), Options: options,
				Events: func() uint64 { return s.Counts().Events() },
				Slow:   func(d time.Duration) { f.delay.Store(int64(d)) },
				Refuse: f.refuse.Store, RefuseWant: load.Throttled,
			})
		})
	}
}

// authority writes a file with the authority of the server's certificate.
func authority(t testing.TB, f *front) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ca.pem")
	assert.OK(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.Certificate().Raw}), 0o600))
	return file
}

// TestEvaluate: answers over HTTP, and what becomes of ten events.
func TestEvaluate(t *testing.T) {
	status := func(text string) string { return string(wire.AppendStatus(nil, wire.Status{Code: 3, Message: text})) }
	partial := string(wire.AppendAnswer(nil, wire.Partial{Rejected: 3, Message: "too old"}))
	for _, tt := range []struct {
		name   string
		status int
		body   string
		cut    bool
		want   web.Verdict
	}{
		{"accepted", 200, "", false, web.Verdict{Acked: 10}},
		{"partial success", 200, partial, false, web.Verdict{Acked: 7, Failed: 3, Class: load.Rejected, Text: "partial success: too old", Final: true}},
		{"a warning", 200, string(wire.AppendAnswer(nil, wire.Partial{Message: "slow down"})), false, web.Verdict{Acked: 10}},
		{"more than there were", 200, string(wire.AppendAnswer(nil, wire.Partial{Rejected: 30})), false, web.Verdict{Failed: 10, Class: load.Rejected, Text: "partial success, without a message", Final: true}},
		{"empty JSON", 200, `{}`, false, web.Verdict{Acked: 10}},
		{"a page of a gateway", 200, "<html>", false, web.Verdict{Acked: 10}},
		{"too long", 200, partial[:4], true, web.Verdict{Unknown: 10, Class: load.Protocol, Text: "the answer is too long to tell how many events were accepted"}},
		{"invalid", 400, status("bad field"), false, web.Verdict{Failed: 10, Class: load.Rejected, Text: "400 Bad Request: bad field", Final: true}},
		{"plain text", 400, "no\r\ngood", false, web.Verdict{Failed: 10, Class: load.Rejected, Text: "400 Bad Request: no good", Final: true}},
		{"unauthorized", 401, "", false, web.Verdict{Failed: 10, Class: load.Unauthorized, Text: "401 Unauthorized", Final: true}},
		{"too large", 413, "", false, web.Verdict{Failed: 10, Class: load.TooLarge, Text: "413 Request Entity Too Large", Final: true}},
		{"too many", 429, status("rate"), false, web.Verdict{Failed: 10, Class: load.Throttled, Text: "429 Too Many Requests: rate"}},
		{"full", 503, status("queue is full"), false, web.Verdict{Failed: 10, Class: load.Throttled, Text: "503 Service Unavailable: queue is full"}},
		{"a gateway", 502, "", false, web.Verdict{Unknown: 10, Class: load.Refused, Text: "502 Bad Gateway"}},
	} {
		s := &session{cfg: &config{}}
		assert.Same(t, s.evaluate(tt.status, []byte(tt.body), !tt.cut, 10), tt.want, tt.name)
	}
}

// TestEvaluateGRPC: codes of gRPC, and what becomes of ten events.
func TestEvaluateGRPC(t *testing.T) {
	details := func(s wire.Status) string { return base64.RawStdEncoding.EncodeToString(wire.AppendStatus(nil, s)) }
	failed := func(class load.Class, text string, final bool) web.Verdict {
		return web.Verdict{Failed: 10, Class: class, Text: text, Final: final}
	}
	message := func(b ...byte) []byte { return append([]byte{0, 0, 0, 0, byte(len(b))}, b...) }
	compressed := func(encoding string) []byte {
		k := web.NewCompressor(encoding)
		k.Plain = wire.AppendAnswer(nil, wire.Partial{Rejected: 3, Message: "no"})
		out := assert.Value(k.Compress())(t)
		return append([]byte{1}, message(out...)[1:]...)
	}
	for _, tt := range []struct {
		name string
		a    answer
		want web.Verdict
		wait time.Duration
	}{
		{"accepted", answer{status: 200, body: message()}, web.Verdict{Acked: 10}, 0},
		{"no message", answer{status: 200}, web.Verdict{Unknown: 10, Class: load.Protocol, Text: "an answer without a message"}, 0},
		{"a wrong length", answer{status: 200, body: []byte{0, 0, 0, 0, 9, 1}, received: 6}, web.Verdict{Unknown: 10, Class: load.Protocol, Text: "an answer whose length is wrong"}, 0},
		{"compressed by something else", answer{status: 200, body: append([]byte{1}, message(1)[1:]...), encoding: "br", received: 6}, web.Verdict{Unknown: 10, Class: load.Protocol, Text: "an answer that cannot be decompressed"}, 0},
		{"compressed with gzip", answer{status: 200, body: compressed("gzip"), encoding: "gzip"}, web.Verdict{Acked: 7, Failed: 3, Class: load.Rejected, Text: "partial success: no", Final: true}, 0},
		{"compressed with zstd", answer{status: 200, body: compressed("zstd"), encoding: "zstd"}, web.Verdict{Acked: 7, Failed: 3, Class: load.Rejected, Text: "partial success: no", Final: true}, 0},
		{"unavailable", answer{status: 200, code: 14, message: "busy"}, failed(load.Throttled, "UNAVAILABLE: busy", false), 0},
		{"with a delay", answer{status: 200, code: 14, details: details(wire.Status{Code: 14, Retry: 2 * time.Second, Retries: true})}, failed(load.Throttled, "UNAVAILABLE", false), 2 * time.Second},
		{"exhausted", answer{status: 200, code: 8}, failed(load.Throttled, "RESOURCE_EXHAUSTED", true), 0},
		{"exhausted for a while", answer{status: 200, code: 8, details: details(wire.Status{Code: 8, Retries: true})}, failed(load.Throttled, "RESOURCE_EXHAUSTED", false), 0},
		{"too large", answer{status: 200, code: 8, message: "received message larger than max"}, failed(load.TooLarge, "RESOURCE_EXHAUSTED: received message larger than max", true), 0},
		{"invalid", answer{status: 200, code: 3, message: "a%0Ab"}, failed(load.Rejected, "INVALID_ARGUMENT: a b", true), 0},
		{"unauthorized", answer{status: 200, code: 16}, failed(load.Unauthorized, "UNAUTHENTICATED", true), 0},
		{"unimplemented", answer{status: 200, code: 12}, failed(load.Protocol, "UNIMPLEMENTED", true), 0},
		{"deadline", answer{status: 200, code: 4}, web.Verdict{Unknown: 10, Class: load.Timeout, Text: "DEADLINE_EXCEEDED"}, 0},
		{"unknown code", answer{status: 200, code: 99}, failed(load.Rejected, "code 99", true), 0},
		{"no headers", answer{code: -1}, web.Verdict{Unknown: 10, Class: load.Protocol, Text: "an answer without a grpc-status"}, 0},
		{"a proxy without a server", answer{status: 502, code: -1}, web.Verdict{Unknown: 10, Class: load.Refused, Text: "502 Bad Gateway"}, 0},
		{"a proxy that is full", answer{status: 503, code: -1}, failed(load.Throttled, "503 Service Unavailable", false), 0},
	} {
		got, wait := evaluateGRPC(nil, &tt.a, 10)
		assert.Same(t, got, tt.want, "%s", tt.name)
		assert.Equal(t, wait, tt.wait, "%s: wait", tt.name)
	}
}

// BenchmarkPrepare prepares requests of a hundred log records.
func BenchmarkPrepare(b *testing.B) {
	for _, compression := range compressions {
		b.Run(compression, func(b *testing.B) {
			c, err := parseConfig(specOf(b, "otlp+http://127.0.0.1:1", map[string]string{"signal": "logs", "compression": compression}), true)
			assert.OK(b, err)
			c.pool.make()
			s := c.sources()[0].(*source)
			b.ReportAllocs()
			for n := uint64(0); b.Loop(); n += 100 {
				r := assert.Value(s.Prepare(n, 100, time.Now()))(b)
				r.Release()
			}
		})
	}
}
