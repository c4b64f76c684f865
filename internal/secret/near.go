package secret

import (
	"regexp"
	"strings"
)

// What is looked at around a line that names a secret.
const (
	linesBefore = 6
	linesBehind = 12
)

var (
	// Names below which there are settings of all kinds, and lines of them that stay: those that
	// are looked at on their own, and names whose values are not secret.
	holdsMore = regexp.MustCompile(`(?i)(?:creds|credentials?|authorization|cookie|jaas)$`)
	lineName  = regexp.MustCompile(`^["']?([\w.\-]+)["']?:(?:[ \t]|$)`)
	ordinary  = regexp.MustCompile(`(?i)^(?:user|username|user_name|login|name|type|kind|realm|scopes?|mechanism|method|ur[li]|hosts?|hostname|port|enabled|provider|algorithm|profile|region|roles?|principal|required|backend|class|expires|ttl)$`)
	// What a line has before an item of a list; the mark of a comment, and one with an old item.
	item        = regexp.MustCompile(`^(?:-[ \t]+)*`)
	commentMark = regexp.MustCompile(`^[ \t]*(?:#+|;+|!+|//+)`)
	oldItem     = regexp.MustCompile(`^#+[ \t]*(?:-[ \t]|["'])`)
	// Before the value of a setting that is the name of another, such as an environment variable
	// in a container's description; and the names of those with its value.
	naming = regexp.MustCompile(`(?i)(?:^|[^\w])(?:[\w.]*-)?(?:name|key|id|variable|property|option|param|setting)(?:` + quote + `?\s*(?::|=>?)\s*` + quote + `?|(?:\s[^<>]*)?>\s*)$`)
	valued = regexp.MustCompile(`(?i)(?:values?|val|default|content|text|data|string)\b`)
	// A tag before an element, and one up to an attribute. A line at which another item or object begins or ends, and one at
	// which one begins.
	lastTag = regexp.MustCompile(`</([\w:.\-]+)>(?:\s|<!--.*?-->)*<[^<>]*>\s*$`)
	openTag = regexp.MustCompile(`^<[\w:.\-]+\s`)
	border  = regexp.MustCompile(`^\s*(?:-\s|[{}\[\]]|</?\w)`)
	begins  = regexp.MustCompile(`^\s*(?:-\s|[{\[])`)
	// What is behind the name of a section of INI or TOML, with its first setting; and a line
	// behind the last one.
	sectionRest = regexp.MustCompile(`^["']?[ \t]*\]{1,2}[ \t\r]*(?:[#;].*)?\n(?:\s*[#;!].*\n)*[ \t]*(?:["']?[\w.\-$]+["']?[ \t]*[=:]|[^\s(]+[ \t]*\r?(?:\n|$))`)
	sectionEnd  = regexp.MustCompile(`(?m)^[ \t]*(?:\[{1,2}[^\[\],(){}\n]+\]{1,2}[ \t\r]*(?:[#;].*)?$|\()`)
)

func indentation(line string) int { return len(line) - len(strings.TrimLeft(line, " \t")) }

// lines calls do with the place of each line behind at that belongs to a setting, because it is
// deeper or an item of a list, until do returns false. It returns the end of the last one.
func (s *scanner) lines(v *setting, at int, do func(from, to int, isDeeper bool) bool) (end int) {
	mark, column := "", indentation(v.head)
	if v.first {
		mark = commentMark.FindString(v.head) // of a comment that it is in
		column = len(v.head) - len(mark)
	}
	end = at
	for at++; at < len(s.t); at = s.lineEnd(at) + 1 {
		to := s.lineEnd(at)
		rest, ok := strings.CutPrefix(s.t[at:to], mark)
		body, indent := strings.TrimSpace(rest), indentation(rest)
		switch isItem := strings.HasPrefix(body, "- ") || body == "-"; {
		case ok && body == "" || strings.HasPrefix(body, "{{") && indent <= column: // of a template
		case !ok || body[0] != '#' && (indent < column || indent == column && !isItem):
			return end
		case !do(at+len(mark)+indent, to, indent > column):
			return end
		case body[0] != '#' || indent > column:
			end = to
		}
	}
	return end
}

// deeper is the end of the lines that continue a value or are its block.
func (s *scanner) deeper(v *setting, line int) int {
	return s.lines(v, line, func(_, _ int, isDeeper bool) bool { return isDeeper })
}

// below hides the lines below a name that belong to it.
func (s *scanner) below(v *setting, line int) {
	if !v.isSecret {
		if end := s.lines(v, line, func(from, _ int, _ bool) bool { return s.t[from] == '-' || s.t[from] == '#' }); !isLoginOrList(s.t[line:end]) {
			return
		}
	}
	more, last := holdsMore.MatchString(v.name), v.from-s.lineStart(v.from)
	s.lines(v, line, func(from, to int, _ bool) bool {
		body := strings.TrimSpace(s.t[from:to])
		column := from - s.lineStart(from)
		if body[0] == '#' {
			if oldItem.MatchString(body) || column > last {
				s.hide(from, to)
			}
			return true
		}
		marks := len(item.FindString(body))
		from += marks
		g := lineName.FindStringSubmatch(s.t[from:to])
		if g != nil || marks > 0 {
			last = column
		}
		if g == nil || !(more && (ordinary.MatchString(g[1]) || isLikely(g[1])) || isAboutUse(v.name, s.t[from:to])) {
			s.hide(from, to)
		}
		return true
	})
}

