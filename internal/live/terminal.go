package live

import (
	"os"
	"runtime"
	"strings"

	"golang.org/x/term"
)

// Detect returns a file's capabilities for watchers and reports. getenv is
// os.Getenv; it is asked for NO_COLOR (https://no-color.org), TERM and the locale.
func Detect(f *os.File, getenv func(string) string) Terminal {
	fd := int(f.Fd())
	tty := term.IsTerminal(fd)
	// The old Windows console prints escape sequences as text; terminals that
	// support them set one of these.
	dumb := getenv("TERM") == "dumb" ||
		runtime.GOOS == "windows" && getenv("WT_SESSION") == "" && getenv("TERM") == ""
	return Terminal{
		Rewrite: tty && !dumb,
		Color:   tty && !dumb && getenv("NO_COLOR") == "",
		ASCII:   !utf8Locale(getenv),
		Columns: func() int {
			n, _, err := term.GetSize(fd)
			if err != nil {
				return 0
			}
			return n
		},
	}
}

// utf8Locale reports whether block characters can be shown. If no locale is set
// they can: that is usual in containers and pipelines, whose readers support UTF-8.
func utf8Locale(getenv func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToUpper(getenv(name)); v != "" {
			return strings.Contains(v, "UTF-8") || strings.Contains(v, "UTF8")
		}
	}
	return true
}
