package secret

import (
	"regexp"
	"strings"
)

// nextSetting is the beginning of another setting, where a value ends.
var nextSetting = regexp.MustCompile(`^[\w.\-]+\\?["']?[ \t]*[=:]`)

// headers are names whose value extends to the end of the line.
var headers = regexp.MustCompile(`(?i)(?:authorization|cookie)$`)

// settings hides the values of settings whose names match.
func (f *finder) settings(s string, name *regexp.Regexp) string {
	var e edits
	for pos := 0; pos < len(s); {
		at := name.FindStringIndex(s[pos:])
		if at == nil {
			break
		}
		from, to := pos+at[0], pos+at[1]
		pos = to
		if isHarmless(s[from:to]) {
			continue
		}
		if start, end := valueOf(s, from, to); end > start {
			f.found = append(f.found, strings.Trim(s[start:end], `\"' `))
			e.replace(start, end, Hidden)
			pos = end
		}
	}
	return e.apply(s)
}

// A separator is what is between the name and the value of a setting.
type separator struct {
	by     byte // '=', ':', ',' of a list of words, ' ' behind a keyword, '"' where a quoted value follows, '-' of a flag; 0: none
	at     int  // the position after it
	quoted bool // the name is in quotes
	outer  byte // the quote around name and value
}

// valueOf returns the place of the value of the setting whose name is s[from:to]; 0, 0 if
// nothing is to be hidden.
func valueOf(s string, from, to int) (start, end int) {
	j := separatorAfter(s, from, to)
	name := s[from:to]
	if j.by == 0 || plainPass.MatchString(name) && j.by == ':' && !j.quoted && (j.at >= len(s) || isBlank(s[j.at])) {
		return 0, 0 // "3 tests pass: all"
	}
	i := skipped(s, j.at)
	if next := i + len(s[i:]) - len(strings.TrimLeft(s[i:], " \t\r\n")); next > i { // on another line
		if next >= len(s) || strings.IndexByte("\"'`{[(", s[next]) < 0 && j.by != ' ' && j.by != ',' {
			return 0, 0
		}
		i = next
	}
	for j.by == ':' && i < len(s) && (s[i] == '!' || s[i] == '&') && strings.ContainsAny(s[i:i+lineLength(s[i:])], " \t") { // a tag or an anchor of YAML
		i = skipped(s, i+strings.IndexAny(s[i:], " \t"))
	}
	if i >= len(s) {
		return 0, 0
	}
	end = endOf(s, i, j, headers.MatchString(name))
	value := strings.Trim(s[i:end], `\"' `)
	switch {
	case j.outer != 0 && strings.HasPrefix(value, Hidden+" "): // a script in quotes that was already examined
	case value == "" || strings.TrimRight(value, ` \;,`) == Hidden || IsReference(value) || strings.Contains(value, "LoginModule") || isMode(name, value):
	case j.by == '-' && option.MatchString(value) && !password.MatchString(name): // a flag without a value, and the next flag
	default:
		return i, end
	}
	return 0, 0
}

var (
	// A sign behind a setting's name: behind the end of its quotes and of an index that is
	// the name, or behind an index of the name.
	signBehind = regexp.MustCompile("^(?:(\\\\*[\"'`])\\s*(?:\\]\\s*)?|(?:\\[[^\\]\n]{1,64}\\])?[ \t]*)([=:?+]=|=>|=|:)")
	// What else may be there.
	blankBehind = regexp.MustCompile("^(?:(\\\\*[\"'`])\\s*|(?:\\[[^\\]\n]{1,64}\\])?[ \t]+|)")
	quoteAhead  = regexp.MustCompile("^\\\\?[\"'`]")
)

