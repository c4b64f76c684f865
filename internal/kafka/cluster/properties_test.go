package cluster

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"

	"github.com/google/go-cmp/cmp"
)

func TestParseProperties(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
	for _, text := range []string{`p=canary\u12`, `p=canary\uzzzz`, "canary", "canary word"} {
		_, err := parseProperties([]byte("ok=1\n" + text))
		assert.ErrorHas(t, err, "line 2")
		assert.True(t, !strings.Contains(err.Error(), "canary"), "the error contains the value: %v", err)
	}
	_, err := parseProperties(make([]byte, maxProperties+1))
	assert.True(t, err != nil, "a file that is too large was accepted")
}

func TestParseJAAS(t *testing.T) {
	t.Parallel()
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

// FuzzParseProperties checks that the parser fails only with an error, and that
// its result can be written and read again.
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
		t.Run(tt.name, func(t *testing.T) {
			assert.Equal(t, showProperty(tt.text), tt.want)
		})
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
