package secret

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"carronade/test/testkit/assert"
)

// Ordinary settings below and next to what sounds like a secret's name stay unchanged, and so do ordinary logs.
func TestKept(t *testing.T) {
	for _, test := range []struct{ name, text string }{
		{"Clojure, arguments", "(defn pager\n  [service-key]\n  (let [x (= 1 2)]\n    (where (= service \"a\") y)))\n(tcp-server :port 5555)\n"},
		{"Clojure, arguments in column 0", "(defn f\n[user password]\n(streams 1))\n(tcp-server :port 5555)\n"},
		{"Clojure, one argument", "(defn f\n  [token]\n  (prn 1))\n(def x 1)\n"},
		{"YAML, how keys are used", "apm-server:\n  auth:\n    api_key:\n      enabled: true\n      # the most\n      limit: 100 # keys\n    anonymous:\n      enabled: false\n"},
		{"YAML, how tokens are used", "xpack.security.authc:\n  token:\n    enabled: true\n    timeout: 20m\n  api_key:\n    cache:\n      ttl: 1d\n      hash_algo: ssha256\n"},
		{"YAML, in braces", "api_key: {enabled: true, limit: 100}\nport: 1\n"},
		{"YAML, methods of logging in", "a:\n  auth: []\nb:\n  auth: [scram-sha-256, gssapi]\nc:\n  auth: [oauth2, jwt]\nd:\n  auth: [jwt]\ne:\n  auth:\n  - OAUTHBEARER\n  - x509\n  - other\n"},
		{"JSON, methods of logging in", `{"auth": [], "x": {"auth": ["SCRAM-SHA-512", "mtls"]}}`},
		{"JSON, in braces", `{"api_key": {"enabled": true, "limit": 100, "cache": {"ttl": "1m"}}, "port": 1}`},
		{"JSON, in braces on lines", "{\n  \"api_key\": {\n    \"enabled\": true,\n    \"limit\": 100\n  },\n  \"port\": 1\n}\n"},
		{"a log of Kafka", "[2026-11-23 02:00:00,123] INFO [GroupCoordinator 1]: Preparing to rebalance group g-17 (__consumer_offsets-42) (reason: rebalance failed due to MemberIdRequiredException) (kafka.coordinator.group.GroupCoordinator)\n" +
			"\tdelegation.token.expiry.time.ms = 86400000\n\tpassword.encoder.iterations = 4096\n\tsasl.oauthbearer.token.endpoint.url = http://h/token\n\tssl.client.auth = none\n"},
		{"a log in JSON", `{"level":"info","logger":"request","message":"request ok: a token was refreshed","url":"/intake/v2/events?flushed=true","key":"a","status":202}` + "\n"},
		{"a log of Java", "02:00:00 WARN Authentication failed, password expired (user joe)\njava.lang.IllegalStateException: no secret\n\tat org.x.Token.refresh(Token.java:17)\n\tat org.x.CredentialsStore.run(CredentialsStore.java:1)\n"},
		{"a log of tests", "ok  \tpass\t0.1s\n--- PASS: TestTokens (0.00s)\nToken expired\npassword authentication failed for user \"joe\"\nusing docker 27.1, curl -s http://h:80/ -o x\n"},
		{"addresses", "see http://h/a@b, http://h:80/x y@z, mail a@b.c, git@github.com:x/y, 10:15:00 x@y, img:1@sha256:abc\n"},
		{"JSON, a word in a list", "{\"required\":\n  [\"password\"]\n, \"port\": 1}\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var m Mask
			got := m.Text(test.text)
			assert.True(t, got == test.text, "got\n%s\nof\n%s", got, test.text)
		})
	}
}

func TestManyLines(t *testing.T) {
	var m Mask
	m.Add("-----BEGIN KEY-----\n" + canary + "\n-----END KEY-----\n")
	got := m.Text("read " + canary)
	assert.True(t, !strings.Contains(got, canary), "got %q, want a single line of a secret removed, too", got)
}

func TestText(t *testing.T) {
	var m Mask
	m.Add("p/w +1", "abc", canary, `quo"ted`)
	for _, test := range []struct{ name, text, want string }{
		{"plain", "listening on 127.0.0.1:8200", "listening on 127.0.0.1:8200"},
		{"known", "key " + canary + ".", "key ***."},
		{"escaped", "GET /?k=p%2Fw+%2B1", "GET /?k=***"},
		{"base64", "x cC93ICsx y", "x *** y"},
		{"too short to look for", "abcd", "abcd"},
		{"json", `{"api_key":"zyx","n":1}`, `{"api_key":***,"n":1}`},
		{"address", "dial http://u:p@h:1/", "dial http://***@h:1/"},
		{"at sign in a password", "http://u:p@q@h/", "http://***@h/"},
		{"no login", "http://h/a@b", "http://h/a@b"},
		{"escaped in a string", `{"said":"quo\"ted"}`, `{"said":"***"}`},
		{"a word", "3 tests pass: all", "3 tests pass: all"},
		{"bearer", "sent Bearer aGVsbG8=", "sent Bearer ***"},
		{"empty value", "password=", "password="},
	} {
		got := m.Text(test.text)
		assert.True(t, got == test.want, "%s: got  %s\nwant %s", test.name, got, test.want)
	}
}

