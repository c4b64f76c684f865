package testkit

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
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

	"carronade/test/testkit/assert"
)

// A Certificate is one for 127.0.0.1 and localhost, with its key. Each is PEM, and the key is
// in PKCS #8. It is valid from an hour before it was made until a day later.
type Certificate struct {
	Cert, Key []byte

	parsed *x509.Certificate
	signer crypto.Signer
	newKey func() (crypto.Signer, error)
	signed int64 // how many certificates it has signed, itself included
}

// NewAuthority makes a certificate that signs others, and that a server may use itself. Its keys
// are ECDSA. It is not for concurrent use.
func NewAuthority(name string) *Certificate {
	return newAuthority(name, func() (crypto.Signer, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) })
}

// NewRSAAuthority is like NewAuthority; its keys are RSA, as the real Riemann requires
// (transport/tcp.clj).
func NewRSAAuthority(name string) *Certificate {
	return newAuthority(name, func() (crypto.Signer, error) { return rsa.GenerateKey(rand.Reader, 2048) })
}

func newAuthority(name string, newKey func() (crypto.Signer, error)) *Certificate {
	a := (&Certificate{newKey: newKey}).Sign(name)
	a.newKey, a.signed = newKey, 1
	return a
}

// Sign makes a certificate that c has signed, for the usages; without any it is for servers and
// clients.
func (c *Certificate) Sign(name string, usages ...x509.ExtKeyUsage) *Certificate {
	key := must(c.newKey())
	c.signed++
	template := &x509.Certificate{
		SerialNumber: big.NewInt(c.signed), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment, ExtKeyUsage: usages,
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	if len(usages) == 0 {
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	}
	parent, signer := c.parsed, c.signer
	if parent == nil {
		template.IsCA = true
		template.KeyUsage |= x509.KeyUsageCertSign
		parent, signer = template, key
	}
	der := must(x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer))
	return &Certificate{
		Cert:   pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:    pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: must(x509.MarshalPKCS8PrivateKey(key))}),
		parsed: must(x509.ParseCertificate(der)),
		signer: key,
	}
}

// must panics with an error: making a certificate fails only if this code is wrong.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Pair is c with its key, as package crypto/tls takes it.
func (c *Certificate) Pair() tls.Certificate {
	return tls.Certificate{Certificate: [][]byte{c.parsed.Raw}, PrivateKey: c.signer}
}

// Pool contains c alone.
func (c *Certificate) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(c.parsed)
	return pool
}

// Files writes c and its key to files, which are removed after the test.
func (c *Certificate) Files(t testing.TB) (cert, key string) {
	t.Helper()
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, text := range map[string][]byte{cert: c.Cert, key: c.Key} {
		assert.OK(t, os.WriteFile(path, text, 0o600))
	}
	return cert, key
}

// Certificates are PEM files for mutual TLS with the real Riemann and its clients: an authority,
// and the certificates that it signed for a server and a client.
type Certificates struct {
	CA                    string
	ServerCert, ServerKey string
	ClientCert, ClientKey string
}

// MakeCertificates makes certificates in files that are removed after the test.
func MakeCertificates(t testing.TB) *Certificates {
	t.Helper()
	a := NewRSAAuthority("authority")
	var c Certificates
	c.CA, _ = a.Files(t)
	c.ServerCert, c.ServerKey = a.Sign("server", x509.ExtKeyUsageServerAuth).Files(t)
	c.ClientCert, c.ClientKey = a.Sign("client", x509.ExtKeyUsageClientAuth).Files(t)
	return &c
}

// ClientOptions are riemann-client's arguments for TLS with these certificates.
func (c *Certificates) ClientOptions() []string {
	return []string{"-G", "-o", "cafile=" + c.CA, "-o", "certfile=" + c.ClientCert, "-o", "keyfile=" + c.ClientKey}
}
