package secret

import (
	"regexp"
	"strings"
)

var (
	// A key in PEM form, from its first line to its last or, if that is
	// missing, to the end.
	privateKey = regexp.MustCompile(`(?s)(-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----\s*)(.*?)(\s*-----END [A-Z0-9 ]*PRIVATE KEY-----|\s*\z)`)
	// A login of Clojure's HTTP clients.
	pairOfWords = regexp.MustCompile(`(:(?:[\w\-]*-)?auth\s+)(\[(?:"(?:[^"\\]|\\.)*"|[^\]"])*\]?)`)
	// Riemann's streams that take a key without a name for it.
	positional = regexp.MustCompile(`(\((?:[\w.\-]+/)?(?:pagerduty|librato-metrics|opsgenie|victorops|boundary|campfire|pushover|keenio|hipchat|slack|stackdriver|datadog|logentries|netuitive|telegram)\s+)((?:"(?:[^"\\]|\\.)*"\s*)+)`)
	// A comment with what was an item of a list.
	oldItem = regexp.MustCompile(`^#+[ \t]*(?:-[ \t]|["'])`)
)

// Document returns a file for display, such as a server's configuration,
// without its secrets: private keys, the values of settings whose names say that they
// are secret, and in all other values what Text removes. It reads JSON, XML, YAML,
// properties, INI, TOML and the variables of a shell by their grammars, and only the
// values change. A file in another grammar, or with an error in it, is masked by the
// rule for any text, which hides more.
func (m *Mask) Document(text string) string {
	text = privateKey.ReplaceAllString(text, "${1}"+Hidden+"${3}")
	return m.hideKnown(hideDocument(text, 0))
}

// hideDocument masks a file; depth is how many files it is within.
func hideDocument(text string, depth int) string {
	t := tree{file: text, depth: depth}
	var comments []span
	if values, err := readJSON(text); err == nil {
		t.list(values)
	} else if root, remarks, err := readXML(text); err == nil {
		t.xml(root)
		comments = remarks
	} else if documents, remarks, err := readYAML(text); err == nil {
		t.list(documents)
		comments = remarks
	} else if sections, remarks, err := readSettings(text, false); err == nil {
		t.table(sections)
		comments = remarks
	} else if sections, remarks, err := readSettings(text, true); err == nil {
		t.table(sections)
		comments = remarks
	} else {
		return hideFile(text)
	}
	for _, c := range comments {
		t.comment(c)
	}
	return t.edited()
}

// comment masks a comment, which may be an old setting, or an old item of a list of
// secrets.
func (t *tree) comment(c span) {
	text := t.file[c.from:c.to]
	for _, s := range t.secrets {
		if c.from < s.from {
			continue
		}
		between := ""
		if c.from > s.to {
			between = t.file[s.to:c.from]
		}
		for line := range strings.Lines(between) {
			if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
				between = ""
				s.to = -1
				break
			}
		}
		before := strings.TrimRight(t.file[:c.from], " \t\r\n")
		last := before[strings.LastIndexByte(before, '\n')+1:]
		column := c.from - strings.LastIndexByte(t.file[:c.from], '\n') - 1
		if s.to >= 0 && (oldItem.MatchString(text) || column > indentation(last)) {
			t.replace(c.from, c.to, "# "+Hidden)
			return
		}
	}
	if body, ok := strings.CutPrefix(text, "<!--"); ok {
		t.replace(c.from, c.to, "<!--"+hideWithin(strings.TrimSuffix(body, "-->"), t.depth)+"-->")
		return
	}
	t.replace(c.from, c.to, hideFile(text))
}

// hideFile masks a file whose grammar is not known.
func hideFile(text string) string {
	text = hideLogins(hideLoginModules(text, nil), nil)
	text = strings.Join(hideNear(strings.SplitAfter(hideElements(text), "\n")), "")
	text = hideSettings(text, secretWord, true, nil)
	for _, re := range []*regexp.Regexp{pairOfWords, positional} {
		text = re.ReplaceAllStringFunc(text, func(hit string) string {
			g := re.FindStringSubmatch(hit)
			if IsReference(strings.Trim(g[2], `"'`)) || g[2] == Hidden {
				return hit
			}
			return g[1] + Hidden
		})
	}
	return hideLikely(text, nil)
}
