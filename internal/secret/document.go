package secret

import (
	"regexp"
	"strings"
)

var (
	// A key in PEM form, from its first line to its last or, if that is
	// missing, to the end.
	privateKey = regexp.MustCompile(`(?s)(-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----).*?(-----END [A-Z0-9 ]*PRIVATE KEY-----|\z)`)
	// The beginning of an element of XML whose name is a secret's.
	element = lazily(`<((?:[\w\-]+:)?` + word + `)(\s[^<>]*)?>`)
	// A setting whose name is the value of another: an environment variable in
	// a container's description, a property in XML.
	pairName = lazily(`(?i:\b(?:name|key|id|variable|property|option|param|setting)\\?["']?(?:\s*[:=]\s*|>\s*)\\?["']?)` + word)
	// The name of the value beside it.
	pairValue    = regexp.MustCompile(`(?i)\b(?:value|values|val|default|content|text|data)\b`)
	elementValue = regexp.MustCompile(`(?is)(<[\w:.\-]*(?:value|string|text|data|content|default)(?:\s[^<>]*)?>)[^<]+`)
	// The element after the name's, or before it.
	behind = regexp.MustCompile(`(?is)^["']?\s*</[\w:.\-]+>\s*<([\w:.\-]*(?:value|string|text|data|content|default))(?:\s[^<>]*)?>`)
	ahead  = regexp.MustCompile(`(?is)<([\w:.\-]+)[^<>]*>([^<>]*)</[\w:.\-]+>\s*<[^<>]*$`)
	// A word and its value with blanks between them, as in a login file:
	// "machine h login u password p".
	spaced = regexp.MustCompile(`(?im)((?:^|[ \t])(?:password|passwd|passphrase|secret)[ \t]+)([^\s=:]+)`)
	// A line of PostgreSQL's: host:port:database:user:password.
	passFile = regexp.MustCompile(`(?m)^([^\s:#]+:(?:\d+|\*):[^\s:]+:[^\s:]+:)([^\r\n]+)`)
	// A login of Clojure's HTTP clients.
	pairOfWords = regexp.MustCompile(`(:(?:[\w\-]*-)?auth\s+)(\[(?:"(?:[^"\\]|\\.)*"|[^\]"])*\]?)`)
	// Riemann's streams that take a key without a name for it.
	positional = regexp.MustCompile(`(\((?:[\w.\-]+/)?(?:pagerduty|librato-metrics|opsgenie|victorops|boundary|campfire|pushover|keenio|hipchat|slack|stackdriver|datadog|logentries|netuitive|telegram)\s+)((?:"(?:[^"\\]|\\.)*"\s*)+)`)
)

// Document returns a file for display, such as a server's configuration,
// without its secrets: what Text removes, private keys, the texts of XML
// elements, blocks, lists and maps whose names say that they are secret, values
// whose names are values themselves, and on a line with one setting all of its
// value, with the lines that continue it.
func (m *Mask) Document(text string) string {
	text = privateKey.ReplaceAllString(text, "${1}\n"+Hidden+"\n${2}")
	text = hideLoginModules(text, nil) // before its lines are examined one by one
	text = hideLogins(text, nil)
	text = hideElements(text)
	text = hidePairs(text)
	text = hideSettings(text, secretWord, true, nil)
	text = hideBlocks(text, isLikelyName)
	for _, re := range []*regexp.Regexp{spaced, passFile, pairOfWords, positional} {
		text = re.ReplaceAllStringFunc(text, func(hit string) string {
			g := re.FindStringSubmatch(hit)
			if IsReference(strings.Trim(g[2], `"'`)) || g[2] == Hidden {
				return hit
			}
			return g[1] + Hidden
		})
	}
	return m.Text(text)
}

// hideElements removes the contents of XML elements with secret names, and the
// values among their attributes.
func hideElements(text string) string {
	var out strings.Builder
	for {
		at := element().FindStringSubmatchIndex(text)
		if at == nil {
			break
		}
		name := text[at[2]:at[3]]
		out.WriteString(text[:at[2]] + hideSettings(text[at[2]:at[1]], pairValue, false, nil))
		empty := text[at[1]-2] == '/'
		text = text[at[1]:]
		if empty || isHarmless(name) {
			continue
		}
		end := strings.Index(text, "</"+name)
		if end < 0 {
			end = len(text)
		}
		if inside := strings.TrimSpace(text[:end]); inside != "" && !IsReference(inside) {
			out.WriteString(Hidden)
			text = text[end:]
		}
	}
	out.WriteString(text)
	return out.String()
}

// maxExamined limits the bytes that are examined to find pairs of names and
// values. In a file that needs more, all values with such a name are hidden.
const maxExamined = 4 << 20

// maxDistance is how far before its name an element's value is looked for.
const maxDistance = 8 << 10

