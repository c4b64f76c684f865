package bus

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"carronade/internal/host"
)

// certificateFile has the server's private key and its certificate, in one file, so that they
// always belong together.
const certificateFile = "server.pem"

// pinForm is the form of a pin.
var pinForm = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// pinOf is the pin of a certificate.
func pinOf(der []byte) string {
	sum := sha256.Sum256(der)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// certificate reads the server's certificate, or makes one if there is none.
func certificate(dir string) (tls.Certificate, error) {
	path := filepath.Join(dir, certificateFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if text, err = newCertificate(); err == nil {
			err = host.ReplaceFile(path, text)
		}
	}
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(text, text)
}

// newCertificate makes a key and a certificate by itself. Clients compare its hash and look at
// nothing else in it: no name, and it does not expire.
func newCertificate() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: "carronade fleet"},
		NotBefore:    time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), // whatever the clocks of clients say
		NotAfter:     time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	err = errors.Join(
		pem.Encode(&text, &pem.Block{Type: "PRIVATE KEY", Bytes: private}),
		pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return text.Bytes(), err
}

// serverTLS is the server's side: TLS 1.3 and nothing older.
func serverTLS(own tls.Certificate) *tls.Config {
	return &tls.Config{
		Certificates:           []tls.Certificate{own},
		MinVersion:             tls.VersionTLS13,
		NextProtos:             []string{protocol},
		SessionTicketsDisabled: true,
	}
}

// clientTLS is the client's side. The pin replaces authorities, names and dates.
func clientTLS(pin string) *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS13,
		NextProtos:         []string{protocol},
		InsecureSkipVerify: true, // VerifyConnection checks the pin instead
		VerifyConnection: func(state tls.ConnectionState) error {
			if len(state.PeerCertificates) == 0 || pinOf(state.PeerCertificates[0].Raw) != pin {
				return ErrPin
			}
			return nil
		},
	}
}
