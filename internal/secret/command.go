package secret

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

var (
	// The flag of curl for NAME:PASSWORD, alone or after others of one letter, and with its value;
	// the one for cookies.
	userFlag   = regexp.MustCompile(`^(?:-[a-zA-Z]{0,4}[uU]|--(?:(?:proxy-)?user|login))$`)
	userArg    = regexp.MustCompile(`(?s)^(?:-[uU]=?|--(?:(?:proxy-)?user|login)=)([^\s:=/]+):(.+)$`)
	cookieFlag = regexp.MustCompile(`^-[a-zA-Z]{0,4}b$`)
	// What looks like NAME:PASSWORD and is an address.
	isAddress = regexp.MustCompile(`^(?:https?|tcp|udp|wss?|kafka|unix|file)://`)
	separator = regexp.MustCompile(`^(?:\|\|?|&&|;)$`)
)

// cookies is the flag of curl for cookies.
const cookies = "-b"

// passwordFlags are the one-letter flags with which some programs take a password; some have one
// only after login.
var (
	passwordFlags = map[string]string{
		"mysql": "-p", "mysqldump": "-p", "mysqladmin": "-p", "mysqlimport": "-p", "mariadb": "-p", "mariadb-dump": "-p", "mariadb-admin": "-p", "mongo": "-p", "mongosh": "-p", "mongodump": "-p", "sshpass": "-p", "7z": "-p", "rar": "-p",
		"redis-cli": "-a", "redis-benchmark": "-a", "ldapsearch": "-w", "ldapmodify": "-w", "zip": "-P", "unzip": "-P", "sqlcmd": "-P", "bcp": "-P", "kinit": "-w", "cqlsh": "-p", "influx": "-password", "curl": cookies,
	}
	loginPrograms = []string{"docker", "podman", "oc"}
)

// mayBeCommand reports whether a word of a text may begin a command line, or is a flag of one, with
// a secret that has no other sign.
func mayBeCommand(word string) bool {
	return passwordFlags[word] != "" || slices.Contains(loginPrograms, word) || userFlag.MatchString(word) || strings.HasPrefix(word, "-u") || strings.HasPrefix(word, "-U")
}

// flags returns for each word of a command line where the secret of a flag begins in it; -1: it has
// none.
func flags(words []string) []int {
	var letters []string // the flags for a password of the programs named so far
	before, next := "", ""
	at := make([]int, len(words))
	for i, word := range words {
		last, flag := before, next
		before, next = word, ""
		if letter := passwordFlags[path.Base(word)]; letter != "" && !slices.Contains(letters, letter) {
			letters = append(letters, letter)
		} else if word == "login" && slices.Contains(loginPrograms, path.Base(last)) {
			letters = append(letters, "-p")
		}
		isFlag, hasSign := strings.HasPrefix(word, "-"), strings.Contains(word, "=")
		if isFlag && !hasSign && isLikely(word) {
			next = word
		}
		glued := slices.IndexFunc(letters, func(letter string) bool {
			return strings.HasPrefix(word, letter) && !slices.Contains(letters, word) && !option.MatchString(word) && (letter != cookies || hasSign)
		})
		user := userArg.FindStringSubmatchIndex(word)
		name, _, isPair := strings.Cut(word, ":")
		at[i] = -1
		switch {
		case word == "" || IsReference(word) || word == Hidden:
		case flag != "" && (passwordFlag.MatchString(flag) || !option.MatchString(word)),
			strings.HasPrefix(last, "-") && authName.MatchString(last) && isLogin(word),
			!isFlag && last != cookies && slices.Contains(letters, last),
			!isFlag && hasSign && cookieFlag.MatchString(last) && slices.Contains(letters, cookies):
			at[i] = 0
		case userFlag.MatchString(last) && isPair && !isAddress.MatchString(word):
			at[i] = len(name) + 1
		case user != nil && !isAddress.MatchString(word[user[2]:]):
			at[i] = user[4]
		case glued >= 0:
			at[i] = len(letters[glued])
		}
	}
	return at
}

// command hides the secrets of the command line, or of the flag, whose first word is t[from:to].
func (s *scanner) command(from, to int) {
	t, first := s.t, from
	isList := strings.HasSuffix(t[:from], "- ")
	if q := quoteBefore(t[:from]); q != "" && strings.HasPrefix(t[to:], q) { // a word alone in quotes
		first -= len(q)
		isList = true
	}
	var words []string
	s.words = s.words[:0]
	for i := first; len(words) < 64 && i < len(t); {
		next := len(t) - len(strings.TrimLeft(t[i:], " \t\r\n"))
		switch c := t[i]; {
		case isList && (c == ',' || c == '[') || s.skip(i) > i:
			i = max(i+1, s.skip(i))
			continue
		case (c == '\n' || c == '\r') && isList && next < len(t) && (isQuote(t[next]) || strings.HasPrefix(t[next:], "- ")):
			if i = next; !isQuote(t[next]) {
				i += len("- ")
			}
			continue
		}
		end := i
		if q := s.quoteAt(i); len(q) > 1 || q != "" && !s.within(first, q[len(q)-1]) {
			end = max(i, s.quoteEnd(i, min(len(t), i+mostValue)))
		}
		if end = s.word(end, first, "", !isList); end == i || separator.MatchString(t[i:end]) { // another command follows
			break
		}
		word := strings.TrimLeft(t[i:end], "\\\"'`")
		s.words = append(s.words, end-len(word))
		words = append(words, strings.TrimRight(word, "\\\"'`"))
		i = end
	}
	for i, from := range flags(words) {
		if from >= 0 {
			s.hide(s.words[i]+from, s.words[i]+len(words[i]))
		}
	}
}
