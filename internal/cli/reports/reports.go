package reports

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"carronade/internal/cli/cmdutil"
	"carronade/internal/report"
	"carronade/internal/store"
	"carronade/protocol"
)

const reportLong = `Every run is kept as a report, from its first second on. A report is named by
its id, by a unique prefix of it, by last, or by last~2 (the second before the
last). Commands that take several reports also take filters:

    branch=main  rate>=50k/s  'response_p99<20ms'  target~orders  started>=7d

on any setting of the workload, label, flag of the system under test, property
of the host, or measured number.`

const reportExample = `
  carronade report list
  carronade report show last~1
  carronade report export last --as markdown
  carronade report cite last`

// Tools are the dependencies of the commands.
type Tools struct {
	cmdutil.Console
	Stores Stores // opens existing stores
	Make   Stores // creates missing ones
	// Aside renames the file of a damaged store and returns the new name.
	Aside func(ctx context.Context, place string) (to string, err error)
	// Damaged opens a store that Stores refuses, to read as much as possible.
	Damaged Stores
	Err     io.Writer // for the output of confirming commands
	// Interleave runs two workload files alternately (A B B A ...), stores their reports, and
	// returns the ids of both. Its progress goes to stderr.
	Interleave func(context.Context, Interleaving) (baseIDs, candidateIDs []string, err error)
}

// Command returns the command with its subcommands; more are further ones.
func Command(t Tools, more ...*cobra.Command) *cobra.Command {
	c := &commands{t}
	cmd := cmdutil.Group("report", "stored reports: list, show, export, open, cite", reportLong, append([]*cobra.Command{
		c.list(), c.show(), c.export(), c.open(), c.cite(), c.importing(), c.deleting(), c.push(), c.pull(), c.check(), c.table(), c.log(),
	}, more...)...)
	cmd.Example = reportExample
	return cmd
}

// commands are the commands with their dependencies.
type commands struct{ Tools }

// A job is a command's work in an open store.
type job func(ctx context.Context, s store.Store, args []string) error

// on sets a command's function, which opens the store and closes it.
func (c *commands) on(cmd *cobra.Command, do job) {
	open := c.Stores.Bind(cmd.Flags())
	cmd.RunE = cmdutil.Run(func(cmd *cobra.Command, args []string) error {
		return open.Do(cmd.Context(), func(s store.Store) error { return do(cmd.Context(), s, args) })
	})
	if cmd.ValidArgsFunction == nil {
		cmd.ValidArgsFunction = c.complete(open)
	}
}

// complete returns ids for shell completion, newest first.
func (c *commands) complete(open func(context.Context) (store.Store, error)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		const most = 50
		s, err := open(cmd.Context())
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer s.Close()
		rows, err := s.Rows(cmd.Context(), store.Query{Limit: most, Fields: []string{"started", "target"}})
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		out := []string{"last\tthe newest"}
		for i := range rows {
			if len(rows[i].ID) >= len(begun) && rows[i].ID[:len(begun)] == begun {
				out = append(out, fmt.Sprintf("%s\t%s %s", rows[i].ID, rows[i].Text("started"), rows[i].Text("target")))
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

// chosen returns the ids that the arguments select; without arguments the newest report.
func chosen(ctx context.Context, s store.Store, words []string) ([]string, error) {
	if len(words) == 0 {
		words = []string{"last"}
	}
	ids, err := store.Choose(ctx, s, words, store.Query{})
	if err == nil && len(ids) == 0 {
		err = noMatch(words)
	}
	return ids, err
}

// noMatch is the error of filters that no report matches.
func noMatch(words []string) error {
	return &protocol.Error{
		Err:  fmt.Errorf("no report matches %s", join(words)),
		Hint: "carronade report list shows what is there; fewer filters find more",
	}
}

// get returns one report, with a note if its run has not ended.
func (c *commands) get(ctx context.Context, s store.Store, words []string) (*report.Document, error) {
	if len(words) == 0 {
		words = []string{"last"}
	}
	id, err := store.Resolve(ctx, s, words[0])
	if err != nil {
		return nil, err
	}
	d, err := s.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	f, err := store.ParseFilters([]string{"id=" + id}, time.Now())
	if err != nil {
		return nil, err
	}
	rows, err := s.Rows(ctx, store.Query{Filters: f, Fields: []string{}})
	if err == nil && len(rows) == 1 && rows[0].Running {
		c.Note("the run of report %s is still running: this is the report so far", id)
	}
	return d, err
}

// join returns the arguments as they were typed.
func join(words []string) string { return strings.Join(words, " ") }
