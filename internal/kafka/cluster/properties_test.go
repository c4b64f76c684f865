package cluster

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/pavlo-v-chernykh/keystore-go/v4"
	"github.com/youmark/pkcs8"
	"software.sslmate.com/src/go-pkcs12"

	"carronade/internal/advice"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

func TestParseProperties(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       map[string]string
	}{
		{"separators", "a=1\nb: 2\nacks 3\nd =4\nlinger.ms", map[string]string{"a": "1", "b": "2", "acks": "3", "d": "4", "linger.ms": ""}},
		{"comments", "# a=1\n  ! b=2\nc=3 # kept\n", map[string]string{"c": "3 # kept"}},
		{"joined lines", "a=1,\\\n   2\nb=3", map[string]string{"a": "1,2", "b": "3"}},
		{"an escaped backslash joins nothing", "a=1\\\\\nb=2", map[string]string{"a": `1\`, "b": "2"}},
		{"comment after a joined line is text", "a=1\\\n#2", map[string]string{"a": "1#2"}},
		{"escapes", `a=\t\u00e9\=\:` + "\r\nb\\=c=d", map[string]string{"a": "\té=:", "b=c": "d"}},
		{"carriage returns", "a=1\rb=2\r\nc=3", map[string]string{"a": "1", "b": "2", "c": "3"}},
		{"later wins", "a=1\na=2", map[string]string{"a": "2"}},
		{"a value keeps trailing spaces", "a=1 ", map[string]string{"a": "1 "}},
		{"ends in a backslash", "a=1\\", map[string]string{"a": "1"}},
		{"jaas", `sasl.jaas.config=org.apache.Plain required username="a" password="b=c";`, map[string]string{
			"sasl.jaas.config": `org.apache.Plain required username="a" password="b=c";`,
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			assert.Same(t, assert.Value(parseProperties([]byte(tt.text)))(t), tt.want)
		})
	}
}

func TestParsePropertiesErrors(t *testing.T) {
	for _, text := range []string{`p=canary\u12`, `p=canary\uzzzz`, "canary", "canary word"} {
		_, err := parseProperties([]byte("ok=1\n" + text))
		assert.ErrorHas(t, err, "line 2")
		assert.True(t, !strings.Contains(err.Error(), "canary"), "the error contains the value: %v", err)
	}
	_, err := parseProperties(make([]byte, maxProperties+1))
	assert.True(t, err != nil, "a file that is too large was accepted")
}

func TestParseJAAS(t *testing.T) {
	for _, tt := range []struct {
		name, text, module string
		options            map[string]string
		wrong              bool
	}{
		{
			name: "plain", text: `o.a.k.PlainLoginModule required username="alice" password="a b;c\"d";`,
			module: "o.a.k.PlainLoginModule", options: map[string]string{"username": "alice", "password": `a b;c"d`},
		},
		{name: "single quotes", text: "M required\n a='x y'\n b=z ;", module: "M", options: map[string]string{"a": "x y", "b": "z"}},
		{name: "no options", text: "M required;", module: "M", options: map[string]string{}},
		{name: "open quote", text: `M required password="canary`, wrong: true},
		{name: "no value", text: `M required canary;`, wrong: true},
		{name: "no flag", text: `M username="a";`, wrong: true},
		{name: "empty", text: ` ; `, wrong: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			module, options, err := parseJAAS(tt.text)
			if tt.wrong {
				assert.Must(t, err != nil, "got %s %v, want an error", module, options)
				assert.Must(t, !strings.Contains(err.Error(), "canary"), "the error contains the secret: %v", err)
				return
			}
			assert.OK(t, err)
			assert.Equal(t, module, tt.module, "module")
			assert.Same(t, options, tt.options, "options")
		})
	}
}

// FuzzParseProperties checks that the parser fails only with an error, and that its result can be written and read again.
func FuzzParseProperties(f *testing.F) {
	f.Add([]byte("a=1\nb: 2\\\n 3\n#c\nd\\u0041=e\\\\"))
	f.Add([]byte("\\"))
	f.Add([]byte("sasl.jaas.config=M required username=\"a\" password='b';"))
	f.Add([]byte("0=\xa5"))
	f.Fuzz(func(t *testing.T, data []byte) {
		props, err := parseProperties(data)
		if err != nil {
			return
		}
		escape := strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`, "\t", `\t`, "\f", `\f`, " ", `\ `, "=", `\=`, ":", `\:`, "#", `\#`, "!", `\!`)
		var text strings.Builder
		for k, v := range props {
			text.WriteString(escape.Replace(k) + "=" + escape.Replace(v) + "\n")
		}
		var b strings.Builder // in ASCII: files are in ISO-8859-1
		for _, r := range text.String() {
			if r < utf8.RuneSelf {
				b.WriteRune(r)
				continue
			}
			for _, unit := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&b, `\u%04x`, unit)
			}
		}
		again, err := parseProperties([]byte(b.String()))
		if b.Len() > maxProperties {
			return
		}
		assert.OK(t, err, "read it again")
		delete(props, "") // a line that begins with a separator has an empty key, which cannot be written alone
		delete(again, "")
		diff := cmp.Diff(props, again)
		assert.Must(t, diff == "", "(-want +got):\n%s", diff)
	})
}

