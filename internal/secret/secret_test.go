package secret

import (
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
		{"nothing", nil, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var m Mask
			got := m.Command(test.args)
			if got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			if strings.Contains(strings.Join(test.args, " "), canary) {
				line := "the server says " + canary + " aloud"
				if got := m.Text(line); strings.Contains(got, canary) {
					t.Errorf("got %q, want what the command line held gone from other text too", got)
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
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var m Mask
			if got := m.Value(test.setting, test.value); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if strings.Contains(test.value, canary) && strings.Contains(m.Text("say "+canary), canary) {
				t.Error("the mask does not know the secret")
			}
		})
	}
}

func TestText(t *testing.T) {
	var m Mask
	m.Add("p/w +1", "abc", canary)
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
		{"bearer", "sent Bearer aGVsbG8=", "sent Bearer ***"},
		{"empty value", "password=", "password="},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := m.Text(test.text); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
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
