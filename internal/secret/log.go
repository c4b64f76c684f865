package secret

import (
	"regexp"
	"slices"
	"strings"
)

// What is looked at around a line that names a secret.
const (
	linesBefore = 6
	linesBehind = 12
	mostElement = 4 << 10  // bytes of an element of XML with a secret
	mostKey     = 32 << 10 // bytes between the first and the last line of a private key
)

const (
	keyBegin = `-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----`
	keyEnd   = `-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----`
	// A line of a private key, as far as it can be recognized alone.
	keyLine = `[ \t]*[A-Za-z0-9+/=]{16,}[ \t\r]*`
)

var (
	// The first and the last line of a private key; the lines of one that follow the first,
	// and those before the last.
	keyMark   = lazily(`(` + keyBegin + `)|` + keyEnd)
	keyBehind = lazily(`(?m)\A.*(?:\n` + keyLine + `$)*`)
	keyBefore = lazily(`(?m)(?:^` + keyLine + `\n)*.*\z`)
	// A secret's name before a block of YAML, and one with nothing after it.
	blockName = lazily(`(?:^|[^\w.\-])(` + word + `)["']?[ \t]*:[ \t]*(?:[!&]\S*[ \t]+)*[|>][+\-0-9]*[ \t\r\n]*(?:#.*)?\n?$`)
	emptyName = lazily(`^[ \t]*(?:-[ \t]+)*["']?(` + word + `)["']?[ \t]*:[ \t\r\n]*(?:#.*)?\n?$`)
	// The beginning of an element of XML whose name is a secret's.
	secretElement = lazily(`<((?:[\w\-]+:)?` + word + `)(\s[^<>]*)?>`)
	// A setting whose name is the value of another.
	pairName = lazily(`(?i:\b(?:name|key|id|variable|property|option|param|setting)\\?["']?(?:\s*[:=]\s*|>\s*)\\?["']?)` + word)
	// The name of the value beside it, and an element with one.
	pairValue    = regexp.MustCompile(`(?i)\b(?:value|values|val|default|content|text|data)\b`)
	elementValue = regexp.MustCompile(`(?is)(<[\w:.\-]*(?:value|string|text|data|content|default)(?:\s[^<>]*)?>)[^<]+`)
	// A value below its name.
	valueBelow = regexp.MustCompile(`(?i)^[ \t]*(?:-[ \t]+)*["']?(?:value|values|val|default|content|text|data)["']?[ \t]*:[ \t]*(?:[|>][+\-0-9]*)?[ \t\r\n]*$`)
	// A line at which another item or object begins or ends.
	border = regexp.MustCompile(`^\s*(?:-\s|[{}\[\]]|</?\w)`)
)

// Log returns lines of a program's output without their secrets: what Text removes,
// private keys, and near a line that names a secret, the text of its XML element, the
// value beside a name that is a value itself, and the lines below it that belong to
// it.
//
// It is weaker than Document, which takes a whole file for one text: there, a quote
// that a line of a log leaves open would hide all that follows.
func (m *Mask) Log(text string) string {
	if strings.Contains(text, "PRIVATE KEY") {
		text = hideKeys(text)
	}
	text = hideNear(hideElements(text))
	var out strings.Builder
	out.Grow(len(text))
	for line := range strings.Lines(text) {
		body := strings.TrimSuffix(line, "\n")
		out.WriteString(m.Text(body))
		out.WriteString(line[len(body):])
	}
	return out.String()
}

// hideKeys removes private keys: what is between the first line and the last, whatever a log
// has there, and the lines of a key that lacks one of them.
func hideKeys(text string) string {
	var e edits
	marks := keyMark().FindAllStringSubmatchIndex(text, -1)
	done := 0
	for i, g := range marks {
		next := len(text)
		if i+1 < len(marks) {
			next = marks[i+1][0]
		}
		isBegin := g[2] >= 0
		switch {
		case isBegin && i+1 < len(marks) && marks[i+1][2] < 0 && next-g[1] <= mostKey:
			body := strings.TrimSpace(text[g[1]:next])
			from := g[1] + strings.Index(text[g[1]:next], body)
			e.replace(from, from+len(body), Hidden)
			done = marks[i+1][1]
		case isBegin:
			done = g[1] + len(keyBehind().FindString(text[g[1]:next]))
			e.replace(g[1], done, Hidden)
		case done < g[1]:
			e.replace(g[0]-len(keyBefore().FindString(text[done:g[0]])), g[0], Hidden)
			done = g[1]
		}
	}
	return e.apply(text)
}

