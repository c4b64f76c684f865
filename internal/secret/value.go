package secret

import (
	"regexp"
	"strings"
)

// A quote, which may be escaped or written as in XML.
const quote = "(?:\\\\{0,31}[\"'`]|&(?:quot|apos|#34|#39);)"

var (
	quoteFirst = regexp.MustCompile(`^` + quote)
	// The beginning of a value whose last line is a word, as in shells and HCL. <<NAME>> is a
	// placeholder.
	hereDocument = regexp.MustCompile(`^<<[-~]?[ \t]*["']?(\w+)["']?(?:[ \t\r\n;|)&]|>[^>\r\n]|$)`)
	// What is behind a bracket, or at the end of its line, if it closes on another one.
	opensLines = regexp.MustCompile("^[{\\[(]+[ \t\r]*(?:$|[#\"'`{\\[]|//)|[,{\\[(][ \t\r]*$")
	// What begins another setting, where a value ends.
	nextSetting = regexp.MustCompile(`^[\w.\-]+` + quote + `?[ \t]*[=:]`)
)

// quoteAt returns the quote at i; "" if there is none.
func (s *scanner) quoteAt(i int) string {
	if i >= len(s.t) || strings.IndexByte("\\\"'`&", s.t[i]) < 0 {
		return ""
	}
	return quoteFirst.FindString(s.t[i:min(len(s.t), i+32)])
}

