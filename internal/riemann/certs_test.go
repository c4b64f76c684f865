package riemann

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"testing"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// certificates are an authority, the configuration of a server that requires its
// certificates, and a client's files.
type certificates struct {
	ca, cert, key string // files
	otherCA       string // of an authority that signed none of them
	untrusted     string // a client's certificate of otherCA, with its key
	server        *tls.Config
}

func newCertificates(t testing.TB) (c certificates) {
	t.Helper()
	ours, other := testkit.NewAuthority("authority"), testkit.NewAuthority("another authority")
	c.ca, _ = ours.Files(t)
	c.otherCA, _ = other.Files(t)
	c.cert, c.key = ours.Sign("client").Files(t)
	stranger := other.Sign("stranger")
	c.untrusted = filepath.Join(t.TempDir(), "both.pem")
	assert.OK(t, os.WriteFile(c.untrusted, append(stranger.Cert, stranger.Key...), 0o600))
	c.server = &tls.Config{
		Certificates: []tls.Certificate{ours.Sign("server").Pair()},
		ClientCAs:    ours.Pool(), ClientAuth: tls.RequireAndVerifyClientCert,
	}
	return c
}
