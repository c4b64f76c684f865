package apm

import (
	"encoding/pem"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"carronade/internal/apm/wire"
	"carronade/internal/standin/standintest"
	"carronade/load"
	"carronade/protocol/protocoltest"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

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

// An outcomeSink is a sink that keeps the newest outcome.
type outcomeSink struct {
	clockSink
	out load.Outcome
}

func (s *outcomeSink) Complete(out []load.Outcome) { s.out = out[0] }

// The time for which a request waits for a connection of net/http's pool is the system's, and not
// the generator's lateness.
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
			l := &httpLane{s: &session{cfg: &config{}, sink: sink}, inFlight: 1}
			e := job{batch: load.Batch{Events: 1, Ready: 10 * ms, Free: 10 * ms}, encodedRequest: &encodedRequest{body: &wire.Body{Bytes: []byte("x")}}}
			l.finish(e, seen{asked: tt.asked, sent: tt.sent, got: true, wrote: true}, 4000*ms, verdict{acked: 1}, 202)
			assert.Equal(t, sink.out.Sent-sink.out.Free, tt.delay, "send delay")
		})
	}
}
