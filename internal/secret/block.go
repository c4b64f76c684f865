package secret

import (
	"math"
	"regexp"
	"slices"
	"strings"
)

// A line of YAML, INI or TOML with a setting: what is before its name, the name
// with its quotes, the separator, the value.
var entry = regexp.MustCompile(`^([ \t]*(?:-[ \t]+)*)("[^"]*"|'[^']*'|[^\s"'#\[{\-][^:=#]*?|-[^\s:=#][^:=#]*?)([ \t]*(?::(?:[ \t]+|$)|=[ \t]*))(.*)$`)

// A section of INI or TOML. If it is indented, it may also be the vector of a
// function's arguments: see beginsSection.
var section = regexp.MustCompile(`^[ \t]*\[{1,2}[ \t]*([^\[\]]+?)[ \t]*\]{1,2}[ \t\r]*(?:[#;].*)?$`)

var (
	item = regexp.MustCompile(`^([ \t]*(?:-[ \t]+)*)`)
	// Names below which there are settings of all kinds.
	holdsMore = regexp.MustCompile(`(?i)(?:creds|credentials?|authorization|cookie|jaas)["']?$`)
	oldItem   = regexp.MustCompile(`^#+[ \t]*(?:-[ \t]|["'])`)
	// The name of a setting in a section, and a line of a section with one
	// word.
	plainKey = regexp.MustCompile(`^[\w.\-/@$ ]+$`)
	oneWord  = regexp.MustCompile(`^[^\s()\[\]{}"',;:#]+$`)
)

// beside are names next to a secret whose values are not secret.
var beside = []string{
	"user", "username", "user_name", "login", "name", "type", "kind", "realm", "scope", "scopes", "mechanism", "method", "url", "uri", "host", "hosts", "hostname", "port", "enabled", "provider", "algorithm", "profile", "region", "role", "roles", "principal", "required", "backend", "class", "expires", "ttl",
}

// A scope is the lines below a name.
type scope struct {
	indent int  // of the name; -1: of a section
	column int  // of a section's last setting: deeper lines continue it
	block  bool // all deeper lines are its text
	deeper bool // deeper lines continue its value
	mixed  bool // settings of all kinds: those beside a secret stay
	single bool // of one secret: settings about its use stay
}

// hideBlocks removes the secrets on lines below a secret's name: the text of
// "password: |", lists and values, alone or under other names, lines that
// continue a value, and sections of INI and TOML.
func hideBlocks(text string, name func(string) bool) string {
	var out strings.Builder
	var scopes []scope
	last := 0  // the indentation of the last line that is not a comment
	until := 0 // of text: the end of a section's setting whose value continues
	at := 0    // of text
	for line := range strings.Lines(text) {
		start := at
		at += len(line)
		body := strings.TrimSpace(line)
		indent := len(line) - len(strings.TrimLeft(line, " \t"))
		if body == "" {
			if len(scopes) == 0 || !scopes[len(scopes)-1].block {
				out.WriteString(line)
			}
			continue
		}
		if body[0] == '#' && (len(scopes) == 0 || !scopes[len(scopes)-1].block || indent <= scopes[len(scopes)-1].indent) {
			if len(scopes) > 0 && (oldItem.MatchString(body) || indent > last) {
				line = line[:indent] + "# " + Hidden + "\n"
			}
			out.WriteString(line)
			continue
		}
		last = indent
		head := section.FindStringSubmatch(strings.TrimRight(line, "\r\n"))
		for len(scopes) > 0 {
			s := scopes[len(scopes)-1]
			if s.indent < 0 && head == nil && (start < until || indent > s.column || inSection(line, body)) || s.indent >= 0 && (indent > s.indent || !s.block && !s.deeper && indent == s.indent && strings.HasPrefix(body, "- ")) {
				break
			}
			scopes = scopes[:len(scopes)-1]
		}
		g := entry.FindStringSubmatch(strings.TrimRight(line, "\r\n"))
		if len(scopes) > 0 {
			s := scopes[len(scopes)-1]
			if s.indent < 0 && g != nil && start >= until {
				until = valueEnd(text, start+len(g[1])+len(g[2])+len(g[3]))
				scopes[len(scopes)-1].column = indent
			}
			shown, more := below(s, line, body, g)
			if s.block {
				continue
			}
			if !more {
				out.WriteString(shown)
				continue
			}
		}
		switch {
		case head != nil && name(lastPart(head[1])) && (indent == 0 || beginsSection(text[at:])):
			scopes = append(scopes, scope{indent: -1, column: math.MaxInt, mixed: holdsMore.MatchString(head[1])})
		case g != nil && name(strings.Trim(g[2], `"'`)):
			s := scope{indent: len(g[1]), single: isSingle(g[2])}
			value := strings.TrimSpace(g[4])
			switch {
			case blockHead.MatchString(value):
				s.block = true
				line = g[1] + g[2] + g[3] + Hidden + "\n"
			case value == "" || value[0] == '#':
				s.mixed = holdsMore.MatchString(g[2])
				if value != "" { // a comment, or what looks like one
					line = g[1] + g[2] + g[3] + Hidden + "\n"
				}
			default:
				s.deeper, s.single = true, s.single && value[0] == '{'
			}
			if !strings.Contains(value, "LoginModule") && (value != "" || strings.Contains(g[3], ":")) {
				scopes = append(scopes, s)
			}
		}
		out.WriteString(line)
	}
	return out.String()
}

