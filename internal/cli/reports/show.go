package reports

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"carronade/internal/advice"
	"carronade/internal/cli/cmdutil"
	"carronade/internal/report"
	"carronade/internal/store"
)

const showExample = `
  carronade report show
  carronade report show last~2
  carronade report show last --full
  carronade report show 3kab --json | jq .totals`

func (c *commands) show() *cobra.Command {
	var asJSON, full bool
	cmd := &cobra.Command{
		Use: "show [REPORT]", Short: "print a report (default: the newest)",
		Example: showExample, Args: cmdutil.Args(0, 1, "at most one report"),
	}
	cmd.Flags().BoolVar(&full, "full", false, "print the whole report, not only the first page")
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	c.on(cmd, func(ctx context.Context, s store.Store, args []string) error {
		d, err := c.get(ctx, s, args)
		switch {
		case err != nil:
			return err
		case asJSON:
			return d.WriteJSON(c.Out)
		case full:
			return d.Text(c.Out, c.Style)
		}
		flag := ""
		if place := cmd.Flags().Lookup("store").Value.String(); place != "" {
			flag = " --store " + advice.Quote(place)
		}
		return d.Brief(c.Out, c.Style, More(d, " of "+d.When(), flag)...)
	})
	return cmd
}

func (c *commands) cite() *cobra.Command {
	cmd := &cobra.Command{
		Use: "cite [REPORT...]", Short: "the number and its conditions, in one line",
		Long: `Prints the result of a report in one line, with everything needed to judge and
reproduce it: the load, the system, the machine, whether the run is trusted, and
the report's id.`,
		Example: "\n  carronade report cite\n  carronade report cite last last~1",
	}
	c.on(cmd, func(ctx context.Context, s store.Store, args []string) error {
		ids, err := chosen(ctx, s, args)
		if err != nil {
			return err
		}
		for _, id := range ids {
			d, err := s.Get(ctx, id)
			if err != nil {
				return err
			}
			if _, err := fmt.Fprintln(c.Out, report.Cite(d)); err != nil {
				return err
			}
		}
		return nil
	})
	return cmd
}
