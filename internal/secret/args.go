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
	// The one for cookies.
	cookieFlag = regexp.MustCompile(`^-[a-zA-Z]{0,4}b$`)
	// The same with its value, as one argument and within a text.
	userArg = regexp.MustCompile(`(?s)^(-[uU]=?|--(?:(?:proxy-)?user|login)=)([^\s:=/]+):(.+)$`)
	// A variable, as a shell sets it, and a value with more settings.
	variable       = regexp.MustCompile(`^[A-Za-z_]\w*=`)
	anotherSetting = regexp.MustCompile(`[,;&]\s*[\w.\-]+[=:]`)
	// A header of HTTP as an argument.
	headerArg = regexp.MustCompile(`(?s)^((?:--?[\w\-]+=)?)([\w\-]+)(:\s*)(\S.*)$`)
)

// cookies is the flag of curl for cookies.
const cookies = "-b"

// passwordFlags are the one-letter flags with which some programs take a
// password.
var passwordFlags = map[string]string{
	"mysql": "-p", "mysqldump": "-p", "mysqladmin": "-p", "mysqlimport": "-p", "mariadb": "-p", "mariadb-dump": "-p", "mariadb-admin": "-p", "mongo": "-p", "mongosh": "-p", "mongodump": "-p", "sshpass": "-p", "7z": "-p", "rar": "-p",
	"redis-cli": "-a", "redis-benchmark": "-a", "ldapsearch": "-w", "ldapmodify": "-w", "zip": "-P", "unzip": "-P", "sqlcmd": "-P", "bcp": "-P", "kinit": "-w", "cqlsh": "-p", "influx": "-password", "curl": cookies,
}

// Args returns arguments without their secrets, which the mask knows from then
// on: what follows a flag such as --password, the value of a setting such as
// -Dssl.key.password=, the login in an address and the second half of curl's -u
// NAME:PASSWORD. Words within an argument, such as a shell script, are treated
// like arguments.
func (m *Mask) Args(args []string) []string {
	var f finder
	shown := f.arguments(args)
	m.Add(f.all()...)
	for i, arg := range shown {
		shown[i] = m.Text(arg)
	}
	return shown
}

// maxDepth is how many levels of scripts within scripts are examined.
const maxDepth = 3

// A flagReader reads the arguments of a command line, one by one.
type flagReader struct {
	before  string
	letters []string // the flags for a password of the programs named so far
	next    string   // the flag whose secret value is the next argument
}

// add adds a program's flag for a password.
func (f *flagReader) add(letter string) {
	if !slices.Contains(f.letters, letter) {
		f.letters = append(f.letters, letter)
	}
}

// isPassword reports whether an argument is the value of a program's flag for a password.
// A value of curl's without "=" is a file with cookies.
func (f *flagReader) isPassword(flag, arg string) bool {
	if strings.HasPrefix(arg, "-") {
		return false
	}
	return strings.Contains(arg, "=") && slices.Contains(f.letters, cookies) && cookieFlag.MatchString(flag) || flag != cookies && slices.Contains(f.letters, flag)
}

// glued returns a program's flag for a password if an argument is one with its value.
func (f *flagReader) glued(arg string) string {
	if option.MatchString(arg) || slices.Contains(f.letters, arg) {
		return ""
	}
	for _, letter := range f.letters {
		if strings.HasPrefix(arg, letter) && (letter != cookies || strings.Contains(arg, "=")) {
			return letter
		}
	}
	return ""
}

