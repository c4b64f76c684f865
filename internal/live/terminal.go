package live

import (
	"os"
	"runtime"
	"strings"

	"golang.org/x/term"
)

// Detect says what a file is to a watcher and to a report. getenv is
// os.Getenv; NO_COLOR (https://no-color.org), TERM and the locale count.
func Detect(f *os.File, getenv func(string) string) Terminal {
	fd := int(f.Fd())
	tty := term.IsTerminal(fd)
	// The old Windows console takes escapes for text; what understands them
	// says so in one of these.
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

// utf8Locale says whether block characters can be expected to arrive. Where
// nothing is set they can: that is a container or a pipeline, and what reads
// those knows UTF-8.
func utf8Locale(getenv func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToUpper(getenv(name)); v != "" {
			return strings.Contains(v, "UTF-8") || strings.Contains(v, "UTF8")
		}
	}
	return true
}
