package secret

import (
	"regexp"
	"slices"
	"strings"
)

// A setting is a name and what is between it and its value.
type setting struct {
	name     string
	isSecret bool // as its name says; else its value may be a login, or a method of logging in
	from, to int
	by       byte   // what is before its value: '=', ':', '>' of a tag, ',' in a list, '-' for a blank behind a flag, ' ' for another one; 0: it has no value
	at       int    // where the value begins
	inQuotes bool   // the name is in quotes of its own
	outer    string // the quotes around name and value
	head     string // the line before it
	first    bool   // it begins its line, a comment or an argument
	inString bool   // it begins a line within a text in quotes
}

var (
	// What is behind a name: quotes and the end of an index, or an index; blanks; a sign.
	afterName = regexp.MustCompile(`^(?:(` + quote + `)(?:[ \t]*\])?|\[[^\]\n]{1,64}\])?([ \t]*)([:+?]?=>?|:)?`)
	tagRest   = regexp.MustCompile(`^(?:\s(?:"[^"]*"|'[^']*'|[^"'<>])*)?>`)
	tagHead   = regexp.MustCompile(`<[\w.:\-]*$`)
	// What may be before the first setting of a line and of an argument; words before one that has
	// a blank before its sign; the end of a line in a string; and what is before a password that
	// follows its user's name.
	commentHead  = regexp.MustCompile(`(?:^|[ \t])(?:#+|;+|!+|//+|<!)$`)
	lineHead     = regexp.MustCompile(`^[ \t]*(?:[-?][ \t]+)*(?:(?i:export|set|setx|setenv|env|arg|local|declare|readonly|typeset|let|var|const|val|def|final|static)[ \t]+(?:-\w+[ \t]+)*)*(?:\$(?i:env:))?(?:(?:[\w.\-]|\\.)*\\[ \t])?$`)
	argumentHead = regexp.MustCompile(`^(?:--?[\w\-]+=)?$`)
	wordsHead    = regexp.MustCompile(`^[ \t]*(?:\w+[ \t]+){1,2}$`)
	stringHead   = regexp.MustCompile(`\\[nr][ \t]*(?:-[ \t]+)*$`)
	loginHead    = regexp.MustCompile(`(?i)\b(?:login|user)[ \t]+\S+[ \t]+$`)
	keywordHead  = regexp.MustCompile("(?:^|[^\\w.\\-\"'`]):$")
	// A name of a setting without a sign, and a value of one that is no word of a sentence.
	blankName  = regexp.MustCompile(`^(?:requirepass|masterauth)$|[a-z\d][._]|^[A-Z_]+$`)
	blankValue = regexp.MustCompile(`^[^\s=:]*[^\s=:A-Za-z][^\s=:]*\s*$`)

	blockHead = regexp.MustCompile(`^[|>][+\-0-9]*[ \t\r]*(?:#.*)?$`)
	yamlTag   = regexp.MustCompile(`^(?:[!&][^\s,}\]]*[ \t]+)+`)
	option    = regexp.MustCompile(`^-(?:[a-zA-Z]|-[a-z]+(?:-[a-z]+)*(?:=.*)?)$`)
	// The value of a setting in a text in quotes, with the lines that continue it.
	stringValue = regexp.MustCompile(`^(?:[^"\\]|\\\\\\[nr]|\\[^nr]|\\[nr](?:[ \t\-]|\\[nr]))*`)
	moreTexts   = regexp.MustCompile(`^(?:[ \t]+(?:"(?:[^"\\]|\\.)*"|'[^'\n]*'))+`)
	headerName  = regexp.MustCompile(`(?i)(?:authorization|cookie)$`)
)