// take reads an argument. If it is, or has, the secret of a flag, shown is the argument
// without it.
func (f *flagReader) take(arg string) (shown, secret string) {
	before, next := f.before, f.next
	f.before, f.next = arg, ""
	if flag, ok := passwordFlags[path.Base(arg)]; ok {
		f.add(flag)
	} else if arg == "login" && slices.Contains([]string{"docker", "podman", "oc"}, path.Base(before)) {
		f.add("-p")
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
	case f.isPassword(before, arg):
		return Hidden, arg
	case f.glued(arg) != "":
		letter := f.glued(arg)
		return letter + Hidden, arg[len(letter):]
	default:
		if shown, secret := setting(arg); secret != "" && strings.HasPrefix(arg, "-") {
			return shown, secret
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

// setting hides the value of an argument NAME=VALUE that is a secret.
func setting(arg string) (shown, secret string) {
	name, value, _ := strings.Cut(arg, "=")
	switch {
	case strings.ContainsAny(name, " \t\n;&|"): // a script, of which this is the first word
	case isSecret(name, value):
		return name + "=" + Hidden, value
	case strings.HasPrefix(name, "-") && variable.MatchString(value): // --env=NAME=VALUE
		shown, secret = setting(value)
		return name + "=" + shown, secret
	}
	return arg, ""
}

// arguments hides the secrets in arguments.
func (f *finder) arguments(args []string) []string {
	var r flagReader
	shown := make([]string, len(args))
	for i, arg := range args {
		isScript := r.before == "-c"
		hidden, secret := r.take(arg)
		if secret == "" && !isScript {
			hidden, secret = setting(arg)
		}
		if secret == "" {
			shown[i] = f.value(arg)
			continue
		}
		f.likely(secret) // a login module's text contains the password and more
		f.take(secret)
		shown[i] = hidden
	}
	return shown
}

// longestWord is the length at which an open quote is taken for an apostrophe, in bytes.
const longestWord = 2 << 10

// commandLine splits the line at a position, and the lines that continue it. If it cannot be
// split and may have a secret, a quote may end on another line.
func commandLine(s string, at int) (words []shellWord, end int) {
	end = continuedLine(s, at)
	words, err := splitWords(s[at:end])
	if err != nil && (strings.Contains(s[at:end], "-u") || lower(s[at:end]).mayHave(wordStems)) {
		for more := end; err != nil && more < len(s) && more-at < longestWord; {
			more = continuedLine(s, more+1)
			if words, err = splitWords(s[at:more]); err == nil {
				end = more
			}
		}
	}
	if err != nil {
		words = nil
	}
	return words, end
}

// flags hides the secrets of flags in the lines of a text that are command lines, also those
// in quotes within one. Its variables are hidden, too, if depth is 0.
func (f *finder) flags(s string, depth int) string {
	if depth > maxDepth || !strings.ContainsAny(s, "-=") {
		return s
	}
	var e edits
	for at := 0; at < len(s); {
		words, end := commandLine(s, at)
		var r flagReader
		for _, w := range words {
			if slices.Contains([]string{"|", "||", ";", "&&"}, s[at+w.from:at+w.to]) {
				r.letters = nil // another command follows
			}
			shown, secret := r.take(w.text)
			if strings.Contains(w.text, "LoginModule") {
				continue // it was masked before
			}
			from, to := at+w.from, at+w.to
			if secret == "" && depth == 0 && variable.MatchString(s[from:to]) && !anotherSetting.MatchString(w.text) {
				shown, secret = setting(w.text)
			}
			switch {
			case f.take(secret):
				e.replace(from, to, quoted(shown))
			case strings.ContainsAny(w.text, " \t\n"):
				if script := f.script(s[from:to], w.text, depth+1); script != s[from:to] {
					e.replace(from, to, script)
				}
			}
		}
		at = end + 1
	}
	return e.apply(s)
}

// script hides the secrets of flags in a word that may be a script: in its quotes if they
// are written there as they are.
func (f *finder) script(raw, text string, depth int) string {
	var within finder
	shown := within.flags(text, depth)
	f.found = append(f.found, within.found...)
	for _, secret := range within.found {
		if !strings.Contains(raw, secret) {
			return quoted(shown)
		}
		raw = strings.ReplaceAll(raw, secret, Hidden)
	}
	return raw
}

// isAddress reports whether what looks like NAME:PASSWORD is an address.
func isAddress(name, password string) bool {
	return strings.HasPrefix(password, "//") && slices.Contains([]string{"http", "https", "tcp", "udp", "ws", "wss", "kafka", "unix", "file"}, name)
}
