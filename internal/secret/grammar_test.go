package secret

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// A grammar writes a value in the form of its files, in every %s of its texts.
type grammar struct {
	name  string
	write func(string) (text string, ok bool)
	texts []string
}

func always(f func(string) string) func(string) (string, bool) {
	return func(s string) (string, bool) { return f(s), true }
}

// oneLine refuses values with line ends, which these grammars write in other ways.
func oneLine(f func(string) string) func(string) (string, bool) {
	return func(s string) (string, bool) { return f(s), !strings.ContainsAny(s, "\r\n\v\f\x00\u0085\u2028\u2029") }
}

func without(marks string) func(string) (string, bool) {
	return func(s string) (string, bool) { return s, s != "" && !strings.ContainsAny(s, marks) }
}

func inJSON(s string) string {
	text, _ := json.Marshal(s)
	return string(text)
}

func inShell(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
func inYAML(s string) string  { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

var grammars = []grammar{
	{"JSON", always(inJSON), []string{
		`{"password":%s,"port":1}`, `{"a":{"passwords":{"alice":%s,"bob":%s}},"port":1}`, `{"tokens":["a",%s,"b"]}`,
		`{"name":"DB_PASSWORD","value":%s}`, `{"value":%s,"name":"DB_PASSWORD"}`, "{\n  \"password\": %s,\n  \"port\": 1\n}\n",
		"{\n  \"secrets\": [\n    %s,\n    %s\n  ]\n}\n", `["srv","--password",%s,"--port"]`, `[{"k":1},{"value":%s,"x":{"y":"}"},"name":"a.token"}]`,
	}},
	{"JSON in JSON", func(s string) (string, bool) { t := inJSON(inJSON(s)); return t[1 : len(t)-1], true }, []string{
		`{"c":"{\"password\":%s,\"port\":1}"}`,
	}},
	{"Clojure", always(strconv.Quote), []string{
		`(influxdb {:host "h" :password %s :port 1})`, "(mailer {:user \"u\" :pass %s\n})", `(def api-key %s)`, "{:tokens [\"a\" %s]}", `(pagerduty %s)`, "{:secret-key\n   %s}", `(x {:passwords {"a" %s}})`,
	}},
	{"properties", func(s string) (string, bool) {
		s = strings.TrimLeft(strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`, "\t", `\t`, "\f", `\f`).Replace(s), " ")
		return s, !strings.ContainsAny(s, "\v\u0085\u2028\u2029\x00")
	}, []string{
		"a=1\nssl.key.password=%s\nport=1\n", "ssl.key.password = %s\n", "ssl.key.password: %s\n", "ssl.key.password %s\n", "ssl.key.password\t%s\n", "ssl.key.password=\\\n   %s\nport=1\n", "ssl.key.password=a\\\n  %s\n", "ssl.keystore.key=a\\\n  b\\\n  %s\n",
	}},
	{"YAML in single quotes", oneLine(inYAML), []string{
		"a: 1\npassword: %s\nport: 1\n", "passwords:\n- %s\n- %s\nport: 1\n", "passwords:\n  alice: %s\nport: 1\n", "passwords: [a, %s]\n", "passwords: {a: %s, b: 1}\n",
		"env:\n- name: DB_PASSWORD\n  value: %s\n", "env:\n- value: %s\n  name: DB_PASSWORD\n", "args:\n- --password\n- %s\n", "password:\n  %s\nport: 1\n",
	}},
	{"YAML in double quotes", oneLine(strconv.Quote), []string{
		"password: %s\nport: 1\n", "x:\n  tokens:\n    - %s\n", "passwords: {a: %s, b: 1}\n", "- {name: DB_PASSWORD, value: %s}\n",
	}},
	{"a block of YAML", func(s string) (string, bool) {
		return strings.ReplaceAll(s, "\n", "\n      "), !strings.ContainsAny(s, "\r\x00\v\f\u0085\u2028\u2029")
	}, []string{
		"x:\n  password: |\n      %s\nport: 1\n", "env:\n  - name: DB_PASSWORD\n    value: |-\n      %s\n", "x:\n  secrets:\n    a: >\n      %s\n",
	}},
	{"XML", always(strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;").Replace), []string{
		"<a><password>%s</password><port>1</port></a>", `<property name="db.password" value="%s"/>`, `<property value="%s" name="db.password"/>`, "<passwords><alice>%s</alice></passwords>",
		"<name>x.token</name><value>%s</value>", "<value>%s</value><name>x.token</name>", `<Connector port="1" keystorePass="%s" x="1"/>`, "<key>password</key>\n  <string>%s</string>",
	}},
	{"CDATA", func(s string) (string, bool) { return "<![CDATA[" + s + "]]>", !strings.Contains(s, "]]>") }, []string{
		"<password>%s</password>", "<a><secret x='1'>\n%s\n</secret></a>",
	}},
	{"TOML, HCL", oneLine(strconv.Quote), []string{
		"password = %s\nport = 1\n", "[passwords]\nalice = %s\n[x]\n", "tokens = [\n  \"a\",\n  %s,\n]\n", "secrets = { a = %s }\n", "credentials {\n  a = %s\n}\n", "variable \"x\" {}\npassword=%s\n",
	}},
	{"a shell", oneLine(inShell), []string{
		"export DB_PASSWORD=%s\nPORT=1\n", "DB_PASSWORD=%s srv --port 1\n", "srv --password %s --port 1\n", "srv --password=%s --port 1\n", "srv --api-key %s\n", "REDISCLI_AUTH=%s redis-cli\n", "curl --password=a%s h\n",
	}},
	{"an address", without("\x00 \t\r\n\v\f\"'`<>@"), []string{
		"url=https://u:%s@h/\n", "{\"url\": \"https://u:%s@h/x\"}", "srv --es https://u:%s@h:1/ -v\n", "see https://u:%s@h/\n",
	}},
}

// FuzzGrammar puts a secret into every text of every grammar, in the form of that grammar: no part of it may remain.
func FuzzGrammar(f *testing.F) {
	for _, s := range []string{"", "a", "a b", `"`, "'", `\`, `a"b`, "it's ", `a\"b`, "}", "]", "{", "[(", "(", "# ", " #", "a]b\"", "=", ": ", ",x=", ";", "&", "//", "/", "|", "> ", "$(", "${x", "`", "***", "*** ", "-", "--", "!x ", "&x ", "<!--", "\n", "\n\n", "name=", "env", "\\n", "'''", `"""`, `\\`, "password="} {
		f.Add(s, "")
		f.Add("", s)
		f.Add(s, s)
		f.Add("x"+s+"y", "z")
	}
	f.Fuzz(func(t *testing.T, before, after string) {
		plant := before + canary + after
		if !utf8.ValidString(plant) || IsReference(strings.Trim(plant, "\\\"' \t\r\n")) || strings.Contains(plant, "LoginModule") {
			t.Skip() // a reference is not a secret, and login modules have their own tests
		}
		for _, g := range grammars {
			value, ok := g.write(plant)
			if !ok || !strings.Contains(value, canary) {
				continue
			}
			for _, text := range g.texts {
				text = strings.ReplaceAll(text, "%s", value)
				var m Mask
				if got := m.Text(text); strings.Contains(got, canary) {
					t.Errorf("%s: got\n%s\nof\n%s", g.name, got, text)
				} else if g.name == "properties" && strings.HasSuffix(text, "\nport=1\n") && !strings.Contains(plant, "<") && !strings.HasSuffix(got, "\nport=1\n") {
					t.Errorf("%s: the setting on the next line is gone: got\n%s\nof\n%s", g.name, got, text)
				}
			}
		}
		for _, args := range [][]string{
			{"srv", "--password", plant},
			{"srv", "--password=" + plant},
			{"env", "DB_PASSWORD=" + plant},
			{"srv", "--passwords", plant, "-v"},
			{"curl", "-u", "u:" + plant},
			{"curl", "-uu:" + plant},
			{"curl", "--user=u:" + plant},
			{"curl", "-H", "Authorization: " + plant},
			{"mysql", "-p" + plant},
			{"sh", "-c", "srv --password " + inShell(plant)},
			{"sh", "-c", "curl -u " + inShell("u:"+plant) + " h"},
			{"sh", "-c", "DB_PASSWORD=" + inShell(plant) + " srv"},
		} {
			var m Mask
			got := m.Command(args)
			assert.True(t, !strings.Contains(got, canary), "got %s of %q", got, args)
		}
	})
}

func BenchmarkText(b *testing.B) {
	var m Mask
	m.Add("kestrel-5519", "another one", "p/w +1", "0123456789abcdef0123456789abcdef")
	for _, bb := range []struct{ name, lines string }{
		{"JSON", `{"level":"info","@timestamp":"2026-11-23T02:00:00.000Z","logger":"request","message":"request ok","url":"/intake/v2/events","status":202}` + "\n"},
		{"Kafka", "[2026-11-23 02:00:00,123] INFO [GroupCoordinator 1]: Preparing to rebalance group g-17 in state PreparingRebalance with old generation 3 (__consumer_offsets-42) (reason: Adding new member consumer-g-17-1-8a7d8a9e with group instance id None; client reason: rebalance failed due to MemberIdRequiredException) (kafka.coordinator.group.GroupCoordinator)\n" +
			"[2026-11-23 02:00:01,456] INFO [ProducerStateManager partition=t-3] Wrote producer snapshot at offset 123456 with 0 producer ids in 2 ms. (org.apache.kafka.storage.internals.log.ProducerStateManager)\n"},
		{"secrets", "2026-11-23 02:00:00 INFO login of user=joe password=abc123 token=\"x y z\" from https://u:p@h/ ok\n\tssl.key.password = abcdef\n"},
	} {
		b.Run(bb.name, func(b *testing.B) {
			text := strings.Repeat(bb.lines, 1<<20/len(bb.lines))
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				m.Text(text)
			}
		})
	}
}

// Command lines, and the secrets of them in other texts. In hides.csv they are longer than what the mask must find.
func TestCommand(t *testing.T) {
	for _, file := range []string{"commands.csv", "hides.csv"} {
		for _, row := range testkit.CSV(t, "testdata/"+file) {
			name, want, line := row[0], row[1], row[2]
			t.Run(name, func(t *testing.T) {
				args := assert.Value(Split(line))(t)
				var m Mask
				got := m.Command(args)
				assert.True(t, !strings.Contains(got, canary) && (want == "" || got == want), "got  %s\nwant %s", got, want)
				whole, text := canary, strings.Join(args, " ")
				for _, more := range []string{"-" + canary, "--" + canary, "a " + canary, "a/" + canary, `a"` + canary} {
					if file == "hides.csv" && strings.Contains(text, more) {
						whole = more
					}
				}
				assert.True(t, !strings.Contains(text, canary) || !strings.Contains(m.Text("it says "+whole+" aloud"), canary),
					"the secret of the command line is not removed from other text")
			})
		}
	}
	assert.Equal(t, new(Mask).Command(nil), "", "no command")
}

