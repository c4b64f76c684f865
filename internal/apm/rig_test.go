package apm

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"carronade/internal/apm/standin"
	"carronade/internal/standin/standintest"
	"carronade/load"
	"carronade/protocol"
	"carronade/protocol/protocoltest"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// An intake is a server of intake v2 that checks nothing, for behaviour that the
// stand-in does not have: it counts lines, and its answers can be set.
type intake struct {
	*httptest.Server
	events, requests atomic.Uint64
	delay            atomic.Int64
	refuse           atomic.Bool

	mu      sync.Mutex
	bodies  [][]byte // the first ones, uncompressed
	heads   []http.Header
	version string
	answer  func(w http.ResponseWriter, events int) bool // true: answered
}

func newIntake(t testing.TB, secure bool) *intake {
	t.Helper()
	s := &intake{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	if secure {
		s.EnableHTTP2 = true
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s
}

func (s *intake) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		if r.URL.Path != "/" {
			http.NotFound(w, r)
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		fmt.Fprintf(w, `{"build_date":"2026-01-01","build_sha":"abc123","publish_ready":true,"version":%q}`, cmp.Or(s.version, "9.6.0"))
		return
	}
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		body = z
	}
	data, err := io.ReadAll(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	events := bytes.Count(data, []byte("\n")) - 1
	if events <= 0 {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	s.requests.Add(1)
	if d := s.delay.Load(); d > 0 {
		<-time.After(time.Duration(d))
	}
	s.mu.Lock()
	answer := s.answer
	if len(s.bodies) < 1000 {
		s.bodies = append(s.bodies, data)
		s.heads = append(s.heads, r.Header)
	}
	s.mu.Unlock()
	switch {
	case s.refuse.Load():
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprint(w, `{"accepted":0,"errors":[{"message":"queue is full"}]}`)
	case answer != nil && answer(w, events):
	default:
		s.events.Add(uint64(events))
		w.WriteHeader(http.StatusAccepted)
		if r.URL.RawQuery == "verbose" {
			fmt.Fprintf(w, `{"accepted":%d}`, events)
		}
	}
}

// taken returns the requests so far, with their headers.
func (s *intake) taken() ([][]byte, []http.Header) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.bodies), slices.Clone(s.heads)
}

func (s *intake) reply(f func(w http.ResponseWriter, events int) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = f
}

// url is the server's address as a target.
func (s *intake) url() string { return "apm+" + s.URL }

func spec(t testing.TB, text string, options map[string]string) protocol.Spec {
	t.Helper()
	scheme, rest, _ := strings.Cut(text, "://")
	hosts, path, slash := strings.Cut(rest, "/")
	u := &url.URL{Scheme: scheme, Host: hosts}
	if slash {
		u.Path = "/" + path
	}
	values, given := protocol.Values{}, map[string]bool{}
	for _, o := range (Kind{}).Options() {
		if o.Default != "" {
			values[o.Name] = []string{o.Default}
		}
	}
	for name, v := range options {
		values[name], given[name] = strings.Split(v, "\x00"), true
	}
	return protocol.Spec{URL: u, Op: "produce", Options: values, Given: given, Seed: 1, RunID: 1, MaxInFlight: max(1, values.Int("max-in-flight")), Logf: t.Logf}
}

func open(t testing.TB, text string, options map[string]string) *session {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s := assert.Value(Kind{}.Open(ctx, spec(t, text, options)))(t, "open %s", text)
	t.Cleanup(func() { s.Close() })
	return s.(*session)
}

// fire runs a plan whose batches are the session's requests.
func fire(t testing.TB, s *session, p load.Plan) *load.Result {
	t.Helper()
	p.BatchEvents = s.cfg.bodyPool.most
	if p.MaxInFlight == 0 {
		p.MaxInFlight = s.cfg.depth
	}
	r := assert.Value(load.Fire(t.Context(), p, s.Target()))(t)
	return r
}

