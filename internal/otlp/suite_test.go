package otlp

import (
	"encoding/pem"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"carronade/internal/otlp/standin"
	"carronade/load"
	"carronade/protocol/protocoltest"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

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