// beginsSection reports whether a setting follows an indented line in brackets,
// so that the line is a section's name.
func beginsSection(text string) bool {
	for line := range strings.Lines(text) {
		body := strings.TrimSpace(line)
		if body == "" || body[0] == '#' || body[0] == ';' {
			continue
		}
		g := entry.FindStringSubmatch(strings.TrimRight(line, "\r\n"))
		return g != nil && strings.Contains(g[3], "=") && inSection(line, body)
	}
	return false
}

// inSection reports whether a line belongs to the section above it: a comment,
// a setting, or one word. Any other line ends a section.
func inSection(line, body string) bool {
	if body[0] == ';' || oneWord.MatchString(body) {
		return true
	}
	g := entry.FindStringSubmatch(strings.TrimRight(line, "\r\n"))
	return g != nil && plainKey.MatchString(strings.Trim(g[2], `"'`))
}

// valueEnd returns the end in text of a value of several lines that begins at
// i: in brackets, or in three quotes.
func valueEnd(text string, i int) int {
	switch {
	case i >= len(text):
		return i
	case text[i] == '[' || text[i] == '{':
		return closed(text, i)
	case strings.HasPrefix(text[i:], `"""`) || strings.HasPrefix(text[i:], "'''"):
		return quoteEnd(text, i)
	}
	return i
}

// below returns a line of a scope as it may be shown; more is true if it must
// be treated like any other setting.
func below(s scope, line, body string, g []string) (shown string, more bool) {
	switch {
	case IsReference(strings.Trim(body, `-"' `)):
		return line, false
	case s.mixed && g != nil:
		key := strings.ToLower(strings.Trim(g[2], `"' `))
		value := strings.TrimSpace(g[4])
		if value == "" || slices.Contains(beside, key) || isLikelyName(key) || IsReference(strings.Trim(value, `"' `)) {
			return line, true
		}
		return g[1] + g[2] + g[3] + Hidden + "\n", false
	case s.single && !s.block && g != nil && isUse(g[2], g[4]):
		return line, false
	}
	return item.FindString(line) + Hidden + "\n", false
}

// lastPart returns the last word of a section's name, one.two or one "two".
func lastPart(name string) string {
	name = strings.Trim(name, `"' `)
	if i := strings.LastIndexAny(name, ". \"'"); i >= 0 && !isLikelyName(name) {
		return name[i+1:]
	}
	return name
}