// The suite that every kind passes, with all ways to send requests. Its batches have one event: a request's make-up determines
// its events, so the engine cannot choose their number.
func TestSuite(t *testing.T) {
	testkit.Need(t, "some seconds")
	t.Parallel()
	for _, tt := range []struct {
		name    string
		secure  bool
		options map[string]string
	}{
		{"plain", false, nil},
		{"pipelined", false, map[string]string{"max-in-flight": "4"}},
		{"tls", true, nil},
		{"http/2", true, map[string]string{"http-version": "2", "max-in-flight": "8"}},
		{"no keep-alive", false, map[string]string{"keep-alive": "false"}},
		{"gzip", false, map[string]string{"gzip": "1"}},
		{"verbose", false, map[string]string{"verbose": "true"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newIntake(t, tt.secure)
			options := map[string]string{"events": "1", "spans": "0", "frames": "1", "clients": "1"}
			maps.Copy(options, tt.options)
			if tt.secure {
				options["tls-ca"] = authority(t, s)
			}
			protocoltest.Run(t, protocoltest.System{
				Few: options["keep-alive"] == "false", Kind: Kind{}, URL: s.url(), Options: options,
				Events: s.events.Load, Slow: func(d time.Duration) { s.delay.Store(int64(d)) },
				Refuse: s.refuse.Store, RefuseWant: load.Throttled,
			})
		})
	}
}

func authority(t testing.TB, s *intake) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	assert.OK(t, os.WriteFile(file, text, 0o600))
	return file
}

// A connection takes little memory: buffers are borrowed while they are in use.
func TestConnectionMemory(t *testing.T) {
	testkit.Need(t, "some seconds")
	cert, key := testkit.NewAuthority("test").Files(t)
	t.Run("TCP", func(t *testing.T) {
		s := standintest.Spawn(t, "apm")
		protocoltest.System{Kind: Kind{}, URL: "apm+http://" + s.Addr()}.Memory(t, 300, 1300, 16<<10)
	})
	t.Run("TLS", func(t *testing.T) {
		s := standintest.Spawn(t, "apm", "--tls-cert", cert, "--tls-key", key)
		protocoltest.System{Kind: Kind{}, URL: "apm+https://" + s.Addr(), Options: map[string]string{"tls-ca": cert}}.Memory(t, 50, 250, 48<<10)
	})
}

func startStandin(t testing.TB, o standin.Options) *standin.Server {
	t.Helper()
	o.Listen = "127.0.0.1:0"
	s := assert.Value(standin.Start(o))(t)
	t.Cleanup(func() { s.Close() })
	return s
}

// A report says that its server was a stand-in, and whether it discarded events.
func TestStandinFacts(t *testing.T) {
	t.Parallel()
	for _, discard := range []bool{false, true} {
		s := startStandin(t, standin.Options{Discard: discard})
		f := open(t, "apm+http://"+s.Addr(), nil).Facts()
		_, discards := f["discards"]
		assert.True(t, f["standin"] == true && discards == discard, "discarding %t: the facts are %v", discard, f)
	}
	f := open(t, newIntake(t, false).url(), nil).Facts()
	assert.True(t, f["standin"] == nil, "a server that is not a stand-in: %v", f["standin"])
}

// The stand-in, which checks events, accepts every event of every protocol.
func TestStandinAcceptsAll(t *testing.T) {
	t.Parallel()
	for _, intake := range []string{"v2", "rum-v2", "rum-v3", "v1"} {
		for i, options := range []map[string]string{
			{},
			{"events": "1", "spans": "0", "frames": "0"},
			{"events": "1", "spans": "1", "frames": "1"},
			{"events": "10", "spans": "10", "frames": "10"},
			{"events": "1-9", "spans": "0-9", "frames": "0-9", "durations": "uniform(1ms,1s)", "outcomes": "unknown"},
			{"gzip": "9", "trace-hops": "3"},
			{"verbose": "true", "max-in-flight": "3", "repeat-body": "true"},
			{"keep-alive": "false"},
			{"mix": "transaction=3,error=2,metricset=1,span=1", "events": "7"},
			{"mix": "log=1"},
			{"mix": "transaction=3,log=5,error=1", "gzip": "5", "trace-hops": "2"},
		} {
			if options["mix"] != "" && (intake == "rum-v3" || intake == "v1") {
				continue // they have no such mixes
			}
			t.Run(fmt.Sprintf("%s %d", intake, i), func(t *testing.T) {
				t.Parallel()
				s := startStandin(t, standin.Options{V1: intake == "v1"})
				all := map[string]string{"intake": intake, "clients": "2", "pool": "256KiB"} // 503 events do not use up more
				maps.Copy(all, options)
				sess := open(t, "apm+http://"+s.Addr(), all)
				r := fire(t, sess, plan(503))
				assert.Equal(t, r.Measurement.Acked, 503, "events acked: %v", r.Failures)
			})
		}
	}
}

