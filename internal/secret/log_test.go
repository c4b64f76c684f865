package secret

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp/syntax"
	"strings"
	"testing"
	"testing/iotest"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// Secrets on other lines than their names, and in XML and pairs, are not left in a log; the rest of the lines is.
func TestLog(t *testing.T) {
	const key = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC" + "kestrel5519"
	for _, tt := range []struct{ name, text, want string }{
		{"an element", "a <password>" + canary + "</password> b\n", "a <password>***</password> b\n"},
		{"an element on several lines", "<password>\n  " + canary + "\n</password>\nafter\n", "<password>***\n</password>\nafter\n"},
		{"what looks like an element", "usage: serve --token <token>\nafter\n", ""},
		{"a pair", `env {"name":"DB_PASSWORD","value":"` + canary + `"} read` + "\nafter\n", `env {"name":"DB_PASSWORD","value":***} read` + "\nafter\n"},
		{"an entry in JSON", `{"name":"DB_PASSWORD","value":"` + canary + `"}` + "\n" + `{"value":"harmless"}` + "\n", `{"name":"DB_PASSWORD","value":***}` + "\n" + `{"value":"harmless"}` + "\n"},
		{"a pair on several lines", "env:\n- name: DB_PASSWORD\n  value: " + canary + "\n- name: HOME\n  value: /root\nafter\n", "env:\n- name: DB_PASSWORD\n  value: ***\n- name: HOME\n  value: /root\nafter\n"},
		{"a pair, the value first", "{\n  \"value\": \"" + canary + "\",\n  \"name\": \"DB_PASSWORD\"\n}\nafter\n", ""},
		{"a block", "password: |\n  " + canary + "\n  more " + canary + "\nafter\n", "password: ***\nafter\n"},
		{"a block of an entry", "2026-11-23 INFO settings: password: |\n  " + canary + "\nafter\n", "2026-11-23 INFO settings: password: ***\nafter\n"},
		{"a value below its name", "  password:\n    " + canary + "\n  user: it\nafter\n", "  password:\n    ***\n  user: it\nafter\n"},
		{"a reference below its name", "password:\n  env:IT\nafter\n", "password:\n  env:IT\nafter\n"},
		{"a key", "-----BEGIN RSA PRIVATE KEY-----\n" + key + "\n" + key + "\n-----END RSA PRIVATE KEY-----\nafter\n", "-----BEGIN RSA PRIVATE KEY-----\n***\n-----END RSA PRIVATE KEY-----\nafter\n"},
		{"a key on one line", `pem="-----BEGIN PRIVATE KEY-----\n` + key + `\n-----END PRIVATE KEY-----\n"` + "\nafter\n", ""},
		{"a key without its end", "-----BEGIN PRIVATE KEY-----\n" + key + "\n" + key + "\nafter it\nafter\n", "-----BEGIN PRIVATE KEY-----***\nafter it\nafter\n"},
		{"a key without its beginning", "before it\n" + key + "\n" + key + "\n-----END PRIVATE KEY-----\nafter\n", "before it\n***\n-----END PRIVATE KEY-----\nafter\n"},
		{"a key with a foreign line", "-----BEGIN PRIVATE KEY-----\n" + key + "\n----- health check -----\n" + key + "\n-----END PRIVATE KEY-----\nafter\n", "-----BEGIN PRIVATE KEY-----\n***\n-----END PRIVATE KEY-----\nafter\n"},
		{"a key behind prefixes", "-----> -----BEGIN PRIVATE KEY-----\n-----> " + key + "\n-----> " + key + "\n-----> -----END PRIVATE KEY-----\nafter\n", "-----> -----BEGIN PRIVATE KEY-----\n*** -----END PRIVATE KEY-----\nafter\n"},
		{"a key before another one", "-----BEGIN PRIVATE KEY-----\n" + key + "\nbetween\n-----BEGIN PRIVATE KEY-----\n" + key + "\n-----END PRIVATE KEY-----\nafter\n", "-----BEGIN PRIVATE KEY-----***\nbetween\n-----BEGIN PRIVATE KEY-----\n***\n-----END PRIVATE KEY-----\nafter\n"},
		{"a last line far behind", "-----BEGIN PRIVATE KEY-----\n" + key + "\nafter it\n" + strings.Repeat(".\n", 17<<10) + "-----END PRIVATE KEY-----\nafter\n", ""},
		{"a key behind a whole one", "-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\nbefore it\n" + key + "\n-- " + key + "-----END PRIVATE KEY-----\nafter\n", "-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\nbefore it\n***-----END PRIVATE KEY-----\nafter\n"},
		{"a certificate", "-----BEGIN CERTIFICATE-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n-----END CERTIFICATE-----\n", "-----BEGIN CERTIFICATE-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n-----END CERTIFICATE-----\n"},
		{"an open quote", "invalid token 'abc\nafter\n", ""},
		{"what Text hides", "x password=" + canary + " y\nafter", "x password=*** y\nafter"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var m Mask
			got := m.Text(tt.text)
			if strings.Contains(got, canary) || strings.Contains(got, "kestrel5519") || strings.Contains(tt.text, "after") && !strings.Contains(got, "after") || tt.want != "" && got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// Very many names cost no more than few: values next to them are hidden without looking whose they are.
func TestLogOfManyNames(t *testing.T) {
	var m Mask
	for _, entry := range []string{
		"- name: DB_PASSWORD\n  value: " + canary + "\n",
		"{\n\"value\": \"" + canary + "\",\n\"name\": \"DB_PASSWORD\"\n},\n",
		"<property><name>token</name><value>" + canary + "</value></property>\n",
		"key=token value=\"" + canary + "\n",
	} {
		text := strings.Repeat(entry, testkit.Cases(32<<10, 8<<10)/len(entry))
		got := m.Text(text)
		assert.True(t, !strings.Contains(got, canary) && strings.Count(got, "\n") >= 100, "%q: got %.300q", entry, got)
	}
	line := `{"env":[` + strings.Repeat(`{"name":"DB_PASSWORD","value":"`+canary+`"},`, 150) + "]}\n"
	got := m.Text(line)
	assert.True(t, !strings.Contains(got, canary) && strings.Contains(got, "DB_PASSWORD"), "got %.300q", got)
}

// An again is a reader that returns a text again and again.
type again struct {
	text string
	left int // bytes
	at   int
}

func (r *again) Read(to []byte) (n int, err error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	n = copy(to[:min(len(to), r.left)], r.text[r.at:])
	r.at, r.left = (r.at+n)%len(r.text), r.left-n
	return n, nil
}

// A counter keeps nothing of what is written but its length, its secrets and its lines.
type counter struct {
	last                 string
	length, lines, leaks int
}

func (c *counter) Write(data []byte) (int, error) {
	text := c.last + string(data)
	c.leaks += strings.Count(text, canary)
	c.lines += strings.Count(string(data), "\n")
	c.length += len(data)
	c.last = text[max(0, len(text)-len(canary)+1):]
	return len(data), nil
}

// A long log is masked in pieces, wherever they end, and only a few of them are held.
func TestCopy(t *testing.T) {
	var m Mask
	m.Add(canary, "-----BEGIN KEY-----\n"+canary+"\n-----END KEY-----")
	const all = 16 * piece
	for _, tt := range []struct {
		name, text, masked string
	}{
		{"lines", "a line with " + canary + " and more\n", "a line with *** and more\n"},
		{"blocks", "entry\n  password: |\n    kestrel-92\n    -71 x\n", "entry\n  password: ***\n"},
		{"items", "tokens:\n- a1b2c3\n- d4e5f6\nend\n", "tokens:\n- ***\n- ***\nend\n"},
		{"continued lines", "a.password=x\\\nkestrel-92\\\n71\nend\n", "a.password=***\nend\n"},
		{"keys", "-----BEGIN PRIVATE KEY-----\n" + strings.Repeat("kestrel/9271/plain, no base64\n", 300) + "-----END PRIVATE KEY-----\nend\n", "-----BEGIN PRIVATE KEY-----\n***\n-----END PRIVATE KEY-----\nend\n"},
		{"no line ends", "word " + canary + " ", "word *** "},
		{"nothing but values", canary, Hidden},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := all / len(tt.text)
			var got counter
			assert.OK(t, m.Copy(&got, &again{text: tt.text, left: n * len(tt.text)}))
			assert.True(t, got.leaks <= 0 && got.lines == n*strings.Count(tt.masked, "\n") && (len(tt.masked) <= len(Hidden) || got.length == n*len(tt.masked)),
				"got %d bytes in %d lines with %d secrets, want %d in %d",
				got.length, got.lines, got.leaks, n*len(tt.masked), n*strings.Count(tt.masked, "\n"))
		})
	}
	err := m.Copy(io.Discard, iotest.ErrReader(io.ErrClosedPipe))
	assert.True(t, errors.Is(err, io.ErrClosedPipe), "got %v from a reader that fails", err)
}

// No part of a known secret remains at the end of a line that was cut.
func TestWithoutCut(t *testing.T) {
	var m Mask
	m.Add("kestrel-5519-kes", "9-kestrels")
	for _, tt := range []struct{ line, want string }{
		{"a line of 30 bytes, kestrel-55", "a line of 30 bytes, ***"},
		{"a line of 30 byte, kestrel-5519-kes", "a line of 30 byte, ***"},
		{"a line of 31 bytes: kestrel-5519-kes!", "a line of 31 bytes: ***!"},
		{"a line of more than 30 bytes, k", "a line of more than 30 bytes, ***"},
		{"a line of 30 bytes, and no more", "a line of 30 bytes, and no more"},
		{"kestrel-55", "kestrel-55"}, // it was not cut
	} {
		assert.Equal(t, m.WithoutCut(tt.line, 30), tt.want, "%q", tt.line)
	}
}

// texts returns the shortest texts that match each branch of a pattern, with the first character of each class.
func texts(t *testing.T, re *syntax.Regexp) []string {
	t.Helper()
	switch re.Op {
	case syntax.OpLiteral:
		return []string{strings.ToLower(string(re.Rune))}
	case syntax.OpCharClass:
		return []string{string(re.Rune[0])}
	case syntax.OpConcat:
		out := []string{""}
		for _, sub := range re.Sub {
			var longer []string
			for _, begin := range out {
				for _, end := range texts(t, sub) {
					longer = append(longer, begin+end)
				}
			}
			out = longer
		}
		return out
	case syntax.OpAlternate:
		var out []string
		for _, sub := range re.Sub {
			out = append(out, texts(t, sub)...)
		}
		return out
	case syntax.OpQuest:
		return append([]string{""}, texts(t, re.Sub[0])...)
	case syntax.OpCapture:
		return texts(t, re.Sub[0])
	}
	t.Fatalf("%s: this operator is not known here", re)
	return nil
}

// Every name of a secret, and what else begins one, has three characters of the marks, so that the scanner looks at it.
func TestMarks(t *testing.T) {
	re := assert.Value(syntax.Parse(names, syntax.Perl))(t)
	all := append(texts(t, re), `a_pw=`, `pw: `, `"pw"`, `'pw'`, `dbpass`, `p\u0061`, `p\x61s`, ` -u `, ` --user`, ` --login`, ` --proxy-user`, `x://`, `x:\/\/`, `x\://`, `bearer`, `apikey`, `basic`, `loginmodule`, `?sig=`, `?code=`, `?key=`, `x_auth`)
	for _, program := range loginPrograms {
		all = append(all, program+" ")
	}
	for program := range passwordFlags {
		all = append(all, program+" ")
	}
	streams := withKey.String()
	streams = streams[strings.Index(streams, "pager"):]
	for stream := range strings.SplitSeq(streams[:strings.Index(streams, ")")], "|") {
		all = append(all, "("+stream, "(x/"+stream)
	}
	for _, text := range all {
		found := false
		for i := 2; i < len(text); i++ {
			gram := int(text[i-2]&31)<<10 | int(text[i-1]&31)<<5 | int(text[i]&31)
			found = found || marks[gram>>6]>>(gram&63)&1 != 0
		}
		assert.True(t, found, "%q has no mark", text)
	}
	assert.True(t, len(all) >= 200, "only %d texts", len(all))
}

// A planter writes random files with secrets in their values, names, section heads and comments.
type planter struct {
	*rand.Rand
	n int // settings so far, so that names differ
}

func (p *planter) one(of ...string) string { return of[p.IntN(len(of))] }

// name is a name without a secret, of a setting that is not secret.
func (p *planter) name() string {
	p.n++
	return fmt.Sprintf("%s%d", p.one("port", "a.b", "host_", "x-y"), p.n)
}

// of is a secret's name.
func (p *planter) of() string {
	p.n++
	return fmt.Sprintf("%s%d_%s", p.one("db", "es.", "A"), p.n, p.one("password", "token", "api_key"))
}

// login is a text with a login in it, also for a name.
func (p *planter) login() string {
	return p.one("https://u:", "http://", "amqp://some:") + canary + p.one("@h", "@h.x:1/", "@h/a?b=c")
}

// text is a value under a name that says nothing.
func (p *planter) text() string {
	return p.one("1", "true", "some words", p.login(), "curl -u u:"+canary+" h", "mysql -p"+canary+" db", "srv --password "+canary+" -v")
}

// setting is a line of a file of settings, or of a comment.
func (p *planter) setting(sign string) string {
	if p.IntN(2) == 0 {
		return p.of() + sign + canary
	}
	return p.name() + sign + p.text()
}

// comment is one or more comments below each other.
func (p *planter) comment(indent, mark, sign string) string {
	var out strings.Builder
	for range 1 + p.IntN(3) {
		out.WriteString(indent + mark + " " + p.one("old", "see below", p.setting(sign), p.setting(sign), p.login()) + "\n")
	}
	return out.String()
}

// behind is what may be behind a setting on its line.
func (p *planter) behind(mark string) string {
	return p.one("", "", " "+mark+" old", " "+mark+" "+p.of()+"="+canary, " "+mark+" "+p.login()) + "\n"
}

// yaml writes settings at an indentation.
func (p *planter) yaml(indent string) string {
	var out strings.Builder
	for range 1 + p.IntN(4) {
		if p.IntN(3) == 0 {
			out.WriteString(p.comment(p.one(indent, indent, ""), "#", ": "))
		}
		out.WriteString(indent)
		switch p.IntN(9) {
		case 0:
			out.WriteString(p.of() + ": " + p.one(canary, "abc") + p.behind("#"))
		case 1:
			out.WriteString(p.name() + ": " + p.text() + p.behind("#"))
		case 2:
			out.WriteString(p.of() + ": |" + p.behind("#") + indent + "  " + canary + "\n" + indent + "  " + canary + "\n")
		case 3:
			out.WriteString(p.of() + "s:" + p.behind("#") + indent + "- " + canary + p.behind("#") + p.comment(indent, "#", ": ") + indent + "- b" + p.behind("#"))
		case 4:
			out.WriteString(`"` + p.login() + `": 1` + p.behind("#"))
		case 5:
			out.WriteString(p.name() + ": {" + p.of() + ": " + canary + ", b: 1}" + p.behind("#"))
		case 6:
			out.WriteString(p.name() + ": |\n" + indent + "  " + p.setting("=") + "\n" + indent + "  # " + p.setting("=") + "\n")
		case 7:
			out.WriteString(p.name() + `: "` + p.text() + `"` + p.behind("#"))
		default:
			if len(indent) > 6 {
				out.WriteString(p.name() + ": 1\n")
				continue
			}
			out.WriteString(p.name() + ":" + p.behind("#") + p.yaml(indent+"  "))
		}
	}
	return out.String()
}

// lines writes properties, INI and lines of a shell.
func (p *planter) lines() string {
	var out strings.Builder
	sign := p.one("=", " = ", ": ", " ")
	for range 1 + p.IntN(6) {
		switch p.IntN(7) {
		case 0:
			out.WriteString(p.comment("", p.one("#", ";", "!"), sign))
		case 1:
			out.WriteString(p.login() + "\n")
		case 2:
			out.WriteString(`[` + p.one("a", `url "`+p.login()+`"`, p.login()) + `]` + p.behind("#"))
		case 3:
			out.WriteString(p.one("mysql -uroot -p"+canary+" db", "redis-cli -a "+canary, "export "+p.of()+"="+canary, "docker login -u u -p "+canary+" h") + "\n")
		case 4:
			out.WriteString(p.of() + sign + `\` + "\n  " + canary + "\n")
		default:
			out.WriteString(p.setting(sign) + p.behind("#"))
		}
	}
	return out.String()
}

// json makes a value that is written as JSON.
func (p *planter) json(depth int) any {
	switch n := p.IntN(6); {
	case n < 3 && depth < 4:
		out := map[string]any{}
		for range 1 + p.IntN(3) {
			switch p.IntN(3) {
			case 0:
				out[p.of()] = p.one(canary, "a "+canary)
			case 1:
				out[p.login()] = p.json(depth + 1)
			default:
				out[p.name()] = p.json(depth + 1)
			}
		}
		return out
	case n == 3 && depth < 4:
		return []any{p.json(depth + 1), "--password", canary, p.json(depth + 1)}
	case n == 4:
		text, _ := json.Marshal(map[string]any{p.of(): canary, p.login(): p.text()})
		return string(text)
	}
	return p.text()
}

// xml writes elements.
func (p *planter) xml(depth int) string {
	var out strings.Builder
	for range 1 + p.IntN(3) {
		switch p.IntN(6) {
		case 0:
			out.WriteString("<password>" + canary + "</password>\n")
		case 1:
			out.WriteString(`<a url="` + p.login() + `" token='` + canary + "'/>\n")
		case 2:
			out.WriteString("<!-- " + p.one("old", p.of()+"="+canary, "<token>"+canary+"</token>", p.login()) + " -->")
		case 3:
			out.WriteString("<name>" + p.of() + "</name><!-- x --><value>" + canary + "</value>\n")
		case 4:
			out.WriteString("<b>" + p.text() + "</b>")
		default:
			if depth < 4 {
				out.WriteString("<c>" + p.xml(depth+1) + "</c>")
			}
		}
	}
	return out.String()
}

// log writes lines of a log.
func (p *planter) log() string {
	var out strings.Builder
	for range 1 + p.IntN(6) {
		out.WriteString(p.one("", "2026-11-23 02:00:00,123 INFO ", "[main] ", `{"level":"info","message":"`, "ERROR: it's ", "a=1 b=\"x y\" "))
		out.WriteString(p.one(
			"logged in with "+p.setting(p.one("=", ": ", "=\"", ": '")), p.of()+"=\""+canary+"\" done", "Authorization: Bearer "+canary, "GET /x?"+p.of()+"="+canary+"&n=1 200", "-D"+p.of()+"="+canary+" -Xmx1g",
			`{"`+p.of()+`":"`+canary+`","n":1}`, `\"`+p.of()+`\":\"`+canary+`\"`, "<"+p.one("password", "token")+">"+canary, p.text(), p.login(), "Cookie: a=1; b="+canary, "env "+p.of()+"='a "+canary+"' srv", "--"+p.one("password", "api-key")+" "+canary+" -v"))
		out.WriteString(p.one("\n", " (done)\n", "\r\n"))
	}
	return out.String()
}

// No secret is left in random files and logs, wherever the settings and comments with them are.
func FuzzPlanted(f *testing.F) {
	for seed := range testkit.Cases(500, 60) {
		f.Add(uint64(seed))
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		p := &planter{Rand: rand.New(rand.NewPCG(seed, 1))}
		text, _ := json.MarshalIndent(map[string]any{p.name(): p.json(0), p.login(): 1}, "", p.one("", "  "))
		for _, form := range []struct{ name, text string }{
			{"YAML", p.yaml("")}, {"settings", p.lines()}, {"JSON", string(text)}, {"XML", "<x>" + p.xml(0) + "</x>"}, {"log", p.log()},
		} {
			got := new(Mask).Text(form.text)
			assert.Must(t, !strings.Contains(got, canary), "seed %d, %s: got\n%s\nof\n%s", seed, form.name, got, form.text)
		}
	})
}