// What is known of a login in an address is the whole and its password, and no word of a text behind the address.
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

const canary = "kestrel-9271"

// testHidden hides the texts of a file of testdata: == begins one with its name, | is a line of it and / a line without
// an end, text is one in quotation marks. keeps is a part that must stay readable.
func testHidden(t *testing.T, file string, secrets ...string) {
	t.Helper()
	data := assert.Value(os.ReadFile(filepath.Join("testdata", file)))(t)
	for _, part := range strings.Split("\n"+string(data), "\n== ")[1:] {
		name, lines, _ := strings.Cut(part, "\n")
		t.Run(name, func(t *testing.T) {
			text, keeps := "", []string(nil)
			for line := range strings.Lines(lines) {
				word, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
				if unquoted, err := strconv.Unquote(rest); err == nil && word != "|" && word != "/" {
					rest = unquoted
				}
				switch word {
				case "|":
					text += rest + "\n"
				case "/", "text":
					text += rest
				case "keeps":
					keeps = append(keeps, rest)
				}
			}
			got := new(Mask).Text(text)
			for _, one := range append(secrets, canary) {
				assert.True(t, text != "" && !strings.Contains(got, one), "a secret is left: got\n%s\nof\n%s", got, text)
			}
			for _, kept := range keeps {
				assert.True(t, strings.Contains(got, kept), "got\n%s\nof\n%s\nwant in it %q", got, text, kept)
			}
		})
	}
}

