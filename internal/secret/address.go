package secret

import (
	"regexp"
	"strings"
)

var (
	// The beginning of an address, whose marks may be escaped as in properties and JSON.
	address = regexp.MustCompile(`(?i)\b[a-z][a-z0-9+.\-]*\\?:\\?/\\?/`)
	// A flag's name before its value.
	flagName = regexp.MustCompile(`^--?[\w.\-]+=`)
	// A login before a host without a scheme: u:p@tcp(h:1)/d.
	bareLogin = regexp.MustCompile(`(^|[\s"'=,(])([^\s:@/"'=,(]+:)([^\s@"']+)@([\w\[(.\-]+)`)
)

// value hides what looks like a secret in a value.
func (f *finder) value(s string) string { return f.likely(f.address(s)) }

// address hides the login of a value that begins as an address. A password may have blanks:
// the address is to the end of the value, or to a blank behind what ends a host.
func (f *finder) address(s string) string {
	begin := len(flagName.FindString(s))
	if at := address.FindStringIndex(s[begin:]); at != nil && at[0] == 0 {
		from, end := begin+at[1], len(s)
		if host := strings.IndexAny(s[from:], "/?#"); host >= 0 {
			if n := strings.IndexAny(s[from+host:], " \t\r\n"); n >= 0 {
				end = from + host + n
			}
		}
		if to := strings.LastIndexByte(s[:end], '@'); to > from && (strings.Contains(s[from:to], ":") || !strings.ContainsAny(s[from:to], "/?#")) {
			f.ofAddresses = append(f.ofAddresses, s[from:to])
			s = s[:from] + Hidden + s[to:]
		}
	}
	return s
}

// logins hides the logins in addresses. A password may contain characters that end an
// address, since people forget to escape them: if a colon comes before the first slash,
// everything up to the last @ is the login.
func (f *finder) logins(s string) string {
	if !strings.Contains(s, "@") {
		return s
	}
	var e edits
	done := 0
	for _, at := range address.FindAllStringIndex(s, -1) {
		from := at[1]
		if from < done {
			continue
		}
		host := addressEnd(s, at[0], from)
		if n := strings.IndexAny(s[from:host], "/?#"); n >= 0 && !strings.Contains(s[from:from+n], ":") {
			host = from + n
		}
		if n := strings.LastIndexByte(s[from:host], '@'); n > 0 && s[from:from+n] != Hidden {
			done = from + n
			f.ofAddresses = append(f.ofAddresses, s[from:done])
			e.replace(from, done, Hidden)
		}
	}
	s, e = e.apply(s), nil
	for _, g := range bareLogin.FindAllStringSubmatchIndex(s, -1) {
		password, host := s[g[6]:g[7]], s[g[8]:g[9]]
		if !strings.HasPrefix(strings.ReplaceAll(password, `\`, ""), "//") && host != "sha256" && !IsReference(s[g[4]:g[7]]) && isPlain(password) {
			f.ofAddresses = append(f.ofAddresses, s[g[4]:g[7]])
			e.replace(g[6], g[7], Hidden)
		}
	}
	return e.apply(s)
}

// addressEnd returns the end of the address whose scheme is at i: in quotes the
// same quote, otherwise a blank.
func addressEnd(s string, i, from int) int {
	line := from + lineLength(s[from:])
	if i > 0 && isQuote(s[i-1]) {
		if n := strings.IndexByte(s[from:line], s[i-1]); n >= 0 {
			return from + n
		}
	}
	stops := " \t\r\"<>"
	if i == 0 {
		stops = " \t\r"
	}
	if n := strings.IndexAny(s[from:line], stops); n >= 0 {
		return from + n
	}
	return line
}
