package reports

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"carronade/internal/cli/cmdutil"
	"carronade/internal/place"
	"carronade/internal/store"
	"carronade/load"
	"carronade/protocol"
	"carronade/units"
)

func (c *commands) push() *cobra.Command {
	cmd := &cobra.Command{
		Use: "push [REPORT... | FILTER...] --to PLACE", Short: "copy reports to another store, such as a team's",
		Long: `Copies reports to another store: the ones named, or all that it does not have.
Reports that are already there stay as they are, except for partial ones of
killed runs: the complete report replaces them.`,
		Example: "\n  carronade report push --to elasticsearch://search:9200\n  carronade report push last --to /srv/carronade/reports.db",
	}
	cmd.Flags().String("to", "", "the store at `PLACE`, a file or an address")
	c.on(cmd, func(ctx context.Context, s store.Store, args []string) error {
		return c.between(ctx, s, c.Make, cmd.Flags().Lookup("to"), func(other store.Store) error { return c.copyReports(ctx, s, other, args) })
	})
	return cmd
}

func (c *commands) pull() *cobra.Command {
	cmd := &cobra.Command{
		Use: "pull [REPORT... | FILTER...] --from PLACE", Short: "copy reports from another store",
		Long: `Copies reports from another store: the ones named, or all that are not here yet.
Reports that are already here stay as they are, except for partial ones of
killed runs.`,
		Example: "\n  carronade report pull branch=main --from elasticsearch://search:9200",
	}
	cmd.Flags().String("from", "", "the store at `PLACE`, a file or an address")
	open := c.Stores.Bind(cmd.Flags())
	cmd.RunE = cmdutil.Run(func(cmd *cobra.Command, args []string) (err error) {
		ctx, from := cmd.Context(), cmd.Flags().Lookup("from")
		s, err := open(ctx)
		if errors.Is(err, store.ErrAbsent) {
			return c.intoNew(ctx, cmd.Flag("store").Value.String(), from, args)
		}
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.Close()) }()
		return c.between(ctx, s, c.Stores, from, func(other store.Store) error { return c.copyReports(ctx, other, s, args) })
	})
	cmd.ValidArgsFunction = cobra.NoFileCompletions // the ids are in the other store
	return cmd
}

// into is like on, for commands that write: it creates the store if necessary.
func (c *commands) into(cmd *cobra.Command, do job) {
	making := *c
	making.Stores = c.Make
	making.on(cmd, do)
}

// between opens the other store, which a flag names. It refuses the store that is already open:
// if a process opens a file twice, closing either releases the locks of both.
func (c *commands) between(ctx context.Context, s store.Store, open Stores, flag *pflag.Flag, do func(store.Store) error) (err error) {
	place, err := other(flag)
	if err != nil {
		return err
	}
	same := &protocol.Error{Err: fmt.Errorf("--%s is the store that is open: %s", flag.Name, s.Place()), Hint: "--" + flag.Name + " and --store must differ; without --store it is your own store"}
	if sameFile(s.Place(), place) {
		return same
	}
	it, err := open(ctx, place)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	if it.Place() == s.Place() {
		return same
	}
	return do(it)
}

// intoNew copies reports to a store that does not exist yet. It opens the source first, so
// that a failure creates nothing.
func (c *commands) intoNew(ctx context.Context, place string, flag *pflag.Flag, words []string) error {
	source, err := other(flag)
	if err != nil {
		return err
	}
	at := func(open Stores, place string) Opening {
		return func(ctx context.Context) (store.Store, error) { return open(ctx, place) }
	}
	return at(c.Stores, source).Do(ctx, func(from store.Store) error {
		return at(c.Make, place).Do(ctx, func(to store.Store) error { return c.copyReports(ctx, from, to, words) })
	})
}

// other is the place of the other store, which a flag names.
func other(flag *pflag.Flag) (place string, err error) {
	if place = flag.Value.String(); place == "" {
		return "", &protocol.Error{Err: fmt.Errorf("--%s is missing: which store?", flag.Name), Hint: "a file, or an address such as elasticsearch://HOST:9200"}
	}
	return place, nil
}

// sameFile reports whether two stores are one file.
func sameFile(a, b string) bool {
	x, err := place.Store(a)
	y, err2 := place.Store(b)
	return err == nil && err2 == nil && x.Kind == place.File && y.Kind == place.File && place.Same(x.Value, y.Value)
}

// copyReports copies the named reports from one store to another, oldest first; without names
// all that the other store lacks.
func (c *commands) copyReports(ctx context.Context, from, to store.Store, words []string) error {
	ids, running, err := toCopy(ctx, from, to, words)
	if err != nil {
		return err
	}
	for k, id := range ids {
		d, err := from.Get(ctx, id)
		if err == nil {
			err = to.Put(ctx, d)
		}
		if err != nil {
			if k > 0 {
				c.Note("copied %s to %s before that", units.Plural(k, "report"), to.Place())
			}
			return err
		}
		if _, err := fmt.Fprintln(c.Out, id); err != nil {
			return err
		}
	}
	c.Note("copied %s to %s", units.Plural(len(ids), "report"), to.Place())
	if running > 0 {
		c.Note("left out %s: still running", units.Plural(running, "report"))
	}
	return nil
}

// stoppedField is the field that killed reads.
var stoppedField = []string{"stopped"}

func killed(r *store.Row) bool {
	return r.Text("stopped") == string(load.Killed)
}

// toCopy returns the ids to copy, oldest first, and the number of running reports left out.
func toCopy(ctx context.Context, from, to store.Store, words []string) (ids []string, running int, err error) {
	there, err := to.Rows(ctx, store.Query{Fields: stoppedField})
	if err != nil {
		return nil, 0, err
	}
	const part, whole = 1, 2
	has := make(map[string]int, len(there))
	for i := range there {
		has[there[i].ID] = whole
		if killed(&there[i]) {
			has[there[i].ID] = part
		}
	}
	// A complete report replaces a partial one of a killed run, never the other way round.
	wanted := func(r *store.Row) bool { return has[r.ID] == 0 || has[r.ID] == part && !killed(r) }
	if len(words) > 0 {
		meant, err := chosen(ctx, from, words)
		if err != nil {
			return nil, 0, err
		}
		in := make(map[string]bool, len(meant))
		for _, id := range meant {
			in[id] = true
		}
		// If the report exists and differs, the store refuses it.
		wanted = func(r *store.Row) bool { return in[r.ID] && (has[r.ID] != whole || !killed(r)) }
	}
	rows, err := from.Rows(ctx, store.Query{Fields: stoppedField})
	if err != nil {
		return nil, 0, err
	}
	for i := len(rows) - 1; i >= 0; i-- {
		switch {
		case !wanted(&rows[i]):
		case rows[i].Running:
			running++
		default:
			ids = append(ids, rows[i].ID)
		}
	}
	return ids, running, nil
}
