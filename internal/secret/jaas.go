package secret

import (
	"regexp"
	"slices"
	"strings"
)

// loginModule is the beginning of an entry of Java's Authentication and
// Authorization Service, as Kafka's brokers and clients have it: a module's
// class, how it counts, and then options up to a semicolon
// (javax.security.auth.login.Configuration).
var loginModule = regexp.MustCompile(`LoginModule[\s\\]+(?i:required|requisite|sufficient|optional)\b`)

// harmless are the options of the usual modules that hold no secret. Others are
// taken out: a server's Plain module holds a password under each user's name,
// user_NAME, and modules of one's own hold what they like.
var harmless = []string{
	"username", "principal", "keytab", "usekeytab", "storekey", "useticketcache", "ticketcache", "renewtgt",
	"servicename", "debug", "donotprompt", "isinitiator", "refreshkrb5config", "clientid", "scope", "tokenauth",
	"usefirstpass", "tryfirstpass", "storepass", "clearpass", "file", "hostname", "port", "useldaps",
}

// hideLoginModules takes the values of a login module's options out, wherever
// in the text one stands, and hands each to found.
func hideLoginModules(s string, found func(string)) string {
	if !strings.Contains(s, "LoginModule") {
		return s
	}
	var out strings.Builder
	for {
		at := loginModule.FindStringIndex(s)
		if at == nil {
			break
		}
		out.WriteString(s[:at[1]])
		s = s[at[1]:]
		for {
			before, name, value, rest, ok := moduleOption(s)
			if !ok {
				break
			}
			bare := strings.Trim(value, `\"'`)
			if !slices.Contains(harmless, strings.ToLower(name)) && !IsReference(bare) && bare != "" {
				if found != nil && bare != Hidden {
					found(bare)
				}
				value = Hidden
			}
			out.WriteString(before + value)
			s = rest
		}
	}
	out.WriteString(s)
	return out.String()
}

// moduleOption is the first NAME=VALUE of s: all before the value, the name, the
// value with its quotes, and what follows. Values stand in quotes, which may
// be escaped since the whole stands in quotes; one whose quotes do not end
// goes on to the end of the text.
func moduleOption(s string) (before, name, value, rest string, ok bool) {
	blank := func(i int) int {
		for i < len(s) && strings.IndexByte(" \t\r\n\\", s[i]) >= 0 { // the backslash is a properties file's at a line's end
			i++
		}
		return i
	}
	start := blank(0)
	end := start
	for end < len(s) && strings.IndexByte(" \t\r\n\\=;\"'", s[end]) < 0 {
		end++
	}
	i := end
	for i < len(s) && (s[i] == ' ' || s[i] == '\t') {
		i++
	}
	if end == start || i >= len(s) || s[i] != '=' {
		return "", "", "", "", false
	}
	i++
	for i < len(s) && (s[i] == ' ' || s[i] == '\t') {
		i++
	}
	from := i
	escaped := i+1 < len(s) && s[i] == '\\'
	if escaped {
		i++
	}
	if i < len(s) && (s[i] == '"' || s[i] == '\'') {
		i = closing(s, i, escaped)
	} else {
		for i = from; i < len(s) && strings.IndexByte(" \t\r\n;\"'", s[i]) < 0; {
			i++
		}
	}
	return s[:from], s[start:end], s[from:i], s[i:], true
}

// closing is where the value ends whose quote stands at i. Where that quote is
// escaped, the one that ends it is, too.
func closing(s string, i int, escaped bool) int {
	quote := s[i]
	for i++; i < len(s); i++ {
		switch {
		case s[i] == quote:
			return i + 1
		case s[i] == '\\' && !escaped:
			i++ // keeps the next
		}
	}
	return len(s)
}
