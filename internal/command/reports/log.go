package reports

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"carronade/internal/command"
	"carronade/internal/layout"
	"carronade/internal/store"
	"carronade/units"
)

const logExample = `
  carronade report log
  carronade report log last~2 | grep ERROR`

// log returns the command that prints what the system under test had printed.
func (c *commands) log() *cobra.Command {
	cmd := &cobra.Command{
		Use: "log [REPORT]", Short: "print the output of the system that the run started",
		Long: `Prints what the system under test printed in the run of a report (default: the
newest), if the run started it: the last 10 MiB, or less if it does not compress
well. Secrets are hidden.`,
		Example: logExample, Args: command.Args(0, 1, "at most one report"),
	}
	c.on(cmd, func(ctx context.Context, s store.Store, args []string) error {
		d, err := c.get(ctx, s, args)
		if err != nil {
			return err
		}
		if d.System == nil || d.System.Output == nil {
			return &command.Words{
				Err:  fmt.Errorf("report %s has no output of a system", d.ID),
				Hint: "it is kept if the run starts the system (--system-cmd, --system-image), the run is not killed, and the system prints something",
			}
		}
		text, err := d.System.Output.Text()
		if err != nil {
			return err
		}
		if n := d.System.Output.CutBytes; n > 0 {
			c.Note("the first %s were not kept", units.FormatSize(n))
		}
		if c.Terminal {
			text = cleanLines(text)
		}
		_, err = io.WriteString(c.Out, text)
		return err
	})
	return cmd
}

// cleanLines makes each line safe for a terminal: a system may print sequences that
// move the cursor or change the terminal's state.
func cleanLines(text string) string {
	var out strings.Builder
	out.Grow(len(text))
	for line := range strings.Lines(text) {
		bare := strings.TrimSuffix(line, "\n")
		out.WriteString(layout.Clean(bare))
		out.WriteString(line[len(bare):])
	}
	return out.String()
}
