package apm

import (
	"encoding/pem"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

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

// authority writes a file with the authority of the server's certificate.
func authority(t testing.TB, s *intake) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	assert.OK(t, os.WriteFile(file, text, 0o600))
	return file
}
