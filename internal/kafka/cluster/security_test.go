package cluster

import (
	"bytes"
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
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pavlo-v-chernykh/keystore-go/v4"
	"github.com/youmark/pkcs8"
	"software.sslmate.com/src/go-pkcs12"

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
				assert.Must(t, err != nil && strings.Contains(err.Error(), tt.wrong) && strings.Contains(advice.Hint(err), tt.hint),
					"got %v with hint %q, want %q with hint %q", err, advice.Hint(err), tt.wrong, tt.hint)
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

// JAAS is read as Java's StreamTokenizer reads it.
func TestJAASAsJavaReadsIt(t *testing.T) {
	for name, tt := range map[string]struct {
		text, password, wrong string
	}{
		"blanks around =":      {text: `x.PlainLoginModule required username = "a"  password= "p" ;`, password: "p"},
		"no blank at all":      {text: `x.PlainLoginModule required username="a"password="p";`, password: "p"},
		"comments":             {text: "/* a; b */ x.PlainLoginModule required // c\n username=\"a\" password=\"p\"; // d", password: "p"},
		"a slash in a word":    {text: `x.PlainLoginModule required username="a" password="p//q/*";`, password: "p//q/*"},
		"escapes":              {text: `x.PlainLoginModule required password="a\tb\\\"\101\q";`, password: "a\tb\\\"Aq"},
		"several lines":        {text: "x.PlainLoginModule\n  required\n  username=a\n  password=p\n;", password: "p"},
		"several modules":      {text: `x.PlainLoginModule required password="canary"; x.ScramLoginModule required;`, wrong: "several login modules"},
		"quote over lines":     {text: "x.PlainLoginModule required password=\"can\nary\";", wrong: "a quote is not closed"},
		"comment never closed": {text: `x.PlainLoginModule required /* password="canary";`, wrong: "a comment is not closed"},
		"no value":             {text: `x.PlainLoginModule required password= ;`, wrong: "option 1 is not key=value"},
	} {
		t.Run(name, func(t *testing.T) {
			module, options, err := parseJAAS(tt.text)
			if tt.wrong != "" {
				assert.ErrorHas(t, err, tt.wrong)
				assert.True(t, err != nil && !strings.Contains(err.Error(), "canary"), "the error contains the secret: %v", err)
				return
			}
			assert.OK(t, err)
			assert.Equal(t, module, "x.PlainLoginModule", "module")
			assert.Equal(t, options["password"], tt.password, "password")
		})
	}
}

// A login never uses another identity than the file's: what is not understood is refused.
func TestNeverAnotherIdentity(t *testing.T) {
	home := t.TempDir()
	for name, value := range map[string]string{
		"HOME": home, "USERPROFILE": home, "AWS_SHARED_CREDENTIALS_FILE": "", "AWS_CONFIG_FILE": "",
		"AWS_ACCESS_KEY_ID": "ENVIRONMENT", "AWS_SECRET_ACCESS_KEY": "canary", "AWS_SESSION_TOKEN": "", "TEST_SECRET": "canary",
	} {
		t.Setenv(name, value)
	}
	assert.OK(t, os.Mkdir(filepath.Join(home, ".aws"), 0o700))
	for name, text := range map[string]string{
		"credentials": "[default]\naws_access_key_id = DEFAULT\naws_secret_access_key = canary\n[x]\naws_access_key_id=XKEY\nAWS_SECRET_ACCESS_KEY = canary # no comment\ns3 =\n  aws_access_key_id = NESTED\n",
		"config":      "[profile role]\nrole_arn = arn:aws:iam::1:role/r\nsource_profile = x\n[profile  sso]\nsso_session = s\n[profile y]\naws_access_key_id = YKEY\naws_secret_access_key = canary\n",
	} {
		assert.OK(t, os.WriteFile(filepath.Join(home, ".aws", name), []byte(text), 0o600))
	}
	const (
		iam    = "software.amazon.msk.auth.iam.IAMLoginModule required"
		bearer = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
		scram  = "org.apache.kafka.common.security.scram.ScramLoginModule required"
	)
	for name, tt := range map[string]struct {
		mechanism, jaas string
		more            map[string]string
		given           map[string][]string
		want, wrong     string
	}{
		"the environment's key": {mechanism: MechAWS, jaas: iam, want: "AWS_MSK_IAM as ENVIRONMENT"},
		"a profile":             {mechanism: MechAWS, jaas: iam + ` awsProfileName="x"`, want: "AWS_MSK_IAM as XKEY"},
		"a profile of config":   {mechanism: MechAWS, jaas: iam + ` awsProfileName=y awsDebugCreds=true`, want: "AWS_MSK_IAM as YKEY"},
		"no such profile":       {mechanism: MechAWS, jaas: iam + ` awsProfileName="nosuch"`, wrong: "no access key"},
		"a profile with a role": {mechanism: MechAWS, jaas: iam + ` awsProfileName="role"`, wrong: "role_arn"},
		"a profile with SSO":    {mechanism: MechAWS, jaas: iam + ` awsProfileName="sso"`, wrong: "sso_session"},
		"a role":                {mechanism: MechAWS, jaas: iam + ` awsRoleArn="arn:aws:iam::1:role/r"`, wrong: "awsRoleArn"},
		"a key and a profile":   {mechanism: MechAWS, jaas: iam + ` awsProfileName="x"`, given: map[string][]string{"user": {"K"}}, wrong: "both"},
		"another handler":       {mechanism: MechAWS, jaas: iam, more: map[string]string{"sasl.client.callback.handler.class": "com.example.Mine"}, wrong: "com.example.Mine"[12:]},
		"MSK's own handler":     {mechanism: MechAWS, jaas: iam, more: map[string]string{"sasl.client.callback.handler.class": "software.amazon.msk.auth.iam.IAMClientCallbackHandler"}, want: "AWS_MSK_IAM as ENVIRONMENT"},
		"IAM by a token":        {mechanism: MechOAuth, jaas: bearer, more: map[string]string{"sasl.login.callback.handler.class": "software.amazon.msk.auth.iam.IAMOAuthBearerLoginCallbackHandler"}, wrong: "IAMOAuthBearerLoginCallbackHandler"},
		"a module of others":    {mechanism: MechPlain, jaas: `com.example.VaultLoginModule required username="a" password="canary"`, wrong: "VaultLoginModule"},
		"a password alone":      {mechanism: MechPlain, jaas: "canary", wrong: "no login module"},
		"another mechanism's":   {mechanism: MechPlain, jaas: scram + ` username="a" password="canary"`, wrong: "not for PLAIN"},
		"a delegation token":    {mechanism: MechScram256, jaas: scram + ` username="a" password="canary" tokenauth="true"`, want: "SCRAM-SHA-256 as a"},
		"an option of others":   {mechanism: MechScram256, jaas: scram + ` username="a" password="canary" impersonate="b"`, wrong: "impersonate"},
		"Strimzi's names": {
			mechanism: MechOAuth, jaas: bearer + ` oauth.client.id="me" oauth.client.secret="canary" oauth.token.endpoint.uri="http://127.0.0.1:1/t"`,
			more: map[string]string{"sasl.login.callback.handler.class": "io.strimzi.kafka.oauth.client.JaasClientOauthLoginCallbackHandler"}, want: "OAUTHBEARER as me",
		},
		"Strimzi's refresh":      {mechanism: MechOAuth, jaas: bearer + ` oauth.refresh.token="canary"`, wrong: "oauth.refresh.token"},
		"a file with a token":    {mechanism: MechOAuth, jaas: bearer, more: map[string]string{"sasl.oauthbearer.token.endpoint.url": "file:" + home + "/token"}, want: "OAUTHBEARER"},
		"an unknown setting":     {mechanism: MechPlain, jaas: `x.PlainLoginModule required username="a" password="canary"`, more: map[string]string{"sasl.oauthbearer.jwt.retriever.class": "x"}, wrong: "sasl.oauthbearer.jwt.retriever.class"},
		"a provider":             {mechanism: MechPlain, jaas: `x.PlainLoginModule required username="a" password="canary"`, more: map[string]string{"security.providers": "x"}, wrong: "security.providers"},
		"a harmless setting":     {mechanism: MechPlain, jaas: `x.PlainLoginModule required username="a" password="canary"`, more: map[string]string{"sasl.login.refresh.window.factor": "0.8"}, want: "PLAIN as a"},
		"the options' own words": {mechanism: MechPlain, jaas: "com.example.VaultLoginModule required", given: map[string][]string{"user": {"b"}, "password": {"env:TEST_SECRET"}}, want: "PLAIN as b"},
	} {
		t.Run(name, func(t *testing.T) {
			props := map[string]string{"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": tt.mechanism, "sasl.jaas.config": tt.jaas + ";"}
			for k, v := range tt.more {
				props[k] = v
			}
			s, err := securityFor(t, tt.given, props)
			if tt.wrong != "" {
				assert.ErrorHas(t, err, tt.wrong)
				assert.True(t, err != nil && !strings.Contains(fmt.Sprint(err, advice.Hint(err)), "canary"), "the error contains the secret: %v", err)
				return
			}
			assert.OK(t, err)
			assert.True(t, strings.Contains(s.String(), tt.want), "got %q, want %q", s.String(), tt.want)
		})
	}
}

// FuzzStores checks that a store of any bytes is read or refused.
func FuzzStores(f *testing.F) {
	const password = "canary"
	pair := testkit.NewAuthority("test").Pair()
	cert := assert.Value(x509.ParseCertificate(pair.Certificate[0]))(f)
	der := assert.Value(x509.MarshalPKCS8PrivateKey(pair.PrivateKey))(f)
	store, jks := keystore.New(), &bytes.Buffer{}
	assert.OK(f, store.SetPrivateKeyEntry("me", keystore.PrivateKeyEntry{CreationTime: time.Now(), PrivateKey: der, CertificateChain: []keystore.Certificate{{Type: "X509", Content: cert.Raw}}}, []byte(password)))
	assert.OK(f, store.SetTrustedCertificateEntry("ca", keystore.TrustedCertificateEntry{CreationTime: time.Now(), Certificate: keystore.Certificate{Type: "X509", Content: cert.Raw}}))
	assert.OK(f, store.Store(jks, []byte(password)))
	locked := assert.Value(pkcs8.MarshalPrivateKey(pair.PrivateKey, []byte(password), nil))(f)
	f.Add(jks.Bytes())
	f.Add(assert.Value(pkcs12.LegacyRC2.Encode(pair.PrivateKey, cert, nil, password))(f))
	f.Add(assert.Value(pkcs12.Modern.EncodeTrustStore([]*x509.Certificate{cert}, password))(f))
	f.Add(append(pem.EncodeToMemory(&pem.Block{Type: pemLockedKey, Bytes: locked}), pem.EncodeToMemory(&pem.Block{Type: pemCertificate, Bytes: cert.Raw})...))
	file := filepath.Join(f.TempDir(), "store")
	f.Fuzz(func(t *testing.T, data []byte) {
		assert.OK(t, os.WriteFile(file, data, 0o600))
		for _, name := range []string{"truststore", "keystore"} {
			for _, given := range []string{password, ""} {
				_, err := javaStore(name, "", map[string]string{
					"ssl." + name + ".location": file, "ssl." + name + ".password": given, "ssl.key.password": given,
				})
				assert.True(t, err == nil || !strings.Contains(err.Error(), password), "the error contains the password: %v", err)
			}
		}
	})
}

// FuzzProviders checks that references in properties are resolved or refused.
func FuzzProviders(f *testing.F) {
	f.Add("a,b", "FileConfigProvider", "x${a:p:k}y${b:p}")
	f.Add(" a ", "x.y$DirectoryConfigProvider", "${a:/:..}${a::}")
	f.Add("a", "EnvVarConfigProvider", "${a:${a:b}}")
	f.Fuzz(func(t *testing.T, names, class, value string) {
		props := map[string]string{"config.providers": names, "config.providers.a.class": class, "client.id": value}
		if err := resolveProviders(props); err != nil {
			return
		}
		for name := range props {
			assert.True(t, name == "client.id", "the property %s is left", name)
		}
	})
}

// FuzzProfiles checks that files of AWS's profiles are read.
func FuzzProfiles(f *testing.F) {
	f.Add([]byte("[default]\naws_access_key_id = A\n[x] # c\n  nested = 1\n; c\nk=v=w\n"))
	f.Add([]byte("[\n=\n[]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for key := range iniSection(data, "default") {
			assert.Equal(t, strings.ToLower(key), key, "the key is in lower case")
		}
	})
}
