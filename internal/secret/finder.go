package secret

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// edits are replacements in one text, so that all else stays byte for byte.
type edits []edit

// An edit replaces the bytes of a text from one position to another.
type edit struct {
	from, to int
	with     string
}

func (e *edits) replace(from, to int, with string) { *e = append(*e, edit{from, to, with}) }

// apply returns the text with all replacements. All that overlapping ones replace is hidden:
// what one of them shows may be what another hides.
func (e edits) apply(text string) string {
	slices.SortStableFunc(e, func(a, b edit) int { return cmp.Or(a.from-b.from, b.to-a.to) })
	var out strings.Builder
	done := 0
	for i := 0; i < len(e); {
		one := e[i]
		for i++; i < len(e) && e[i].from < one.to; i++ {
			one.to, one.with = max(one.to, e[i].to), Hidden
		}
		out.WriteString(text[done:one.from] + one.with)
		done = one.to
	}
	return out.String() + text[done:]
}

// A finder hides what looks like a secret in texts, and collects what it has hidden.
type finder struct {
	found       []string
	ofAddresses []string // logins: a password, or NAME:PASSWORD
}

// isPlain reports whether the value of a secret's name is a secret: it may also be empty,
// hidden already, or a reference.
func isPlain(value string) bool {
	return value != "" && value != Hidden && !IsReference(value)
}

// take collects a secret. It reports false for a value that is not one.
func (f *finder) take(value string) bool {
	if !isPlain(value) {
		return false
	}
	f.found = append(f.found, value)
	return true
}

// hideLikely is finder.likely where nothing needs to know what it hides.
func hideLikely(s string) string { return new(finder).likely(s) }

// likely hides what looks like a secret in a text.
func (f *finder) likely(s string) string {
	if !strings.ContainsAny(s, "=:@ ") {
		return s
	}
	s = f.flags(f.logins(f.loginModules(s)), 0)
	text := lower(s) // what is hidden below adds no stem
	if text.mayHave(wordStems) {
		s = f.settings(s, secretWord)
	}
	if text.mayHave(schemeStems) {
		s = f.matches(s, scheme, nil)
	}
	if strings.ContainsAny(s, "?&") {
		s = f.matches(s, signature, nil)
	}
	if text.mayHave(authStems) {
		s = f.matches(s, auth, isLogin)
	}
	return s
}

// matches hides the last group of each match of a pattern, if a condition is nil or true of
// it.
func (f *finder) matches(s string, pattern *regexp.Regexp, condition func(string) bool) string {
	var e edits
	for _, g := range pattern.FindAllStringSubmatchIndex(s, -1) {
		from, to := g[len(g)-2], g[len(g)-1]
		value := strings.Trim(s[from:to], `"'`)
		if (condition == nil || condition(value)) && f.take(value) {
			e.replace(from, to, Hidden)
		}
	}
	return e.apply(s)
}

// all returns the secrets that were found and their parts that may appear separately: items
// of a list or a map, what follows the scheme of an Authorization header, and the password
// of a login NAME:PASSWORD. The login of an address has no other parts: it may be words of a
// text that has an "@" further on.
func (f *finder) all() []string {
	var out []string
	for _, v := range f.ofAddresses {
		_, password, _ := strings.Cut(v, ":")
		out = append(out, v, password)
	}
	for _, v := range f.found {
		out = append(out, v, strings.Trim(v, `"'`))
		for _, part := range strings.FieldsFunc(v, func(r rune) bool { return strings.ContainsRune(",;[]{}()", r) }) {
			out = append(out, strings.Trim(part, `"' `), strings.Trim(part[strings.LastIndexAny(part, "=:")+1:], `"' `))
		}
		out = append(out, v[strings.LastIndexAny(v, " \t")+1:])
		if _, password, ok := strings.Cut(v, ":"); ok {
			out = append(out, password)
		}
	}
	return out
}
