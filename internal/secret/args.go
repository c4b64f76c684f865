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
	// A header of HTTP as an argument.
	headerArg = regexp.MustCompile(`(?s)^((?:--?[\w\-]+=)?)([\w\-]+)(:\s*)(\S.*)$`)
	userText  = regexp.MustCompile(`(?:^|[\s"'])(?:-[a-zA-Z]{0,4}[uU](?:[ \t]+|=)|-[uU]|--(?:proxy-)?user(?:[ \t]+|=))`)
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
	shown, found := m.arguments(args, 0)
	m.Add(found...)
	for i, arg := range shown {
		shown[i] = m.Text(arg)
	}
	return shown
}

// maxDepth is how many levels of scripts within scripts are examined.
const maxDepth = 3

// arguments returns arguments without their secrets, and the secrets.
func (m *Mask) arguments(args []string, depth int) (shown, found []string) {
	shown = make([]string, 0, len(args))
	letter := "" // the program's flag for a password
	next := ""   // the flag whose secret value is this argument
	find := func(v string) { found = append(found, parts(v)...) }
	for i, arg := range args {
		before := ""
		if i > 0 {
			before = args[i-1]
		}
		if flag, ok := passwordFlags[path.Base(arg)]; ok {
			letter = flag
		} else if arg == "login" && slices.Contains([]string{"docker", "podman", "oc"}, path.Base(before)) {
			letter = "-p"
		}
		name, value, setting := strings.Cut(arg, "=")
		script := before == "-c" || strings.ContainsAny(name, " \t\n;&|") // the name is only the first word
		header := headerArg.FindStringSubmatch(arg)
		user := userArg.FindStringSubmatch(arg)
		switch {
		case next != "" && arg != "" && (password.MatchString(next) || !option.MatchString(arg)):
			if IsReference(arg) {
				break
			}
			find(arg)
			arg = Hidden
		case userFlag.MatchString(before) && strings.Contains(arg, ":"):
			user, password, _ := strings.Cut(arg, ":")
			found, arg = append(found, password), user+":"+Hidden
		case user != nil && !isAddress(user[2], user[3]):
			found, arg = append(found, user[3]), user[1]+user[2]+":"+Hidden
		case strings.HasPrefix(before, "-") && !IsReference(arg) && isAuth(before) && isLogin(arg):
			find(arg)
			arg = Hidden
		case letter != "" && before == letter && arg != "" && !strings.HasPrefix(arg, "-"):
			find(arg)
			arg = Hidden
		case letter != "" && strings.HasPrefix(arg, letter) && len(arg) > len(letter) && !option.MatchString(arg):
			find(arg[len(letter):])
			arg = letter + Hidden
		case setting && !script && value != "" && !IsReference(value) && (Is(name, value) || isLikelyName(name) && !isMode(name, value)):
			hideLikely(value, find) // a login module's text contains the password and more
			find(value)
			arg = name + "=" + Hidden
		case header != nil && isLikelyName(header[2]) && !IsReference(header[4]):
			hideLikely(header[4], find)
			find(header[4])
			arg = header[1] + header[2] + header[3] + Hidden
		default:
			if depth < maxDepth && strings.ContainsAny(arg, " \t\n") {
				if words, err := Split(arg); err == nil {
					_, within := m.arguments(words, depth+1)
					found = append(found, within...)
				}
			}
			arg = hideLikely(arg, find)
		}
		next = ""
		if strings.HasPrefix(args[i], "-") && !setting && isLikelyName(args[i]) {
			next = args[i]
		}
		shown = append(shown, arg)
	}
	return shown, slices.DeleteFunc(found, func(s string) bool { return s == Hidden })
}

// isAddress reports whether what looks like NAME:PASSWORD is an address.
func isAddress(name, password string) bool {
	return strings.HasPrefix(password, "//") && slices.Contains([]string{"http", "https", "tcp", "udp", "ws", "wss", "kafka", "unix", "file"}, name)
}

// hideUsers removes the passwords after curl's -u and --user from a text, with
// or without quotes.
func hideUsers(s string, found func(string)) string {
	if !strings.Contains(s, "-") {
		return s
	}
	var out strings.Builder
	done := 0
	for _, at := range userText.FindAllStringIndex(s, -1) {
		from := at[1]
		if from < done || from >= len(s) || isBlank(s[from]) {
			continue
		}
		outer := byte(0)
		if c := s[at[0]]; isQuote(c) {
			outer = c
		}
		end := wordEnd(s, from, outer)
		if isQuote(s[from]) || s[from] == '\\' && from+1 < len(s) && isQuote(s[from+1]) {
			end = continuedEnd(s, quoteEnd(s, from), separator{})
		}
		name, password, ok := strings.Cut(s[from:end], ":")
		bare := strings.Trim(password, `\"'`)
		if !ok || strings.Trim(name, `\"'`) == "" || strings.ContainsAny(name, "=/ ") || bare == "" || bare == Hidden || isAddress(strings.Trim(name, `\"'`), password) {
			continue
		}
		if found != nil {
			found(bare)
		}
		shut := ""
		if c := strings.TrimLeft(name, `\`); c != "" && isQuote(c[0]) {
			shut = s[from : from+len(name)-len(c)+1]
		}
		out.WriteString(s[done:from] + name + ":" + Hidden + shut)
		done = end
	}
	out.WriteString(s[done:])
	return out.String()
}
