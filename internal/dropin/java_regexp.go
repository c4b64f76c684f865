package dropin

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// JavaRegexp translates a regular expression of Java's to one of RE2 that matches the same. What RE2 does not have
// is an error that names it: some of it takes a time that grows with each byte. In names, which have no line ends,
// the point and $ stay as they are.
func JavaRegexp(text string, names bool) (string, error) {
	p := javaPattern{in: text, names: names}
	if strings.HasPrefix(text, "(?s)") {
		p.dotAll = true
	}
	for p.at < len(p.in) {
		if err := p.next(); err != nil {
			return "", err
		}
	}
	out := p.out.String()
	_, err := regexp.Compile(out)
	return out, err
}

// A javaPattern is an expression that is being translated.
type javaPattern struct {
	in     string
	at     int
	out    strings.Builder
	names  bool
	dotAll bool // (?s)
	fold   bool // (?i) somewhere
}

func lacks(what, form string) error { return fmt.Errorf("%s (%s) cannot be used here", what, form) }

// The sets of Java's escapes that RE2 does not have, or has with other characters.
const (
	javaVertical   = `\n\x0B\f\r\x{85}\x{2028}\x{2029}`
	javaHorizontal = ` \t\x{A0}\x{1680}\x{180E}\x{2000}-\x{200A}\x{202F}\x{205F}\x{3000}`
	javaSpace      = ` \t\n\x0B\f\r`
)

var javaSets = map[byte]string{'v': javaVertical, 'h': javaHorizontal, 's': javaSpace, 'd': "0-9", 'w': "0-9A-Z_a-z"}

// posixProperties are Java's names of sets that RE2 has by another form.
var posixProperties = map[string]string{
	"Lower": "lower", "Upper": "upper", "ASCII": "ascii", "Alpha": "alpha", "Digit": "digit", "Alnum": "alnum", "Punct": "punct",
	"Graph": "graph", "Print": "print", "Blank": "blank", "Cntrl": "cntrl", "XDigit": "xdigit", "Space": "space",
}

// next translates one element outside of brackets.
func (p *javaPattern) next() error {
	rest := p.in[p.at:]
	switch c := rest[0]; c {
	case '\\':
		return p.escape()
	case '[':
		return p.class()
	case '.':
		p.at++
		if p.names || p.dotAll {
			p.out.WriteByte('.')
		} else {
			p.out.WriteString(`[^\n\r\x{85}\x{2028}\x{2029}]`)
		}
	case '$':
		if !p.names {
			return lacks("the end of a line", "$; \\z is the end of the text")
		}
		p.at++
		p.out.WriteByte('$')
	case '(':
		return p.group()
	case '{':
		if !javaRepetition.MatchString(rest) {
			return errors.New("a brace that is no repetition: write \\{")
		}
		return p.repetition(javaRepetition.FindString(rest))
	case '*', '+', '?':
		return p.repetition(rest[:1])
	default:
		_, n := utf8.DecodeRuneInString(rest)
		p.out.WriteString(rest[:n])
		p.at += n
	}
	return nil
}

var javaRepetition = regexp.MustCompile(`^\{\d+(,\d*)?\}`)

// repetition copies how often an element is repeated.
func (p *javaPattern) repetition(text string) error {
	p.at += len(text)
	p.out.WriteString(text)
	if strings.HasPrefix(p.in[p.at:], "+") {
		return lacks("a possessive repetition", text+"+")
	}
	if strings.HasPrefix(p.in[p.at:], "?") {
		p.at++
		p.out.WriteByte('?')
	}
	return nil
}

