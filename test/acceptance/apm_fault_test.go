//go:build conformance

package acceptance

import (
	"bytes"
	"compress/gzip"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"carronade/test/testkit/assert"
)

// intakeServer is a server of APM's intake that answers requests with events by
// answer. It accepts all other requests, also those that contain only metadata.
func intakeServer(t *testing.T, answer func(w http.ResponseWriter, r *http.Request, events int)) (url string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body io.Reader = r.Body
		if r.Header.Get("Content-Encoding") == "gzip" {
			z, err := gzip.NewReader(r.Body)
			if err != nil {
				t.Error(err)
				return
			}
			body = z
		}
		text, err := io.ReadAll(body)
		if err != nil {
			return // the run ended
		}
		lines := bytes.Count(text, []byte("\n"))
		switch {
		case r.Method == http.MethodGet:
			fmt.Fprint(w, `{"version":"9.6.0","publish_ready":true}`)
		case lines < 2:
			w.WriteHeader(http.StatusAccepted)
		default:
			answer(w, r, lines-1)
		}
	}))
	t.Cleanup(s.Close)
	return "apm+" + s.URL
}

// The server's answer decides the outcome of a batch, and after an incomplete answer the outcome is unknown.
func TestAPMAnswers(t *testing.T) {
	t.Parallel()
	text := func(code int, body string) func(http.ResponseWriter, *http.Request, int) {
		return func(w http.ResponseWriter, _ *http.Request, _ int) {
			w.WriteHeader(code)
			fmt.Fprint(w, body)
		}
	}
	cut := func(raw string) func(http.ResponseWriter, *http.Request, int) {
		return func(w http.ResponseWriter, _ *http.Request, _ int) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			fmt.Fprint(conn, raw)
			conn.Close()
		}
	}
	const count = 60 // 15 batches: the pause before each reconnection grows
	for _, tt := range []struct {
		name    string
		answer  func(w http.ResponseWriter, r *http.Request, events int)
		args    []string
		code    int
		acked   uint64
		failed  uint64
		unknown uint64
		class   string
		status  int // of all answers
		says    string
	}{
		{name: "chunks", args: []string{"--verbose"}, answer: func(w http.ResponseWriter, _ *http.Request, n int) {
			w.WriteHeader(http.StatusAccepted)
			fmt.Fprint(w, `{"acce`)
			http.NewResponseController(w).Flush()
			fmt.Fprintf(w, `pted":%d}`, n)
		}, acked: count, status: 202},
		{name: "some events", args: []string{"--verbose"}, answer: func(w http.ResponseWriter, _ *http.Request, n int) {
			w.WriteHeader(http.StatusAccepted)
			fmt.Fprintf(w, `{"accepted":%d,"errors":[{"message":"the name is missing"}]}`, n-1)
		}, acked: count - count/4, failed: count / 4, class: "rejected", status: 202, says: "the name is missing"},
		{name: "cut short", answer: cut("HTTP/1.1 202 Accepted\r\nContent-Length: 100\r\n\r\n{\"accepted\":"), unknown: count, class: "disconnected"},
		{name: "no answer", answer: cut(""), unknown: count, class: "disconnected"},
		{name: "not HTTP", answer: cut("hello, not HTTP\r\n\r\n"), unknown: count, class: "protocol"},
		{name: "no gzip", args: []string{"--gzip", "1"}, answer: text(415, `{"error":"unsupported encoding"}`), failed: count, class: "rejected", status: 415, says: "unsupported encoding"},
		{name: "queue full", answer: text(503, `{"accepted":0,"errors":[{"message":"queue is full"}]}`), failed: count, class: "throttled", status: 503, says: "queue is full"},
		{name: "too many", answer: text(429, `{"error":"rate limit exceeded"}`), failed: count, class: "throttled", status: 429, says: "rate limit exceeded"},
		{name: "too large", answer: text(413, ""), failed: count, class: "too-large", status: 413},
		{name: "refused with a limit", args: []string{"--failure-rate", "10%", "--count", "4"}, answer: text(400, `{"error":"not metadata"}`), failed: 4, class: "rejected", status: 400, code: 1, says: "not metadata"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if tt.code == 0 {
				tt.args = append(tt.args, "--count", fmt.Sprint(count))
			}
			e := run(t, append([]string{
				"run", intakeServer(t, tt.answer), "--events", "1", "--spans", "3", "--clients", "2", "--request-timeout", "2s", "--json",
			}, tt.args...)...)
			code := tt.code
			if tt.acked == 0 { // nothing was accepted
				code = 1
			}
			d := e.wantUnlessSlow(t, code).document(t)
			got := d.wholeRun()
			assert.True(t, got.Acked == tt.acked && got.Failed == tt.failed && got.Unknown == tt.unknown,
				"acked %d, failed %d, unknown %d, want %d, %d, %d: %+v", got.Acked, got.Failed, got.Unknown, tt.acked, tt.failed, tt.unknown, d.Failures)
			assert.True(t, tt.class == "" || d.failed(tt.class) == tt.failed+tt.unknown,
				"of class %s: %d, want all: %+v", tt.class, d.failed(tt.class), d.Failures)
			if s := d.Totals.Statuses; tt.status != 0 && (len(s) != 1 || s[0].Code != tt.status || s[0].Events != got.Acked+got.Failed) || tt.status == 0 && len(s) > 1 {
				t.Errorf("statuses %+v, want %d alone", s, tt.status)
			}
			assert.True(t, strings.Contains(e.stdout, tt.says), "the report does not contain %q: %+v", tt.says, d.Failures)
		})
	}
}

