// Package reports is the commands on stored reports: list, show, export,
// import, delete, open, cite, push, pull, check and table. It turns references and
// filters into reports and reports into output, and refuses to know how a store
// keeps them and what their numbers mean.
//
// Its invariant: nothing is deleted or moved that was not named.
package reports

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"carronade/internal/command"
	"carronade/internal/digest"
	"carronade/internal/report"
	"carronade/internal/store"
)

const reportLong = `Every run is kept as a report, from its first second on. A report is called by
its id, by as many letters of it as no other has, by last, or by last~2 (the
second before the last). Where several may be meant, filters choose them:

    branch=main  rate>=50k/s  'response_p99<20ms'  target~orders  started>=7d

on any setting of the workload, label, flag of the system under test, fact of
the host, or number that was measured.`

const reportExample = `
  carronade report list
  carronade report show last~1
  carronade report export last --as markdown
  carronade report cite last`

// Tools are what the commands need of the program.
type Tools struct {
	command.Console
	Stores command.Stores // opens what is there
	Make   command.Stores // and makes what is not
	// Aside moves the file of a damaged store to another name, and returns that.
	Aside func(ctx context.Context, place string) (to string, err error)
	// Damaged opens a store that Stores refuses, to be read as far as it can be.
	Damaged command.Stores
}

// Command returns the command with all below it; more are further ones.
func Command(t Tools, more ...*cobra.Command) *cobra.Command {
	c := &commands{t}
	cmd := command.Group("report", "stored reports: list, show, export, open, cite", reportLong, append([]*cobra.Command{
		c.list(), c.show(), c.export(), c.open(), c.cite(), c.importing(), c.deleting(), c.push(), c.pull(), c.check(), c.table(),
	}, more...)...)
	cmd.Example = reportExample
	return cmd
}

// commands are the commands and whom they speak to.
type commands struct{ Tools }

// A job is a command's work in an open store.
type job func(ctx context.Context, s store.Store, args []string) error

// on makes a command's function that opens the store and closes it.
func (c *commands) on(cmd *cobra.Command, do job) {
	open := c.Stores.Bind(cmd.Flags())
	cmd.RunE = command.Run(func(cmd *cobra.Command, args []string) error {
		return open.Do(cmd.Context(), func(s store.Store) error { return do(cmd.Context(), s, args) })
	})
	if cmd.ValidArgsFunction == nil {
		cmd.ValidArgsFunction = c.complete(open)
	}
}

// complete offers ids to the shell, newest first.
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

// chosen returns the ids that words mean; no words are the newest report.
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

// noMatch is the error of filters that no report meets.
func noMatch(words []string) error {
	return &command.Words{
		Err:  fmt.Errorf("no report meets %s", join(words)),
		Hint: "carronade report list shows what is there; fewer filters find more",
	}
}

// get returns the one report that is meant, and says so where its run goes on.
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
	f, err := digest.ParseFilters([]string{"id=" + id}, time.Now())
	if err != nil {
		return nil, err
	}
	rows, err := s.Rows(ctx, store.Query{Filters: f, Fields: []string{}})
	if err == nil && len(rows) == 1 && rows[0].Running {
		c.Note("the run of report %s goes on: this is what was kept of it until now", id)
	}
	return d, err
}

// join is words as they were typed.
func join(words []string) string { return strings.Join(words, " ") }
