package apm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"carronade/internal/apm/standin"
	"carronade/internal/apm/wire"
	"carronade/internal/conn/socket"
	"carronade/internal/conn/web"
	"carronade/load"
	"carronade/measure"
	"carronade/protocol"
	"carronade/protocol/protocoltest"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// refused opens a session, which must fail, and returns the error.
func refused(t *testing.T, url string, options map[string]string) *protocol.Error {
	t.Helper()
	ctx := testkit.Minute(t)
	s, err := Kind{}.Open(ctx, spec(t, url, options))
	if err == nil {
		s.Close()
		t.Fatal("it opened")
	}
	var said *protocol.Error
	assert.Must(t, errors.As(err, &said), "got %v, want an error with a hint", err)
	return said
}

// Open reports every wrong address or option, with a hint and without secrets.
func TestOpenRefuses(t *testing.T) {
	t.Setenv("APM_TEST_TOKEN", "kestrel-9271")
	token := map[string]string{"secret-token": "env:APM_TEST_TOKEN"}
	plain, secure := newIntake(t, false), newIntake(t, true)
	ca := authority(t, secure)
	answering := func(status int, body string) string {
		s := testkit.HTTP(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				w.WriteHeader(status)
			}
			io.WriteString(w, body)
		})
		return "apm+" + s.URL
	}
	says := func(listen bool, text string) string {
		return "apm+http://" + testkit.Listen(t, func(c *net.TCPConn) {
			if listen {
				c.Read(make([]byte, 4096))
			}
			io.WriteString(c, text)
		})
	}
	old := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) }))
	t.Cleanup(old.Close)
	for _, tt := range []struct {
		name, url  string
		options    map[string]string
		want, hint string
	}{
		{"nothing listens", "apm+http://" + testkit.ClosedPort, token, "connect", "is the server running"},
		{"no token", answering(401, `{"error":"unauthorized"}`), nil, "401", "add --secret-token"},
		{"a wrong token", answering(401, `{"error":"unauthorized: kestrel-9271"}`), token, "401", "check the secret token"},
		{"no permission", answering(403, ""), token, "403", "lacks a permission"},
		{"RUM that is off", answering(403, ""), map[string]string{"intake": "rum-v2"}, "403", "RUM enabled"},
		{"v1 of a new server", answering(404, ""), map[string]string{"intake": "v1"}, "404", "leave out --intake v1"},
		{"no APM server", answering(404, "nothing"), nil, "404", "no APM server"},
		{"Elasticsearch", answering(400, `{"tagline":"You Know, for Search"}`), nil, "Elasticsearch", "--index"},
		{"a redirect", answering(302, ""), nil, "302", "redirects"},
		{"another protocol", says(true, "220 mail ESMTP\r\n"), nil, "malformed HTTP", "another protocol"},
		{"a port that closes", says(true, ""), nil, "EOF", "another protocol"},
		{"a port that speaks first", says(false, "SSH-2.0-OpenSSH_9.2\r\n"), nil, "", "another protocol"},
		{"a port that closes at once", says(false, ""), nil, "", "another protocol"},
		{"plain HTTP to TLS", "apm+http" + strings.TrimPrefix(secure.url(), "apm+https"), nil, "TLS", "apm+https"},
		{"TLS to plain HTTP", "apm+https" + strings.TrimPrefix(plain.url(), "apm+http"), nil, "HTTP response to HTTPS client", "apm+http://"},
		{"HTTP/2 of a server without it", "apm+" + old.URL, map[string]string{"tls-ca": authority(t, &intake{Server: old}), "http-version": "2"}, "HTTP/1.1", "leave out --http-version 2"},
		{"an unknown authority", secure.url(), nil, "certificate", "--tls-ca"},
		{"another name", secure.url(), map[string]string{"tls-ca": ca, "tls-server-name": "other.test"}, "certificate", "--tls-server-name"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			said := refused(t, tt.url, tt.options)
			assert.True(t, strings.Contains(said.Error(), tt.want) && strings.Contains(said.Hint, tt.hint),
				"got %q (hint: %q), want %q (hint: %q)", said, said.Hint, tt.want, tt.hint)
			assert.True(t, !strings.Contains(said.Error()+said.Hint, "kestrel-9271"), "the secret is in %q (%q)", said, said.Hint)
		})
	}
}

