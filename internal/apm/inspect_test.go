package apm

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"carronade/internal/apm/standin"
	"carronade/protocol"
	"carronade/protocol/protocoltest"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

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
