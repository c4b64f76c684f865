package secret

import (
	"slices"
	"strings"
	"testing"

	"carronade/test/testkit/assert"
)

func TestCommand(t *testing.T) {
	for _, test := range []struct {
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
	} {
		t.Run(test.name, func(t *testing.T) {
			var m Mask
			got := m.Command(test.args)
			assert.True(t, got == test.want, "got  %s\nwant %s", got, test.want)
			if strings.Contains(strings.Join(test.args, " "), canary) {
				line := "the server says " + canary + " aloud"
				if got := m.Text(line); strings.Contains(got, canary) {
					t.Errorf("got %q, want the secret of the command line removed from other text, too", got)
				}
			}
		})
	}
}

// TestCommandHides: command lines with a secret.
func TestCommandHides(t *testing.T) {
	const s = canary
	for _, test := range []struct {
		name string
		args []string
		want string
	}{
		{"a user's flag", []string{"curl", "--user=u:" + s, "h"}, "curl --user=u:*** h"},
		{"a user's letter", []string{"curl", "-uu:" + s, "h"}, "curl -uu:*** h"},
		{"a user's letter with a mark", []string{"curl", "-u=u:" + s, "h"}, "curl -u=u:*** h"},
		{"a user's letter behind others", []string{"curl", "-sSu", "u:" + s, "h"}, "curl -sSu u:*** h"},
		{"an address glued on", []string{"srv", "-uhttp://h:80"}, "srv -uhttp://h:80"},
		{"a variable", []string{"env", "REDISCLI_AUTH=" + s, "redis-cli"}, "env REDISCLI_AUTH=*** redis-cli"},
		{"a variable of a mode", []string{"env", "SSL_CLIENT_AUTH=required", "srv"}, "env SSL_CLIENT_AUTH=required srv"},
		{"begins with a dash", []string{"srv", "--password", "-" + s, "x"}, "srv --password *** x"},
		{"begins with two", []string{"srv", "--token", "--" + s, "x"}, "srv --token *** x"},
		{"several", []string{"srv", "--passwords", "a," + s, "-v"}, "srv --passwords *** -v"},
		{"several tokens", []string{"srv", "--tokens", "a," + s, "-v"}, "srv --tokens *** -v"},
		{"several with a mark", []string{"srv", "--password-list=a," + s, "-v"}, "srv --password-list=*** -v"},
		{"a blank in a login in a script", []string{"sh", "-c", "curl -u 'u:a " + s + "' h"}, ""},
		{"a login in two pairs of quotes", []string{"sh", "-c", `curl -u "u":"` + s + `" h`}, ""},
		{"a login with a mark in a script", []string{"sh", "-c", "curl --user='u:a " + s + "' h"}, ""},
		{"an escaped blank in a script", []string{"sh", "-c", `curl -u u:a\ ` + s + " h"}, ""},
		{"a header", []string{"curl", "--header", `Authorization: Digest username="u", response="` + s + `"`, "h"}, "curl --header 'Authorization: ***' h"},
		{"a header with a mark", []string{"curl", `--header=Authorization: Digest username="u", response="` + s + `"`, "h"}, ""},
		{"a header in a script", []string{"sh", "-c", `curl -H 'Authorization: Digest username="u", response="` + s + `"' h`}, ""},
		{"cookies", []string{"curl", "-H", "Cookie: a=1; b=" + s}, "curl -H 'Cookie: ***'"},
		{"a slash in an address", []string{"srv", "https://u:a/" + s + "@h/"}, "srv https://***@h/"},
		{"a blank in an address", []string{"srv", "https://u:a " + s + "@h/"}, "srv https://***@h/"},
		{"a blank in a flag's address", []string{"srv", "--url=https://u:a " + s + "@h/"}, "srv --url=https://***@h/"},
		{"a container's variable", []string{"docker", "run", "--env=DB_PASSWORD=a " + s, "x"}, "docker run --env=DB_PASSWORD=*** x"},
		{"curl's cookies", []string{"curl", "-b", "session=" + s, "h"}, "curl -b *** h"},
		{"curl's cookies behind another letter", []string{"curl", "-sb", "a=" + s, "h"}, "curl -sb *** h"},
		{"curl's cookies, glued", []string{"curl", "-ba=" + s, "h"}, "curl -b*** h"},
		{"curl's file of cookies", []string{"curl", "-b", "jar.txt", "-bjar.txt", "h"}, "curl -b jar.txt -bjar.txt h"},
		{"zip, a file named curl", []string{"zip", "-r", "out.zip", "src/curl", "-P", s}, "zip -r out.zip src/curl -P ***"},
		{"Redis, a host named curl", []string{"redis-cli", "-h", "curl", "-a", s}, "redis-cli -h curl -a ***"},
		{"Redis, a bar among its arguments", []string{"redis-cli", "-d", "|", "-a", s}, "redis-cli -d '|' -a ***"},
		{"Redis in a script, a bar in quotes", []string{"sh", "-c", "redis-cli -d '|' -a " + s}, `sh -c 'redis-cli -d '\''|'\'' -a ***'`},
		{"two programs in a script", []string{"sh", "-c", "mysql -p" + s + " db | head -p 8 ; zip -p 9 && redis-cli -p 6379 -a " + s}, "sh -c 'mysql -p*** db | head -p 8 ; zip -p 9 && redis-cli -p 6379 -a ***'"},
		{"a flag with the letter of another program", []string{"sh", "-c", "mysql influx -password " + s}, "sh -c 'mysql influx -password ***'"},
		{"a quote in an address", []string{"srv", `https://u:a"` + s + "@h/"}, "srv https://***@h/"},
		{"no scheme", []string{"srv", "u:" + s + "@h:1"}, "srv u:***@h:1"},
		{"an image", []string{"docker", "run", "img:1@sha256:abc"}, "docker run img:1@sha256:abc"},
		{"a secret key", []string{"srv", "--secret-key", s, "-v"}, "srv --secret-key *** -v"},
		{"an account's key", []string{"srv", "--account-key", s, "-v"}, "srv --account-key *** -v"},
		{"a key with a mark", []string{"srv", "--account-key=" + s, "-v"}, "srv --account-key=*** -v"},
		{"a flag that goes on", []string{"srv", "--password-value-now", s, "-v"}, "srv --password-value-now *** -v"},
		{"MySQL", []string{"mysql", "-uroot", "-p" + s, "db"}, "mysql -uroot -p*** db"},
		{"MySQL, a path", []string{"/usr/bin/mysqldump", "-p" + s}, "/usr/bin/mysqldump -p***"},
		{"MySQL in a script", []string{"sh", "-c", "mysql -uroot -p" + s + " db"}, ""},
		{"a port", []string{"srv", "-p8080", "-p", "80"}, "srv -p8080 -p 80"},
		{"Docker", []string{"docker", "login", "-u", "u", "-p", s, "h"}, "docker login -u u -p *** h"},
		{"a login's flag", []string{"srv", "--login", "u:" + s}, "srv --login u:***"},
		{"Redis", []string{"redis-cli", "-a", s, "ping"}, "redis-cli -a *** ping"},
		{"Java's keystore", []string{"keytool", "-storepass", s}, "keytool -storepass ***"},
		{"OpenSSL", []string{"openssl", "x", "-passin", "pass:" + s}, ""},
		{"a script in a script", []string{"sh", "-c", `sh -c "srv --password 'a ` + s + `'"`}, ""},
		{"a signed address", []string{"curl", "https://h/?sig=" + s}, "curl https://h/?sig=***"},
		{"JSON", []string{"srv", "--config", `{"passwords":{"a":"` + s + `"}}`}, `srv --config '{"passwords":***}'`},
		{"an empty one", []string{"srv", "--password", "", "-v"}, "srv --password '' -v"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var m Mask
			got := m.Command(test.args)
			assert.True(t, !strings.Contains(got, s) && (test.want == "" || got == test.want),
				"got  %s\nwant %s", got, test.want)
			whole := s
			for _, more := range []string{"-" + s, "--" + s, "a " + s, "a/" + s, `a"` + s} {
				if strings.Contains(strings.Join(test.args, " "), more) {
					whole = more
				}
			}
			if strings.Contains(strings.Join(test.args, " "), s) && strings.Contains(m.Text("it says "+whole+" aloud"), s) {
				t.Error("the secret of the command line is not removed from other text")
			}
		})
	}
}

