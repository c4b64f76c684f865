package reports

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"carronade/internal/command"
	"carronade/internal/store"
	"carronade/units"
)

const deleteExample = `
  carronade report delete 3kab12cd last~1
  carronade report delete 'started<90d' --yes`

func (c *commands) deleting() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "delete REPORT... | FILTER...", Short: "delete reports",
		Long: `Deletes reports permanently. Reports given by name are deleted at once; those
that filters choose only after confirmation, or with --yes.`,
		Example: deleteExample,
		Args:    command.Args(1, -1, "reports, or filters that choose them"),
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "delete what the filters choose without confirmation")
	c.on(cmd, func(ctx context.Context, s store.Store, args []string) error {
		ids, err := chosen(ctx, s, args)
		if err != nil {
			return err
		}
		if !store.IsReference(args[0]) && !yes {
			question := fmt.Sprintf("delete %s that %s from %s?", units.Plural(len(ids), "report"), matches(len(ids), join(args)), s.Place())
			if c.Ask == nil {
				return &command.Words{
					Err:  fmt.Errorf("%s: %s would be deleted, and there is no terminal to confirm it", join(args), units.Plural(len(ids), "report")),
					Hint: "carronade report list shows which; --yes deletes them",
				}
			}
			if !c.Ask(question) {
				return &command.Words{Err: errors.New("nothing was deleted"), Quiet: true}
			}
		}
		if err := s.Delete(ctx, ids...); err != nil {
			return err
		}
		c.Note("deleted %s", units.Plural(len(ids), "report"))
		return nil
	})
	return cmd
}

func matches(n int, filters string) string {
	if n == 1 {
		return "matches " + filters
	}
	return "match " + filters
}
