package secret

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// How a value without quotes ends whose name begins its line.
const (
	toLineEnd = iota
	toBlank   // as a word of a script
	toEnd     // of the text, which is an argument
)

// A scanner finds what looks like a secret in a text. It takes no time that grows with a square:
// all that it looks at around a name has a bound.
type scanner struct {
	t     string
	ends  int
	found spans
	work  int             // bytes that were looked at for the end of a value in vain
	kinds map[string]kind // of words so far
	words []int           // the places of the words of the last command line
}

// A kind is what a word may be.
type kind struct{ isSecret, isAuth, isCommand bool }

// Bounds, in bytes.
const (
	mostName  = 128
	mostWords = 64      // before the name of the first setting of a line
	mostLine  = 256     // before a name
	mostTag   = 1 << 10 // around a name
	mostValue = 8 << 10 // of a value on several lines
	mostKinds = 1 << 12 // words
)

// marks has a bit for each three characters of which every name of a secret, address and so on
// has one: the lower five bits of each, so that case does not matter. Most texts have few.
var marks = func() (bits [1 << 9]uint64) {
	for three := range strings.SplitSeq("pas|pwd|pw=|pw:|pw |pw\"|pw'|nnw|sec|tok|key|cre|uth|ook|jaa|inf|sup|lic|tri|\\u0|\\x4|\\x5|\\x6|\\x7|bea|bas|inm|sig|cod|"+ // names
		"://|:\\/|\\:/| -u|\"-u|'-u|--u|--l|--p|mys|mar|mon|ssh|7z |rar|red|lda|zip|unz|sql|bcp|kin|cql|cur|doc|pod|oc |"+ // addresses, commands
		"(pa|(li|(op|(vi|(bo|(ca|(pu|(ke|(hi|(sl|(st|(da|(lo|(ne|(te|/pa|/li|/op|/vi|/bo|/ca|/pu|/ke|/hi|/sl|/st|/da|/lo|/ne|/te", "|") {
		gram := int(three[0]&31)<<10 | int(three[1]&31)<<5 | int(three[2]&31)
		bits[gram>>6] |= 1 << (gram & 63)
	}
	return bits
}()

// scan finds all in the text.
func (s *scanner) scan() {
	s.privateKeys()
	s.bareLogins()
	s.passFile()
	gram := 0
	for i := 0; i < len(s.t); i++ {
		gram = (gram<<5 | int(s.t[i]&31)) & (1<<15 - 1)
		if marks[gram>>6]>>(gram&63)&1 == 0 || i < 2 {
			continue
		}
		if next := s.at(i - 2); next > i {
			i, gram = next-1, 0
		}
	}
}

var (
	escape      = regexp.MustCompile(`\\(?:u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2})`)
	escapeFirst = regexp.MustCompile(`^` + escape.String())
	reference   = regexp.MustCompile(`^(?:env:\w+|file:\S+)$`)
	queryName   = regexp.MustCompile(`(?i)^(?:(?:x-(?:amz|goog)-)?sig(?:nature)?|key|code)$`)
	queryValue  = regexp.MustCompile(`^=[^\s&"'<>]+`)
	tokenAfter  = regexp.MustCompile(`^\s+([\w+/=.~\-]{4,})`)
	// Riemann's streams that take a key without a name for it.
	withKey = regexp.MustCompile(`^\((?:[\w.\-]+/)?(?:pagerduty|librato-metrics|opsgenie|victorops|boundary|campfire|pushover|keenio|hipchat|slack|stackdriver|datadog|logentries|netuitive|telegram)\s+((?:"(?:[^"\\]|\\.)*"\s*)+)`)
)