// A session's facts, warnings and failures contain no secret, however it was given.
func TestNoSecretIsShown(t *testing.T) {
	const canary = "kestrel-9271"
	t.Setenv("APM_TEST_SECRET", canary)
	var log strings.Builder
	for _, options := range []map[string]string{
		{"secret-token": "env:APM_TEST_SECRET"},
		{"api-key": "env:APM_TEST_SECRET"},
		{"header": "Authorization: env:APM_TEST_SECRET"},
		{"header": "X-Secret: env:APM_TEST_SECRET", "http-version": "1.1", "keep-alive": "false"},
	} {
		s := newIntake(t, false)
		s.reply(func(w http.ResponseWriter, _ int) bool {
			w.WriteHeader(http.StatusUnauthorized) // the body repeats the secret, as gateways' pages do
			fmt.Fprintf(w, `{"accepted":0,"errors":[{"message":"no: Bearer %s, and %s"}]}`, canary, strings.Repeat("x", 190-len(canary))+canary)
			return true
		})
		sp := spec(t, s.url(), options)
		sp.Logf = func(format string, args ...any) { log.WriteString(format) }
		sess := assert.Value(Kind{}.Open(t.Context(), sp))(t)
		r := fire(t, sess.(*session), plan(40))
		shown, err := json.Marshal(map[string]any{"facts": sess.Facts(), "warnings": sess.Warnings(), "failures": r.Failures, "clients": sess.(*session).Brokers()})
		assert.OK(t, err)
		assert.OK(t, sess.Close())
		text := string(shown) + log.String()
		assert.True(t, !strings.Contains(text, canary[:5]), "%v: the secret is in %s", options, text)
		sent := false
		_, heads := s.taken()
		for _, h := range heads {
			for _, v := range h {
				sent = sent || strings.Contains(v[0], canary)
			}
		}
		assert.True(t, sent, "%v: the secret was not sent", options)
	}
}

func TestFacts(t *testing.T) {
	t.Parallel()
	s := newIntake(t, false)
	sess := open(t, s.url(), map[string]string{"gzip": "1", "clients": "3"})
	f := sess.Facts()
	assert.Equal(t, f["version"], "9.6.0", "version")
	request := f["request"].(map[string]any)
	got := request["compressed_to"].(float64)
	assert.True(t, got > 0.01 && got < 0.9, "compressed to %v", got)
	if got := request["kinds"].(map[string]any); got["transaction"] != 10.0 || got["span"] != 30.0 {
		t.Errorf("kinds %v, want 10 transactions and 30 spans", got)
	}
	e := sess.Encoding()
	assert.True(t, e.Events == measure.Pooled && e.Distinct != 0 && e.Except == "ids and times" && e.Codec == "gzip" && *e.CodecMeasured == 0,
		"encoding %+v, want a pool that was compressed before", e)
	e = open(t, s.url(), map[string]string{"repeat-body": "true"}).Encoding()
	assert.True(t, e.Events == measure.Pooled && e.Distinct == 40 && e.Except == "" && e.Codec == "" && e.CodecMeasured == nil,
		"encoding %+v, want the 40 events of one body", e)
}

// A due request goes to the first free connection, except where each connection keeps its own.
func TestShares(t *testing.T) {
	t.Parallel()
	plain, secure := newIntake(t, false), newIntake(t, true)
	skip := map[string]string{"tls-insecure-skip-verify": "true"}
	with := func(name, value string) map[string]string {
		return map[string]string{"tls-insecure-skip-verify": "true", name: value}
	}
	for _, tt := range []struct {
		name, url       string
		options         map[string]string
		scheduled, want bool
	}{
		{"a rate", plain.url(), nil, true, socket.Polls},
		{"no rate", plain.url(), nil, false, false},
		{"sticky", plain.url(), map[string]string{"sticky": "true"}, true, false},
		{"several addresses", plain.url() + "," + strings.TrimPrefix(plain.url(), "apm+http://"), nil, true, false},
		{"TLS", secure.url(), skip, true, false},
		{"HTTP/2", secure.url(), with("http-version", "2"), true, true},
		{"a connection for each request", secure.url(), with("keep-alive", "false"), true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			sp := spec(t, tt.url, tt.options)
			sp.Scheduled = tt.scheduled
			s := assert.Value(Kind{}.Open(t.Context(), sp))(t)
			defer s.Close()
			assert.Equal(t, s.(*session).Shares(), tt.want)
		})
	}
}

