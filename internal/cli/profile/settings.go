package profile

import (
	"encoding/json"
	"fmt"
	"strings"

	"carronade/internal/layout"
)

// columns is the width of the comments and of long values in a workload file.
const columns = 80

// A setting is a line of a workload file, with comments before it that say where its value
// came from.
type setting struct {
	name  string
	value string
	list  []string // instead of a value
	parts [][]setting
	about []string
}

// A plan is a workload as settings, in the order of the file.
type plan struct {
	head     []string // comments at the top
	settings []setting
}

func (p *plan) set(name, value string, about ...string) {
	p.settings = append(p.settings, setting{name: name, value: value, about: about})
}

func (p *plan) setList(name string, list []string, about ...string) {
	p.settings = append(p.settings, setting{name: name, list: list, about: about})
}

// note adds a comment that belongs to no setting.
func (p *plan) note(about ...string) {
	p.settings = append(p.settings, setting{about: about})
}

// value returns the value of a setting, "" if there is none.
func (p *plan) value(name string) string {
	for _, s := range p.settings {
		if s.name == name {
			return s.value
		}
	}
	return ""
}

// without returns the plan without some settings.
func (p *plan) without(names ...string) *plan {
	out := &plan{head: p.head}
	for _, s := range p.settings {
		drop := false
		for _, n := range names {
			drop = drop || s.name == n
		}
		if !drop {
			out.settings = append(out.settings, s)
		}
	}
	return out
}

// text writes the workload file.
func (p *plan) text() string {
	var b strings.Builder
	comments(&b, "", p.head)
	for _, s := range p.settings {
		comments(&b, "", s.about)
		switch {
		case s.name == "":
		case s.parts != nil:
			fmt.Fprintf(&b, "%s:\n", s.name)
			for _, part := range s.parts {
				var pairs []string
				for _, q := range part {
					pairs = append(pairs, q.name+": "+scalar(q.value))
				}
				fmt.Fprintf(&b, "- {%s}\n", strings.Join(pairs, ", "))
			}
		case s.list != nil:
			fmt.Fprintf(&b, "%s:\n", s.name)
			for _, v := range s.list {
				fmt.Fprintf(&b, "- %s\n", scalar(v))
			}
		case len(s.name)+2+len(s.value) > columns && strings.Contains(s.value, ","):
			fmt.Fprintf(&b, "%s: >-\n", s.name)
			for _, line := range layout.Wrap(strings.ReplaceAll(s.value, ",", ", "), columns-2) {
				fmt.Fprintf(&b, "  %s\n", line)
			}
		default:
			fmt.Fprintf(&b, "%s: %s\n", s.name, scalar(s.value))
		}
	}
	return b.String()
}

func comments(b *strings.Builder, indent string, about []string) {
	for _, text := range about {
		for _, line := range layout.Wrap(layout.Clean(text), columns-2-len(indent)) {
			fmt.Fprintf(b, "%s# %s\n", indent, line)
		}
	}
}

// scalar writes a value of YAML: plain if nothing in it has a meaning, else in quotes.
func scalar(v string) string {
	plain := v != "" && strings.Trim(v, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:()+") == "" && !strings.HasSuffix(v, ":") && !strings.HasPrefix(v, "-") && !strings.Contains(v, ": ")
	if plain {
		return v
	}
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // a string
	}
	return strings.ReplaceAll(string(text), "\u0085", `\u0085`) // JSON takes it for a character, YAML 1.1 for the end of a line
}