// Logs count as the others, at the server too.
func TestStandinCountsLogs(t *testing.T) {
	t.Parallel()
	s := startStandin(t, standin.Options{})
	sess := open(t, "apm+http://"+s.Addr(), map[string]string{"mix": "log=1", "events": "10"})
	r := fire(t, sess, plan(200))
	c := s.Counts()
	assert.True(t, r.Measurement.Acked == 200 && c.Logs == 200 && c.Accepted == 200 && c.Invalid == 0, "acked %d, the server: %v", r.Measurement.Acked, c)
	w := sess.Warnings()
	assert.True(t, len(w) == 0, "warnings %q", w)
	kinds, _ := sess.Facts()["request"].(map[string]any)["kinds"].(map[string]any)
	assert.Equal(t, kinds["log"], 10.0, "logs of a request with the kinds %v", kinds)
}

// A server that is too old for logs refuses them. The report says so, by its version or by its words.
func TestOldServerRefusesLogs(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, version, mix string
		refuses            bool
		want               string
	}{
		{"8.4", "8.4.3", "log=1", true, "is version 8.4.3: servers before 8.5 do not know logs"},
		{"7", "7.17.9", "transaction=1,log=1", true, "is version 7.17.9"},
		{"8.4 without logs", "8.4.3", "transaction=1", false, ""},
		{"8.6", "8.6.0", "log=1", false, ""},
		{"8.10", "8.10.1", "log=1", false, ""},
		{"unknown, with its words", "-", "log=1", true, `did not recognize object type: "log": servers before 8.5`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newIntake(t, false)
			s.mu.Lock()
			s.version = tt.version
			s.mu.Unlock()
			if tt.refuses {
				s.reply(func(w http.ResponseWriter, _ int) bool {
					w.WriteHeader(http.StatusBadRequest)
					io.WriteString(w, `{"accepted":0,"errors":[{"message":"did not recognize object type: \"log\"","document":"{}"}]}`)
					return true
				})
			}
			sess := open(t, s.url(), map[string]string{"mix": tt.mix, "spans": "0"})
			assert.Equal(t, fire(t, sess, plan(40)).Measurement.Failed > 0, tt.refuses, "events failed")
			w := strings.Join(sess.Warnings(), "\n")
			assert.True(t, (tt.want != "" || w == "") && strings.Contains(w, tt.want), "warnings %q, want %q", w, tt.want)
		})
	}
}

// Every document that a server indexes is counted, and every lost one is missing.
func TestIndexedThroughStandin(t *testing.T) {
	t.Parallel()
	n := testkit.SharedSearch(t)
	for _, lose := range []uint64{0, 37} {
		t.Run(fmt.Sprintf("%d lost", lose), func(t *testing.T) {
			options := map[string]string{
				"index": n.URL, "index-still": "5s", "index-wait": "10m", "gzip": "1",
				"mix": "transaction=4,error=1,metricset=1,log=4",
			}
			s := startStandin(t, standin.Options{Index: n.URL, Lose: lose})
			sess := open(t, "apm+http://"+s.Addr(), options)
			r := fire(t, sess, plan(2005))
			x := assert.Value(sess.Confirm(t.Context(), r.Measurement.Acked))(t)
			assert.True(t, r.Measurement.Acked == 2005 && x.Expected == 2005 && x.Documents() == 2005-int64(lose) && x.Stable,
				"acked %d, indexed %+v; want 2005 and %d documents", r.Measurement.Acked, x, 2005-lose)
			c := s.Counts()
			assert.True(t, c.Logs > 0, "no logs were sent: %v", c)
			assert.True(t, x.Queued != nil && *x.Queued == 0, "the server still has %v queued", x.Queued)
		})
	}
}
