package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"carronade/protocol"
	"carronade/test/testkit/assert"
)

// The command that grants a right has all names in it.
func TestGrant(t *testing.T) {
	t.Parallel()
	login := plain.Auth{}.AsMechanism()
	cert := &tls.Config{Certificates: []tls.Certificate{{Leaf: &x509.Certificate{Subject: pkix.Name{CommonName: "load", Organization: []string{"Example"}}}}}}
	for _, tt := range []struct {
		name  string
		given map[string][]string
		sec   *Security
		err   error
		want  string
	}{
		{
			"an anonymous client", nil, nil, kerr.TopicAuthorizationFailed,
			"kafka-acls --bootstrap-server 127.0.0.1:9092 --add --allow-principal User:ANONYMOUS --operation Write --operation Describe --topic t",
		},
		{
			"a user",
			map[string][]string{"op": {"consume"}},
			&Security{Mechanism: login, User: "o'hara"}, kerr.TopicAuthorizationFailed,
			`kafka-acls --bootstrap-server 127.0.0.1:9092 --command-config FILE --add --allow-principal 'User:o'\''hara' --operation Read --operation Describe --topic t`,
		},
		{
			"a token",
			map[string][]string{"op": {"roundtrip"}},
			&Security{Mechanism: login}, kerr.TopicAuthorizationFailed,
			"kafka-acls --bootstrap-server 127.0.0.1:9092 --command-config FILE --add --allow-principal User:NAME --operation Write --operation Read --operation Describe --topic t",
		},
		{
			"a certificate",
			map[string][]string{"op": {"consume"}, "group": {"g"}, "engine": {"client"}},
			&Security{TLS: cert}, kerr.GroupAuthorizationFailed,
			"kafka-acls --bootstrap-server 127.0.0.1:9092 --command-config FILE --add --allow-principal User:CN=load,O=Example --operation Read --group g",
		},
		{
			"idempotent",
			map[string][]string{"idempotent": {"true"}, "acks": {"all"}},
			nil, kerr.ClusterAuthorizationFailed,
			"kafka-acls --bootstrap-server 127.0.0.1:9092 --add --allow-principal User:ANONYMOUS --operation IdempotentWrite --cluster",
		},
		{
			"transactions",
			map[string][]string{"transactional-id": {"x"}, "acks": {"all"}, "engine": {"client"}},
			nil, kerr.TransactionalIDAuthorizationFailed,
			"kafka-acls --bootstrap-server 127.0.0.1:9092 --add --allow-principal User:ANONYMOUS --operation Write --operation Describe --transactional-id x- --resource-pattern-type prefixed",
		},
		{"a group that stands for all", map[string][]string{"op": {"consume"}, "group": {"*"}, "engine": {"client"}}, nil, kerr.GroupAuthorizationFailed, ""},
		{"a user that stands for all", nil, &Security{Mechanism: login, User: "*"}, kerr.TopicAuthorizationFailed, ""},
		{"another error", nil, nil, kerr.NotLeaderForPartition, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			op, given := "", map[string][]string{}
			for k, v := range tt.given {
				if k == "op" {
					op = v[0]
					continue
				}
				given[k] = v
			}
			s := spec(t, "kafka://127.0.0.1/t", given)
			if op != "" {
				s.Op = op
			}
			c := assert.Value(ParseConfig(s))(t)
			if tt.sec != nil {
				c.Security = tt.sec
			}
			assert.Equal(t, c.grantFor(tt.err), tt.want)
		})
	}
}

// The addresses of a workload may be those of another user, and they are pasted into a shell.
func TestAddressesAreQuoted(t *testing.T) {
	c := assert.Value(ParseConfig(spec(t, "kafka://127.0.0.1/t", nil)))(t)
	c.Seeds = []string{"a:9092", "$(reboot);b:9092"}
	const want = " --bootstrap-server 'a:9092,$(reboot);b:9092' --"
	got := c.Grant(ACLTopic("t"), aclRead)
	assert.True(t, strings.Contains(got, want), "got %s, want it to contain %s", got, want)
}

// A sentence names the user that its command names, as far as it is known.
func TestUserInWords(t *testing.T) {
	login := plain.Auth{}.AsMechanism()
	cert := func(leaf *x509.Certificate) *tls.Config {
		return &tls.Config{Certificates: []tls.Certificate{{Leaf: leaf}}}
	}
	for _, tt := range []struct {
		name string
		sec  Security
		want string
	}{
		{"without a login", Security{}, "an anonymous client"},
		{"a user", Security{Mechanism: login, User: "load"}, "load"},
		{"a token", Security{Mechanism: login}, "the user of the token"},
		{"a certificate", Security{TLS: cert(&x509.Certificate{Subject: pkix.Name{CommonName: "load"}})}, "the user of the certificate CN=load"},
		{"a certificate that is not known yet", Security{TLS: cert(nil)}, "the user of the certificate"},
		{"TLS without a certificate", Security{TLS: &tls.Config{}}, "an anonymous client"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := &Config{Security: &tt.sec, Seeds: []string{"a:9092"}}
			assert.Equal(t, c.UserInWords(), tt.want)
			var e *protocol.Error
			if err := c.forbidden("find the topic t", "t", kerr.TopicAuthorizationFailed, aclRead); !errors.As(err, &e) || !strings.HasPrefix(e.Hint, tt.want+" lacks") {
				t.Errorf("got %v, want that %s lacks a permission", err, tt.want)
			}
		})
	}
}

// What the broker lists decides which right is missing: a bit for each operation.
func TestMissingRight(t *testing.T) {
	t.Parallel()
	const read, write, describe = 1 << 3, 1 << 4, 1 << 8
	for _, tt := range []struct {
		name string
		c    Config
		ops  int32
		want string
	}{
		{"not listed", Config{Op: OpProduce}, -1 << 31, ""},
		{"none listed", Config{Op: OpProduce}, 0, ""},
		{"may write", Config{Op: OpProduce}, write | describe, ""},
		{"may not write", Config{Op: OpProduce}, read | describe, aclWrite},
		{"may not read back", Config{Op: OpProduce, Verify: true}, write | describe, aclRead},
		{"may not read", Config{Op: OpConsume}, write | describe, aclRead},
		{"may read", Config{Op: OpConsume}, read | describe, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			assert.Equal(t, tt.c.MissingRight(tt.ops), tt.want)
		})
	}
}
