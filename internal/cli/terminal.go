package cli

import (
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"carronade/internal/report"
)

// style is how results may look: color only on a terminal that wants it.
func (s *session) style() report.Style {
	tty := isTerminal(s.Program.Out)
	return report.Style{
		Color: tty && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb",
		ASCII: !utf8Locale(),
	}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// utf8Locale guesses whether block characters arrive as such. Nothing set is
// taken for yes: that is a container or a pipeline, and their readers know
// UTF-8.
func utf8Locale() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := os.Getenv(name); v != "" {
			v = strings.ToUpper(v)
			return strings.Contains(v, "UTF-8") || strings.Contains(v, "UTF8") || (v != "C" && v != "POSIX")
		}
	}
	return true
}