// separatorAfter returns what follows the name s[from:to].
func separatorAfter(s string, from, to int) separator {
	before := byte(0)
	if from > 0 {
		before = s[from-1]
	}
	var j separator
	g := signBehind.FindStringSubmatchIndex(s[to:])
	if g != nil {
		j.by = '='
		if s[to+g[4]:to+g[5]] == ":" {
			j.by = ':'
		}
	} else {
		g = blankBehind.FindStringSubmatchIndex(s[to:])
	}
	j.at, j.quoted = to+g[1], g[2] >= 0
	if !j.quoted && isQuote(before) {
		j.outer = before
	}
	rest, isFlag := s[j.at:], s[from] == '-'
	isApart := g[1] > max(g[3], 0) // by a blank
	switch {
	case j.by != 0 || rest == "":
	case rest[0] == ',' && (j.quoted && (isFlag || from > 1 && s[from-2] == '(') || before == '(' && quoteAhead.MatchString(strings.TrimLeft(rest[1:], " \t"))): // "--password", "it" and set("password", "it")
		j.by = ','
		j.at++
	case before == ':' && (isApart || rest[0] == ',' || rest[0] == '\n') && !isWordBefore(s[:from]): // :password "it"
		j.by = ' '
		j.at = len(s) - len(strings.TrimLeft(rest, " \t\r\n,"))
	case isApart && isFlag:
		j.by = '-'
	case isApart && quoteAhead.MatchString(rest):
		j.by = '"'
	}
	return j
}

// endOf returns the end of the value that begins at i.
func endOf(s string, i int, j separator, header bool) int {
	end := i
	switch c := s[i]; {
	case c == j.outer && c != 0:
	case isQuote(c) || c == '\\' && i+1 < len(s) && (isQuote(s[i+1]) || s[i+1] == '\\'):
		end = quoteEnd(s, i)
		for next := skipped(s, end); (j.by == '"' || j.by == ' ') && next > end && next < len(s) && isQuote(s[next]); next = skipped(s, end) {
			end = quoteEnd(s, next) // (def password "what it is for" "it")
		}
	case !header || isBracket(c):
		end = partEnd(s, i)
	default:
		end += len(strings.TrimSuffix(strings.TrimRight(s[i:continuedLine(s, i)], " \t\r"), ","))
		if j.outer != 0 {
			end = min(end, wordEnd(s, i, j.outer))
		}
		return end
	}
	if end == i || end < len(s) && !isDelimiter(s[end]) && s[end] != j.outer { // further parts may follow without a blank, as in a shell's word
		return wordEnd(s, end, j.outer)
	}
	return end
}

// hereDocument is the beginning of a value whose last line is a word, as in shells and HCL.
// <<NAME>> is a placeholder.
var hereDocument = regexp.MustCompile(`^<<[-~]?[ \t]*["']?(\w+)["']?(?:[ \t\r\n;|)&]|>[^>\r\n]|$)`)

// partEnd returns the end of what begins at i if that is in quotes or brackets or is a
// here-document, which may be on several lines. Otherwise it returns i.
func partEnd(s string, i int) int {
	switch {
	case isQuote(s[i]):
		return quoteEnd(s, i)
	case isBracket(s[i]):
		return closed(s, i)
	}
	first := strings.TrimRight(s[i:i+lineLength(s[i:])], " \t\r,;")
	if g := hereDocument.FindStringSubmatch(s[i:]); g != nil && !strings.HasSuffix(first, ">>") {
		for i < len(s) {
			begin := i
			i += lineLength(s[i:])
			if strings.TrimSpace(s[begin:i]) == g[1] {
				break
			}
			i = min(i+1, len(s))
		}
	}
	return i
}

// wordEnd returns the end of a value without quotes that begins at i: at a
// blank, at the quote around everything, or at a mark that begins something
// else.
func wordEnd(s string, i int, outer byte) int {
	for i < len(s) {
		next := byte(' ')
		if i+1 < len(s) {
			next = s[i+1]
		}
		switch c := s[i]; {
		case c == '\n' || c == '\r' || isBlank(c) && outer == 0:
			return i
		case c == outer && outer != 0:
			return i
		case c == '\\':
			if isQuote(next) && outer == 0 && (i+2 >= len(s) || isDelimiter(s[i+2])) {
				return i // the end of a string within a string
			}
			i++
		case c == '$' && (next == '{' || next == '('):
			i = closed(s, i+1) - 1
		case isQuote(c) && outer == 0:
			line := s[strings.LastIndexByte(s[:i], '\n')+1 : i]
			if isDelimiter(next) && strings.Count(line, string(c))%2 != 0 {
				return i // the quote around more than the value
			}
			n := strings.IndexByte(s[i+1:i+1+lineLength(s[i+1:])], c)
			if n < 0 {
				n = lineLength(s[i+1:]) - 1
			}
			i += n + 1
		case (c == ',' || c == ';' || c == '&') && outer == 0:
			if isDelimiter(next) || isQuote(next) || next == '\\' && i+2 < len(s) && isQuote(s[i+2]) || nextSetting.MatchString(s[i+1:]) {
				return i
			}
		case (c == '}' || c == ']') && outer == 0:
			if isDelimiter(next) || isQuote(next) {
				return i
			}
		}
		i++
	}
	return len(s)
}