// Files and lines whose secret is hard to find.
func TestHostile(t *testing.T) {
	testHidden(t, "hostile.txt", base64.StdEncoding.EncodeToString([]byte("u:"+canary)))
}

// Forms of other programs' files, and of logs.
func TestForms(t *testing.T) { testHidden(t, "forms.txt") }

// Texts that repeat what the scanner looks for take no time that grows with a square.
func TestRepeatedTexts(t *testing.T) {
	for _, part := range []string{"[", "{", "a: [", "- ", "<a b='token' name='token'>\n", "password: |\n", "name=token\n'", "--password 'a\n", "passwords:\n- a\n# - b\n", "a=[\n", "? ", "!a\n", "<a>", "{\"a\":", "token: [\n", "x token='a\n", "token: [token: [", "curl ", "-u "} {
		s := scanner{t: strings.Repeat(part, testkit.Cases(128<<10, 32<<10)/len(part))}
		s.scan()
		assert.True(t, s.work <= 2*s.mostWork(), "%q: %d bytes of %d were looked at", part, s.work, len(s.t))
		got := s.found.hide(s.t)
		assert.True(t, strings.Count(got, "\n") >= strings.Count(s.t, "\n")/1000, "%q: got %.100q", part, got)
	}
}

// A secret is found however deep it is.
func TestNested(t *testing.T) {
	for _, tt := range []struct{ name, open, inside, closed string }{
		{"JSON, lists", "[", `"password=` + canary + `"`, "]"},
		{"JSON, maps", `{"a":`, `{"password":"` + canary + `"}`, "}"},
		{"XML", "<a>", "<password>" + canary + "</password>", "</a>"},
		{"YAML, tags", "!a ", "password: " + canary, ""},
		{"YAML, keys", "? ", "password: " + canary, ""},
		{"YAML, items on lines", "-\n", "password: " + canary, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, n := range []int{1, 64, 1000, 3000} {
				text := strings.Repeat(tt.open, n) + tt.inside + strings.Repeat(tt.closed, n)
				got := new(Mask).Text(text)
				assert.True(t, !strings.Contains(got, canary), "%d levels: got %.2000q", n, got)
			}
		})
	}
}