func FuzzParseJAAS(f *testing.F) {
	f.Add(`M required a="b" c='d';`)
	f.Add(`M required a="\"`)
	f.Fuzz(func(t *testing.T, s string) {
		done := make(chan struct{})
		go func() { defer close(done); parseJAAS(s) }()
		testkit.Wait(t, "the end of parseJAAS", done)
	})
}

// Reports show the options that were set, but must not show secrets.
func TestShowProperty(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, text, want string }{
		{"no secret", "linger.ms=7", "linger.ms=7"},
		{"a list of brokers", "bootstrap.servers=a:1,b:2", "bootstrap.servers=a:1,b:2"},
		{"login", `sasl.jaas.config=x.PlainLoginModule required username="u" password="p=q";`, "sasl.jaas.config=(not shown)"},
		{"login with spaces", ` sasl.jaas.config = x password="p"`, "sasl.jaas.config=(not shown)"},
		{"key", "ssl.keystore.key=-----BEGIN", "ssl.keystore.key=(not shown)"},
		{"password of the key", "ssl.key.password=p", "ssl.key.password=(not shown)"},
		{"password of the key store", "ssl.keystore.password=p", "ssl.keystore.password=(not shown)"},
		{"password of the trust store", "ssl.truststore.password=p", "ssl.truststore.password=(not shown)"},
		{"client's secret", "sasl.oauthbearer.client.credentials.client.secret=p", "sasl.oauthbearer.client.credentials.client.secret=(not shown)"},
		{"a URL with a login", "sasl.oauthbearer.token.endpoint.url=https://u:p@h/t", "sasl.oauthbearer.token.endpoint.url=(not shown)"},
		{"not known", "vault.token=p", "vault.token=(not shown)"},
		{"no property", "p", "(not shown)"},
	} {
		assert.Equal(t, showProperty(tt.text), tt.want, tt.name)
	}
	for _, o := range Options() {
		assert.True(t, o.Name != "client-property" || o.Show != nil, "client-property is shown with its value")
	}
}

// TestVisibleProperty: a secret is not taken from the command line.
func TestVisibleProperty(t *testing.T) {
	t.Parallel()
	for text, visible := range map[string]bool{
		`sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="canary";`: false,
		`sasl.jaas.config=a.Module required password="canary`:                                                               false, // not closed
		"ssl.key.password=canary":                                      false,
		" ssl.keystore.key = canary":                                   false,
		"sasl.oauthbearer.client.credentials.client.secret=canary":     false,
		"sasl.oauthbearer.token.endpoint.url=https://u:canary@h/token": false,
		"sasl.oauthbearer.token.endpoint.url=https://h/token":          true,
		`sasl.jaas.config=a.ScramLoginModule required username="a";`:   true,
		"linger.ms=5": true, "ssl.key.password=": true, "no.such=canary": true,
	} {
		err := visibleProperty(text)
		assert.True(t, (err == nil) == visible, "%s: got %v", text, err)
		assert.True(t, err == nil || !strings.Contains(err.Error(), "canary"), "the error contains the value: %v", err)
	}
}