// What is known of a login in an address is the whole and its password, and no word of a text
// behind the address.
func TestWordsBehindAnAddress(t *testing.T) {
	for _, tt := range []struct{ name, arg, shown, line, want string }{
		{"a path", "--note=https://ci:8443/1 done, info, see a@b", "--note=https://ci:8443/1 done, info, see a@b", "info: done, see 8443", "info: done, see 8443"},
		{"a query", "https://ci:8443?x done, info, see a@b", "https://ci:8443?x done, info, see a@b", "info: done", "info: done"},
		{"a login and a path", "https://u:" + canary + "@ci/1 done, info, see a@b", "https://***@ci/1 done, info, see a@b", "info: " + canary, "info: ***"},
		{"no path", "https://ci:8443 done, info, see a@b", "https://***@b", "info: done, see 8443", "info: done, see 8443"},
		{"a blank in a password", "https://u:a, " + canary + "@h/x", "https://***@h/x", "info: a, " + canary, "info: ***"},
		{"an escaped colon", `https\://u\:` + canary + "@h/x", `https\://***@h/x`, "info: " + canary, "info: ***"},
		{"no scheme", "info:" + canary + "@h", "info:***@h", "info: " + canary, "info: ***"},
		{"a token alone", "https://" + canary + "@h/x", "https://***@h/x", "info: " + canary, "info: ***"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var m Mask
			assert.Equal(t, m.Args([]string{tt.arg})[0], tt.shown)
			assert.Equal(t, m.Text(tt.line), tt.want)
		})
	}
}