// quoteEnd returns the position after the quote that closes the one at i, which
// may be escaped or three quotes. Without a closing quote it returns the end of
// s.
func quoteEnd(s string, i int) int {
	at := i
	for at < len(s) && s[at] == '\\' {
		at++
	}
	if at >= len(s) || !isQuote(s[at]) {
		return wordEnd(s, i, 0)
	}
	escapes, quote := at-i, s[at]
	if three := strings.Repeat(string(quote), 3); escapes == 0 && strings.HasPrefix(s[at:], three) {
		if n := strings.Index(s[at+3:], three); n >= 0 {
			return at + 3 + n + 3
		}
		return len(s)
	}
	run := 0 // backslashes before the character
	for k := at + 1; k < len(s); k++ {
		switch {
		case s[k] == '\\':
			run++
			continue
		case s[k] == quote && escapes == 0 && run%2 == 0, s[k] == quote && escapes > 0 && run == escapes:
			return k + 1
		case s[k] == quote && escapes > 0 && run == 0:
			return k // the quote of the string around it
		}
		run = 0
	}
	return len(s)
}

// closed returns the position after the bracket that closes the one at i: the
// last of those found with and without regard to quotes, since an apostrophe is
// not a quote.
func closed(s string, i int) int {
	most := 0
	for _, quotes := range []string{`"'`, `"`, ""} {
		most = max(most, bracketEnd(s, i, quotes))
	}
	if most == 0 {
		return len(s)
	}
	return most
}

// bracketEnd is like closed, for the given quotes; 0 if no bracket closes the
// one at i.
func bracketEnd(s string, i int, quotes string) int {
	var open []byte
	for i < len(s) {
		c := s[i]
		switch {
		case isBracket(c):
			open = append(open, "}])"[strings.IndexByte("{[(", c)])
		case len(open) > 0 && c == open[len(open)-1]:
			if open = open[:len(open)-1]; len(open) == 0 {
				return i + 1
			}
		case strings.IndexByte(quotes, c) >= 0:
			i = quoteEnd(s, i)
			continue
		case c == '\\' && quotes != "":
			if i+1 < len(s) && isQuote(s[i+1]) {
				i = max(quoteEnd(s, i), i+1)
				continue
			}
			i++
		case quotes != "" && (c == '#' || c == '/' && strings.HasPrefix(s[i:], "//")) && strings.IndexByte(" \t\n", s[i-1]) >= 0: // a comment; i is above 0 after a bracket
			i += lineLength(s[i:])
			continue
		}
		i++
	}
	return 0
}

// skipped returns the position after the blanks at i and the ends of continued
// lines.
func skipped(s string, i int) int {
	for i < len(s) {
		switch {
		case isBlank(s[i]):
			i++
		case strings.HasPrefix(s[i:], "\\\n"):
			i += 2
		case strings.HasPrefix(s[i:], "\\\r\n"):
			i += 3
		default:
			return i
		}
	}
	return i
}

// lineLength returns the length of the first line, without its end.
func lineLength(s string) int {
	if n := strings.IndexByte(s, '\n'); n >= 0 {
		return n
	}
	return len(s)
}

// isWordBefore reports whether a word is before the colon that ends s.
func isWordBefore(s string) bool {
	if len(s) < 2 {
		return false
	}
	c := s[len(s)-2]
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '"' || c == '\''
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

func isQuote(c byte) bool { return c == '"' || c == '\'' || c == '`' }

func isBracket(c byte) bool { return c == '{' || c == '[' || c == '(' }

func isDelimiter(c byte) bool { return strings.IndexByte(" \t\r\n,;&)}]>:", c) >= 0 }