// hidePairs removes values beside a secret's name, before or after it: in the
// same brackets, tag or item of a list.
func hidePairs(text string) string {
	known := [2]int{-1, -1} // the range examined last
	looked := 0             // bytes, weighted by their cost
	for pos := 0; pos < len(text); {
		at := pairName().FindStringIndex(text[pos:])
		if at == nil {
			break
		}
		from, to := pos+at[0], pos+at[1]
		pos = to
		if looked > maxExamined {
			text = elementValue.ReplaceAllString(text, "${1}"+Hidden)
			return hideBesides(text)
		}
		if g := behind.FindStringSubmatchIndex(text[to:]); g != nil {
			start := to + g[1]
			end := strings.Index(text[start:], "</"+text[to+g[2]:to+g[3]])
			if end < 0 {
				end = len(text) - start
			}
			if !IsReference(strings.TrimSpace(text[start : start+end])) {
				text = text[:start] + Hidden + text[start+end:]
			}
		}
		near := max(0, from-maxDistance)
		if tag := strings.LastIndexByte(text[near:from], '<'); tag >= 0 && !strings.Contains(text[near+tag:from], ">") {
			looked += from - near
			if g := ahead.FindStringSubmatchIndex(text[near:from]); g != nil && pairValue.MatchString(text[near+g[2]:near+g[3]]) {
				text = text[:near+g[4]] + Hidden + text[near+g[5]:]
				pos += len(Hidden) - (g[5] - g[4])
				continue
			}
		}
		begin, end := around(text, from)
		if start, stop := inElement(text, begin, end); start >= 0 && !strings.Contains(text[from:to], ">") {
			text = text[:start] + Hidden + text[stop:]
		}
		looked += (from - begin) / 16
		if begin == known[0] && end == known[1] {
			continue // another name in the same place
		}
		looked += end - begin
		hidden := hideBesides(text[begin:end])
		// The text before the name may be shorter now, so the search continues
		// further back; examining a name twice is harmless.
		if n := len(hidden) - (end - begin); n < 0 {
			pos = max(pos+n, begin+1)
		}
		text = text[:begin] + hidden + text[end:]
		known = [2]int{begin, begin + len(hidden)}
	}
	return text
}

// inElement returns the contents of the XML element whose tag is
// text[begin:end]; start is -1 if it is not a tag, or has no contents.
func inElement(text string, begin, end int) (start, stop int) {
	if text[begin] != '<' || end-begin < 3 || text[end-2] == '/' {
		return -1, 0
	}
	name := text[begin+1 : end-1]
	if i := strings.IndexAny(name, " \t\r\n"); i >= 0 {
		name = name[:i]
	}
	n := strings.Index(text[end:], "</"+name)
	if inside := text[end : end+max(n, 0)]; name == "" || strings.TrimSpace(inside) == "" || IsReference(strings.TrimSpace(inside)) {
		return -1, 0
	}
	return end, end + n
}

// hideBesides removes everything under the name of a value.
func hideBesides(text string) string {
	text = hideSettings(text, pairValue, true, nil)
	return hideBlocks(text, func(s string) bool { return s != "" && pairValue.FindString(s) == s })
}

// around returns the text that belongs to the setting at i: the same brackets
// or tag or, without these, the lines of the same item.
func around(text string, i int) (begin, end int) {
	depth := 0
	odd := map[bool]map[byte]bool{false: {}, true: {}} // of all quotes, and of those without a backslash
	outside := func() bool {
		for _, quotes := range odd {
			if quotes['"'] || quotes['\''] {
				return false
			}
		}
		return true
	}
	k := i - 1
	if k >= 0 && isQuote(text[k]) {
		k-- // the name's own
	}
	for ; k >= 0; k-- {
		switch c := text[k]; {
		case c == '"' || c == '\'':
			odd[false][c] = !odd[false][c]
			if k == 0 || text[k-1] != '\\' {
				odd[true][c] = !odd[true][c]
			}
		case c == '}' || c == ']':
			depth++
		case (c == '{' || c == '[') && depth > 0:
			depth--
		case c == '{' && outside() && (k == 0 || text[k-1] != '$'):
			return k, closed(text, k)
		case c == '<' && outside() && k+1 < len(text) && text[k+1] != '/' && depth == 0:
			for e := i; e < len(text); e++ {
				if isQuote(text[e]) {
					e = quoteEnd(text, e) - 1
				} else if text[e] == '>' {
					return k, e + 1
				}
			}
			return k, len(text)
		}
	}
	return itemLines(text, i)
}

// itemLines returns the lines of the YAML item, or the INI section, of the
// setting at i.
func itemLines(text string, i int) (begin, end int) {
	begin = strings.LastIndexByte(text[:i], '\n') + 1
	column := func(line string) (n int, first, stop bool) {
		n = len(item.FindString(line))
		bare := strings.TrimLeft(line, " \t")
		return n, strings.HasPrefix(bare, "- "), strings.HasPrefix(line, "[") && section.MatchString(line)
	}
	line := text[begin : begin+lineLength(text[begin:])]
	own, first, _ := column(line)
	for !first && begin > 0 {
		before := strings.LastIndexByte(text[:begin-1], '\n') + 1
		line := text[before : begin-1]
		n, item, stop := column(line)
		if strings.TrimSpace(line) != "" && n < own || stop {
			break
		}
		begin, first = before, item && n == own
	}
	end = i
	for {
		end += lineLength(text[end:])
		if end >= len(text) {
			return begin, len(text)
		}
		end++
		line := text[end : end+lineLength(text[end:])]
		n, item, stop := column(line)
		if strings.TrimSpace(line) != "" && (n < own || item && n == own || stop) {
			return begin, end
		}
	}
}