// apmServer answers as a server of that version does.
func apmServer(t *testing.T, version string, ready bool) string {
	t.Helper()
	s := testkit.HTTP(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			fmt.Fprintf(w, `{"build_sha":"abc","publish_ready":%t,"version":%q}`, ready, version)
			return
		}
		io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusAccepted)
	})
	return s.Listener.Addr().String()
}

func TestInspect(t *testing.T) {
	s := startStandin(t, standin.Options{})
	old, ready := apmServer(t, "8.19.0", false), apmServer(t, "9.2.0", true)
	store := testkit.HTTP(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/_cluster/health" {
			io.WriteString(w, `{"status":"red","number_of_nodes":3}`)
			return
		}
		io.WriteString(w, `{"cluster_name":"c","version":{"number":"9.2.0"}}`)
	})
	of := func(addr string, options map[string]string) protocol.Spec {
		return spec(t, "apm+http://"+addr, options)
	}
	inspects := protocoltest.Inspector(t, Kind{})
	inspects("a stand-in", of(s.Addr(), nil), "version", protocol.LevelOK, "stand-in")
	inspects("an address", of(s.Addr(), nil), "address", protocol.LevelOK, "accepts connections")
	inspects("no login", of(s.Addr(), nil), "login", protocol.LevelOK, "without a login")
	inspects("the clock", of(s.Addr(), nil), "clock", protocol.LevelOK, "on this machine")
	inspects("a version", of(ready, nil), "version", protocol.LevelOK, "APM Server 9.2.0")
	inspects("ready", of(ready, nil), "publish_ready", protocol.LevelOK, "is ready")
	inspects("not ready", of(old, nil), "publish_ready", protocol.LevelWarning, "is not ready")
	inspects("two versions", of(old+","+ready, nil), "version", protocol.LevelNote, "different versions: 8.19.0, 9.2.0")
	inspects("one of two is closed", of(ready+","+testkit.ClosedPort, nil), "address "+testkit.ClosedPort, protocol.LevelError, "refused")
	inspects("a red store", of(ready, map[string]string{"index": store.URL}), "index", protocol.LevelWarning, "its health is red, with 3 nodes")
	inspects("no store", of(ready, map[string]string{"index": "http://" + testkit.ClosedPort}), "index", protocol.LevelError, "does not answer")
	guarded := startStandin(t, standin.Options{SecretToken: "right"})
	t.Setenv("APM_WRONG", "wrong")
	silent := testkit.Listen(t, func(c *net.TCPConn) { io.Copy(io.Discard, c) })
	for _, tt := range []struct {
		name, target string
		options      map[string]string
		within       time.Duration
		want, hint   string
	}{
		{"a closed port", testkit.ClosedPort, nil, time.Minute, "refused", "carronade standin apm"},
		{"no login", guarded.Addr(), nil, time.Minute, "403", "--secret-token"},
		{"a wrong login", guarded.Addr(), map[string]string{"secret-token": "env:APM_WRONG"}, time.Minute, "401", "secret token"},
		{"silence", silent, nil, 200 * time.Millisecond, "", "stuck"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in, err := protocoltest.Inspect(t, Kind{}, of(tt.target, tt.options), tt.within)
			protocoltest.Explained(t, err, tt.want, tt.hint)
			assert.Equal(t, len(in.Findings), 0, "findings")
		})
	}
}

func TestClockFinding(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ended := began.Add(100 * time.Millisecond)
	for _, tt := range []struct {
		name, date string
		level      protocol.Level
		want       string
	}{
		{"equal", began.Format(http.TimeFormat), protocol.LevelOK, "agrees with this machine's, give or take 1 s"},
		{"a little ahead", began.Add(3 * time.Second).Format(http.TimeFormat), protocol.LevelNote, "3.45 s ahead of"},
		{"behind", began.Add(-10 * time.Second).Format(http.TimeFormat), protocol.LevelNote, "behind this machine's, give or take 550 ms"},
		{"far ahead", began.Add(time.Hour).Format(http.TimeFormat), protocol.LevelWarning, "ahead of this machine's"},
		{"no time", "", protocol.LevelUnknown, "have no time"},
		{"what is not a time", "yesterday", protocol.LevelUnknown, "have no time"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			protocoltest.Found(t, clockFinding("a", tt.date, began, ended), tt.level, tt.want)
		})
	}
}

func FuzzClockFinding(f *testing.F) {
	f.Add("Sun, 01 Mar 2026 12:00:00 GMT")
	f.Add("")
	f.Fuzz(func(t *testing.T, date string) {
		now := time.Unix(1_800_000_000, 0)
		assert.True(t, clockFinding("a", date, now, now.Add(time.Second)).Found != "", "%q has no finding", date)
	})
}

