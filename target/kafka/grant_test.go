package kafka

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"carronade/target"
)

// The command that grants a right has all names in it.
func TestGrant(t *testing.T) {
	t.Parallel()
	login := plain.Auth{}.AsMechanism()
	cert := &tls.Config{Certificates: []tls.Certificate{{Leaf: &x509.Certificate{Subject: pkix.Name{CommonName: "load", Organization: []string{"Example"}}}}}}
	for _, tt := range []struct {
		name  string
		given map[string][]string
		sec   *security
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
			&security{mechanism: login, user: "o'hara"}, kerr.TopicAuthorizationFailed,
			`kafka-acls --bootstrap-server 127.0.0.1:9092 --command-config FILE --add --allow-principal 'User:o'\''hara' --operation Read --operation Describe --topic t`,
		},
		{
			"a token",
			map[string][]string{"op": {"roundtrip"}},
			&security{mechanism: login}, kerr.TopicAuthorizationFailed,
			"kafka-acls --bootstrap-server 127.0.0.1:9092 --command-config FILE --add --allow-principal User:NAME --operation Write --operation Read --operation Describe --topic t",
		},
		{
			"a certificate",
			map[string][]string{"op": {"consume"}, "group": {"g"}, "engine": {"client"}},
			&security{tls: cert}, kerr.GroupAuthorizationFailed,
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
		{"a user that stands for all", nil, &security{mechanism: login, user: "*"}, kerr.TopicAuthorizationFailed, ""},
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
			s := settingsOf(t, "kafka://127.0.0.1/t", given)
			if op != "" {
				s.Op = op
			}
			c, err := parseConfig(s)
			if err != nil {
				t.Fatal(err)
			}
			if tt.sec != nil {
				c.security = tt.sec
			}
			if got := c.grantFor(tt.err); got != tt.want {
				t.Errorf("got\n%s, want\n%s", got, tt.want)
			}
		})
	}
}

// The addresses of a workload may be those of another user, and they are pasted into a shell.
func TestAddressesAreQuoted(t *testing.T) {
	c, err := parseConfig(settingsOf(t, "kafka://127.0.0.1/t", nil))
	if err != nil {
		t.Fatal(err)
	}
	c.seeds = []string{"a:9092", "$(reboot);b:9092"}
	const want = " --bootstrap-server 'a:9092,$(reboot);b:9092' --"
	if got := c.grant(aclTopic("t"), aclRead); !strings.Contains(got, want) {
		t.Errorf("got %s, want it to contain %s", got, want)
	}
}

// A sentence names the user that its command names, as far as it is known.
func TestUserInWords(t *testing.T) {
	login := plain.Auth{}.AsMechanism()
	cert := func(leaf *x509.Certificate) *tls.Config {
		return &tls.Config{Certificates: []tls.Certificate{{Leaf: leaf}}}
	}
	for _, tt := range []struct {
		name string
		sec  security
		want string
	}{
		{"without a login", security{}, "an anonymous client"},
		{"a user", security{mechanism: login, user: "load"}, "load"},
		{"a token", security{mechanism: login}, "the user of the token"},
		{"a certificate", security{tls: cert(&x509.Certificate{Subject: pkix.Name{CommonName: "load"}})}, "the user of the certificate CN=load"},
		{"a certificate that is not known yet", security{tls: cert(nil)}, "the user of the certificate"},
		{"TLS without a certificate", security{tls: &tls.Config{}}, "an anonymous client"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := &config{security: &tt.sec, seeds: []string{"a:9092"}}
			if got := c.userInWords(); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			var e *target.Error
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
		c    config
		ops  int32
		want string
	}{
		{"not listed", config{op: opProduce}, -1 << 31, ""},
		{"none listed", config{op: opProduce}, 0, ""},
		{"may write", config{op: opProduce}, write | describe, ""},
		{"may not write", config{op: opProduce}, read | describe, aclWrite},
		{"may not read back", config{op: opProduce, verify: true}, write | describe, aclRead},
		{"may not read", config{op: opConsume}, write | describe, aclRead},
		{"may read", config{op: opConsume}, read | describe, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.c.missingRight(tt.ops); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