// contents hides the contents of an element, and values among its attributes, and returns their
// end. Of one without an end it hides the rest of the line.
func (s *scanner) contents(v *setting) int {
	t, i := s.t, v.at
	s.values(v.to, i)
	if t[i-2] == '/' {
		return i
	}
	name := t[v.from-len(tagHead.FindString(v.head))+1 : v.to]
	from, end := 0, s.lineEnd(i)
	if strings.HasPrefix(strings.TrimLeft(s.some(i), " \t\r\n"), "<![CDATA[") {
		from = max(0, strings.Index(s.some(i), "]]>"))
	}
	if n := strings.Index(s.some(i)[from:], "</"+name); n >= 0 {
		end = i + from + n
	}
	s.hide(i, end)
	return end
}

// values hides the values of the settings in a part of the text whose names say that they have
// the value of another. It reports whether there are any.
func (s *scanner) values(from, to int) (found bool) {
	for _, g := range valued.FindAllStringIndex(s.t[from:to], -1) {
		if v := s.read(from+g[0], from+g[1], "value", true); v.by == '=' || v.by == ':' || v.by == '>' {
			s.value(v)
			found = true
		}
	}
	return found
}

// pair hides the value of a secret's name that is a value itself.
func (s *scanner) pair(v *setting) {
	t := s.t
	before := t[max(0, v.from-mostTag):v.from]
	if !naming.MatchString(before[max(0, len(before)-mostWords):]) {
		return
	}
	open := strings.LastIndexByte(before, '<')
	if tag := openTag.FindString(before[max(0, open):]); tag != "" && !strings.Contains(before[open:], ">") {
		from := v.from - len(before) + open
		to := from + len(tag) - 1
		if rest := tagRest.FindString(s.some(to)); rest != "" {
			s.contents(&setting{from: from + 1, to: to, at: to + len(rest), head: "<"})
			return
		}
	}
	if from := s.braceBefore(v); from >= 0 && !strings.HasSuffix(before, ">") && s.values(from, max(v.to, s.closed(from, min(len(t), v.to+mostValue)))) {
		return
	}
	from, to := s.lineStart(v.from), s.lineEnd(v.to)
	if g := lastTag.FindStringSubmatch(before[max(0, open-mostWords):]); g != nil && open > 0 { // <value>it</value><name>...</name>
		low := max(0, v.from-mostValue)
		from = min(from, low+max(0, strings.LastIndex(t[low:v.from], "<"+g[1])))
	}
	if s.values(from, to) {
		return
	}
	for n := 0; n < linesBehind && to < len(t); n++ {
		line := t[to+1 : s.lineEnd(to+1)]
		if border.MatchString(line) && !(n == 0 && strings.HasPrefix(strings.TrimSpace(line), "<")) {
			break
		}
		to += 1 + len(line)
	}
	for n := 0; n < linesBefore && from > 0 && !begins.MatchString(t[from:to]); n++ {
		from = s.lineStart(from - 1)
	}
	s.values(from, to)
}

// braceBefore returns the place of the brace around a name that is a value; -1: there is none. The
// name's own quotes tell what is in quotes.
func (s *scanner) braceBefore(v *setting) int {
	quote := v.outer
	if v.inQuotes {
		quote = quoteBefore(s.t[:v.from])
	}
	in, depth := quote != "", 0
	for i := v.from - 1; i >= max(0, v.from-mostValue); i-- {
		switch c := s.t[i]; {
		case c == '\n' && in:
			return -1
		case c == '"' || c == '\'':
			escapes := i - len(strings.TrimRight(s.t[:i], `\`))
			if quote == "" && escapes == 0 || len(quote) == escapes+1 && quote[escapes] == c {
				in = !in
			}
		case in:
		case c == '}':
			depth++
		case c == '{' && depth == 0:
			return i
		case c == '{':
			depth--
		}
	}
	return -1
}

// section hides the settings of a section of INI or TOML. It reports whether the name is that of
// a section.
func (s *scanner) section(v *setting) bool {
	head, from := strings.TrimLeft(v.head, " \t"), s.lineEnd(v.to)+1
	if s.ends != toLineEnd || !strings.HasPrefix(head, "[") || strings.ContainsAny(head, "(,{") || !sectionRest.MatchString(s.some(v.to)) {
		return false
	}
	to := len(s.t)
	if at := sectionEnd.FindStringIndex(s.t[from:]); at != nil {
		to = from + at[0]
	}
	s.hide(from, to)
	return true
}
