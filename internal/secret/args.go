package secret

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

var (
	// The flag of curl for NAME:PASSWORD, alone or after others of one letter.
	userFlag = regexp.MustCompile(`^(?:-[a-zA-Z]{0,4}[uU]|--(?:(?:proxy-)?user|login))$`)
	// The same with its value, as one argument and within a text.
	userArg = regexp.MustCompile(`(?s)^(-[uU]=?|--(?:(?:proxy-)?user|login)=)([^\s:=/]+):(.+)$`)
	// A variable, as a shell sets it, and a value with more settings.
	variable       = regexp.MustCompile(`^[A-Za-z_]\w*=`)
	anotherSetting = regexp.MustCompile(`[,;&]\s*[\w.\-]+[=:]`)
	// A header of HTTP as an argument.
	headerArg = regexp.MustCompile(`(?s)^((?:--?[\w\-]+=)?)([\w\-]+)(:\s*)(\S.*)$`)
)

// passwordFlags are the one-letter flags with which some programs take a
// password.
var passwordFlags = map[string]string{
	"mysql": "-p", "mysqldump": "-p", "mysqladmin": "-p", "mysqlimport": "-p", "mariadb": "-p", "mariadb-dump": "-p", "mariadb-admin": "-p", "mongo": "-p", "mongosh": "-p", "mongodump": "-p", "sshpass": "-p", "7z": "-p", "rar": "-p",
	"redis-cli": "-a", "redis-benchmark": "-a", "ldapsearch": "-w", "ldapmodify": "-w", "zip": "-P", "unzip": "-P", "sqlcmd": "-P", "bcp": "-P", "kinit": "-w", "cqlsh": "-p", "influx": "-password",
}

// Args returns arguments without their secrets, which the mask knows from then
// on: what follows a flag such as --password, the value of a setting such as
// -Dssl.key.password=, the login in an address and the second half of curl's -u
// NAME:PASSWORD. Words within an argument, such as a shell script, are treated
// like arguments.
func (m *Mask) Args(args []string) []string {
	shown, found := arguments(args)
	m.Add(found...)
	for i, arg := range shown {
		shown[i] = m.Text(arg)
	}
	return shown
}

// maxDepth is how many levels of scripts within scripts are examined.
const maxDepth = 3

// A flagReader reads the arguments of a command line, one by one.
type flagReader struct {
	before string
	letter string // the program's flag for a password
	next   string // the flag whose secret value is the next argument
}

// take reads an argument. If it is, or has, the secret of a flag, shown is the argument
// without it.
func (f *flagReader) take(arg string) (shown, secret string) {
	before, next := f.before, f.next
	f.before, f.next = arg, ""
	if flag, ok := passwordFlags[path.Base(arg)]; ok {
		f.letter = flag
	} else if arg == "login" && slices.Contains([]string{"docker", "podman", "oc"}, path.Base(before)) {
		f.letter = "-p"
	}
	if strings.HasPrefix(arg, "-") && !strings.Contains(arg, "=") && isLikelyName(arg) {
		f.next = arg
	}
	user := userArg.FindStringSubmatch(arg)
	switch {
	case arg == "" || IsReference(arg) || arg == Hidden:
	case next != "" && (password.MatchString(next) || !option.MatchString(arg)):
		return Hidden, arg
	case userFlag.MatchString(before) && strings.Contains(arg, ":") && !isAddress(strings.SplitN(arg, ":", 2)[0], strings.SplitN(arg, ":", 2)[1]):
		name, password, _ := strings.Cut(arg, ":")
		return name + ":" + Hidden, password
	case user != nil && !isAddress(user[2], user[3]):
		return user[1] + user[2] + ":" + Hidden, user[3]
	case strings.HasPrefix(before, "-") && isAuth(before) && isLogin(arg):
		return Hidden, arg
	case f.letter != "" && before == f.letter && !strings.HasPrefix(arg, "-"):
		return Hidden, arg
	case f.letter != "" && strings.HasPrefix(arg, f.letter) && len(arg) > len(f.letter) && !option.MatchString(arg):
		return f.letter + Hidden, arg[len(f.letter):]
	default:
		name, value, setting := strings.Cut(arg, "=")
		if setting && strings.HasPrefix(arg, "-") && !strings.ContainsAny(name, " \t\n;&|") && isSecret(name, value) {
			return name + "=" + Hidden, value
		}
		if h := headerArg.FindStringSubmatch(arg); h != nil && strings.HasPrefix(before+arg, "-") && isLikelyName(h[2]) && !IsReference(h[4]) {
			return h[1] + h[2] + h[3] + Hidden, h[4]
		}
	}
	return arg, ""
}

