package apm

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"carronade/internal/apm/standin"
	"carronade/internal/conn/socket"
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
		name    string
		url     string
		options map[string]string
		want    string
		hint    string
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

// A session's facts, warnings and failures contain no secret, however it was
// given.
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
	if e.Events != measure.Pooled || e.Distinct == 0 || e.Except != "ids and times" || e.Codec != "gzip" || *e.CodecMeasured != 0 {
		t.Errorf("encoding %+v, want a pool that was compressed before", e)
	}
	e = open(t, s.url(), map[string]string{"repeat-body": "true"}).Encoding()
	if e.Events != measure.Pooled || e.Distinct != 40 || e.Except != "" || e.Codec != "" || e.CodecMeasured != nil {
		t.Errorf("encoding %+v, want the 40 events of one body", e)
	}
}

// A due request goes to the first free connection, except where each connection keeps
// its own.
func TestShares(t *testing.T) {
	t.Parallel()
	plain, secure := newIntake(t, false), newIntake(t, true)
	skip := map[string]string{"tls-insecure-skip-verify": "true"}
	with := func(name, value string) map[string]string {
		return map[string]string{"tls-insecure-skip-verify": "true", name: value}
	}
	for _, tt := range []struct {
		name, url string
		options   map[string]string
		scheduled bool
		want      bool
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
