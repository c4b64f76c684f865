package secret

import (
	"regexp"
	"strings"
)

var (
	addressSign = regexp.MustCompile(`^:\\?/\\?/`)
	// What ends an address that is a whole argument: a blank behind what ends a host. A password
	// may have blanks.
	hostEnd = regexp.MustCompile(`(?s)^[^/?#]*[/?#]\S*`)
	// A login before a host without a scheme, up to its sign @.
	bareLogin = regexp.MustCompile(`(?:^|[\s"'=,(/])([^\s:@/"'=,(]+:)([^\s@"']+)$`)
	bareHost  = regexp.MustCompile(`^@(?:[\w\[(.\-]+)`)
	// A line of PostgreSQL's file of passwords, host:port:database:user:password.
	passLine = regexp.MustCompile(`^[\w.\-*]+:(?:\d+|\*):[^\s:]+:[^\s:]+:([^\r]+)`)
)

// address hides the login of the address whose sign :// is at i, and returns where to go on; 0:
// there is no such sign. A password may contain characters that end an address, since people
// forget to escape them: if a colon comes before the first slash, everything up to the last @ is
// the login.
func (s *scanner) address(i int) int {
	t := s.t
	sign := addressSign.FindString(t[i:min(i+5, len(t))])
	if sign == "" {
		return 0
	}
	from := i + len(sign)
	end := s.lineEnd(from)
	if s.ends == toEnd {
		end = len(t)
	}
	if !strings.Contains(t[from:end], "@") {
		return from
	}
	scheme := strings.TrimRight(strings.TrimSuffix(t[max(0, i-mostName):i], `\`), "+-.abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
	quote := quoteBefore(scheme)
	stops := " \t\r\""
	if strings.HasSuffix(scheme, "<") || strings.HasSuffix(scheme, ">") {
		stops += "<>"
	}
	switch n := strings.IndexAny(t[from:end], stops); {
	case s.ends == toEnd && argumentHead.MatchString(scheme):
		if host := hostEnd.FindString(t[from:]); host != "" {
			end = from + len(host)
		}
	case quote != "" && strings.Contains(t[from:end], quote):
		end = from + strings.Index(t[from:end], quote)
	case n >= 0:
		end = from + n
	}
	if n := strings.IndexAny(t[from:end], "/?#"); n >= 0 && !strings.Contains(t[from:from+n], ":") {
		end = from + n
	}
	n := strings.LastIndexByte(t[from:end], '@')
	if n <= 0 || t[from:from+n] == Hidden {
		return from
	}
	s.found = append(s.found, span{from, from + n, true})
	return from + n
}

// bareLogins hides passwords of logins before a host without a scheme: u:p@tcp(h:1)/d.
func (s *scanner) bareLogins() {
	t := s.t
	for i := strings.IndexByte(t, '@'); i >= 0; {
		from := max(0, i-mostTag)
		from += strings.LastIndexAny(t[from:i], " \t\r\n\"'@") + 1
		if g := bareLogin.FindStringSubmatchIndex(t[from:i]); g != nil && bareHost.MatchString(t[i:min(len(t), i+8)]) && !strings.HasPrefix(t[i:], "@sha256") {
			password := t[from+g[4] : i]
			if !strings.HasPrefix(strings.ReplaceAll(password, `\`, ""), "//") && !IsReference(t[from+g[2]:i]) && password != Hidden {
				s.found = append(s.found, span{from + g[4], i, true})
			}
		}
		next := strings.IndexByte(t[i+1:], '@')
		if next < 0 {
			break
		}
		i += 1 + next
	}
}

// passFile hides the passwords of a file of PostgreSQL.
func (s *scanner) passFile() {
	for at := 0; at < len(s.t); {
		end := s.lineEnd(at)
		if line := s.t[at:end]; strings.Count(line, ":") > 3 {
			if g := passLine.FindStringSubmatchIndex(line); g != nil {
				s.hide(at+g[2], at+g[3])
			}
		}
		at = end + 1
	}
}