// quoteBefore returns the quote at the end of a text; "" if there is none.
func quoteBefore(t string) string {
	n := len(t) - 1
	switch {
	case n >= 0 && isQuote(t[n]):
		return t[len(strings.TrimRight(t[:n], `\`)):]
	case n >= 0 && t[n] == ';':
		return quoteFirst.FindString(t[max(0, strings.LastIndexByte(t[max(0, n-6):], '&')+max(0, n-6)):])
	}
	return ""
}

// quoteEnd returns the position after the quote that closes the one at i, which may be escaped
// or three quotes; -1 if none does. On another line it must end a value: what looks like a quote
// there may be an apostrophe.
func (s *scanner) quoteEnd(i, limit int) int {
	t, open := s.t[:max(i, limit)], s.quoteAt(i)
	body, escapes, c := i+len(open), len(open)-1, open[len(open)-1]
	if three := strings.Repeat(open, 3); c == ';' || escapes == 0 && strings.HasPrefix(t[i:], three) {
		if c != ';' {
			body, open = i+3, three
		}
		if n := strings.Index(t[min(body, len(t)):], open); n >= 0 {
			return body + n + len(open)
		}
		return s.missing(i, limit)
	}
	line := s.lineEnd(i)
	for k := body; ; k++ {
		n := strings.IndexByte(t[min(k, len(t)):], c)
		if n < 0 {
			return s.missing(i, limit)
		}
		k += n
		run := k - body - len(strings.TrimRight(t[body:k], `\`)) // backslashes before it
		switch {
		case escapes > 0 && k > line:
			return -1
		case escapes > 0 && run == 0:
			return k // the quote of the string around it
		case escapes == 0 && (run%2 == 0 || strings.HasPrefix(s.t[k+1:], "/>")), escapes > 0 && run == escapes:
			if k < line || k+1 == len(s.t) || isDelimiter(s.t[k+1]) || strings.IndexByte("\"'`\\/?", s.t[k+1]) >= 0 {
				return k + 1
			}
		}
	}
}

// missing is the end of a value whose end was looked for in vain: -1. If that happens very often,
// all that was looked at is the value.
func (s *scanner) missing(i, limit int) int {
	if s.work += limit - i; s.work > s.mostWork() {
		return limit
	}
	return -1
}

func (s *scanner) mostWork() int { return 64*len(s.t) + 1<<20 }

// closed returns the position after the bracket that closes the one at i: the later of those
// found with and without regard to quotes, since an apostrophe is not a quote. It is -1 if there
// is none.
func (s *scanner) closed(i, limit int) int {
	most := -1
	for _, quotes := range []string{"\\\"'", "\\\"", ""} {
		var open []byte
		for k := i; k < limit; k++ {
			switch c := s.t[k]; {
			case isBracket(c):
				open = append(open, "}])"[strings.IndexByte("{[(", c)])
			case c == open[len(open)-1]:
				if open = open[:len(open)-1]; len(open) == 0 {
					most, k = max(most, k+1), limit
				}
			case strings.IndexByte(quotes, c) < 0: // a comment?
				if quotes != "" && (c == '#' || strings.HasPrefix(s.t[k:], "//")) && strings.IndexByte(" \t\n", s.t[k-1]) >= 0 {
					k = s.lineEnd(k)
				}
			case s.quoteAt(k) != "":
				k = max(k, s.quoteEnd(k, limit)-1)
			case c == '\\':
				k++
			}
		}
	}
	if most < 0 {
		return s.missing(i, limit)
	}
	return most
}

// part returns the end of what begins at i if that is in quotes or brackets or is a
// here-document, which may be on several lines. Otherwise it returns i. It is ordinary text if it
// has no end; so is a bracket in a line of properties.
func (s *scanner) part(i int, v *setting) int {
	t := s.t
	limit := min(len(t), i+mostValue)
	if s.ends == toEnd {
		limit = len(t)
	}
	switch line := s.lineEnd(i); {
	case s.quoteAt(i) != "":
		return max(i, s.quoteEnd(i, limit))
	case i < len(t) && isBracket(t[i]):
		if v.first && !v.inQuotes && line < limit && !opensLines.MatchString(t[i:line]) {
			limit = line
		}
		if end := s.closed(i, limit); end > 0 || !v.inQuotes || limit < len(t) {
			return max(i, end)
		}
		return limit // the text was cut
	case strings.HasPrefix(t[i:], "<<") && !strings.HasSuffix(strings.TrimRight(t[i:line], " \t\r,;"), ">>"):
		g := hereDocument.FindStringSubmatch(t[i:limit])
		for ; g != nil && i < len(t); i++ {
			begin := i
			if i = s.lineEnd(i); strings.TrimSpace(t[begin:i]) == g[1] {
				break
			}
		}
	}
	return min(i, len(t))
}

// word returns the end of a value without quotes that begins at i: at a blank, at the quote
// around the setting, or at a mark that begins something else, but not in a command line. from is
// where its setting begins.
func (s *scanner) word(i, from int, outer string, isCommand bool) int {
	t := s.t
	for ; i < len(t) && t[i] != '\n' && t[i] != '\r'; i++ {
		c, next := t[i], byte(' ')
		if i+1 < len(t) {
			next = t[i+1]
		}
		if outer != "" {
			if strings.HasPrefix(t[i:], outer) {
				return i
			}
			if c == '\\' {
				i++
			}
			continue
		}
		switch {
		case c == ' ' || c == '\t',
			c == '<' && next == '/', (c == '/' || c == '?') && next == '>', // XML
			c == '&' && s.quoteAt(i) != "",
			c == '\\' && isQuote(next) && (i+2 >= len(t) || isDelimiter(t[i+2])), // the end of a string within a string
			isQuote(c) && isDelimiter(next) && s.within(from, c),                 // the quote around more than the value
			!isCommand && (c == ',' || c == ';' || c == '&') && (isDelimiter(next) || s.quoteAt(i+1) != "" || nextSetting.MatchString(t[i+1:min(len(t), i+mostName)])),
			!isCommand && (c == '}' || c == ']') && (isDelimiter(next) || isQuote(next)):
			return i
		case c == '\\':
			i++
		case c == '$' && (next == '{' || next == '('):
			i = max(i, s.closed(i+1, s.lineEnd(i))-1)
		case isQuote(c):
			line := s.lineEnd(i)
			n := strings.IndexByte(t[i+1:line], c)
			if n < 0 {
				return line
			}
			i += n + 1
		}
	}
	return min(i, len(t))
}

// continued is the end of the line at a position, with the lines that continue it.
func (s *scanner) continued(i int) int {
	for {
		end := s.lineEnd(i)
		text := strings.TrimRight(s.t[i:end], "\r")
		if (len(text)-len(strings.TrimRight(text, `\`)))%2 == 0 || end == len(s.t) {
			return end
		}
		i = end + 1
	}
}

// skip returns the position behind blanks and the ends of continued lines.
func (s *scanner) skip(i int) int {
	for i < len(s.t) {
		switch rest := s.t[i:]; {
		case rest[0] == ' ' || rest[0] == '\t':
			i++
		case strings.HasPrefix(rest, "\\\n"), strings.HasPrefix(rest, "\\\r\n"):
			i += strings.IndexByte(rest, '\n') + 1
		default:
			return i
		}
	}
	return i
}

// within reports whether a position is in quotes: their number before it on its line is odd.
func (s *scanner) within(i int, quote byte) (odd bool) {
	for k := max(s.lineStart(i), i-mostValue); k < i; k++ {
		switch s.t[k] {
		case '\\':
			k++
		case quote:
			odd = !odd
		}
	}
	return odd
}
