package secret

import (
	"regexp"
	"slices"
	"strings"
)

// What Log looks at around a line that names a secret.
const (
	linesBefore = 6
	linesBehind = 12
	mostNear    = 4 << 10  // bytes in which a name's value is looked for, and
	mostNames   = 8        // names among them: with more, all values there are hidden
	mostLooks   = 30       // likewise for all that is masked at once
	mostKey     = 32 << 10 // bytes between the first and the last line of a private key
)

var (
	keyBegin = regexp.MustCompile(`-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----`)
	keyEnd   = regexp.MustCompile(`-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----`)
	// A line of a private key, as far as it can be recognized alone.
	keyLine = regexp.MustCompile(`^\s*[A-Za-z0-9+/=]{16,}\s*$`)
	// A secret's name before a block of YAML, and one with nothing after it.
	blockName = lazily(`(?:^|[^\w.\-])(` + word + `)["']?[ \t]*:[ \t]*(?:[!&]\S*[ \t]+)*[|>][+\-0-9]*[ \t\r\n]*$`)
	emptyName = lazily(`^[ \t]*(?:-[ \t]+)*["']?(` + word + `)["']?[ \t]*:[ \t\r\n]*$`)
)

// Log returns lines of a program's output without their secrets: what Text removes,
// private keys, and near a line that names a secret, the text of its XML element, the
// value beside a name that is a value itself, and the lines below it that belong to
// it.
//
// It is weaker than Document, which takes a whole file for one text: there, a quote
// that a line of a log leaves open would hide all that follows.
func (m *Mask) Log(text string) string {
	text = hideKeys(text)
	lines := strings.SplitAfter(text, "\n")
	var out strings.Builder
	out.Grow(len(text))
	for lines = hideNear(lines); len(lines) > 0; lines = lines[1:] {
		line := strings.TrimSuffix(lines[0], "\n")
		out.WriteString(m.Text(line))
		out.WriteString(lines[0][len(line):])
	}
	return out.String()
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

// hideNear removes the secrets that are not on the line of their name, or whose name
// is that of an XML element.
func hideNear(lines []string) []string {
	var out []string // done
	looks := 0
	besides := 0 // the next lines whose values are all hidden
	for len(lines) > 0 {
		line := lines[0]
		if besides > 0 {
			besides--
			line = hideValues(line)
			lines[0] = line
		}
		if !lower(line).mayHave(wordStems) {
			out, lines = append(out, line), lines[1:]
			continue
		}
		// The patterns cost much more than what is looked for first.
		if strings.ContainsAny(line, "|>") && blockName().MatchString(line) || strings.HasSuffix(strings.TrimSpace(line), ":") && emptyName().MatchString(line) {
			out, lines = append(out, line), hideDeeper(line, lines[1:])
			continue
		}
		isPair := pairName().MatchString(line)
		if !isPair && !(strings.Contains(line, "<") && element().MatchString(line)) {
			out, lines = append(out, line), lines[1:]
			continue
		}
		behind, from := min(len(lines), 1+linesBehind), len(out)
		switch body := strings.TrimSpace(line); {
		case strings.HasPrefix(body, "{") && strings.HasSuffix(body, "}"):
			behind = 1 // an entry in JSON
		case isPair:
			from = max(0, from-linesBefore)
		case !strings.Contains(strings.Join(lines[:behind], ""), "</"):
			behind = 1 // what looks like an element
		}
		text := strings.Join(out[from:], "") + strings.Join(lines[:behind], "")
		if looks++; isPair && (looks > mostLooks || len(text) > mostNear || len(pairName().FindAllStringIndex(text, mostNames+1)) > mostNames) {
			if besides == 0 {
				for i := from; i < len(out); i++ {
					out[i] = hideValues(out[i])
				}
				line = hideValues(line)
			}
			besides = behind - 1
			out, lines = append(out, hideElements(line)), lines[1:]
			continue
		}
		near := strings.SplitAfter(hidePairs(hideElements(text)), "\n")
		if last := len(near) - 1; near[last] == "" {
			near = near[:last]
		}
		n := max(0, len(near)-(behind-1)) // continue behind the line
		out = append(out[:from], near[:n]...)
		lines = slices.Concat(near[n:], lines[behind:])
	}
	return out
}

// hideValues removes everything under the name of a value from a line.
func hideValues(line string) string {
	bare := strings.TrimRight(line, "\r\n")
	return hideBesides(elementValue.ReplaceAllString(bare, "${1}"+Hidden)) + line[len(bare):]
}

// hideDeeper removes the lines that belong to the name on the line before them.
func hideDeeper(name string, lines []string) []string {
	own := len(name) - len(strings.TrimLeft(name, " \t"))
	for i, line := range lines {
		body := strings.TrimSpace(line)
		indent := len(line) - len(strings.TrimLeft(line, " \t"))
		if body == "" {
			continue
		}
		if indent <= own {
			break
		}
		if !IsReference(body) {
			lines[i] = line[:indent] + Hidden + line[len(strings.TrimRight(line, "\r\n")):]
		}
	}
	return lines
}
