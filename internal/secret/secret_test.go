package secret

import (
	"carronade/internal/testkit/assert"
	"slices"
	"strings"
	"testing"
)

const canary = "kestrel-9271"

func TestCommand(t *testing.T) {
	tests := []struct {
		name string
		args []string
		want string
	}{
		{"nothing secret", []string{"apm-server", "-e", "-E", "apm-server.host=127.0.0.1:8200"}, "apm-server -e -E apm-server.host=127.0.0.1:8200"},
		{"flag and value", []string{"srv", "--password", canary, "-v"}, "srv --password *** -v"},
		{"flag with value", []string{"srv", "--secret-token=" + canary}, "srv --secret-token=***"},
		{"a flag that takes none", []string{"srv", "--token", "--verbose"}, "srv --token --verbose"},
		{"setting", []string{"srv", "-E", "output.elasticsearch.password=" + canary}, "srv -E output.elasticsearch.password=***"},
		{"setting with blanks", []string{"srv", "-Dssl.key.password=a b " + canary}, "srv -Dssl.key.password=***"},
		{"login in an address", []string{"srv", "--es", "https://elastic:" + canary + "@127.0.0.1:9200/x"}, "srv --es https://***@127.0.0.1:9200/x"},
		{"curl", []string{"curl", "-u", "me:" + canary}, "curl -u me:***"},
		{"header", []string{"curl", "-H", "Authorization: Bearer " + canary}, "curl -H 'Authorization: ***'"},
		{"in a script", []string{"sh", "-c", "PASSWORD=" + canary + " ./server --port 1"}, "sh -c 'PASSWORD=*** ./server --port 1'"},
		{"JAAS", []string{"java", `-Dx.sasl.jaas.config=Module required password="` + canary + `";`, "Kafka"}, "java -Dx.sasl.jaas.config=*** Kafka"},
		{"api key", []string{"srv", "--api_key", canary}, "srv --api_key ***"},
		{"reference", []string{"srv", "--password", "env:PW", "--token=file:/t"}, "srv --password env:PW --token=file:/t"},
		{"again elsewhere", []string{"srv", "--password", canary, "again-" + canary}, "srv --password *** again-***"},
		{"quoted", []string{"sh", "-c", "it's"}, `sh -c 'it'\''s'`},
		{"flag in a script", []string{"sh", "-c", "exec srv --password " + canary + " -v"}, "sh -c 'exec srv --password *** -v'"},
		{"quoted in a script", []string{"sh", "-c", `srv --db-pass "a ` + canary + `" -v`}, "sh -c 'srv --db-pass *** -v'"},
		{"login in a script", []string{"sh", "-c", "curl -u me:" + canary + " x"}, "sh -c 'curl -u me:*** x'"},
		{"short name", []string{"srv", "-E", "DB_PASS=" + canary}, "srv -E DB_PASS=***"},
		{"shorter name", []string{"sh", "-c", "echo pw=" + canary}, "sh -c 'echo pw=***'"},
		{"short flag", []string{"srv", "--pass", canary}, "srv --pass ***"},
		{"a harmless name", []string{"srv", "--bypass", "x", "--compass=y"}, "srv --bypass x --compass=y"},
		{"signing key", []string{"srv", "--signing-key=" + canary}, "srv --signing-key=***"},
		{"Elastic's cloud", []string{"srv", "-E", "cloud.auth=elastic:" + canary}, "srv -E cloud.auth=***"},
		{"a flag of a login", []string{"http", "--auth", "joe:" + canary, "h:80"}, "http --auth *** h:80"},
		{"a setting of a login", []string{"srv", "--proxy.auth=joe:" + canary}, "srv --proxy.auth=***"},
		{"a harmless auth", []string{"srv", "--auth=required", "--auth", "x"}, "srv --auth=required --auth x"},
		{"a proxy's user", []string{"curl", "-U", "joe:" + canary}, "curl -U joe:***"},
		{"nothing", nil, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var m Mask
			got := m.Command(test.args)
			assert.Equal(t, got, test.want)
			if strings.Contains(strings.Join(test.args, " "), canary) {
				line := "the server says " + canary + " aloud"
				if got := m.Text(line); strings.Contains(got, canary) {
					t.Errorf("got %q, want the secret of the command line removed from other text, too", got)
				}
			}
		})
	}
}

func TestValue(t *testing.T) {
	tests := []struct{ name, setting, value, want string }{
		{"plain", "output.file", "a b", "a b"},
		{"secret", "es.password", canary, Hidden},
		{"reference", "es.password", "env:PW", "env:PW"},
		{"address", "es.hosts", "http://me:" + canary + "@h:1", "http://***@h:1"},
		{"nothing", "es.password", "", ""},
		{"a login", "cloud.auth", "elastic:" + canary, Hidden},
		{"a login of another name", "x.auth", "elastic:" + canary, Hidden},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var m Mask
			assert.Equal(t, m.Value(test.setting, test.value), test.want)
			if strings.Contains(test.value, canary) && strings.Contains(m.Text("say "+canary), canary) {
				t.Error("the mask does not know the secret")
			}
		})
	}
}

func TestLine(t *testing.T) {
	tests := []struct{ name, line, want string }{
		{"plain", "srv -e  --port 1", "srv -e --port 1"},
		{"a secret with blanks", "srv --password='a " + canary + " b' -v", "srv --password=*** -v"},
		{"one word in quotes", `srv "--password" "a ` + canary + `"`, "srv --password ***"},
		{"no end", "srv 'x " + canary, Hidden},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var m Mask
			assert.Equal(t, m.Line(test.line), test.want)
		})
	}
}

// TestLineIsReadAgain: a report shows a command without secrets unchanged.
func TestLineIsReadAgain(t *testing.T) {
	for _, line := range []string{"srv -e", `sh -c 'it'\''s; echo "$X"'`, `a "b c" '' d\ e`, "{tree}/srv {flags} *"} {
		var m Mask
		want, err := Split(line)
		assert.OK(t, err)
		if got, err := Split(m.Line(line)); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %q (%v), want %q", line, got, err, want)
		}
	}
}

func TestManyLines(t *testing.T) {
	var m Mask
	m.Add("-----BEGIN KEY-----\n" + canary + "\n-----END KEY-----\n")
	if got := m.Text("read " + canary); strings.Contains(got, canary) {
		t.Errorf("got %q, want a single line of a secret removed, too", got)
	}
}

func TestText(t *testing.T) {
	var m Mask
	m.Add("p/w +1", "abc", canary, `quo"ted`)
	tests := []struct{ name, text, want string }{
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
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			assert.Equal(t, m.Text(test.text), test.want)
		})
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

func FuzzMask(f *testing.F) {
	f.Add("--password", "x=y")
	f.Add("a://b:c@d", "Bearer q")
	f.Fuzz(func(t *testing.T, a, b string) {
		var m Mask
		m.Add(canary)
		if got := m.Command([]string{"srv", a, b, canary}) + m.Text(a+canary+b); strings.Contains(got, canary) {
			t.Errorf("got %q, which holds the secret", got)
		}
	})
}
