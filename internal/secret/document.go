package secret

import (
	"regexp"
	"strings"
)

var (
	// A key in the form of PEM, from its first line to its last or, where that
	// is missing, to the end.
	privateKey = regexp.MustCompile(`(?s)(-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----).*?(-----END [A-Z0-9 ]*PRIVATE KEY-----|\z)`)
	// An element of XML whose name is a secret's: <password>it</password>.
	element = regexp.MustCompile(`(?is)(<([\w.:\-]*(?:` + names + `)[\w.\-]*)(?:\s[^<>]*)?>)([^<]+)(</)`)
	// The line above a block in YAML: "password: |".
	literal = regexp.MustCompile(`(?i)^([ \t]*(?:- )?["']?[\w.\-]*(?:` + names + `)["']?[ \t]*:[ \t]*)[|>][+\-0-9]*[ \t\r]*$`)
	// A word and its value with blanks between them, as in a login's file:
	// "machine h login u password p".
	spaced = regexp.MustCompile(`(?im)((?:^|[ \t])(?:password|passwd|secret)[ \t]+)([^\s=:]+)`)
)

// Document is a whole file for people, such as a server's configuration,
// without its secrets: what Text takes out, private keys, the texts of XML
// elements and blocks of YAML whose names say that they are secret.
func (m *Mask) Document(text string) string {
	text = privateKey.ReplaceAllString(text, "${1}\n"+Hidden+"\n${2}")
	text = hideBlocks(text)
	text = element.ReplaceAllString(text, "${1}"+Hidden+"${4}")
	text = spaced.ReplaceAllStringFunc(text, func(hit string) string {
		g := spaced.FindStringSubmatch(hit)
		if IsReference(g[2]) {
			return hit
		}
		return g[1] + Hidden
	})
	return m.Text(text)
}

// hideBlocks takes out the lines below "password: |" that are indented deeper.
func hideBlocks(text string) string {
	if !strings.ContainsAny(text, "|>") {
		return text
	}
	var out strings.Builder
	within := -1 // the indentation of the name whose block this is
	for line := range strings.Lines(text) {
		body := strings.TrimLeft(line, " \t")
		indent := len(line) - len(body)
		if within >= 0 && (indent > within || strings.TrimSpace(body) == "") {
			continue
		}
		within = -1
		if g := literal.FindStringSubmatch(strings.TrimRight(line, "\n")); g != nil {
			within = indent
			line = g[1] + Hidden + "\n"
		}
		out.WriteString(line)
	}
	return out.String()
}
