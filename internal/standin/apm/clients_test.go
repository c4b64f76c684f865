package apm

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.elastic.co/apm/v2"
	"go.elastic.co/apm/v2/transport"

	"carronade/internal/standin"
)

func tlsFiles(cert, key string) standin.TLS { return standin.TLS{Cert: cert, Key: key} }

// certificate makes a self-signed certificate for 127.0.0.1.
func certificate(t *testing.T) (files standin.TLS, pool *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "stand-in"}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	files = standin.TLS{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for name, b := range map[string][]byte{files.Cert: certPEM, files.Key: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})} {
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool = x509.NewCertPool()
	pool.AppendCertsFromPEM(certPEM)
	return files, pool
}

// Everything that Elastic's agent sends is accepted.
func TestElasticAgent(t *testing.T) {
	t.Parallel()
	files, _ := certificate(t)
	tests := []struct {
		name   string
		o      Options
		scheme string
	}{
		{"plain", Options{}, "http"},
		{"token over TLS", Options{SecretToken: "canary", NoRUM: true, TLS: files}, "https"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := start(t, tt.o)
			base, _ := url.Parse(tt.scheme + "://" + s.Addr())
			tr, err := transport.NewHTTPTransport(transport.HTTPTransportOptions{
				ServerURLs: []*url.URL{base}, SecretToken: string(tt.o.SecretToken),
				TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // the test's certificate
			})
			if err != nil {
				t.Fatal(err)
			}
			tracer, err := apm.NewTracerOptions(apm.TracerOptions{ServiceName: "shop", ServiceVersion: "1", ServiceEnvironment: "test", Transport: tr})
			if err != nil {
				t.Fatal(err)
			}
			defer tracer.Close()
			tracer.SetSpanCompressionEnabled(false)
			tracer.SetExitSpanMinDuration(0)
			tracer.SetSpanStackTraceMinDuration(0)
			const transactions, spans = 20, 5
			for range transactions {
				tx := tracer.StartTransaction("GET /orders/{id}", "request")
				ctx := apm.ContextWithTransaction(context.Background(), tx)
				req, _ := http.NewRequestWithContext(ctx, http.MethodPost, "http://shop.example.com/orders/7?x=y", nil)
				tx.Context.SetHTTPRequest(req)
				tx.Context.SetHTTPStatusCode(201)
				tx.Context.SetLabel("tier", "gold")
				tx.Context.SetCustom("cart", map[string]any{"lines": 3})
				tx.Context.SetUsername("ada")
				for range spans {
					span, _ := apm.StartSpan(ctx, "SELECT FROM orders", "db.postgresql.query")
					span.Context.SetDatabase(apm.DatabaseSpanContext{Instance: "shop", Statement: "SELECT 1", Type: "sql"})
					span.Context.SetDestinationAddress("db.example.internal", 5432)
					span.End()
				}
				apm.CaptureError(ctx, errors.New("no such order")).Send()
				tx.End()
			}
			tracer.SendMetrics(nil)
			tracer.Flush(nil)
			until(t, func() bool {
				c := s.Counts()
				return c.Transactions == transactions && c.Spans == transactions*spans && c.Errors == transactions && c.Metricsets > 0
			})
			if c := s.Counts(); c.Invalid+c.TooLarge+c.Unauthorized > 0 {
				t.Errorf("it refused some: %v", c)
			}
		})
	}
}

func TestProtocolsOfHTTP(t *testing.T) {
	t.Parallel()
	files, pool := certificate(t)
	plain, secure := start(t, Options{}), start(t, Options{TLS: files})
	h2c := new(http.Protocols)
	h2c.SetUnencryptedHTTP2(true)
	tests := []struct {
		name, url string
		tr        *http.Transport
		major     int
	}{
		{"1.1", "http://" + plain.Addr(), &http.Transport{}, 1},
		{"2 without TLS", "http://" + plain.Addr(), &http.Transport{Protocols: h2c}, 2},
		{"1.1 over TLS", "https://" + secure.Addr(), &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}, 1},
		{"2", "https://" + secure.Addr(), &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			defer tt.tr.CloseIdleConnections()
			r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, tt.url+"/intake/v2/events", strings.NewReader(meta+goodSpan))
			resp, err := (&http.Client{Transport: tt.tr}).Do(r)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != http.StatusAccepted || resp.ProtoMajor != tt.major {
				t.Errorf("got %d by HTTP/%d, want 202 by %d", resp.StatusCode, resp.ProtoMajor, tt.major)
			}
		})
	}
}
