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

// loginModules hides the values of the options of login modules, anywhere in the text.
func (f *finder) loginModules(s string) string {
	if !strings.Contains(s, "LoginModule") {
		return s
	}
	var e edits
	done := 0
	for _, at := range loginModule.FindAllStringIndex(s, -1) {
		if at[0] < done {
			continue
		}
		done = at[1]
		for g := moduleOption.FindStringSubmatchIndex(s[done:]); g != nil; g = moduleOption.FindStringSubmatchIndex(s[done:]) {
			name, value := s[done+g[2]:done+g[3]], strings.Trim(s[done+g[4]:done+g[5]], `\"'`)
			if !slices.Contains(harmless, strings.ToLower(name)) && f.take(value) {
				e.replace(done+g[4], done+g[5], Hidden)
			}
			done += g[1]
		}
	}
	return e.apply(s)
}