// A script is shown in its quotes only if each of its secrets is written there as it is.
func TestEscapesInScripts(t *testing.T) {
	for _, script := range []string{
		`mysql -pabcd; curl -u "u:a\"` + canary + `" h`,
		`ssh h "mysql -pabcd; curl -u \"u:a\\\"` + canary + `\" h"`,
	} {
		got := new(Mask).Command([]string{"sh", "-c", script})
		assert.True(t, !strings.Contains(got, canary), "got %s\nof %s", got, script)
	}
}

func TestValue(t *testing.T) {
	for _, test := range []struct{ name, setting, value, want string }{
		{"plain", "output.file", "a b", "a b"},
		{"secret", "es.password", canary, Hidden},
		{"reference", "es.password", "env:PW", "env:PW"},
		{"address", "es.hosts", "http://me:" + canary + "@h:1", "http://***@h:1"},
		{"nothing", "es.password", "", ""},
		{"a login", "cloud.auth", "elastic:" + canary, Hidden},
		{"a login of another name", "x.auth", "elastic:" + canary, Hidden},
	} {
		t.Run(test.name, func(t *testing.T) {
			var m Mask
			assert.Equal(t, m.Value(test.setting, test.value), test.want)
			assert.True(t, !strings.Contains(test.value, canary) || !strings.Contains(m.Text("say "+canary), canary),
				"the mask does not know the secret")
		})
	}
}

func TestLine(t *testing.T) {
	for _, test := range []struct{ name, line, want string }{
		{"plain", "srv -e  --port 1", "srv -e --port 1"},
		{"a secret with blanks", "srv --password='a " + canary + " b' -v", "srv --password=*** -v"},
		{"one word in quotes", `srv "--password" "a ` + canary + `"`, "srv --password ***"},
		{"no end", "srv 'x " + canary, Hidden},
	} {
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
		want := assert.Value(Split(line))(t)
		got, err := Split(m.Line(line))
		assert.True(t, err == nil && slices.Equal(got, want), "%s: got %q (%v), want %q", line, got, err, want)
	}
}