// isSecret reports whether a setting in a text is a secret.
func isSecret(name, value string) bool {
	return value != "" && !IsReference(value) && (Is(name, value) || isLikelyName(name) && !isMode(name, value))
}

// arguments returns arguments without their secrets, and the secrets.
func arguments(args []string) (shown, found []string) {
	var f flagReader
	find := func(v string) { found = append(found, parts(v)...) }
	for _, arg := range args {
		before := f.before
		hidden, secret := f.take(arg)
		name, value, setting := strings.Cut(arg, "=")
		script := before == "-c" || strings.ContainsAny(name, " \t\n;&|") // the name is only the first word
		switch {
		case secret != "":
			hideLikely(secret, find) // a login module's text contains the password and more
			find(secret)
			arg = hidden
		case setting && !script && isSecret(name, value):
			hideLikely(value, find)
			find(value)
			arg = name + "=" + Hidden
		default:
			arg = hideLikely(arg, find)
		}
		shown = append(shown, arg)
	}
	return shown, slices.DeleteFunc(found, func(s string) bool { return s == Hidden })
}

// longestWord is the length at which an open quote is taken for an apostrophe, in bytes.
const longestWord = 2 << 10

// hideFlags removes the secrets of flags from the lines of a text that are command lines,
// also those in quotes within one.
func hideFlags(s string, depth int, found func(string)) string {
	if depth > maxDepth || !strings.ContainsAny(s, "-=") {
		return s
	}
	var out strings.Builder
	for s != "" {
		n := continuedLine(s, 0)
		words, err := splitWords(s[:n])
		grows := err != nil && (strings.Contains(s[:n], "-u") || lower(s[:n]).mayHave(wordStems))
		for more := n; grows && err != nil && more < len(s) && more < longestWord; { // a quote may end on another line
			more = continuedLine(s, more+1)
			if words, err = splitWords(s[:more]); err == nil {
				n = more
			}
		}
		if err != nil {
			words = nil
		}
		line := s[:n]
		s = s[n:]
		var f flagReader
		done := 0
		for _, w := range words {
			shown, secret := f.take(w.text)
			if strings.Contains(w.text, "LoginModule") {
				continue // it was masked before
			}
			raw := line[w.from:w.to]
			if name, value, _ := strings.Cut(w.text, "="); depth == 0 && secret == "" && variable.MatchString(raw) && isSecret(name, value) && !anotherSetting.MatchString(value) {
				shown, secret = name+"="+Hidden, value
			}
			if secret == "" && strings.ContainsAny(w.text, " \t\n") {
				var within []string
				shown = hideFlags(w.text, depth+1, func(v string) { within = append(within, v) })
				for _, v := range within {
					secret = v
					raw = strings.ReplaceAll(raw, v, Hidden)
				}
				if secret != "" && strings.Contains(raw, Hidden) {
					shown = ""
				}
				for _, v := range within[:max(len(within)-1, 0)] {
					if found != nil {
						found(v)
					}
				}
			}
			if secret == "" || secret == Hidden {
				continue
			}
			if found != nil {
				found(secret)
			}
			if shown != "" {
				raw = quoted(shown)
			}
			out.WriteString(line[done:w.from] + raw)
			done = w.to
		}
		out.WriteString(line[done:])
		if s != "" {
			out.WriteByte('\n')
			s = s[1:]
		}
	}
	return out.String()
}

// isAddress reports whether what looks like NAME:PASSWORD is an address.
func isAddress(name, password string) bool {
	return strings.HasPrefix(password, "//") && slices.Contains([]string{"http", "https", "tcp", "udp", "ws", "wss", "kafka", "unix", "file"}, name)
}
