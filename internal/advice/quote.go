package advice

import "strings"

// Quote quotes an argument of a command to type, for a POSIX shell, where necessary.
func Quote(s string) string {
	if s != "" && !strings.ContainsAny(s, " \t\n'\"\\$&|;<>()*?[]#~`{}!") {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