// With --intake auto, servers before 6.5 get v1, and others v2, also if they do not say their version.
func TestIntakeByVersion(t *testing.T) {
	for _, c := range []struct {
		info string // the answer to GET /
		v2   bool   // the server knows it
		path string // where events go
	}{
		{`{"ok":{"version":"6.3.0"}}`, false, "/v1/transactions"},
		{`{"ok":{"version":"6.4.3"}}`, true, "/v1/transactions"},
		{`{"ok":{"version":"6.5.0"}}`, true, "/intake/v2/events"},
		{`{"version":"7.17.28","build_sha":"a"}`, true, "/intake/v2/events"},
		{`{"version":"9.6.0","publish_ready":true}`, true, "/intake/v2/events"},
		{`{}`, true, "/intake/v2/events"},
		{`404 page not found`, false, "/v1/transactions"},
	} {
		s := testkit.HTTP(t, func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body) // the body is not needed
			switch {
			case r.URL.Path == "/":
				fmt.Fprint(w, c.info)
			case r.URL.Path == "/intake/v2/events" && c.v2, r.URL.Path == "/v1/transactions":
				w.WriteHeader(http.StatusAccepted)
			default:
				http.NotFound(w, r)
			}
		})
		session, err := Kind{}.Open(t.Context(), spec(t, "apm+"+s.URL, map[string]string{"intake": "auto", "clients": "1"}))
		assert.Must(t, err == nil, "%s: %v", c.info, err)
		request := session.Facts()["request"].(map[string]any)
		assert.Equal(t, request["path"], any(c.path), "%s", c.info)
		assert.OK(t, session.Close())
	}
}

func TestBeforeV2(t *testing.T) {
	for version, want := range map[string][2]bool{
		"5.6.16": {true, true}, "6.4.9": {true, true}, "6.5.0": {false, true}, "6.10": {false, true}, "9.6.0-SNAPSHOT": {false, true}, "": {}, "x.y": {},
	} {
		before, known := beforeV2(version)
		assert.Equal(t, [2]bool{before, known}, want, "%s", version)
	}
}

// An outcomeSink is a sink that keeps the newest outcome.
type outcomeSink struct {
	load.Sink
	out load.Outcome
}

func (s *outcomeSink) Complete(out []load.Outcome) { s.out = out[0] }

// The time for which a request waits for a connection of net/http's pool is the system's, and not the generator's lateness.
func TestWaitingForThePoolIsTheSystems(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for _, tt := range []struct {
		name        string
		asked, sent time.Duration
		delay       time.Duration // of the generator
	}{
		{"an open connection", 12 * ms, 12 * ms, 2 * ms},
		{"waited for one", 12 * ms, 3000 * ms, 2 * ms},
		{"nothing is known", -1, 12 * ms, 2 * ms},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			sink := &outcomeSink{}
			s := &session{cfg: &config{}, Lanes: web.Lanes{Sink: sink}}
			l := &httpLane{State: web.State{S: &s.Lanes}, s: s, inFlight: 1}
			e := job{batch: load.Batch{Events: 1, Ready: 10 * ms, Free: 10 * ms}, encodedRequest: &encodedRequest{body: &wire.Body{Bytes: []byte("x")}}}
			l.finish(e, seen{asked: tt.asked, sent: tt.sent, got: true, wrote: true}, 4000*ms, web.Verdict{Acked: 1}, 202)
			assert.Equal(t, sink.out.Sent-sink.out.Free, tt.delay, "send delay")
		})
	}
}

// Every wrong option is refused with an error that names it, and a hint.
func TestBadOptions(t *testing.T) {
	t.Setenv("APM_TEST_TOKEN", "kestrel-9271")
	t.Setenv("APM_TEST_BROKEN", "kestrel-9271\r\nX-More: 1")
	for _, tt := range testkit.Table[struct {
		Name, URL  string
		Options    map[string]string
		Want, Hint string // in the error, and in its hint
	}](t, "testdata/bad_options.yaml") {
		t.Run(tt.Name, func(t *testing.T) {
			_, err := parseConfig(spec(t, tt.URL, tt.Options), true)
			if tt.Options["batch-events"] != "" {
				s := spec(t, tt.URL, nil)
				s.Given["batch-events"], s.BatchEvents = true, 7
				_, err = parseConfig(s, true)
			}
			var said *protocol.Error
			assert.Must(t, errors.As(err, &said), "got %v, want an error with a hint", err)
			assert.True(t, strings.Contains(err.Error(), tt.Want), "got %q, want %q in it", err, tt.Want)
			assert.True(t, strings.Contains(said.Hint, tt.Hint), "hint %q, want %q in it", said.Hint, tt.Hint)
			text := err.Error() + said.Hint
			assert.True(t, !strings.Contains(text, "kestrel-9271"), "the secret is in %q", text)
		})
	}
}

