package reports

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"carronade/internal/cli/cmdutil"
	"carronade/internal/report"
	"carronade/internal/store"
	"carronade/load"
	"carronade/protocol"
	"carronade/units"
)

const deleteExample = `
  carronade report delete 3kab12cd last~1
  carronade report delete --older-than 90d --yes
  carronade report delete label.find~. --older-than 7d`

func (c *commands) deleting() *cobra.Command {
	var (
		yes   bool
		older string
	)
	cmd := &cobra.Command{
		Use: "delete REPORT... | FILTER...", Short: "delete reports",
		Long: `Deletes reports permanently. Reports given by name are deleted at once; those
that filters or --older-than choose only after confirmation, or with --yes.`,
		Example: deleteExample,
		Args:    cmdutil.Args(0, -1, "reports, or filters that choose them"),
	}
	cmd.Flags().StringVar(&older, "older-than", "", "only those that began longer ago than this `AGE`, such as 90d")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "delete what the filters choose without confirmation")
	c.on(cmd, func(ctx context.Context, s store.Store, args []string) error {
		if cmd.Flags().Changed("older-than") { // it may be empty, by mistake
			if len(args) > 0 && store.IsReference(args[0]) {
				return &protocol.Error{Err: errors.New("--older-than goes with filters, not with reports by name"), Hint: "leave out one of them"}
			}
			if last, err := store.ParseLast(older); err != nil || last.Age == 0 {
				return &protocol.Error{Err: fmt.Errorf("--older-than: %q is not an age", older), Hint: "such as 90d, or 12h"}
			}
			args = append(args, "started<"+older)
			if rows, err := matching(ctx, s, args, nil); err == nil && len(rows) == 0 { // of a job that runs each night
				c.Note("no report that matches is older than %s", older)
				return nil
			}
		}
		if len(args) == 0 {
			return &protocol.Error{Err: errors.New("carronade report delete needs reports, or filters that choose them"), Hint: "--older-than 90d chooses old ones"}
		}
		ids, err := chosen(ctx, s, args)
		if err != nil {
			return err
		}
		if !store.IsReference(args[0]) && !yes {
			question := fmt.Sprintf("delete %s that %s from %s?", units.Plural(len(ids), "report"), matches(len(ids), join(args)), s.Place())
			if c.Ask == nil {
				return &protocol.Error{
					Err:  fmt.Errorf("%s: %s would be deleted, and that cannot be confirmed without a terminal", join(args), units.Plural(len(ids), "report")),
					Hint: "carronade report list shows which; --yes deletes them",
				}
			}
			if !c.Ask(question) {
				return cmdutil.Noticef("nothing was deleted")
			}
		}
		searches, err := amongThem(ctx, s, ids, report.Searching)
		if err != nil {
			return err
		}
		scenarios, err := amongThem(ctx, s, ids, report.InScenario)
		if err != nil {
			return err
		}
		if err := s.Delete(ctx, ids...); err != nil {
			return err
		}
		c.Note("deleted %s: %s", units.Plural(len(ids), "report"), few(ids))
		return errors.Join(c.noteParts(ctx, s, searches, "trial", "search", "find"), c.noteParts(ctx, s, scenarios, "step", "scenario", report.ScenarioLabel))
	})
	return cmd
}

// few names at most five of the ids.
func few(ids []string) string {
	const most = 5
	if len(ids) <= most {
		return strings.Join(ids, " ")
	}
	return fmt.Sprintf("%s and %d others", strings.Join(ids[:most-1], " "), len(ids)-most+1)
}

// amongThem are those of the reports that have a mode.
func amongThem(ctx context.Context, s store.Store, ids []string, mode load.Mode) ([]string, error) {
	rows, err := rowsWith(ctx, s, "mode="+string(mode))
	var out []string
	for i := range rows {
		if slices.Contains(ids, rows[i].ID) {
			out = append(out, rows[i].ID)
		}
	}
	return out, err
}

// noteParts says which trials of deleted searches, or steps of deleted scenarios, remain: they are
// reports of their own.
func (c *commands) noteParts(ctx context.Context, s store.Store, wholes []string, part, whole, label string) error {
	for _, id := range wholes {
		rows, err := rowsWith(ctx, s, "label."+label+"="+id)
		if err != nil {
			return err
		}
		if n := len(rows); n > 0 {
			c.Note("%s of %s %s stay: carronade report delete label.%s=%s --yes deletes them", units.Plural(n, part), whole, id, label, id)
		}
	}
	return nil
}

// rowsWith are the rows that meet a filter, none if no report has its field.
func rowsWith(ctx context.Context, s store.Store, filter string) ([]store.Row, error) {
	rows, err := matching(ctx, s, []string{filter}, nil)
	if errors.Is(err, store.ErrNoField) {
		return nil, nil
	}
	return rows, err
}

func matches(n int, filters string) string {
	if n == 1 {
		return "matches " + filters
	}
	return "match " + filters
}
