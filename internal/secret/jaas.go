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

// moduleOption is the next NAME=VALUE. Values are in quotes, which are escaped if the whole
// is in quotes; a value without a closing quote continues to the end of the text. A
// backslash is at a line's end, as in properties files.
var moduleOption = regexp.MustCompile(`(?s)^[\s\\]*([^\s\\=;"']+)[ \t]*=[ \t]*(\\"[^"]*"?|\\'[^']*'?|"(?:[^"\\]|\\.)*["\\]?|'(?:[^'\\]|\\.)*['\\]?|[^\s;"']*)`)

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
			g := moduleOption.FindStringSubmatchIndex(s)
			if g == nil {
				break
			}
			name, value := s[g[2]:g[3]], s[g[4]:g[5]]
			bare := strings.Trim(value, `\"'`)
			if !slices.Contains(harmless, strings.ToLower(name)) && !IsReference(bare) && bare != "" {
				if found != nil && bare != Hidden {
					found(bare)
				}
				value = Hidden
			}
			out.WriteString(s[:g[4]] + value)
			s = s[g[1]:]
		}
	}
	out.WriteString(s)
	return out.String()
}
