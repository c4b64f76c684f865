package secret

import (
	"regexp"
	"strings"
)

var (
	// The beginning of an address, whose marks may be escaped as in properties and JSON.
	address = regexp.MustCompile(`(?i)\b[a-z][a-z0-9+.\-]*\\?:\\?/\\?/`)
	// A login before a host without a scheme: u:p@tcp(h:1)/d.
	bareLogin = regexp.MustCompile(`(^|[\s"'=,(])([^\s:@/"'=,(]+:)([^\s@"']+)@([\w\[(.\-]+)`)
)

// hideLogins removes the logins from addresses. A password may contain
// characters that end an address, since people forget to escape them: if a
// colon comes before the first slash, everything up to the last @ is the login.
func hideLogins(s string, found func(string)) string {
	if !strings.Contains(s, "@") {
		return s
	}
	var out strings.Builder
	done := 0
	for _, at := range address.FindAllStringIndex(s, -1) {
		from := at[1]
		if from < done {
			continue
		}
		end := addressEnd(s, at[0], from)
		host := end
		if n := strings.IndexAny(s[from:end], "/?#"); n >= 0 && !strings.Contains(s[from:from+n], ":") {
			host = from + n
		}
		n := strings.LastIndexByte(s[from:host], '@')
		if n < 0 {
			continue
		}
		login := s[from : from+n]
		if login == "" || login == Hidden {
			continue
		}
		if found != nil {
			found(login)
		}
		out.WriteString(s[done:from] + Hidden)
		done = from + n
	}
	out.WriteString(s[done:])
	return bareLogin.ReplaceAllStringFunc(out.String(), func(hit string) string {
		g := bareLogin.FindStringSubmatch(hit)
		if strings.HasPrefix(strings.ReplaceAll(g[3], `\`, ""), "//") || g[3] == Hidden || g[4] == "sha256" || IsReference(g[2]+g[3]) {
			return hit
		}
		if found != nil {
			found(g[3])
		}
		return g[1] + g[2] + Hidden + "@" + g[4]
	})
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
