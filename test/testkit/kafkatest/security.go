package kafkatest

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// The users of a secure cluster. A client certificate makes the user CertUser.
const (
	Admin    = "admin"   // has all rights
	Alice    = "alice"   // has the rights that a test grants
	Mallory  = "mallory" // has no rights
	CertUser = "CN=carronade-client"
)

// Mechanism is a SASL mechanism of the SASL_SSL listener.
type Mechanism string

// The mechanisms.
const (
	Plain       Mechanism = "PLAIN"
	ScramSHA256 Mechanism = "SCRAM-SHA-256"
	ScramSHA512 Mechanism = "SCRAM-SHA-512"
	OAuthBearer Mechanism = "OAUTHBEARER" // unsecured tokens, see OAuthToken
)

// Password returns a user's password. It is recognisable, so that a test can search
// for it where it must not appear.
func Password(user string) string { return "secret-of-" + user }

// OAuthToken returns an unsecured token (RFC 7515, appendix A.5) for the user. It is
// valid for an hour.
func OAuthToken(user string) string {
	part := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	now := time.Now().Unix()
	return part(`{"alg":"none"}`) + "." + part(fmt.Sprintf(`{"sub":%q,"iat":%d,"exp":%d}`, user, now-60, now+3600)) + "."
}

// A pki is a certificate authority with a server's and a client's certificate, as
// PEM files.
type pki struct {
	dir  string
	pool *x509.CertPool
}

func newPKI(dir string) (*pki, error) {
	ca := testkit.NewAuthority("carronade-test-ca")
	p := &pki{dir: dir, pool: ca.Pool()}
	err := os.MkdirAll(dir, 0o700)
	for name, c := range map[string]*testkit.Certificate{
		"ca":     ca,
		"server": ca.Sign("carronade-test-server"),
		"client": ca.Sign(strings.TrimPrefix(CertUser, "CN=")),
	} {
		for suffix, text := range map[string][]byte{".pem": c.Cert, "-key.pem": c.Key, "-both.pem": slices.Concat(c.Key, c.Cert)} {
			if err == nil {
				err = os.WriteFile(p.file(name+suffix), text, 0o600)
			}
		}
	}
	if err != nil {
		return nil, fmt.Errorf("kafkatest: write certificates: %w", err)
	}
	return p, nil
}

func (p *pki) file(name string) string { return filepath.Join(p.dir, name) }

// brokerProperties returns the listeners, stores and users of a secure node. Nodes
// log in to each other by PLAIN; controllers communicate in plaintext.
func (p *pki) brokerProperties(n *Node) map[string]string {
	var users strings.Builder
	for _, u := range []string{Admin, Alice, Mallory} {
		fmt.Fprintf(&users, ` user_%s="%s"`, u, Password(u))
	}
	const sasl = "listener.name.sasl_ssl."
	return map[string]string{
		"listeners": fmt.Sprintf("SASL_SSL://%s,SSL://%s,CONTROLLER://127.0.0.1:%d",
			n.Addr(), n.MTLSAddr(), n.controllerPort),
		"listener.security.protocol.map":       "CONTROLLER:PLAINTEXT,SASL_SSL:SASL_SSL,SSL:SSL",
		"inter.broker.listener.name":           "SASL_SSL",
		"sasl.enabled.mechanisms":              "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
		"sasl.mechanism.inter.broker.protocol": "PLAIN",
		sasl + "plain.sasl.jaas.config": fmt.Sprintf("org.apache.kafka.common.security.plain.PlainLoginModule required username=\"%s\" password=\"%s\"%s;",
			Admin, Password(Admin), users.String()),
		sasl + "scram-sha-256.sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required;",
		sasl + "scram-sha-512.sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required;",
		sasl + "oauthbearer.sasl.jaas.config":   "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub=\"admin\";",
		"ssl.keystore.type":                     "PEM",
		"ssl.keystore.location":                 p.file("server-both.pem"),
		"ssl.truststore.type":                   "PEM",
		"ssl.truststore.location":               p.file("ca.pem"),
		"listener.name.ssl.ssl.client.auth":     "required",
		"authorizer.class.name":                 "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
		// On the controller's plaintext listener everyone is ANONYMOUS; clients
		// do not use it.
		"super.users": "User:" + Admin + ";User:ANONYMOUS",
	}
}

// scramUsers returns the arguments for formatting the storage with users.
func scramUsers() (args []string) {
	for _, u := range []string{Admin, Alice, Mallory} {
		for _, m := range []Mechanism{ScramSHA256, ScramSHA512} {
			args = append(args, "--add-scram", fmt.Sprintf("%s=[name=%s,password=%s]", m, u, Password(u)))
		}
	}
	return args
}

// clientOpts returns the administrator's options for franz-go.
func (p *pki) clientOpts() []kgo.Opt {
	return []kgo.Opt{
		kgo.DialTLSConfig(&tls.Config{RootCAs: p.pool, MinVersion: tls.VersionTLS12}),
		kgo.SASL(plain.Auth{User: Admin, Pass: Password(Admin)}.AsMechanism()),
	}
}

// CAFile returns the PEM file of the authority that signed the cluster's
// certificates.
func (c *Cluster) CAFile() string { return c.pki.file("ca.pem") }

// ClientCert returns the PEM files of a client certificate for MTLSAddr.
func (c *Cluster) ClientCert() (cert, key string) {
	return c.pki.file("client.pem"), c.pki.file("client-key.pem")
}

// ClientProperties writes the properties file of a Java client for a user, without
// bootstrap servers, and returns its name.
func (c *Cluster) ClientProperties(t testing.TB, user string, m Mechanism) string {
	t.Helper()
	login := fmt.Sprintf("org.apache.kafka.common.security.scram.ScramLoginModule required username=\"%s\" password=\"%s\";", user, Password(user))
	switch m {
	case Plain:
		login = strings.Replace(login, "scram.ScramLoginModule", "plain.PlainLoginModule", 1)
	case OAuthBearer:
		login = fmt.Sprintf("org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub=\"%s\";", user)
	}
	return c.writeProperties(t, user, [][2]string{
		{"security.protocol", "SASL_SSL"},
		{"ssl.truststore.type", "PEM"},
		{"ssl.truststore.location", c.CAFile()},
		{"sasl.mechanism", string(m)},
		{"sasl.jaas.config", login},
	})
}

// MTLSProperties is ClientProperties for the listener at MTLSAddr.
func (c *Cluster) MTLSProperties(t testing.TB) string {
	t.Helper()
	return c.writeProperties(t, "mtls", [][2]string{
		{"security.protocol", "SSL"},
		{"ssl.truststore.type", "PEM"},
		{"ssl.truststore.location", c.CAFile()},
		{"ssl.keystore.type", "PEM"},
		{"ssl.keystore.location", c.pki.file("client-both.pem")},
	})
}

func (c *Cluster) writeProperties(t testing.TB, user string, rows [][2]string) string {
	t.Helper()
	var b strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&b, "%s=%s\n", r[0], r[1])
	}
	name := filepath.Join(t.TempDir(), user+".properties")
	assert.OK(t, os.WriteFile(name, []byte(b.String()), 0o600), "kafkatest: write the properties of %s", user)
	return name
}
