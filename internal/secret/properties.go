package secret

import (
	"regexp"
	"strconv"
	"strings"
)

var (
	// settingHead is a line up to its setting's value: words that declare a variable,
	// the name, what separates it from the value.
	settingHead = regexp.MustCompile(`^[ \t]*(?:-[ \t]+)*(?:(?i:export|set|setx|setenv|env|arg|local|declare|readonly|typeset|let|var|const|val|def|final|static)[ \t]+(?:-\w+[ \t]+)*)*(?:\$(?i:env:))?["']?((?:[\w.\-\[\]@/$%+*]|\\.)+)["']?([ \t]*(?:=>|[:+?]?=|:)[ \t]*|[ \t]+|[ \t]*$)`)
	// blockHead is the beginning of a block of YAML.
	blockHead = regexp.MustCompile(`^(?:[!&]\S*[ \t]+)*[|>][+\-0-9]*[ \t\r]*(?:#.*)?$`)
	// section is a section of INI or TOML.
	section = regexp.MustCompile(`^[ \t]*\[{1,2}[ \t]*([^\[\]]+?)[ \t]*\]{1,2}[ \t\r]*([#;].*)?$`)
	// spaced is a word and its value with blanks between them, as in a login's file:
	// "machine h login u password p".
	spaced = regexp.MustCompile(`(?i)((?:^|[ \t])(?:password|passwd|passphrase|secret)[ \t]+)([^\s=:]+)`)
	// passFile is a line of PostgreSQL's: host:port:database:user:password.
	passFile = regexp.MustCompile(`^([^\s:#]+:(?:\d+|\*):[^\s:]+:[^\s:]+:)([^\r\n]+)`)
)

// A settingsFile is read line by line.
type settingsFile struct {
	text string
	// open: a value in quotes or brackets ends where they do, as in TOML, HCL and shells;
	// otherwise they are ordinary characters, as in java.util.Properties.
	open bool
}

// readSettings reads a text in which each line has a setting, as files of properties, INI,
// TOML, systemd, Docker and of a shell's variables. Settings of a section are a table.
func readSettings(text string, open bool) (sections []node, comments []span, err error) {
	f := settingsFile{text, open}
	last := node{kind: table, block: true}
	for at := 0; at < len(text); {
		end := at + lineLength(text[at:])
		line := strings.TrimRight(text[at:end], " \t\r")
		body := strings.TrimLeft(line, " \t")
		from := at + len(line) - len(body)
		if body == "" {
			at = end + 1
			continue
		}
		if body[0] == '#' || body[0] == '!' || body[0] == ';' || strings.HasPrefix(body, "//") {
			comments = append(comments, span{from, at + len(line)})
			at = end + 1
			continue
		}
		if g := section.FindStringSubmatchIndex(line); g != nil {
			name := line[g[2]:g[3]]
			sections = append(sections, last, node{start: from, from: at + g[2], to: at + g[3], text: name, isName: true})
			last = node{kind: table, block: true, name: lastPart(name)}
			if g[4] >= 0 {
				comments = append(comments, span{at + g[4], at + len(line)})
			}
			at = end + 1
			continue
		}
		if g := passFile.FindStringSubmatchIndex(body); g != nil {
			last.below = append(last.below, node{name: "password", start: from, from: from + g[4], to: from + len(body), text: body[g[4]:]})
			at = end + 1
			continue
		}
		n, next, ok := f.setting(at)
		if !ok {
			return nil, nil, errGrammar
		}
		last.below = append(last.below, n)
		at = next
	}
	return append(sections, last), comments, nil
}

// setting reads the setting of the line at a position, and the lines that continue it.
func (f settingsFile) setting(at int) (n node, next int, ok bool) {
	line := f.text[at : at+lineLength(f.text[at:])]
	g := settingHead.FindStringSubmatchIndex(strings.TrimRight(line, "\r"))
	if g == nil {
		return n, 0, false
	}
	n.name = settingName(line[g[2]:g[3]])
	n.start, n.from = at+len(item.FindString(line)), at+g[1]
	n.to = n.from
	if n.from < len(f.text) && f.text[n.from-1] != '\n' {
		n.to = continuedLine(f.text, n.from)
	}
	by := strings.TrimSpace(line[g[4]:g[5]])
	if by == ":" && blockHead.MatchString(f.text[n.from:n.to]) {
		return n, 0, false // YAML with an error in it
	}
	whole := !f.open && isLikelyName(n.name) && !strings.Contains(n.name, ".") // a secret may continue on the next lines
	if (f.open || whole) && n.from < n.to {
		if end := partEnd(f.text, n.from); end > n.to {
			if whole {
				return n, 0, false
			}
			n.to = end + lineLength(f.text[end:])
		}
	}
	next = n.to + lineLength(f.text[n.to:]) + 1
	if isLikelyName(n.name) {
		// Deeper lines continue a secret, as in INI.
		for next < len(f.text) {
			deeper := f.text[next : next+lineLength(f.text[next:])]
			if strings.TrimSpace(deeper) == "" || indentation(deeper) <= indentation(line) {
				break
			}
			n.to = next + len(deeper)
			next = n.to + 1
		}
	}
	n.to = n.from + len(strings.TrimRight(f.text[n.from:n.to], " \t\r\n"))
	n.text = f.text[n.from:n.to]
	n.isWords = by == "" || by == ":" && strings.HasPrefix(n.text, "//")
	if by == "" {
		if at := spaced.FindStringSubmatchIndex(n.text); at != nil && !isLikelyName(n.name) {
			n.name, n.from, n.text, n.isWords = "password", n.from+at[4], n.text[at[4]:], false
		}
	}
	return n, next, true
}

var (
	index         = regexp.MustCompile(`^(.*)\[([^\[\]]*)\]$`)
	javaCharacter = regexp.MustCompile(`\\(u[0-9a-fA-F]{4}|.)`)
)

// settingName is a name without escapes, and without an index.
func settingName(s string) string {
	s = javaCharacter.ReplaceAllStringFunc(s, func(hit string) string {
		if code, err := strconv.ParseUint(hit[2:], 16, 16); err == nil && hit[1] == 'u' {
			return string(rune(code))
		}
		return hit[1:]
	})
	if g := index.FindStringSubmatch(s); g != nil {
		if s = g[1]; isLikelyName(g[2]) {
			s = g[2]
		}
	}
	return strings.Trim(s, ".")
}

// continuedLine is the end of the line at a position, with the lines that continue it.
func continuedLine(s string, i int) int {
	for end := i; ; end++ {
		end += lineLength(s[end:])
		text := strings.TrimRight(s[i:end], "\r")
		if (len(text)-len(strings.TrimRight(text, `\`)))%2 == 0 || end >= len(s) {
			return end
		}
	}
}

func indentation(line string) int { return len(line) - len(strings.TrimLeft(line, " \t")) }

// lastPart returns the last word of a section's name, one.two or one "two".
func lastPart(name string) string {
	name = strings.Trim(name, `"' `)
	if i := strings.LastIndexAny(name, ". \"'"); i >= 0 && !isLikelyName(name) {
		return name[i+1:]
	}
	return name
}
