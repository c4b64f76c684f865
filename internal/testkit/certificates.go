package testkit

import (
	"crypto/rand"
	"crypto/rsa"
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

// Certificates are PEM files for mutual TLS on this machine: an authority, and the
// certificates that it signed for a server and a client. Keys are RSA, in PKCS #8,
// as the real server requires (transport/tcp.clj).
type Certificates struct {
	CA                    string
	ServerCert, ServerKey string
	ClientCert, ClientKey string
}

// ClientOptions are riemann-client's arguments for TLS with these certificates.
func (c *Certificates) ClientOptions() []string {
	return []string{"-G", "-o", "cafile=" + c.CA, "-o", "certfile=" + c.ClientCert, "-o", "keyfile=" + c.ClientKey}
}

// MakeCertificates makes certificates for localhost and 127.0.0.1, in files that
// are removed after the test.
func MakeCertificates(t testing.TB) *Certificates {
	t.Helper()
	dir := t.TempDir()
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	now := time.Now()
	serial := int64(0)
	var ca *x509.Certificate
	var caKey *rsa.PrivateKey
	issue := func(name string, usage x509.ExtKeyUsage) (cert, key string) {
		priv, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			t.Fatal(err)
		}
		serial++
		template := &x509.Certificate{
			SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name},
			NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour), BasicConstraintsValid: true,
			KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment, ExtKeyUsage: []x509.ExtKeyUsage{usage},
			DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		}
		parent, signer := ca, caKey
		if ca == nil {
			template.IsCA, template.KeyUsage = true, x509.KeyUsageCertSign
			template.ExtKeyUsage, template.DNSNames, template.IPAddresses = nil, nil, nil
			parent, signer = template, priv
		}
		der, err := x509.CreateCertificate(rand.Reader, template, parent, &priv.PublicKey, signer)
		if err != nil {
			t.Fatal(err)
		}
		if ca == nil {
			if ca, err = x509.ParseCertificate(der); err != nil {
				t.Fatal(err)
			}
			caKey = priv
		}
		keyDER, err := x509.MarshalPKCS8PrivateKey(priv)
		if err != nil {
			t.Fatal(err)
		}
		return write(name+".pem", "CERTIFICATE", der), write(name+"-key.pem", "PRIVATE KEY", keyDER)
	}
	var c Certificates
	c.CA, _ = issue("authority", 0)
	c.ServerCert, c.ServerKey = issue("server", x509.ExtKeyUsageServerAuth)
	c.ClientCert, c.ClientKey = issue("client", x509.ExtKeyUsageClientAuth)
	return &c
}
