package secret

import (
	"regexp"
	"slices"
	"strings"
)

// loginModule is the beginning of an entry of Java's Authentication and
// Authorization Service, as in Kafka's brokers and clients: a module's class,
// its control flag, and then options up to a semicolon
// (javax.security.auth.login.Configuration).
var loginModule = regexp.MustCompile(`LoginModule[\s\\]+(?i:required|requisite|sufficient|optional)\b`)

// harmless are the options of the usual modules that are not secret. Others are
// removed: a server's Plain module has a password under each user's name,
// user_NAME, and custom modules may have any options.
var harmless = []string{
	"username", "principal", "keytab", "usekeytab", "storekey", "useticketcache", "ticketcache", "renewtgt",
	"servicename", "debug", "donotprompt", "isinitiator", "refreshkrb5config", "clientid", "scope", "tokenauth",
	"usefirstpass", "tryfirstpass", "storepass", "clearpass", "file", "hostname", "port", "useldaps",
}

// hideLoginModules removes the values of the options of login modules, anywhere
// in the text, and passes each to found.
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

// moduleOption returns the first NAME=VALUE of s: everything before the value,
// the name, the value with its quotes, and the rest. Values are in quotes,
// which are escaped if the whole is in quotes; a value without a closing quote
// continues to the end of the text.
func moduleOption(s string) (before, name, value, rest string, ok bool) {
	blank := func(i int) int {
		for i < len(s) && strings.IndexByte(" \t\r\n\\", s[i]) >= 0 { // a backslash at a line's end, as in properties files
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

// closing returns the end of the value whose quote is at i. If that quote is
// escaped, the closing one is, too.
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