// hideElements removes the contents of XML elements with secret names, and the values
// among their attributes. Of one without an end it removes the rest of the line.
func hideElements(text string) string {
	if !strings.Contains(text, "<") || !lower(text).mayHave(wordStems) {
		return text
	}
	var e edits
	done := 0
	for _, g := range secretElement().FindAllStringSubmatchIndex(text, -1) {
		from, name := g[1], text[g[2]:g[3]]
		if g[0] < done || strings.HasSuffix(text[:g[0]], "<") && strings.HasPrefix(text[from:], ">") { // <<NAME>> is a placeholder
			continue
		}
		e.replace(g[3], from, new(finder).settings(text[g[3]:from], pairValue))
		if text[from-2] == '/' || isHarmless(name) {
			continue
		}
		n := strings.Index(text[from:min(len(text), from+mostElement)], "</"+name)
		if n < 0 {
			n = lineLength(text[from:])
		}
		if isPlain(strings.TrimSpace(text[from : from+n])) {
			done = from + n
			e.replace(from, done, Hidden)
		}
	}
	return e.apply(text)
}

// hideNear removes the secrets that are not on the line of their name.
func hideNear(text string) string {
	lines := strings.SplitAfter(text, "\n")
	for i, line := range lines {
		if !lower(line).mayHave(wordStems) {
			continue
		}
		// The patterns cost much more than what is looked for first.
		if strings.ContainsAny(line, "|>") && blockName().MatchString(line) || strings.Contains(line, ":") && emptyName().MatchString(line) {
			hideDeeper(lines, i)
		}
		if name := section.FindStringSubmatch(strings.TrimRight(line, "\r\n")); name != nil && isLikelyName(lastPart(name[1])) {
			hideSection(lines[i+1:])
		}
		if pairName().MatchString(line) {
			hidePair(lines, i)
		}
	}
	return strings.Join(lines, "")
}

// hidePair hides the values around a line with the name of their setting: behind it, or before
// it if none is on its line.
func hidePair(lines []string, i int) {
	from, to := i, i+1
	for to < min(len(lines), i+1+linesBehind) && (!border.MatchString(lines[to]) || to == i+1 && strings.HasPrefix(strings.TrimSpace(lines[to]), "<")) {
		to++
	}
	if hideValues(lines[i]) == lines[i] {
		for from > max(0, i-linesBefore) && !startsItem(lines[from]) {
			from--
		}
	}
	for k := from; k < to; k++ {
		if valueBelow.MatchString(lines[k]) {
			hideDeeper(lines, k)
		}
	}
	text := strings.Join(lines[from:to], "")
	if !pairValue.MatchString(text) && !strings.Contains(text, "<") {
		return
	}
	shown := slices.Collect(strings.Lines(hideValues(text)))
	clear(lines[from:to])
	copy(lines[to-len(shown):to], shown) // the lines of a value were made one
}

// startsItem reports whether a line begins an item, an object or an element.
func startsItem(line string) bool {
	body := strings.TrimSpace(line)
	return strings.HasPrefix(body, "- ") || strings.HasPrefix(body, "{") || strings.HasPrefix(body, "[")
}

// hideSection removes the settings of a section, up to the first line without one.
func hideSection(lines []string) {
	for i, line := range lines {
		body := strings.TrimRight(line, "\r\n")
		g := settingHead.FindStringSubmatch(body)
		switch trimmed := strings.TrimSpace(body); {
		case trimmed == "" || trimmed[0] == '#' || trimmed[0] == ';':
		case section.MatchString(body) || g == nil || !strings.Contains(g[0], "=") && i == 0:
			return
		default:
			lines[i] = item.FindString(body) + Hidden + line[len(body):]
		}
	}
}

// hideValues removes everything under the name of a value from a text.
func hideValues(text string) string {
	bare := strings.TrimRight(text, "\r\n")
	shown := elementValue.ReplaceAllString(bare, "${1}"+Hidden)
	return new(finder).settings(hideLines(shown, valued.MatchString), pairValue) + text[len(bare):]
}

// hideDeeper removes the lines that belong to the name on line i.
func hideDeeper(lines []string, i int) {
	own := indentation(lines[i])
	for i++; i < len(lines); i++ {
		body := strings.TrimSpace(lines[i])
		indent := indentation(lines[i])
		if body == "" || strings.HasPrefix(body, "{{") { // of a template
			continue
		}
		if indent < own || indent == own && !strings.HasPrefix(body, "- ") {
			break
		}
		if !IsReference(body) {
			head := item.FindString(lines[i])
			lines[i] = head + Hidden + lines[i][len(strings.TrimRight(lines[i], "\r\n")):]
		}
	}
}
