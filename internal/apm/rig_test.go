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
	events   atomic.Uint64
	requests atomic.Uint64
	delay    atomic.Int64
	refuse   atomic.Bool

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

// The suite that every kind passes, with all ways to send requests. Its batches
// have one event: a request's make-up determines its events, so the engine cannot
// choose their number.
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
				Few:  options["keep-alive"] == "false",
				Kind: Kind{}, URL: s.url(), Options: options,
				Events: s.events.Load,
				Slow:   func(d time.Duration) { s.delay.Store(int64(d)) },
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
