package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"carronade/internal/advice"
	"carronade/protocol"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

func securityFor(t *testing.T, given map[string][]string, props map[string]string) (*Security, error) {
	t.Helper()
	v := protocol.Values{}
	maps.Copy(v, given)
	return parseSecurity(v, props)
}

func TestSecurityProperties(t *testing.T) {
	ca, _ := testkit.NewAuthority("test").Files(t)
	pemCA := assert.Value(os.ReadFile(ca))(t)
	key := assert.Value(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	der := assert.Value(x509.MarshalPKCS8PrivateKey(key))(t)
	pemKey := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	locked := string(pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: der}))
	t.Setenv("TEST_SECRET", "canary")
	for _, tt := range []struct {
		name  string
		given map[string][]string
		props map[string]string
		want  string // of String
		wrong string // part of the error
		hint  string
	}{
		{name: "nothing", want: "PLAINTEXT"},
		{name: "TLS by property", props: map[string]string{"security.protocol": "ssl"}, want: "SSL"},
		{name: "inline authority", props: map[string]string{"security.protocol": "SSL", "ssl.truststore.type": "PEM", "ssl.truststore.certificates": string(pemCA)}, want: "SSL"},
		{name: "no authority in the file", props: map[string]string{"security.protocol": "SSL", "ssl.truststore.type": "PEM", "ssl.truststore.certificates": pemKey}, wrong: "no certificate"},
		{name: "no trust store", props: map[string]string{"security.protocol": "SSL", "ssl.truststore.location": "/x.jks"}, wrong: "/x.jks", hint: "check the file"},
		{name: "no key store", props: map[string]string{"security.protocol": "SSL", "ssl.keystore.location": "/x.p12", "ssl.keystore.type": "PKCS12"}, wrong: "/x.p12", hint: "check the file"},
		{name: "locked key", props: map[string]string{"security.protocol": "SSL", "ssl.keystore.type": "PEM", "ssl.keystore.certificate.chain": string(pemCA), "ssl.keystore.key": locked}, wrong: "encrypted", hint: "ssl.key.password"},
		{name: "another's key", props: map[string]string{"security.protocol": "SSL", "ssl.keystore.type": "PEM", "ssl.keystore.certificate.chain": string(pemCA), "ssl.keystore.key": pemKey}, wrong: "certificate"},
		{name: "key alone", given: map[string][]string{"tls-key": {ca}}, wrong: "without a certificate", hint: "--tls-cert"},
		{name: "file missing", given: map[string][]string{"tls-ca": {"/no/such/file"}}, wrong: "/no/such/file"},
		{name: "protocol", props: map[string]string{"security.protocol": "HTTPS"}, wrong: "security.protocol"},
		{name: "GSSAPI is the default", props: map[string]string{"security.protocol": "SASL_SSL"}, wrong: "GSSAPI", hint: "--sasl-mechanism"},
		{
			name: "login by property", want: "SASL_PLAINTEXT, PLAIN as a",
			props: map[string]string{"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": `org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="canary";`},
		},
		{name: "option over property", want: "SASL_PLAINTEXT, SCRAM-SHA-256 as b", given: map[string][]string{"sasl-mechanism": {"SCRAM-SHA-256"}, "user": {"b"}}, props: map[string]string{"sasl.mechanism": "PLAIN", "sasl.jaas.config": `org.apache.kafka.common.security.scram.ScramLoginModule required username="a" password="canary";`}},
		{name: "no password", given: map[string][]string{"sasl-mechanism": {"PLAIN"}, "user": {"a"}}, wrong: "no password", hint: "--password env:NAME"},
		{name: "no user", given: map[string][]string{"sasl-mechanism": {"PLAIN"}, "password": {"env:TEST_SECRET"}}, wrong: "no user", hint: "--user"},
		{name: "no token", given: map[string][]string{"sasl-mechanism": {"OAUTHBEARER"}}, wrong: "no token", hint: "--password"},
		{name: "AWS without keys", given: map[string][]string{"sasl-mechanism": {"AWS_MSK_IAM"}}, wrong: "no access key", hint: "AWS_ACCESS_KEY_ID"},
		{name: "AWS", want: "SASL_PLAINTEXT, AWS_MSK_IAM as KEY", given: map[string][]string{"sasl-mechanism": {"AWS_MSK_IAM"}, "user": {"KEY"}, "password": {"env:TEST_SECRET"}, "session-token": {"env:TEST_SECRET"}}},
		{name: "any name", want: "SSL, a certificate of any name is accepted", props: map[string]string{"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": ""}},
		{name: "the name by https", want: "SSL", props: map[string]string{"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": "https"}},
		{name: "any certificate, by librdkafka's property", want: "SSL, any certificate is accepted", props: map[string]string{"security.protocol": "SSL", "enable.ssl.certificate.verification": "false"}},
		{name: "any certificate, and none is asked for", want: "PLAINTEXT", props: map[string]string{"security.protocol": "PLAINTEXT", "enable.ssl.certificate.verification": "false"}},
		{name: "any certificate", want: "SSL, any certificate is accepted", given: map[string][]string{"tls-insecure-skip-verify": {"true"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("AWS_ACCESS_KEY_ID", "")
			t.Setenv("AWS_SECRET_ACCESS_KEY", "")
			s, err := securityFor(t, tt.given, tt.props)
			if tt.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wrong) || !strings.Contains(advice.Hint(err), tt.hint) {
					t.Fatalf("got %v with hint %q, want %q with hint %q", err, advice.Hint(err), tt.wrong, tt.hint)
				}
				assert.Must(t, !strings.Contains(fmt.Sprintf("%v %+v", err, err), "canary"), "the error contains the secret: %v", err)
				return
			}
			assert.OK(t, err)
			assert.Equal(t, s.String(), tt.want)
			for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
				assert.True(t, !strings.Contains(fmt.Sprintf(format, s), "canary"), "%s prints the secret", format)
			}
		})
	}
}