// The content of requests determines the events per batch.
func TestPresets(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		options map[string]string
		want    string
	}{
		{"defaults", nil, "40"},
		{"ten transactions of ten spans", map[string]string{"events": "10", "spans": "10"}, "110"},
		{"errors", map[string]string{"events": "7", "spans": "0"}, "7"},
		{"a mix", map[string]string{"events": "5", "spans": "2", "mix": "transaction,error"}, "15"},
		{"logs alone", map[string]string{"events": "5", "mix": "log=1"}, "5"},
		{"metrics alone", map[string]string{"events": "5", "mix": "metricset"}, "5"},
		{"ranges", map[string]string{"events": "1-4", "spans": "0-3"}, "16"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := spec(t, "apm+http://127.0.0.1:1", tt.options)
			set, _, err := Kind{}.Presets(s.URL, s.Options, s.Given)
			got := set["batch-events"]
			assert.True(t, err == nil && got == tt.want, "got %q, %v; want %q", got, err, tt.want)
		})
	}
}

func TestConnections(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name                string
		concurrency         int
		options             map[string]string
		wantLanes, wantEach int
	}{
		{"defaults", 0, nil, 8, 1},
		{"concurrency", 20, nil, 20, 1},
		{"concurrency on a few connections", 20, map[string]string{"clients": "2"}, 2, 1},
		{"pipelined", 0, map[string]string{"clients": "2", "max-in-flight": "4"}, 2, 4},
		{"concurrency on streams", 20, map[string]string{"clients": "3", "http-version": "2"}, 3, 7},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := spec(t, "apm+https://127.0.0.1:1", tt.options)
			s.Concurrency = tt.concurrency
			c := assert.Value(parseConfig(s, true))(t)
			assert.True(t, c.clients == tt.wantLanes && c.depth == tt.wantEach,
				"%d connections with %d in flight, want %d with %d", c.clients, c.depth, tt.wantLanes, tt.wantEach)
		})
	}
}

func TestHead(t *testing.T) {
	t.Setenv("APM_TEST_TOKEN", "kestrel-9271")
	c := assert.Value(parseConfig(spec(t, "apm+http://a,b:81/prefix/", map[string]string{
		"secret-token": "env:APM_TEST_TOKEN", "verbose": "true", "gzip": "1", "header": "User-Agent: me\x00X-Tenant: 7\x00Cookie: env:APM_TEST_TOKEN",
	}), true))(t)
	if want := []string{"a:8200", "b:81"}; !slices.Equal(c.bases, want) {
		t.Errorf("bases %v, want %v", c.bases, want)
	}
	want := "POST /prefix/intake/v2/events?verbose HTTP/1.1\r\nHost: a:8200\r\nContent-Type: application/x-ndjson\r\nContent-Encoding: gzip\r\n" +
		"User-Agent: me\r\nX-Tenant: 7\r\nCookie: kestrel-9271\r\nAuthorization: Bearer kestrel-9271\r\nContent-Length: 12\r\n\r\n"
	got := string(c.head("a:8200", 12))
	assert.True(t, got == want, "got\n%q, want\n%q", got, want)
	if got, want := len(c.secrets), 2; got != want {
		t.Errorf("%d secrets are known, want %d", got, want)
	}
}

func TestShowHeader(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"plain", "X-Tenant: 7", "X-Tenant: 7"},
		{"secret", "Authorization: Bearer kestrel-9271", "Authorization: ***"},
		{"cookie", "cookie: kestrel-9271", "cookie: ***"},
		{"reference", "Authorization: env:TOKEN", "Authorization: env:TOKEN"},
	} {
		assert.Equal(t, web.ShowField(tt.text), tt.want, tt.name)
	}
}