// read finds out what is between a name and its value.
func (s *scanner) read(from, to int, name string, isSecret bool) *setting {
	t := s.t
	v := &setting{name: name, isSecret: isSecret, from: from, to: to, outer: quoteBefore(t[:from])}
	line := max(s.lineStart(from), from-mostLine)
	v.head = t[line:max(line, from-len(v.outer))]
	g := afterName.FindStringSubmatchIndex(t[to:min(len(t), to+mostName)])
	if g[2] >= 0 && (v.outer != "" || t[to] != '\\') {
		v.inQuotes, v.outer = true, ""
	}
	apart, sign := g[5] > g[4], ""
	i := to + g[5]
	if g[6] >= 0 {
		sign = t[to+g[6] : to+g[7]]
	}
	switch s.ends {
	case toLineEnd:
		end, short := strings.TrimRight(v.head, " \t-"), len(v.head) < mostWords
		v.first = name[0] != '-' && (end == "" || commentHead.MatchString(end[max(0, len(end)-8):]) || short && lineHead.MatchString(v.head) || short && sign != "" && apart && wordsHead.MatchString(v.head))
	case toEnd:
		v.first = line == 0 && argumentHead.MatchString(v.head)
	}
	if headerName.MatchString(name) && v.outer == "" && !v.inQuotes && sign == ":" {
		if v.first = true; s.within(from, '"') {
			v.first, v.outer = false, `"`
		}
	}
	v.inString = strings.Contains(v.head, `\`) && stringHead.MatchString(v.head) && s.within(from, '"')
	rest, isFlag := t[i:], name[0] == '-'
	below := strings.TrimLeft(rest, " \t\r\n")
	tag := ""
	if n := strings.LastIndexByte(v.head, '<'); n >= 0 && tagHead.MatchString(v.head[n:]) && !strings.HasSuffix(v.head, "<<") { // <<NAME>> is a placeholder
		tag = tagRest.FindString(s.some(to))
	}
	switch {
	case tag != "":
		v.by, i = '>', to+len(tag)
	case strings.HasSuffix(v.head, "? ") && strings.HasPrefix(below, ":"): // YAML's key on a line of its own
		v.by, i = ':', len(t)-len(below)+1
	case sign == ":" && (!apart && strings.HasPrefix(rest, "::") || passName.MatchString(name) && !v.inQuotes && (len(rest) == 1 || strings.IndexByte(" \t\r\n", rest[1]) >= 0)): // "3 tests pass: all"
	case sign != "":
		v.by = '='
		if i += len(sign); sign == ":" {
			v.by = ':'
		}
	case rest == "":
	case rest[0] == ',' && (v.inQuotes && isFlag || strings.HasSuffix(strings.TrimRight(t[:from], "\"'`"), "(") && s.quoteAt(s.skip(i+1)) != ""): // "--password", "it" and set("password", "it")
		v.by = ','
		i++
	case strings.HasSuffix(v.head, ":") && keywordHead.MatchString(v.head[max(0, len(v.head)-2):]) && (apart || rest[0] == ',' || rest[0] == '\n'): // :password "it"
		v.by, i = ' ', len(t)-len(strings.TrimLeft(rest, " \t\r\n,"))
	case isFlag && rest[0] == '\n' && strings.HasPrefix(below, "- "): // items of a list
		v.by, i = '-', len(t)-len(below)+2
	case isFlag && (apart || rest[0] == '\\'):
		v.by = '-'
	case apart && s.quoteAt(i) != "" && (!v.inQuotes || rest[0] != '`'):
		v.by = ' '
	case !apart || s.ends != toLineEnd || v.outer != "" || v.inQuotes:
	case loginHead.MatchString(v.head), v.first && (blankName.MatchString(name) || blankValue.MatchString(t[i:s.lineEnd(i)])):
		v.by = ' '
	}
	v.at = s.skip(i)
	return v
}

// setting hides what belongs to a secret's name, and returns where to go on.
func (s *scanner) setting(from, to int, name string, isSecret bool) int {
	v := s.read(from, to, name, isSecret)
	switch {
	case v.by != 0:
		return s.value(v)
	case isSecret && !s.section(v):
		s.pair(v)
	}
	return to
}

// value hides the value of a setting, and returns where to go on.
func (s *scanner) value(v *setting) int {
	t, i := s.t, v.at
	isSign := v.by == '=' || v.by == ':'
	if v.by == ':' {
		i += len(yamlTag.FindString(t[i:s.lineEnd(i)]))
	}
	line := s.lineEnd(i)
	rest, next := strings.TrimSpace(t[i:line]), len(t)-len(strings.TrimLeft(t[i:], " \t\r\n"))
	switch {
	case i == v.at && next == len(t):
		return v.to
	case v.first && s.ends == toEnd:
	case v.by == '>':
		return s.contents(v)
	case rest == "" && (v.inQuotes || !isSign) && next < len(t) && (s.quoteAt(next) != "" || isBracket(t[next])):
		i, line = next, s.lineEnd(next)
	case (rest == "" || rest[0] == '#') && v.first && isSign && s.ends == toLineEnd:
		if v.isSecret {
			s.hide(v.at, line)
		}
		s.below(v, line)
		return line
	case rest == "":
		return v.to
	case v.by == ':' && s.ends == toLineEnd && blockHead.MatchString(t[i:line]):
		s.hide(v.at, s.deeper(v, line))
		return line
	}
	end := s.part(i, v)
	isPart := end > i
	switch {
	case v.first && s.ends == toEnd:
		end = len(t)
	case v.inString && !isPart:
		end = i + len(stringValue.FindString(t[i:line]))
	case v.first && s.ends == toLineEnd && !(v.inQuotes && isPart):
		if end = s.continued(end); !isPart {
			end = s.deeper(v, end)
		}
	case v.outer != "" && strings.HasPrefix(t[i:], v.outer) && (i+len(v.outer) == len(t) || isDelimiter(t[i+len(v.outer)])):
		return v.to
	case !isPart || end < len(t) && !isDelimiter(t[end]) && !(v.outer != "" && strings.HasPrefix(t[end:], v.outer)):
		if end == i && strings.IndexByte(",;&}]", t[i]) >= 0 { // a value may begin with what ends others
			end++
		}
		end = s.word(end, v.from, v.outer, v.by == '-')
	}
	if isPart && v.by == ' ' { // (def password "what it is for" "it")
		end += len(moreTexts.FindString(s.some(end)))
	}
	switch value := strings.Trim(t[i:end], "\\\"'` "); {
	case strings.Contains(value, "LoginModule"), isMode(v.name, value), v.outer != "" && strings.HasPrefix(value, Hidden+" "):
	case !v.isSecret && !isLoginOrList(t[i:end]):
	case v.by == '-' && option.MatchString(value) && !passwordFlag.MatchString(v.name): // a flag without a value, and the next flag
	case i < len(t) && isBracket(t[i]) && isAboutUse(v.name, t[i:end]):
	case s.hide(v.at, end):
		if s.work += end - i; s.work > s.mostWork() {
			return end
		}
	}
	return v.to // the value may have the name of another
}

// uses are names of settings about the use of a secret, such as those of api_key: in
// apm-server.yml and of a token service in elasticsearch.yml, with a harmless value: a switch, a
// number of few digits, a duration or a size, or one of the usual words for kinds and algorithms.
// They do not include names that a user may have: below a secret's name, such a name is followed
// by a value to hide.
var uses = lazily(`(?i)^\s*["']?(?:(?:cache|in_fips_mode)["']?\s*[:=]|(?:(?:cache|delete|in_fips_mode)\.)?(?:enabled|disabled|required|limit|max|min|max_size|min_size|size|length|min_length|max_length|timeout|interval|period|retention_period|rate_limit|` +
	`ttl|max_age|max_keys|max_entries|max_tokens|max_users|expires|expires_in|expiration|expiry|lifetime|cache_size|iterations|cost|retries|max_retries|port|type|hash_algo|algorithm|hashing|mechanism|method)["']?\s*[:=]\s*` +
	`["']?(?:true|false|yes|no|on|off|null|nil|~|-?\d{1,5}(?:\.\d{1,3})?|\d{1,6}(?:ns|us|micros|nanos|ms|s|m|h|d|w|b|kb|mb|gb|k|g|%)|basic|bearer|digest|jwt|hmac|ssha256|sha-?(?:1|256|512)|bcrypt\d{0,2}|pbkdf2(?:_\d+)?|scrypt|argon2(?:id?)?|plain|scram-sha-(?:256|512)|rs256|hs256|es256)?)["']?(?:\s+#(?:\s.*)?|\s*)$`)

// isAboutUse reports whether settings below a secret's name are about its use.
func isAboutUse(name, text string) bool {
	parts := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune("{},\n", r) })
	return !plural().MatchString(name) && !slices.ContainsFunc(parts, func(part string) bool { return strings.TrimSpace(part) != "" && !uses().MatchString(part) })
}
