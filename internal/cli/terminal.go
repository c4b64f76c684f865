package cli

import (
	"io"
	"os"

	"carronade/internal/live"
	"carronade/internal/report"
)

// terminal says what can be shown where w goes; what is no file shows text.
func terminal(w io.Writer) live.Terminal {
	if f, ok := w.(*os.File); ok {
		return live.Detect(f, os.Getenv)
	}
	return live.Terminal{}
}

// style is how results may look: color only on a terminal that wants it.
func (s *session) style() report.Style {
	t := terminal(s.Program.Out)
	return report.Style{Color: t.Color, ASCII: t.ASCII}
}
