package reports

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"carronade/internal/cli/cmdutil"
	"carronade/internal/layout"
	"carronade/internal/report"
	"carronade/internal/store"
	"carronade/protocol"
	"carronade/units"
)

const logExample = `
  carronade report log
  carronade report log last~2 | grep ERROR
  carronade report log --build`

// log returns the command that prints what the system under test, or its build, had printed.
func (c *commands) log() *cobra.Command {
	var build bool
	cmd := &cobra.Command{
		Use: "log [REPORT]", Short: "print the output of the system that the run started",
		Long: `Prints what the system under test printed in the run of a report (default: the
newest), if the run started it: the last 10 MiB, or less if it does not compress
well. Secrets are hidden.

With --build it prints what the build of the system printed (--system-build):
the last 1 MiB. A run that found its revision built has the output of that
build.`,
		Example: logExample, Args: cmdutil.Args(0, 1, "at most one report"),
	}
	c.on(cmd, func(ctx context.Context, s store.Store, args []string) error {
		d, err := c.get(ctx, s, args)
		if err != nil {
			return err
		}
		o, err := printed(d, build)
		if err != nil {
			return err
		}
		text, err := o.Text()
		if err != nil {
			return err
		}
		if o.CutBytes > 0 {
			c.Note("the first %s were not kept", units.FormatSize(o.CutBytes))
		}
		if c.Terminal {
			text = cleanLines(text)
		}
		_, err = io.WriteString(c.Out, text)
		return err
	})
	cmd.Flags().BoolVar(&build, "build", false, "print the output of the system's build instead")
	return cmd
}

// printed returns what the system of a report printed, or its build; an error if there is
// nothing.
func printed(d *report.Document, build bool) (*report.Output, error) {
	s := d.System
	switch {
	case build && (s == nil || s.BuildOutput == nil):
		return nil, &protocol.Error{
			Err:  fmt.Errorf("report %s has no output of a build", d.ID),
			Hint: "it is kept if the run builds the system or finds it built (--system-build), the run is not killed, and the build prints something",
		}
	case build:
		return s.BuildOutput, nil
	case s == nil || s.Output == nil:
		return nil, &protocol.Error{
			Err:  fmt.Errorf("report %s has no output of a system", d.ID),
			Hint: "it is kept if the run starts the system (--system-cmd, --system-image), the run is not killed, and the system prints something",
		}
	}
	return s.Output, nil
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