// A corpus is sent as it was recorded, except for its ids and times.
func TestCorpus(t *testing.T) {
	t.Parallel()
	const recorded = `{"metadata":{"service":{"name":"a","agent":{"name":"go","version":"1"}}}}
{"transaction":{"id":"0102030405060708","trace_id":"01020304050607080102030405060708","type":"t","duration":1,"span_count":{"started":1},"timestamp":1700000000000000}}
{"span":{"id":"1112131415161718","transaction_id":"0102030405060708","parent_id":"0102030405060708","trace_id":"01020304050607080102030405060708","name":"s","type":"t","duration":1,"timestamp":1700000000000500}}
{"metadata":{"service":{"name":"b","agent":{"name":"go","version":"1"}}}}
{"error":{"id":"01020304050607080102030405060708","log":{"message":"m"},"timestamp":1700000001000000}}
`
	file := filepath.Join(t.TempDir(), "corpus.ndjson")
	assert.OK(t, os.WriteFile(file, []byte(recorded), 0o600))
	options := spec(t, "apm+http://h", map[string]string{"corpus": file}).Options
	m := assert.Value(newBodyPool(options, 1, false))(t) // before it is clear that it fits into the memory
	assert.Must(t, m.most == 2 && len(m.source.(*corpus).bodies) == 1, "%+v: want the sizes and the first request alone", m)
	m = assert.Value(newBodyPool(options, 1, true))(t)
	assert.True(t, m.most == 2 && !m.fixed, "up to %d events, all the same: %v; want up to 2, of several sizes", m.most, m.fixed)
	cycles := assert.Value(m.cycles(t.Context(), 3, 1, func(int, int) []byte { return nil }))(t)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := m.cycles(ended, 3, 1, func(int, int) []byte { return nil })
	assert.True(t, errors.Is(err, context.Canceled), "after an interrupt: %v", err)
	// Three lanes share two requests: the third sends the first one again, with other ids.
	var sent [][]byte
	for _, b := range cycles {
		_, left, _ := b.at(0)
		r := assert.Value(b.prepared(0, left))(t)
		sent = append(sent, bytes.Clone(r.bytes))
	}
	assert.True(t, bytes.Count(sent[0], []byte("\n")) == 3 && bytes.Count(sent[1], []byte("\n")) == 2, "sent %q", sent)
	assert.True(t, !bytes.Equal(sent[0], sent[2]) && len(sent[0]) == len(sent[2]),
		"the same request with the same ids twice:\n%s\n%s", sent[0], sent[2])
	assert.True(t, !bytes.Contains(sent[0], []byte("0102030405060708")) && !bytes.Contains(sent[0], []byte("17000000")),
		"recorded ids or times in %s", sent[0])
	// One event of a request of two, where a phase ends within it.
	r, err := cycles[0].prepared(2, 1)
	assert.True(t, err == nil && r.body.Events() == 1 && bytes.Count(r.bytes, []byte("\n")) == 2, "got %q, %v; want one event", r.bytes, err)
}

// A remainder of a corpus that no recorded request can be cut to is unsent, and a warning says so.
func TestRemainderOfCorpus(t *testing.T) {
	t.Parallel()
	const recorded = `{"m":{"se":{"n":"a","a":{"n":"b","ve":"1"}}}}
{"x":{"id":"0123456789abcdef","tid":"00000000000000010000000000000002","t":"t","d":1,"yc":{"sd":1},"y":[{"id":"1123456789abcdef","n":"n","t":"t","s":1,"d":1},{"id":"2123456789abcdef","n":"n","t":"t","s":1,"d":1}]}}
`
	file := filepath.Join(t.TempDir(), "corpus.ndjson")
	assert.OK(t, os.WriteFile(file, []byte(recorded), 0o600))
	s := startStandin(t, standin.Options{})
	for _, keep := range []string{"true", "false"} { // the two kinds of lanes
		for _, schedule := range []load.Schedule{nil, load.Constant(1000)} {
			sess := open(t, "apm+http://"+s.Addr(), map[string]string{"intake": "rum-v3", "corpus": file, "clients": "1", "keep-alive": keep})
			p := plan(10)
			p.Schedule = schedule
			r := fire(t, sess, p)
			m := r.Measurement
			assert.True(t, m.Offered == 10 && m.Sent == 9 && m.Acked == 9 && m.Unsent == 1 && m.Counts.Failed == 0, "scheduled %v: %+v, %v", schedule != nil, m.Counts, r.Failures)
			assert.Has(t, strings.Join(sess.Warnings(), "\n"), "1 events were not sent")
		}
	}
}
