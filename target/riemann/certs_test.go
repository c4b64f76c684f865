package riemann

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// certificates are an authority, the configuration of a server that requires its
// certificates, and a client's files.
type certificates struct {
	ca, cert, key string // files
	otherCA       string // of an authority that signed none of them
	untrusted     string // a client's certificate of otherCA, with its key
	server        *tls.Config
}

func newCertificates(t testing.TB) certificates {
	t.Helper()
	dir := t.TempDir()
	write := func(name string, blocks ...*pem.Block) string {
		path := filepath.Join(dir, name)
		var all []byte
		for _, b := range blocks {
			all = append(all, pem.EncodeToMemory(b)...)
		}
		if err := os.WriteFile(path, all, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	serial := int64(0)
	make1 := func(name string, parent *x509.Certificate, signer *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey, *pem.Block, *pem.Block) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		serial++
		c := &x509.Certificate{
			SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name},
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
			KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
			IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, BasicConstraintsValid: true, IsCA: parent == nil,
		}
		if parent == nil {
			parent, signer = c, key
		}
		der, err := x509.CreateCertificate(rand.Reader, c, parent, key.Public(), signer)
		if err != nil {
			t.Fatal(err)
		}
		c, err = x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		keyDER, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		return c, key, &pem.Block{Type: "CERTIFICATE", Bytes: der}, &pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}
	}
	ca, caKey, caPEM, _ := make1("authority", nil, nil)
	other, otherKey, otherPEM, _ := make1("another authority", nil, nil)
	_, _, serverPEM, serverKey := make1("server", ca, caKey)
	_, _, clientPEM, clientKey := make1("client", ca, caKey)
	_, _, strangerPEM, strangerKey := make1("stranger", other, otherKey)
	pair, err := tls.X509KeyPair(pem.EncodeToMemory(serverPEM), pem.EncodeToMemory(serverKey))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(ca)
	return certificates{
		ca: write("ca.pem", caPEM), cert: write("client.pem", clientPEM), key: write("client.key", clientKey),
		otherCA: write("other.pem", otherPEM), untrusted: write("stranger.pem", strangerPEM, strangerKey),
		server: &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert},
	}
}