// group copies the beginning of a group.
func (p *javaPattern) group() error {
	rest := p.in[p.at:]
	for _, l := range []struct{ form, what string }{
		{"(?=", "look-around"}, {"(?!", "look-around"}, {"(?<=", "look-around"}, {"(?<!", "look-around"}, {"(?>", "an atomic group"},
	} {
		if strings.HasPrefix(rest, l.form) {
			return lacks(l.what, l.form+"...)")
		}
	}
	n := 1
	if m := javaFlags.FindString(rest); m != "" {
		if strings.ContainsAny(m, "dmuxU") || strings.Contains(m, "s") && (p.at > 0 || m != "(?s)") {
			return lacks("a flag other than i, and s at the beginning", m)
		}
		p.fold = p.fold || strings.Contains(m, "i")
		n = len(m)
	}
	p.out.WriteString(rest[:n])
	p.at += n
	return nil
}

var javaFlags = regexp.MustCompile(`^\(\?[a-zA-Z-]+[:)]`)

// escape translates what begins with a backslash, outside of brackets.
func (p *javaPattern) escape() error {
	rest := p.in[p.at:]
	if strings.HasPrefix(rest, `\Q`) {
		text, _, ended := strings.Cut(rest[2:], `\E`)
		p.at += 2 + len(text)
		if ended {
			p.at += 2
		}
		p.out.WriteString(regexp.QuoteMeta(text))
		return nil
	}
	if len(rest) < 2 {
		return errors.New(`it ends in \`)
	}
	switch c := rest[1]; c {
	case 'R':
		p.out.WriteString(`(?:\r\n|[` + javaVertical + `])`)
	case 'b', 'B', 'A', 'z':
		if c|0x20 == 'b' && (!p.names || strings.HasPrefix(rest, `\b{`)) {
			return lacks("a boundary, which depends on Java's release", rest[:2])
		}
		p.out.WriteString(rest[:2])
	case 'Z', 'G', 'X', 'N', 'k', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		what := "a back reference"
		switch c {
		case 'Z':
			what = "an end before the last line end"
		case 'G':
			what = "the end of the match before"
		case 'X':
			what = "a grapheme"
		case 'N':
			what = "the name of a character"
		}
		return lacks(what, rest[:2])
	default:
		return p.setEscape(&p.out)
	}
	p.at += 2
	return nil
}

// setEscape translates an escape of a character or of a set, which may be in brackets.
func (p *javaPattern) setEscape(out *strings.Builder) error {
	rest := p.in[p.at:]
	c := rest[1]
	if set, ok := javaSets[c|0x20]; ok && unicode.IsLetter(rune(c)) {
		p.at += 2
		if c|0x20 == 'd' || c|0x20 == 'w' {
			out.WriteString(rest[:2]) // RE2 has the same
			return nil
		}
		negated := ""
		if c < 'a' {
			negated = "^"
		}
		out.WriteString("[" + negated + set + "]")
		return nil
	}
	if c == 'p' || c == 'P' {
		return p.property(out)
	}
	r, n, err := p.character()
	if err != nil {
		return err
	}
	if p.at += n; strings.ContainsRune("tnrfax", rune(c)) {
		out.WriteString(rest[:n]) // RE2 has the same
	} else if r < ' ' || r > '~' {
		fmt.Fprintf(out, `\x{%X}`, r)
	} else {
		out.WriteString(regexp.QuoteMeta(string(r)))
	}
	return nil
}

// property translates \p{NAME}.
func (p *javaPattern) property(out *strings.Builder) error {
	rest := p.in[p.at:]
	name, n := "", 3
	if len(rest) >= 3 {
		if name = rest[2:3]; name == "{" {
			name, _, _ = strings.Cut(rest[3:], "}")
			n = 4 + len(name)
		}
	}
	if n > len(rest) || name == "" {
		return fmt.Errorf("an open property %.20s", rest)
	}
	p.at += n
	if posix, ok := posixProperties[name]; ok {
		negated := ""
		if rest[1] == 'P' {
			negated = "^"
		}
		out.WriteString("[[:" + negated + posix + ":]]")
		return nil
	}
	form := `\` + rest[1:2] + "{" + strings.TrimPrefix(name, "Is") + "}"
	if _, err := regexp.Compile(form); err != nil {
		return lacks("a set of Java's", rest[:n])
	}
	out.WriteString(form)
	return nil
}

// character reads an escaped character, and returns the length of its escape.
func (p *javaPattern) character() (r rune, n int, err error) {
	rest := p.in[p.at:]
	wrong := fmt.Errorf("an escape that Java does not have: %.6s", rest)
	number := func(digits string, base, length int) (rune, int, error) {
		v, err := strconv.ParseUint(digits, base, 32)
		if err != nil || v > unicode.MaxRune {
			return 0, 0, wrong
		}
		return rune(v), length, nil
	}
	switch c := rest[1]; {
	case c == 'u':
		if len(rest) < 6 {
			return 0, 0, wrong
		}
		high, n, err := number(rest[2:6], 16, 6)
		if err != nil || !utf16.IsSurrogate(high) {
			return high, n, err
		}
		if len(rest) >= 12 && rest[6:8] == `\u` {
			if low, _, err := number(rest[8:12], 16, 6); err == nil && utf16.DecodeRune(high, low) != utf8.RuneError {
				return utf16.DecodeRune(high, low), 12, nil
			}
		}
		return 0, 0, lacks("half of a pair", rest[:6])
	case strings.HasPrefix(rest, `\x{`):
		digits, _, ok := strings.Cut(rest[3:], "}")
		if !ok {
			return 0, 0, wrong
		}
		return number(digits, 16, 4+len(digits))
	case c == 'x':
		if len(rest) < 4 {
			return 0, 0, wrong
		}
		return number(rest[2:4], 16, 4)
	case c == '0':
		n := 2
		for n < len(rest) && n < 5 && '0' <= rest[n] && rest[n] <= '7' && (n < 4 || rest[2] <= '3') {
			n++
		}
		return number(rest[2:n], 8, n)
	case c == 'c':
		if len(rest) < 3 {
			return 0, 0, wrong
		}
		return rune(rest[2] ^ 64), 3, nil
	}
	if i := strings.IndexByte("tnrfae", rest[1]); i >= 0 {
		return rune("\t\n\r\f\a\x1b"[i]), 2, nil
	}
	r, size := utf8.DecodeRuneInString(rest[1:])
	if r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
		return 0, 0, wrong
	}
	return r, 1 + size, nil
}

// class translates brackets. RE2 has neither brackets in brackets nor &&, so both are computed.
func (p *javaPattern) class() error {
	open := p.at
	negated := strings.HasPrefix(p.in[open:], "[^")
	set, nested, err := p.set()
	if err != nil {
		return err
	}
	if as := p.in[open:p.at]; !nested && !strings.Contains(as, `\`) {
		p.out.WriteString(as)
		return nil
	}
	if nested && p.fold {
		return lacks("brackets in brackets, and &&, after (?i)", "[...]")
	}
	if negated {
		p.out.WriteString("[^")
		set = without(set) // its own negation is undone, which keeps (?i) right
	} else {
		p.out.WriteByte('[')
	}
	if len(set) == 0 { // nothing
		p.out.WriteString(`^\x{0}-\x{10FFFF}`)
	}
	for _, r := range set {
		p.out.WriteString(bracketed(r.low))
		if r.high > r.low {
			p.out.WriteString("-" + bracketed(r.high))
		}
	}
	p.out.WriteByte(']')
	return nil
}

// bracketed is a character in brackets.
func bracketed(r rune) string {
	switch {
	case r < ' ' || r > '~':
		return fmt.Sprintf(`\x{%X}`, r)
	case strings.ContainsRune(`-[]^\&`, r):
		return `\` + string(r)
	}
	return string(r)
}

// A runes is a range of characters.
type runes struct{ low, high rune }

// set reads brackets, from the first to its last. nested says that they have brackets or && within.
func (p *javaPattern) set() (all []runes, nested bool, err error) {
	open := p.at
	p.at++
	negated := strings.HasPrefix(p.in[p.at:], "^")
	if negated {
		p.at++
	}
	var parts [][]runes // between the &&
	var part []runes
	for first := true; ; first = false {
		rest := p.in[p.at:]
		switch {
		case rest == "":
			return nil, false, fmt.Errorf("open brackets: %.20s", p.in[open:])
		case rest[0] == ']' && !first:
			p.at++
			if len(parts) > 0 && len(part) == 0 {
				return nil, false, errors.New("nothing after && in brackets")
			}
			all = part
			for _, other := range parts {
				all = without(union(without(all), without(other)))
			}
			if all = union(all, nil); negated {
				all = without(all)
			}
			return all, nested, nil
		case strings.HasPrefix(rest, "&&"):
			if len(part) == 0 {
				return nil, false, errors.New("nothing before && in brackets")
			}
			if p.at += 2; strings.HasPrefix(p.in[p.at:], "&") {
				return nil, false, lacks("a third &", "&&&")
			}
			parts, part, nested = append(parts, part), nil, true
		case rest[0] == '[':
			inner, _, err := p.set()
			if err != nil {
				return nil, false, err
			}
			part, nested = append(part, inner...), true
		default:
			item, err := p.item()
			if err != nil {
				return nil, false, err
			}
			part = append(part, item...)
		}
	}
}

// item reads a character, a range or an escape of a set in brackets.
func (p *javaPattern) item() ([]runes, error) {
	low, set, err := p.single()
	if err != nil || set != nil {
		return set, err
	}
	rest := p.in[p.at:]
	if len(rest) < 2 || rest[0] != '-' || rest[1] == ']' || rest[1] == '[' || strings.HasPrefix(rest[1:], "&&") {
		return []runes{{low, low}}, nil
	}
	p.at++
	high, set, err := p.single()
	if err != nil {
		return nil, err
	}
	if set != nil || high < low {
		return nil, fmt.Errorf("an invalid range %.10s in brackets", rest)
	}
	return []runes{{low, high}}, nil
}

// single reads a character in brackets, or the set of an escape.
func (p *javaPattern) single() (r rune, set []runes, err error) {
	rest := p.in[p.at:]
	if rest[0] != '\\' {
		r, n := utf8.DecodeRuneInString(rest)
		p.at += n
		return r, nil, nil
	}
	if len(rest) < 2 || strings.ContainsRune("QERbBAZGzXNk", rune(rest[1])) {
		return 0, nil, lacks("an escape in brackets", rest[:min(2, len(rest))])
	}
	if _, isSet := javaSets[rest[1]|0x20]; !isSet && rest[1]|0x20 != 'p' {
		r, n, err := p.character()
		p.at += n
		return r, nil, err
	}
	var form strings.Builder
	if err := p.setEscape(&form); err != nil {
		return 0, nil, err
	}
	tree, err := syntax.Parse(form.String(), syntax.Perl)
	if err != nil {
		return 0, nil, err
	}
	for i := 0; i+1 < len(tree.Rune); i += 2 {
		set = append(set, runes{tree.Rune[i], tree.Rune[i+1]})
	}
	return 0, set, nil
}

// union is the sorted union of sets, without overlaps.
func union(a, b []runes) (out []runes) {
	all := slices.Concat(a, b)
	slices.SortFunc(all, func(x, y runes) int { return int(x.low - y.low) })
	for _, r := range all {
		if n := len(out); n > 0 && r.low <= out[n-1].high+1 {
			out[n-1].high = max(out[n-1].high, r.high)
			continue
		}
		out = append(out, r)
	}
	return out
}

// without is all characters except those of a set.
func without(set []runes) (out []runes) {
	next := rune(0)
	for _, r := range union(set, nil) {
		if r.low > next {
			out = append(out, runes{next, r.low - 1})
		}
		next = r.high + 1
	}
	if next <= unicode.MaxRune {
		out = append(out, runes{next, unicode.MaxRune})
	}
	return out
}