// Files of Java's clients work as they are, in each form that Java reads.
func TestStoresOfJava(t *testing.T) {
	t.Parallel()
	const password = "canary"
	own := testkit.NewAuthority("test")
	pair := own.Pair()
	certPEM := string(pem.EncodeToMemory(&pem.Block{Type: pemCertificate, Bytes: pair.Certificate[0]}))
	der := assert.Value(x509.MarshalPKCS8PrivateKey(pair.PrivateKey))(t)
	keyPEM := string(pem.EncodeToMemory(&pem.Block{Type: pemKey, Bytes: der}))
	locked := assert.Value(pkcs8.MarshalPrivateKey(pair.PrivateKey, []byte(password), nil))(t)
	lockedPEM := string(pem.EncodeToMemory(&pem.Block{Type: pemLockedKey, Bytes: locked}))
	cert := assert.Value(x509.ParseCertificate(pair.Certificate[0]))(t)

	dir := t.TempDir()
	file := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		assert.OK(t, os.WriteFile(path, data, 0o600))
		return path
	}
	jks := func(fill func(keystore.KeyStore)) []byte {
		store, out := keystore.New(), &bytes.Buffer{}
		fill(store)
		assert.OK(t, store.Store(out, []byte(password)))
		return out.Bytes()
	}
	trustJKS := file("trust.jks", jks(func(s keystore.KeyStore) {
		assert.OK(t, s.SetTrustedCertificateEntry("ca", keystore.TrustedCertificateEntry{CreationTime: time.Now(), Certificate: keystore.Certificate{Type: "X509", Content: cert.Raw}}))
	}))
	keyJKS := file("key.jks", jks(func(s keystore.KeyStore) {
		assert.OK(t, s.SetPrivateKeyEntry("me", keystore.PrivateKeyEntry{CreationTime: time.Now(), PrivateKey: der, CertificateChain: []keystore.Certificate{{Type: "X509", Content: cert.Raw}}}, []byte("key-"+password)))
	}))
	// A key of one byte, less than its salt and digest have.
	shortKey := []byte("\xfe\xed\xfe\xed\x00\x00\x00\x02\x00\x00\x00\x01\x00\x00\x00\x01\x00\x02me\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x15" +
		"\x30\x13\x30\x0e\x06\x0a\x2b\x06\x01\x04\x01\x2a\x02\x11\x01\x01\x05\x00\x04\x01k\x00\x00\x00\x00" + strings.Repeat("d", 20))
	trust12 := assert.Value(pkcs12.Modern.EncodeTrustStore([]*x509.Certificate{cert}, password))(t)
	key12 := assert.Value(pkcs12.LegacyRC2.Encode(pair.PrivateKey, cert, nil, password))(t)
	oneLine := func(s string) string { return strings.ReplaceAll(strings.TrimSpace(s), "\n", " ") }
	asProperties := func(s string) string { // as people paste PEM into a properties file
		props := assert.Value(parseProperties([]byte("x=" + strings.ReplaceAll(strings.TrimSpace(s), "\n", " \\\n"))))(t)
		return props["x"]
	}

	for name, tt := range map[string]struct {
		props       map[string]string
		keyed       bool
		wrong, hint string
	}{
		"trust in PEM on one line":      {props: map[string]string{"ssl.truststore.type": "PEM", "ssl.truststore.certificates": oneLine(certPEM)}},
		"trust in lines that end in \\": {props: map[string]string{"ssl.truststore.type": "PEM", "ssl.truststore.certificates": asProperties(certPEM)}},
		"trust in JKS":                  {props: map[string]string{"ssl.truststore.location": trustJKS, "ssl.truststore.password": password}},
		"trust in JKS, by type":         {props: map[string]string{"ssl.truststore.location": trustJKS, "ssl.truststore.type": "JKS", "ssl.truststore.password": password}},
		"trust in JKS, no password":     {props: map[string]string{"ssl.truststore.location": trustJKS}},
		"trust in PKCS12":               {props: map[string]string{"ssl.truststore.location": file("trust.p12", trust12), "ssl.truststore.type": "PKCS12", "ssl.truststore.password": password}},
		"trust in PKCS12, called JKS":   {props: map[string]string{"ssl.truststore.location": file("trust2", trust12), "ssl.truststore.type": "JKS", "ssl.truststore.password": password}},
		"key in PEM on one line":        {keyed: true, props: map[string]string{"ssl.keystore.type": "PEM", "ssl.keystore.certificate.chain": oneLine(certPEM), "ssl.keystore.key": oneLine(keyPEM)}},
		"a locked key":                  {keyed: true, props: map[string]string{"ssl.keystore.type": "PEM", "ssl.keystore.certificate.chain": certPEM, "ssl.keystore.key": asProperties(lockedPEM), "ssl.key.password": password}},
		"a key behind its certificate":  {keyed: true, props: map[string]string{"ssl.keystore.type": "PEM", "ssl.keystore.location": file("both.pem", []byte(certPEM+keyPEM))}},
		"a locked key before it":        {keyed: true, props: map[string]string{"ssl.keystore.type": "PEM", "ssl.keystore.location": file("locked.pem", []byte(lockedPEM+certPEM)), "ssl.key.password": password}},
		"key in JKS":                    {keyed: true, props: map[string]string{"ssl.keystore.location": keyJKS, "ssl.keystore.password": password, "ssl.key.password": "key-" + password}},
		"key in PKCS12":                 {keyed: true, props: map[string]string{"ssl.keystore.location": file("key.p12", key12), "ssl.keystore.password": password}},
		"librdkafka's files":            {keyed: true, props: map[string]string{"ssl.truststore.location": file("ca.pem", []byte(certPEM)), "ssl.keystore.location": file("me.pem", []byte(certPEM)), "ssl.key.location": file("me.key", []byte(lockedPEM)), "ssl.key.password": password}},
		"a wrong password of JKS":       {props: map[string]string{"ssl.truststore.location": trustJKS, "ssl.truststore.password": "other"}, wrong: "password right", hint: "its password"},
		"a wrong password of a key":     {props: map[string]string{"ssl.keystore.location": keyJKS, "ssl.keystore.password": password}, wrong: "ssl.key.password", hint: "its password"},
		"a wrong password of PKCS12":    {props: map[string]string{"ssl.keystore.location": file("key2.p12", key12), "ssl.keystore.password": "other"}, wrong: "password", hint: "its password"},
		"a locked key, no password":     {props: map[string]string{"ssl.keystore.type": "PEM", "ssl.keystore.certificate.chain": certPEM, "ssl.keystore.key": lockedPEM}, wrong: "encrypted", hint: "ssl.key.password"},
		"JKS, but its key is too short": {props: map[string]string{"ssl.keystore.location": file("short.jks", shortKey)}, wrong: "damaged"},
		"JKS, but a size is too large":  {props: map[string]string{"ssl.keystore.location": file("damaged.jks", bytes.Replace(assert.Value(os.ReadFile(keyJKS))(t), []byte("\x00\x00\x00\x01\x00\x04X509"), []byte("\xff\xff\xff\xff\x00\x04X509"), 1)), "ssl.keystore.password": password}, wrong: "damaged"},
		"no store":                      {props: map[string]string{"ssl.truststore.location": file("text", []byte("nothing"))}, wrong: "no store of the kinds"},
		"a key without its certificate": {props: map[string]string{"ssl.keystore.type": "PEM", "ssl.keystore.certificate.chain": keyPEM, "ssl.keystore.key": keyPEM}, wrong: "certificate", hint: "the client properties ssl.keystore"},
	} {
		t.Run(name, func(t *testing.T) {
			props := map[string]string{"security.protocol": "SSL"}
			for k, v := range tt.props {
				props[k] = v
			}
			s, err := securityFor(t, nil, props)
			if tt.wrong != "" {
				assert.ErrorHas(t, err, tt.wrong)
				hint := advice.Hint(err)
				assert.True(t, strings.Contains(hint, tt.hint) && !strings.Contains(err.Error()+hint, "canary"), "got %v with the hint %q", err, hint)
				return
			}
			assert.OK(t, err)
			if !tt.keyed {
				_, err = cert.Verify(x509.VerifyOptions{Roots: s.TLS.RootCAs, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
				assert.OK(t, err, "the authority is trusted")
				return
			}
			assert.Equal(t, len(s.TLS.Certificates), 1, "certificates")
		})
	}
}

// A file has the bytes that Java reads in it, references to Kafka's own providers, and blanks at a value's end; and
// librdkafka's names.
func TestFilesOfClients(t *testing.T) {
	t.Setenv("CLIENT_TEST_PASSWORD", "of-the-environment")
	dir := t.TempDir()
	secrets := filepath.Join(dir, "secrets.properties")
	assert.OK(t, os.WriteFile(secrets, []byte("password=of-the-file\n"), 0o600))
	assert.OK(t, os.WriteFile(filepath.Join(dir, "token"), []byte("of-the-folder\n"), 0o600))
	declared := "config.providers=file, env,dir,vault\nconfig.providers.file.class=org.apache.kafka.common.config.provider.FileConfigProvider\n" +
		"config.providers.env.class=o.a.k.EnvVarConfigProvider\nconfig.providers.dir.class=x.DirectoryConfigProvider\nconfig.providers.vault.class=com.example.Vault\n"
	for name, tt := range map[string]struct{ text, key, want, wrong string }{
		"ISO-8859-1":                  {text: "client.id=p\xe4ss", key: "client.id", want: "päss"},
		"UTF-8 is read as ISO-8859-1": {text: "client.id=\xc3\xa4", key: "client.id", want: "Ã¤"},
		"a byte order mark":           {text: "\xef\xbb\xbfclient.id=a", key: "client.id", want: "a"},
		"surrogates":                  {text: `client.id=\ud83d\ude00!`, key: "client.id", want: "😀!"},
		"half a pair":                 {text: `client.id=\ud83d!`, key: "client.id", want: "\ufffd!"},
		"blanks at the end":           {text: "client.id=a \t \nacks=1", key: "client.id", want: "a"},
		"a file's key":                {text: declared + "ssl.key.password=a-${file:" + secrets + ":password}-b", key: "ssl.key.password", want: "a-of-the-file-b"},
		"a variable":                  {text: declared + "ssl.key.password=${env:CLIENT_TEST_PASSWORD}", key: "ssl.key.password", want: "of-the-environment"},
		"a file of a folder":          {text: declared + "ssl.key.password=${dir:" + dir + ":token}", key: "ssl.key.password", want: "of-the-folder"},
		"not declared":                {text: "ssl.key.password=${file:" + secrets + ":password}", key: "ssl.key.password", want: "${file:" + secrets + ":password}"},
		"an unknown provider":         {text: declared + "ssl.key.password=${vault:a:b}", wrong: `"Vault", which is not known`},
		"no such key":                 {text: declared + "ssl.key.password=${file:" + secrets + ":nosuch}", wrong: "has no nosuch"},
		"no such variable":            {text: declared + "ssl.key.password=${env:CLIENT_TEST_NOSUCH}", wrong: "CLIENT_TEST_NOSUCH"},
		"a path out of the folder":    {text: declared + "ssl.key.password=${dir:" + dir + ":../x}", wrong: "the name of the file is a path"},
		"librdkafka's mechanism":      {text: "sasl.mechanisms=PLAIN", key: "sasl.mechanism", want: "PLAIN"},
		"both names":                  {text: "sasl.mechanisms=PLAIN\nsasl.mechanism=SCRAM-SHA-256", key: "sasl.mechanism", want: "SCRAM-SHA-256"},
		"librdkafka's authority":      {text: "ssl.ca.location=/ca.pem", key: "ssl.truststore.location", want: "/ca.pem"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "client.properties")
			assert.OK(t, os.WriteFile(file, []byte(tt.text), 0o600))
			props, err := ReadProperties(file, nil)
			if tt.wrong != "" {
				assert.ErrorHas(t, err, tt.wrong)
				return
			}
			assert.OK(t, err)
			assert.Equal(t, props[tt.key], tt.want, "%s", tt.key)
		})
	}
}

