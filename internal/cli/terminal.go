package cli

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"carronade/internal/command"
	"carronade/internal/layout"
	"carronade/internal/live"
)

// terminal says what can be shown where w goes; what is no file shows text.
func terminal(w io.Writer) live.Terminal {
	if f, ok := w.(*os.File); ok {
		return live.Detect(f, os.Getenv)
	}
	return live.Terminal{}
}

// style is how results may look: color only on a terminal that wants it.
func (s *session) style() layout.Style {
	t := terminal(s.Program.Out)
	return layout.Style{Color: t.Color, ASCII: t.ASCII}
}

// interactive tells whether a person is at the other end of a stream.
func interactive(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// console is what commands speak to.
func (s *session) console() command.Console {
	c := command.Console{Out: s.out, Note: s.note, Warn: s.warn, Style: s.style(), Terminal: interactive(s.Program.Out), In: s.In}
	if c.Terminal {
		c.Columns = cmp.Or(terminal(s.Program.Out).Columns(), layout.Columns)
	}
	if interactive(s.In) && interactive(s.Err) {
		c.Ask = s.ask
	}
	return c
}

// ask puts a question, and takes anything but a yes for a no.
func (s *session) ask(question string) bool {
	fmt.Fprintf(s.Err, "%s [y/N] ", question)
	line, err := bufio.NewReader(s.In).ReadString('\n')
	if err != nil {
		return false
	}
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes"
}