// TestAPMQueueFull: the server's queue fills in the middle of the run. Accepted
// events are acked, refused ones are throttled, and the intervals show when.
func TestAPMQueueFull(t *testing.T) {
	t.Parallel()
	s := startStandin(t, "apm", "--listen", "127.0.0.1:0", "--queue", "2000", "--drain", "1/s")
	d := run(t, "run", "apm+http://"+s.addr, "--rate", "2k/s", "--for", "2s", "--interval", "500ms", "--json").succeeded(t).document(t)
	all := d.wholeRun()
	if all.Acked < 1900 || all.Acked > 2100 || all.Failed != all.Sent-all.Acked || d.failed("throttled") != all.Failed {
		t.Errorf("acked %d, failed %d of %d, throttled %d, want the 2000 that fit into the queue acked", all.Acked, all.Failed, all.Sent, d.failed("throttled"))
	}
	var accepted, refused bool
	for _, iv := range d.Intervals {
		for _, s := range iv.Statuses {
			accepted, refused = accepted || s.Code == 202 && iv.StartS < 0.5, refused || s.Code == 503 && iv.StartS >= 1
		}
	}
	assert.True(t, accepted && refused, "the intervals do not show when the answers changed")
}

// TestAPMStopsReading freezes the server for a second: the response times show
// the freeze, and nothing is lost.
func TestAPMStopsReading(t *testing.T) {
	r := startStandin(t, "apm", "--listen", "127.0.0.1:0")
	const measurement = 5 * time.Second
	s := start(t, "run", "apm+http://"+r.addr, "--rate", "4k/s", "--for", measurement.String(), "--json")
	s.awaitStderr(progressText)
	pause(t, time.Second)
	freeze := r.freezeFor(time.Second)
	d := s.wait(runTimeout).succeeded(t).document(t)
	d.checkFreeze(t, freeze, measurement, 1.1)
	assert.Equal(t, d.Totals.Acked, 20_000, "events acked")
}