func TestOAuthTokenEndpoint(t *testing.T) {
	t.Parallel()
	requests := 0
	srv := testkit.HTTP(t, func(w http.ResponseWriter, r *http.Request) {
		requests++
		id, secret, _ := r.BasicAuth()
		if r.FormValue("grant_type") != "client_credentials" || r.FormValue("scope") != "kafka" || id != "me" || secret != "canary" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprintf(w, `{"access_token":"token-%d","expires_in":%d}`, requests, []int{10, 3600}[min(requests-1, 1)])
	})
	props := map[string]string{"sasl.oauthbearer.token.endpoint.url": srv.URL}
	jaas := map[string]string{"clientId": "me", "clientSecret": "canary", "scope": "kafka", "extension_logicalCluster": "lc"}
	get, user, err := parseOAuth("", jaas, props)
	assert.Must(t, err == nil && user == "me", "got user %q, %v", user, err)
	// The first token expires too soon to be cached; the second is cached.
	for _, want := range []string{"token-1", "token-2", "token-2"} {
		auth := assert.Value(get(t.Context()))(t)
		assert.True(t, auth.Token == want && auth.Extensions["logicalCluster"] == "lc",
			"got token %q with %v, want %q", auth.Token, auth.Extensions, want)
	}
	jaas["clientSecret"] = "wrong canary"
	get, _, err = parseOAuth("", jaas, props)
	assert.OK(t, err)
	if _, err = get(t.Context()); err == nil || !strings.Contains(err.Error(), "401") || strings.Contains(err.Error(), "canary") {
		t.Errorf("got %v, want an error with 401 and without the secret", err)
	}
	for _, bad := range []string{"ftp://x", "::", "http://"} {
		_, _, err := parseOAuth("", jaas, map[string]string{"sasl.oauthbearer.token.endpoint.url": bad})
		assert.True(t, err != nil, "the endpoint %q was accepted", bad)
	}
}

func TestUnsecuredToken(t *testing.T) {
	t.Parallel()
	got := unsecuredToken(map[string]string{"unsecuredLoginStringClaim_sub": "alice"}, time.Unix(1000, 0))
	parts := strings.Split(got, ".")
	assert.True(t, len(parts) == 3 && parts[2] == "", "got %q, want three parts with an empty last one", got)
}

// TestExplainHasHints checks that every error of connecting has a hint.
func TestExplainHasHints(t *testing.T) {
	t.Parallel()
	c := &Config{Security: &Security{}}
	for _, err := range []error{
		errSpeaksTLS, errSpeaksPlain, errWantsLogin, errNoLogin, errNoAnswer, errClosedUnanswered, ErrTooOld,
		&net.DNSError{}, &NotKafkaError{},
		x509.UnknownAuthorityError{},
		x509.CertificateInvalidError{},
		os.ErrDeadlineExceeded, fmt.Errorf("whatever"),
	} {
		assert.True(t, advice.Hint(c.Explain("connect", err)) != "", "%v has no hint", err)
	}
}

func FuzzSkipTags(f *testing.F) {
	f.Add([]byte{1, 0, 2, 7, 7, 9})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0x7f})
	f.Fuzz(func(t *testing.T, b []byte) {
		rest, err := SkipTags(b)
		assert.Must(t, err != nil || len(rest) <= len(b), "the rest is longer than the input")
	})
}
