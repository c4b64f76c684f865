package secret

import (
	"regexp"
	"strings"
)

var (
	// A key in PEM form, from its first line to its last or, if that is
	// missing, to the end.
	privateKey = lazily(`(?s)(` + keyBegin + `\s*)(.*?)(\s*` + keyEnd + `|\s*\z)`)
	// A login of Clojure's HTTP clients.
	pairOfWords = regexp.MustCompile(`(:(?:[\w\-]*-)?auth\s+)(\[(?:"(?:[^"\\]|\\.)*"|[^\]"])*\]?)`)
	// Riemann's streams that take a key without a name for it.
	positional = regexp.MustCompile(`(\((?:[\w.\-]+/)?(?:pagerduty|librato-metrics|opsgenie|victorops|boundary|campfire|pushover|keenio|hipchat|slack|stackdriver|datadog|logentries|netuitive|telegram)\s+)((?:"(?:[^"\\]|\\.)*"\s*)+)`)
	// A comment with what was an item of a list.
	oldItem     = regexp.MustCompile(`^#+[ \t]*(?:-[ \t]|["'])`)
	commentMark = regexp.MustCompile(`^(?:[#;!]+|//+)?[ \t]?`)
)

// Document returns a file for display, such as a server's configuration,
// without its secrets: private keys, the values of settings whose names say that they
// are secret, and in all other values what Text removes. It reads JSON, XML, YAML,
// properties, INI, TOML and the variables of a shell by their grammars, and only the
// values change. A file in another grammar, or with an error in it, is masked by the
// rule for any text, which hides more.
func (m *Mask) Document(text string) string {
	text = privateKey().ReplaceAllString(text, "${1}"+Hidden+"${3}")
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
	t.comments(comments)
	// What the grammar takes for names and marks may have a login or be a command line. The
	// variables of a command line are settings, which the tree has masked: hence level 1.
	return new(finder).flags(new(finder).logins(t.edits.apply(text)), 1)
}

// comments masks the comments of a file, which may be old settings.
func (t *tree) comments(all []span) {
	for len(all) > 0 {
		c, n := all[0], 1
		text := t.file[c.from:c.to]
		switch body, isXML := strings.CutPrefix(text, "<!--"); {
		case isXML:
			t.replace(c.from, c.to, "<!--"+hideWithin(strings.TrimSuffix(body, "-->"), t.depth)+"-->")
		case text[0] == '<':
			t.replace(c.from, c.to, hideFile(text))
		case t.isOldSecret(c):
			t.replace(c.from, c.to, "# "+Hidden)
		default:
			for !t.isBehind(c) && n < len(all) && strings.TrimSpace(t.file[all[n-1].to:all[n].from]) == "" && !t.isOldSecret(all[n]) {
				n++
			}
			t.commented(all[:n])
		}
		all = all[n:]
	}
}

// isBehind reports whether a comment is behind something else on its line: it is not one
// text with the comments below.
func (t *tree) isBehind(c span) bool {
	return strings.TrimSpace(t.file[strings.LastIndexByte(t.file[:c.from], '\n')+1:c.from]) != ""
}

// commented masks comments one below the other: without their marks they may be a file.
func (t *tree) commented(lines []span) {
	bodies := make([]string, len(lines))
	for i, c := range lines {
		text := t.file[c.from:c.to]
		bodies[i] = text[len(commentMark.FindString(text)):]
	}
	text := strings.Join(bodies, "\n")
	shown := hideFile(text)
	if t.depth < maxDepth {
		shown = hideDocument(text, t.depth+1)
	}
	if shown == text {
		return
	}
	var out strings.Builder
	i := 0
	for line := range strings.Lines(shown) {
		c := lines[min(i, len(lines)-1)]
		if i > 0 {
			out.WriteString(t.file[lines[0].to:lines[1].from])
		}
		out.WriteString(commentMark.FindString(t.file[c.from:c.to]) + strings.TrimSuffix(line, "\n"))
		i++
	}
	t.replace(lines[0].from, lines[len(lines)-1].to, out.String())
}

// isOldSecret reports whether a comment may be an old item of a block of secrets.
func (t *tree) isOldSecret(c span) bool {
	end := -1 // of the last block that begins before the comment
	for _, s := range t.secrets {
		if s.from <= c.from {
			end = max(end, s.to)
		}
	}
	if end < 0 {
		return false
	}
	for line := range strings.Lines(t.file[min(end, c.from):c.from]) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			return false // a setting is between them
		}
	}
	before := strings.TrimRight(t.file[:c.from], " \t\r\n")
	last := before[strings.LastIndexByte(before, '\n')+1:]
	column := c.from - strings.LastIndexByte(t.file[:c.from], '\n') - 1
	return oldItem.MatchString(t.file[c.from:c.to]) || column > indentation(last)
}

// hideFile masks a file whose grammar is not known.
func hideFile(text string) string {
	var f finder
	text = f.logins(f.loginModules(text))
	text = hideLines(hideNear(hideElements(text)), isLikelyName)
	text = f.matches(f.matches(text, pairOfWords, nil), positional, nil)
	return f.likely(text)
}

// hideLines masks the settings of lines of a text with secrets' names. All behind the name is
// the value.
func hideLines(text string, isSecret func(name string) bool) string {
	t := tree{file: text, depth: maxDepth}
	f := settingsFile{text, true}
	for at := 0; at < len(text); {
		n, next, ok := f.setting(at)
		if ok && isSecret(n.name) {
			t.secret(n)
			at = next
		} else {
			at += lineLength(text[at:]) + 1
		}
	}
	return t.edits.apply(text)
}