// Without sasl.jaas.config, the JAAS file that KAFKA_OPTS names has the login.
func TestJAASFileOfKafkaOpts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "jaas.conf")
	assert.OK(t, os.WriteFile(file, []byte("// of a broker\nKafkaServer {\n  x.PlainLoginModule required username=\"other\" password=\"canary\";\n};\n"+
		"KafkaClient {\n  org.apache.kafka.common.security.plain.PlainLoginModule required\n  username=\"me\"\n  password=\"canary\";\n};\n"), 0o600))
	t.Setenv("KAFKA_OPTS", "-Xmx1g -Djava.security.auth.login.config="+file)
	props := map[string]string{"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
	s, err := securityFor(t, nil, props)
	assert.OK(t, err)
	assert.True(t, strings.Contains(s.String(), "PLAIN as me"), "got %q", s.String())
	t.Setenv("KAFKA_OPTS", "-Djava.security.auth.login.config=/no/such/file")
	_, err = securityFor(t, nil, props)
	assert.ErrorHas(t, err, "/no/such/file")
	t.Setenv("KAFKA_OPTS", "-Djava.security.auth.login.config="+file)
	for text, want := range map[string]string{
		"KafkaClient { x.PlainLoginModule needed; };":           "the second word must be 'required'",
		"KafkaClient { x.PlainLoginModule required a; };":       "option 1 is not key=value",
		"KafkaClient { x.PlainLoginModule required b='canary":   "a quote is not closed",
		"KafkaClient { x.OtherLoginModule required a=b; };":     "the login module OtherLoginModule is not known",
		"KafkaClient { x.PlainLoginModule required serve=b; };": "the option serve of PlainLoginModule is not known",
		"KafkaClient { };": "it is empty", "KafkaServer { };": "no section KafkaClient",
	} {
		assert.OK(t, os.WriteFile(file, []byte(text), 0o600))
		_, err = securityFor(t, nil, props)
		assert.ErrorHas(t, err, want, file)
		assert.True(t, !strings.Contains(err.Error(), "sasl.jaas.config"), "the text came from a file: %v", err)
	}
	t.Setenv("KAFKA_OPTS", "-Djava.security.auth.login.config=/no/such/file")
	s, err = securityFor(t, nil, map[string]string{"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "them", "sasl.password": "canary"})
	assert.OK(t, err, "librdkafka's names say who logs in")
	assert.True(t, strings.Contains(s.String(), "PLAIN as them"), "got %q", s.String())
}
