package cli

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"carronade/internal/cli/cmdutil"
	"carronade/internal/layout"
	"carronade/internal/live"
)

// terminal describes the terminal behind w; anything that is not a file gets plain text.
func terminal(w io.Writer) live.Terminal {
	if f, ok := w.(*os.File); ok {
		return live.Detect(f, os.Getenv)
	}
	return live.Terminal{}
}

// style returns the style of results: color only on a terminal that supports it.
func (s *session) style() layout.Style {
	t := terminal(s.Program.Out)
	return layout.Style{Color: t.Color, ASCII: t.ASCII}
}

// interactive reports whether a stream is a terminal.
func interactive(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// console returns the console of the commands.
func (s *session) console() cmdutil.Console {
	c := cmdutil.Console{Out: s.out, Note: s.note, Warn: s.warn, Style: s.style(), Terminal: interactive(s.Program.Out), In: s.In}
	if c.Terminal {
		c.Columns = cmp.Or(terminal(s.Program.Out).Columns(), layout.Columns)
	}
	if interactive(s.In) && interactive(s.Err) {
		c.Ask = s.ask
	}
	return c
}

// ask asks a question; any answer but yes means no.
func (s *session) ask(question string) bool {
	fmt.Fprintf(s.Err, "%s [y/N] ", question)
	line, err := bufio.NewReader(s.In).ReadString('\n')
	if err != nil {
		return false
	}
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes"
}
