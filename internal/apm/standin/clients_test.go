package standin

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"strings"
	"testing"

	"carronade/internal/standin"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

func tlsFiles(cert, key string) standin.TLS { return standin.TLS{Cert: cert, Key: key} }

// certificate makes a self-signed certificate for 127.0.0.1.
func certificate(t *testing.T) (files standin.TLS, pool *x509.CertPool) {
	t.Helper()
	own := testkit.NewAuthority("test")
	files.Cert, files.Key = own.Files(t)
	return files, own.Pool()
}

func TestProtocolsOfHTTP(t *testing.T) {
	t.Parallel()
	files, pool := certificate(t)
	plain, secure := start(t, Options{}), start(t, Options{TLS: files})
	h2c := new(http.Protocols)
	h2c.SetUnencryptedHTTP2(true)
	for _, tt := range []struct {
		name, url string
		tr        *http.Transport
		major     int
	}{
		{"1.1", "http://" + plain.Addr(), &http.Transport{}, 1},
		{"2 without TLS", "http://" + plain.Addr(), &http.Transport{Protocols: h2c}, 2},
		{"1.1 over TLS", "https://" + secure.Addr(), &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}, 1},
		{"2", "https://" + secure.Addr(), &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			defer tt.tr.CloseIdleConnections()
			r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, tt.url+"/intake/v2/events", strings.NewReader(meta+goodSpan))
			resp, err := (&http.Client{Transport: tt.tr}).Do(r)
			assert.OK(t, err)
			resp.Body.Close()
			assert.True(t, resp.StatusCode == http.StatusAccepted && resp.ProtoMajor == tt.major,
				"got %d by HTTP/%d, want 202 by %d", resp.StatusCode, resp.ProtoMajor, tt.major)
		})
	}
}