// at looks at three characters of marks, and returns where to go on.
func (s *scanner) at(i int) int {
	t := s.t
	for end := i + 3; !isName(t[i]) && (t[i] != '\\' || !escapeFirst.MatchString(t[i:min(len(t), i+6)])); i++ {
		switch {
		case i+1 == end:
			return 0
		case t[i] == ':':
			if next := s.address(i); next > 0 {
				return next
			}
		case t[i] == '(' || t[i] == '/':
			open := max(0, i-mostName)
			open += max(0, strings.LastIndexByte(t[open:i+1], '('))
			if g := withKey.FindStringSubmatchIndex(s.some(open)); g != nil {
				s.hide(open+g[2], open+g[3])
			}
		}
	}
	from, to, name := s.name(i)
	k, ok := s.kinds[name]
	if !ok {
		if k = (kind{isLikely(name), authName.MatchString(name), mayBeCommand(name)}); s.kinds == nil || len(s.kinds) == mostKinds {
			s.kinds = make(map[string]kind)
		}
		s.kinds[name] = k
	}
	if k.isCommand && !slices.Contains(s.words, from) {
		s.command(from, to)
	}
	switch isBasic := strings.EqualFold(name, "basic"); {
	case isBasic || strings.EqualFold(name, "bearer") || strings.EqualFold(name, "apikey"): // in a header Authorization
		if g := tokenAfter.FindStringSubmatchIndex(s.some(to)); g != nil && (!isBasic || isLogin(t[to+g[2]:to+g[3]])) {
			s.hide(to+g[2], to+g[3])
			return to + g[3]
		}
	case strings.HasSuffix(name, "LoginModule"):
		return s.loginModule(to)
	case from > 0 && (t[from-1] == '?' || t[from-1] == '&') && queryName.MatchString(name):
		s.hide(to+1, to+len(queryValue.FindString(t[to:s.lineEnd(to)])))
	}
	if k.isSecret || k.isAuth {
		return max(to, s.setting(from, to, name, k.isSecret))
	}
	return to
}

// name returns the place of the name at i, and the name without escapes.
func (s *scanner) name(i int) (from, to int, name string) {
	t := s.t
	from, to = i, i
	for from > 0 && isName(t[from-1]) && i-from < mostName {
		from--
	}
	for to < len(t) && to-i < mostName {
		n := 1
		if t[to] == '\\' {
			n = len(escapeFirst.FindString(t[to:min(len(t), to+6)]))
		}
		if n == 0 || n == 1 && !isName(t[to]) {
			break
		}
		to += n
	}
	if from > 0 && t[from-1] == '\\' && (t[from] == 'n' || t[from] == 'r' || t[from] == 't') { // the end of a line in a string
		from++
	}
	for to > from && (t[to-1] == '.' || t[to-1] == '-') {
		to--
	}
	if name = t[from:to]; strings.Contains(name, `\`) {
		name = escape.ReplaceAllStringFunc(name, func(hit string) string {
			code, _ := strconv.ParseUint(hit[2:], 16, 16)
			return string(rune(code))
		})
	}
	return from, to, name
}

// hide hides t[from:to] without the blanks at its end, unless it is nothing, hidden already or a
// reference.
func (s *scanner) hide(from, to int) bool {
	to = max(from, from+len(strings.TrimRight(s.t[from:max(from, to)], " \t\r\n")))
	if !isPlain(s.t[from:to]) {
		return false
	}
	s.found = append(s.found, span{from: from, to: to})
	return true
}

func isPlain(value string) bool {
	value = strings.Trim(value, "\\\"'` ;,")
	return value != "" && value != Hidden && !reference.MatchString(value)
}

// some is the text from i on, as far as one looks for what belongs to what is there.
func (s *scanner) some(i int) string { return s.t[i:min(len(s.t), i+mostValue)] }

// lineStart and lineEnd are the ends of the line at a position; of a very long one lineStart is
// within it.
func (s *scanner) lineStart(i int) int {
	low := max(0, i-mostValue)
	return low + strings.LastIndexByte(s.t[low:i], '\n') + 1
}

func (s *scanner) lineEnd(i int) int {
	if n := strings.IndexByte(s.t[i:], '\n'); n >= 0 {
		return i + n
	}
	return len(s.t)
}

func isName(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-' || c == '.'
}

func isQuote(c byte) bool { return c == '"' || c == '\'' || c == '`' }

func isBracket(c byte) bool { return c == '{' || c == '[' || c == '(' }

func isDelimiter(c byte) bool { return strings.IndexByte(" \t\r\n,;&)}]>:", c) >= 0 }