// TestAPMRefusals: a target that cannot be used ends the program with an error, a
// hint and exit code 2 before any event is sent. The output contains no secret.
func TestAPMRefusals(t *testing.T) {
	t.Setenv("GOOD", "letmein")
	t.Setenv("WRONG", canary)
	wants := startStandin(t, "apm", "--listen", "127.0.0.1:0", "--secret-token", "env:GOOD", "--no-rum")
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) }))
	defer secure.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	writeFile(t, ca, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})))
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, password, _ := r.BasicAuth()
		switch {
		case password != "letmein" && r.URL.Path != "/":
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"error":{"reason":"unable to authenticate user [carronade]"}}`)
		case r.URL.Path == "/":
			fmt.Fprint(w, `{"version":{"number":"8.19.0"},"tagline":"You Know, for Search"}`)
		default:
			fmt.Fprint(w, `{"count":0,"status":"green"}`)
		}
	}))
	defer store.Close()
	tlsAddr := strings.TrimPrefix(secure.URL, "https://")
	for _, tt := range []struct {
		name string
		to   string // "" is the stand-in that requires a token
		args []string
		says []string // nil: success
	}{
		{"the token", "", []string{"--secret-token", "env:GOOD"}, nil},
		{"no token", "", nil, []string{"401", "--secret-token env:NAME"}},
		{"a wrong token", "", []string{"--secret-token", "env:WRONG"}, []string{"401", "secret token"}},
		{"a wrong key", "", []string{"--api-key", "env:WRONG"}, []string{"401", "api key"}},
		{"a plain token", "", []string{"--secret-token", canary}, []string{"env:"}},
		{"no such variable", "", []string{"--secret-token", "env:NOWHERE_TO_BE_FOUND"}, []string{"NOWHERE_TO_BE_FOUND"}},
		{"no RUM", "", []string{"--intake", "rum-v3"}, []string{"rum"}},
		{"TLS to a server without it", "apm+https://" + wants.addr, nil, []string{"apm+http://"}},
		{"no TLS to a server with it", "apm+http://" + tlsAddr, nil, []string{"apm+https://"}},
		{"an unknown authority", "apm+https://" + tlsAddr, nil, []string{"certificate", "--tls-ca"}},
		{"a known authority", "apm+https://" + tlsAddr, []string{"--tls-ca", ca}, nil},
		{"another name", "apm+https://" + tlsAddr, []string{"--tls-ca", ca, "--tls-server-name", "elsewhere.test"}, []string{"elsewhere.test"}},
		{"HTTP/2 without TLS", "", []string{"--secret-token", "env:GOOD", "--http-version", "2"}, []string{"apm+https"}},
		{"no server", "apm+http://127.0.0.1:" + freePort(t), nil, []string{"nothing listens there"}},
		{"a store", "apm+" + store.URL, nil, []string{"not an APM server", "--index"}},
		{"a password in the address", "apm+http://u:" + canary + "@" + wants.addr, nil, []string{"password", "env:NAME"}},
		{"no store", "", []string{"--secret-token", "env:GOOD", "--index", "http://127.0.0.1:" + freePort(t)}, []string{"nothing listens there", "--index"}},
		{"a store's wrong password", "", []string{"--secret-token", "env:GOOD", "--index", store.URL, "--index-user", "carronade", "--index-password", "env:WRONG"}, []string{"unable to authenticate", "--index-password"}},
		{"a store's password", "", []string{"--secret-token", "env:GOOD", "--index", store.URL, "--index-user", "carronade", "--index-password", "env:GOOD", "--index-wait", "100ms"}, nil},
		{"a store's password in its address", "", []string{"--secret-token", "env:GOOD", "--index", "http://u:" + canary + "@127.0.0.1:9200"}, []string{"--index-user"}},
		{"no events", "", []string{"--events", "0"}, []string{"one event"}},
		{"no corpus", "", []string{"--corpus", "/nowhere.ndjson"}, []string{"/nowhere.ndjson"}},
		{"an unknown mix", "", []string{"--mix", "transactoin=1"}, []string{"transactoin"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			to := tt.to
			if to == "" {
				to = "apm+http://" + wants.addr
			}
			e := run(t, append([]string{"run", to, "--count", "40"}, tt.args...)...)
			if tt.says == nil {
				e.wantOneOf(t, 0, 3)
			} else {
				e.want(t, 2).says(t, append(tt.says, "hint:")...)
			}
			assert.True(t, !strings.Contains(e.stderr+e.stdout, canary) && !strings.Contains(e.stderr+e.stdout, "letmein"),
				"a secret is shown:\n%s%s", e.stdout, e.stderr)
		})
	}
}

// If the store stops answering, only the count of documents fails, not the run.
func TestAPMStoreFails(t *testing.T) {
	t.Parallel()
	server := startStandin(t, "apm", "--listen", "127.0.0.1:0")
	for _, tt := range []struct {
		name   string
		answer func(w http.ResponseWriter, r *http.Request)
		says   string
	}{
		{"slow", func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-r.Context().Done():
			case <-t.Context().Done():
			}
		}, "could not count what was indexed"},
		{"fails", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, `{"error":{"reason":"all shards failed"}}`)
		}, "all shards failed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var counts atomic.Int32
			store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, "/_count") && counts.Add(1) > 1 { // the first one precedes the run
					tt.answer(w, r)
					return
				}
				fmt.Fprint(w, `{"count":7,"status":"green","version":{"number":"8.19.0"}}`)
			}))
			defer store.Close()
			d := run(t, "run", "apm+http://"+server.addr, "--count", "400", "--index", store.URL, "--index-wait", "1s", "--json").succeeded(t).document(t)
			if d.Totals.Acked != 400 || d.Indexed != nil || !strings.Contains(strings.Join(d.Warnings, "; "), tt.says) {
				t.Errorf("acked %d, indexed %+v, warnings %q", d.Totals.Acked, d.Indexed, d.Warnings)
			}
		})
	}
}