// A known secret is also found as JSON, XML and addresses write it.
func TestKnownInOtherForms(t *testing.T) {
	var m Mask
	m.Add("a&b?c>>d~~x")
	for _, tt := range []struct{ name, text, want string }{
		{"JSON of Go", `said a\u0026b?c\u003e\u003ed~~x aloud`, "said *** aloud"},
		{"XML", "<a>a&amp;b?c&gt;&gt;d~~x</a>", "<a>***</a>"},
		{"base64", "x YSZiP2M+PmR+fng= y", "x *** y"},
		{"base64 without its last sign", "x YSZiP2M+PmR+fng y", "x *** y"},
		{"base64 for addresses", "x YSZiP2M-PmR-fng y", "x *** y"},
	} {
		assert.Equal(t, m.Text(tt.text), tt.want, "%s", tt.name)
	}
}

// The mask finds many values in one pass, also those that overlap or begin alike.
func TestManyKnown(t *testing.T) {
	var m Mask
	var text, want strings.Builder
	for i := range 1000 {
		v := fmt.Sprintf("key%04d-%04d", i, 7*i)
		m.Add(v)
		text.WriteString("a " + v + " b\n")
		want.WriteString("a *** b\n")
	}
	m.Add("abcd1234", "1234-and-more", "bcd1", "abcd")
	text.WriteString("x abcd1234-and-more, abcd1234, abcd2\n")
	want.WriteString("x ***, ***, ***2\n")
	if got := m.Text(text.String()); got != want.String() {
		t.Errorf("got %q", got[max(0, len(got)-200):])
	}
}

// FuzzMask: what a mask knows is in nothing that went through it.
func FuzzMask(f *testing.F) {
	for _, s := range []string{"--password", "x=y", "a://b:c@d", "Bearer q", "passwords:\n - x\n", "LoginModule required a=\"", "password: |\n  x", "<password>\nx\n</password>", `{"name":"MY_TOKEN",` + "\n" + `"value":"x"}`, "-----BEGIN PRIVATE KEY-----\nx", "x-----END PRIVATE KEY-----", "[token]\nx", "token: <<X\n"} {
		f.Add(s, "x")
		f.Add("x", s)
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		var m Mask
		m.Add(canary)
		got := m.Command([]string{"srv", a, b, canary}) + m.Text(a+canary+b)
		assert.True(t, !strings.Contains(got, canary), "got %q, which holds the secret", got)
		new(Mask).Text(a + "\n" + b)
	})
}

// A command line is split into the same words as in a shell.
func TestSplit(t *testing.T) {
	for _, test := range []struct {
		name, line string
		want       []string
		err        string
	}{
		{"words", "  a b\tc\n", []string{"a", "b", "c"}, ""},
		{"single", `a 'b "c" \n' d`, []string{"a", `b "c" \n`, "d"}, ""},
		{"double", `a "b 'c' \" \\ \$ \n" d`, []string{"a", `b 'c' " \ $ \n`, "d"}, ""},
		{"joined", `a"b c"'d e'\ f`, []string{"ab cd e f"}, ""},
		{"empty words", `'' ""`, []string{"", ""}, ""},
		{"nothing", "", nil, ""},
		{"no expansion", "$HOME *", []string{"$HOME", "*"}, ""},
		{"open single", "'a", nil, "unclosed"},
		{"open double", `"a`, nil, "unclosed"},
		{"last backslash", `a\`, nil, "nothing follows"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := Split(test.line)
			assert.True(t, slices.Equal(got, test.want) && (err == nil) == (test.err == "") && (err == nil || strings.Contains(err.Error(), test.err)),
				"got %q, %v, want %q, %q", got, err, test.want, test.err)
		})
	}
}

func TestRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	assert.OK(t, os.WriteFile(path, []byte("of a file\r\n"), 0o600))
	t.Setenv("TOKEN", "of the environment")
	var unset Unset
	for _, tt := range []struct {
		name, give, want string
		referred         bool
		fails            func(error) bool
	}{
		{"a variable", "env:TOKEN", "of the environment", true, nil},
		{"no such variable", "env:TOKEN_2", "", true, func(err error) bool { return errors.As(err, &unset) && unset == "TOKEN_2" }},
		{"a file", "file:" + path, "of a file", true, nil},
		{"no such file", "file:" + path + "2", "", true, func(err error) bool { return errors.Is(err, fs.ErrNotExist) }},
		{"not a reference", "hunter2", "hunter2", false, nil},
		{"another word before a colon", "environment:TOKEN", "environment:TOKEN", false, nil},
	} {
		got, referred, err := Read(tt.give)
		assert.True(t, got == tt.want && referred == tt.referred, "%s: got %q, %v; want %q, %v", tt.name, got, referred, tt.want, tt.referred)
		assert.True(t, (err != nil) == (tt.fails != nil) && (tt.fails == nil || tt.fails(err)), "%s: error %v", tt.name, err)
	}
}
