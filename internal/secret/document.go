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
	// The line above a block in YAML, "password: |", or above a value or a list of
	// them that stands on lines of its own.
	literal = regexp.MustCompile(`(?i)^([ \t]*(?:- )?["']?[\w.\-]*(?:` + names + `)[\w\-]*["']?[ \t]*:[ \t]*)([|>][+\-0-9]*)?[ \t\r]*(?:#.*)?$`)
	// A line below one that names a setting of its own.
	named = regexp.MustCompile(`^[ \t]*(?:- +)*(?:"[^"]*"|'[^']*'|[^\s"'#\[{][^:#]*):(?:\s|$)`)
	item  = regexp.MustCompile(`^([ \t]*(?:- +)*)`)
	// A line that is one setting and nothing else: its value may hold commas,
	// blanks and all else that ends one within a text.
	wholeLine = regexp.MustCompile(`(?im)^([ \t]*(?:-[ \t]+|export[ \t]+|set[ \t]+)?["']?(?:[\w.\-]*(?:` + names + `)[\w\-]*` + tail + `|` + pass + `)["']?[ \t]*[=:][ \t]*)([^\s"'{\[|>][^\r\n]*?)(,?[ \t\r]*)$`)
	// A setting whose name and value are values themselves: an environment's
	// variable in a container's description, a property in XML.
	pair = regexp.MustCompile(`(?i)(\b(?:name|key)["']?(?:\s*[:=]\s*|>\s*)["']?[\w.\-]*(?:` + names + `)[\w.\-]*["']?(?:\s*,\s*|\s+|\s*</(?:name|key)>\s*<)["']?value["']?(?:\s*[:=]\s*|>))(` + inQuotes + `|[^\s<"'][^\r\n<]*)`)
	// A word and its value with blanks between them, as in a login's file:
	// "machine h login u password p".
	spaced = regexp.MustCompile(`(?im)((?:^|[ \t])(?:password|passwd|secret)[ \t]+)([^\s=:]+)`)
)

// Document is a whole file for people, such as a server's configuration,
// without its secrets: what Text takes out, private keys, the texts of XML
// elements, blocks and lists of YAML whose names say that they are secret, and
// on a line that is one setting all of its value.
func (m *Mask) Document(text string) string {
	text = privateKey.ReplaceAllString(text, "${1}\n"+Hidden+"\n${2}")
	text = hideLoginModules(text, nil) // before its lines are looked at one by one
	text = hideBlocks(text)
	text = element.ReplaceAllString(text, "${1}"+Hidden+"${4}")
	for _, re := range []*regexp.Regexp{pair, wholeLine, spaced} {
		text = re.ReplaceAllStringFunc(text, func(hit string) string {
			g := re.FindStringSubmatch(hit)
			if IsReference(strings.Trim(g[2], `"'`)) || strings.Contains(g[2], "LoginModule") || strings.TrimRight(g[2], ` \;`) == Hidden {
				return hit
			}
			return g[1] + Hidden + strings.Join(g[3:], "")
		})
	}
	return m.Text(text)
}

// hideBlocks takes out the lines below "password: |" that are indented deeper,
// and the values that stand below "passwords:", as items of a list or alone.
// Names below it, "credentials:" and then "user: u", are settings of their own.
func hideBlocks(text string) string {
	var out strings.Builder
	within := -1   // the indentation of the name whose block or values these are
	block := false // all that is indented deeper is its text
	for line := range strings.Lines(text) {
		body := strings.TrimSpace(line)
		indent := len(line) - len(strings.TrimLeft(line, " 	"))
		if within >= 0 {
			below := indent > within || !block && indent == within && strings.HasPrefix(body, "- ")
			switch {
			case block && (below || body == ""):
				continue
			case body == "", !block && body[0] == '#', below && IsReference(strings.Trim(body, `-"' `)):
				out.WriteString(line)
				continue
			case below && !block && !named.MatchString(line):
				out.WriteString(item.FindString(line) + Hidden + "\n")
				continue
			}
			within = -1
		}
		if g := literal.FindStringSubmatch(strings.TrimRight(line, "\n")); g != nil {
			within, block = indent, g[2] != ""
			if block {
				line = g[1] + Hidden + "\n"
			}
		}
		out.WriteString(line)
	}
	return out.String()
}
