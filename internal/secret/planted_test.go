package secret

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

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
