package secret

import (
	"regexp"
	"strings"
)

// What is looked at around a line that names a secret.
const (
	linesBefore = 6
	linesBehind = 12
	mostKey     = 32 << 10 // bytes between the first and the last line of a private key
	mostElement = 4 << 10  // bytes of an element of XML with a secret
)

var (
	keyBegin = regexp.MustCompile(`-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----`)
	keyEnd   = regexp.MustCompile(`-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----`)
	// A line of a private key, as far as it can be recognized alone.
	keyLine = regexp.MustCompile(`^\s*[A-Za-z0-9+/=]{16,}\s*$`)
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
	lines := hideNear(strings.SplitAfter(hideElements(hideKeys(text)), "\n"))
	var out strings.Builder
	out.Grow(len(text))
	for _, line := range lines {
		body := strings.TrimSuffix(line, "\n")
		out.WriteString(m.Text(body))
		out.WriteString(line[len(body):])
	}
	return out.String()
}

// hideElements removes the contents of XML elements with secret names, and the values
// among their attributes. Of one without an end it removes the rest of the line.
func hideElements(text string) string {
	if !strings.Contains(text, "<") || !lower(text).mayHave(wordStems) {
		return text
	}
	var out strings.Builder
	for {
		at := secretElement().FindStringSubmatchIndex(text)
		if at == nil {
			break
		}
		name := text[at[2]:at[3]]
		out.WriteString(text[:at[2]] + hideSettings(text[at[2]:at[1]], pairValue, nil))
		empty := text[at[1]-2] == '/'
		text = text[at[1]:]
		if empty || isHarmless(name) {
			continue
		}
		end := strings.Index(text[:min(len(text), mostElement)], "</"+name)
		if end < 0 {
			end = lineLength(text)
		}
		if inside := strings.TrimSpace(text[:end]); inside != "" && !IsReference(inside) {
			out.WriteString(Hidden)
			text = text[end:]
		}
	}
	out.WriteString(text)
	return out.String()
}

// hideNear removes the secrets that are not on the line of their name, from lines with
// their ends.
func hideNear(lines []string) []string {
	done := 0 // lines that were made one
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
		if !pairName().MatchString(line) {
			continue
		}
		from, to := i, i+1
		for to < min(len(lines), i+1+linesBehind) && (!border.MatchString(lines[to]) || to == i+1 && strings.HasPrefix(strings.TrimSpace(lines[to]), "<")) {
			to++
		}
		if hideValues(line) == line { // its value is on another line
			for from > max(done, i-linesBefore) && !startsItem(lines[from]) {
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
			continue
		}
		shown := hideValues(text)
		if strings.Count(shown, "\n") == strings.Count(text, "\n") {
			for k := from; k < to; k++ {
				lines[k] = shown[:min(lineLength(shown)+1, len(shown))]
				shown = shown[len(lines[k]):]
			}
			continue
		}
		clear(lines[from:to])
		lines[i], done = shown, to
	}
	return strings.SplitAfter(strings.Join(lines, ""), "\n")
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

// hideValues removes everything under the name of a value from a line.
func hideValues(line string) string {
	bare := strings.TrimRight(line, "\r\n")
	return hideSettings(hideLines(elementValue.ReplaceAllString(bare, "${1}"+Hidden), valued), pairValue, nil) + line[len(bare):]
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

// hideKeys removes the private keys in PEM form, also the rest of one whose first or
// last line is missing.
func hideKeys(text string) string {
	if !strings.Contains(text, "PRIVATE KEY-----") {
		return text
	}
	var out strings.Builder
	for {
		begin := keyBegin.FindStringIndex(text)
		end := keyEnd.FindStringIndex(text)
		switch {
		case begin == nil && end == nil:
			out.WriteString(text)
			return out.String()
		case begin == nil || end != nil && end[0] < begin[0]: // the first line is missing
			from := strings.LastIndexByte(text[:end[0]], '\n') + 1
			for from > 0 {
				before := strings.LastIndexByte(text[:from-1], '\n') + 1
				if !keyLine.MatchString(text[before:from]) {
					break
				}
				from = before
			}
			out.WriteString(text[:from] + Hidden)
			text = text[end[0]:]
			end = keyEnd.FindStringIndex(text)
			out.WriteString(text[:end[1]])
			text = text[end[1]:]
		default:
			out.WriteString(text[:begin[1]])
			text = text[begin[1]:]
			end = keyEnd.FindStringIndex(text[:min(len(text), mostKey)])
			if end != nil {
				n := end[0]
				if strings.Contains(text[:n], "\n") {
					out.WriteString("\n" + Hidden + "\n")
				} else {
					out.WriteString(Hidden)
				}
				out.WriteString(text[n:end[1]])
				text = text[end[1]:]
				break
			}
			n := lineLength(text)
			for n < len(text) { // the last line is missing
				next := n + 1 + lineLength(text[n+1:])
				if !keyLine.MatchString(text[n+1 : next]) {
					break
				}
				n = next
			}
			out.WriteString(Hidden)
			text = text[n:]
		}
	}
}
