package secret

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
)

// mostKey is the most between the first and the last line of a private key, in bytes.
const mostKey = 32 << 10

var (
	// The first and the last line of a private key; what may be a line of one that lacks the
	// other, behind its first line and before its last.
	keyMark   = regexp.MustCompile(`-----(BEGIN|END) [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----`)
	keyBehind = regexp.MustCompile(`(?m)\A.*(?:\n[ \t]*(?:\S{16,}|\S*[0-9+/=]\S*)?[ \t\r]*$)*`)
	keyBefore = regexp.MustCompile(`(?m)(?:^[ \t]*[A-Za-z0-9+/=]{16,}[ \t\r]*\n)*.*\z`)
)

// inKey reports whether a text ends within a private key.
func inKey(text []byte) bool {
	text = text[max(0, len(text)-mostKey):]
	begin := bytes.LastIndex(text, []byte("-----BEGIN "))
	return begin >= 0 && !bytes.Contains(text[begin:], []byte("-----END "))
}

// privateKeys finds what is between the first line of a key and the last, whatever a log has there,
// and the lines of a key that lacks one of them.
func (s *scanner) privateKeys() {
	t := s.t
	if !strings.Contains(t, "PRIVATE KEY") {
		return
	}
	marks := append(keyMark.FindAllStringSubmatchIndex(t, -1), []int{len(t), len(t), len(t), len(t)})
	done := 0
	for i, g := range marks[:len(marks)-1] {
		next := marks[i+1]
		switch isEnd := g[3]-g[2] == len("END"); {
		case isEnd && done < g[1]:
			s.hide(g[0]-len(keyBefore.FindString(t[max(done, g[0]-mostKey):g[0]])), g[0])
		case isEnd:
		case next[3]-next[2] == len("END") && next[0]-g[1] <= mostKey:
			s.hide(next[0]-len(strings.TrimLeft(t[g[1]:next[0]], " \t\r\n")), next[0])
			done = next[1]
		default:
			s.hide(g[1], g[1]+len(keyBehind.FindString(t[g[1]:min(next[0], g[1]+mostKey)])))
		}
		done = max(done, g[1])
	}
}

var (
	// The control flag behind the class of a module in an entry of Java's Authentication and
	// Authorization Service, as in Kafka's brokers and clients (javax.security.auth.login.Configuration).
	moduleFlag = regexp.MustCompile(`^[\s\\]+(?i:required|requisite|sufficient|optional)\b`)
	// The next NAME=VALUE behind it, up to a semicolon. Values are in quotes, which are escaped if
	// the whole is in quotes; a value without a closing quote continues to the end of the text. A
	// backslash is at a line's end, as in properties files.
	moduleOption = regexp.MustCompile(`(?s)^[\s\\]*([^\s\\=;"']+)[ \t]*=[ \t]*(&(?:quot|apos|#3[49]);.*?&(?:quot|apos|#3[49]);|\\"[^"]*"?|\\'[^']*'?|"(?:[^"\\]|\\.)*["\\]?|'(?:[^'\\]|\\.)*['\\]?|[^\s;"']*)`)
	// The options of the usual modules that are not secret. Others are removed: a server's Plain
	// module has a password under each user's name, user_NAME, and custom modules may have any
	// options.
	harmless = strings.Fields(`username principal keytab usekeytab storekey useticketcache ticketcache renewtgt servicename debug donotprompt isinitiator
		refreshkrb5config clientid scope tokenauth usefirstpass tryfirstpass storepass clearpass file hostname port useldaps`)
)

// loginModule hides the values of the options of a login module, whose name ends at i.
func (s *scanner) loginModule(i int) int {
	i += len(moduleFlag.FindString(s.some(i)))
	for {
		g := moduleOption.FindStringSubmatchIndex(s.some(i))
		if g == nil {
			return i
		}
		if !slices.Contains(harmless, strings.ToLower(s.t[i+g[2]:i+g[3]])) {
			s.hide(i+g[4], i+g[5])
		}
		i += g[1]
	}
}
