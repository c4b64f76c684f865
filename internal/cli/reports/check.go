package reports

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"carronade/internal/cli/cmdutil"
	"carronade/internal/host"
	"carronade/internal/store"
	"carronade/protocol"
	"carronade/units"
)

const checkLong = `Reads every report of the store and compares it with its hash. Reports that
cannot be read are named, and the exit code is then 1.

With --move-aside a damaged store is renamed, and everything that can still be
read is copied into a new one. An intact store is left as it is.`

func (c *commands) check() *cobra.Command {
	var aside bool
	cmd := &cobra.Command{
		Use: "check", Short: "check that all stored reports are intact",
		Long: checkLong, Example: "\n  carronade report check", Args: cmdutil.Args(0, 0, "nothing"),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().BoolVar(&aside, "move-aside", false, "rename a damaged store, and copy what can be read into a new one")
	open := c.Stores.Bind(cmd.Flags())
	cmd.RunE = cmdutil.Run(func(cmd *cobra.Command, _ []string) error {
		ctx := cmd.Context()
		s, err := open(ctx)
		if errors.Is(err, store.ErrDamaged) && !aside {
			return c.damaged(ctx, cmd.Flag("store").Value.String(), err)
		}
		switch {
		case err == nil:
		case aside && (errors.Is(err, store.ErrDamaged) || errors.Is(err, store.ErrForeign)):
			c.Note("%v", err)
			return c.replace(ctx, cmd.Flag("store").Value.String())
		default:
			return err
		}
		faults, err := c.inspect(ctx, s, 0)
		err = errors.Join(err, s.Close())
		if err != nil || faults == 0 {
			return err
		}
		if aside {
			return c.replace(ctx, cmd.Flag("store").Value.String())
		}
		return broken(s.Place())
	})
	return cmd
}

// broken is the error of a check that found damage.
func broken(place string) error {
	return cmdutil.Exit{Code: host.ExitBroken, Err: &protocol.Error{
		Err: fmt.Errorf("%s is damaged", place), Hint: "--move-aside renames it and copies what can be read into a new one",
	}}
}

// damaged checks a store that can only be opened for rescue.
func (c *commands) damaged(ctx context.Context, place string, why error) error {
	c.Warn(why.Error())
	s, err := c.Damaged(ctx, place)
	if err != nil {
		return broken(placeOr(place, "the store")) // nothing can be read from it
	}
	_, err = c.inspect(ctx, s, 1)
	if err = errors.Join(err, s.Close()); err != nil {
		return err
	}
	return broken(s.Place())
}

func placeOr(place, or string) string {
	if place == "" {
		return or
	}
	return place
}

// inspect reads everything, and prints and counts faults; before is the number of faults found
// earlier.
func (c *commands) inspect(ctx context.Context, s store.Store, before int) (faults int, err error) {
	faults = before
	fault := func(err error) {
		faults++
		c.Warn(err.Error())
	}
	if whole, ok := s.(store.Checker); ok {
		if err := whole.Check(ctx); err != nil {
			if !errors.Is(err, store.ErrDamaged) {
				return faults, err
			}
			fault(err)
		}
	}
	ids, err := s.Find(ctx, "", 1<<31-1)
	if err != nil && !errors.Is(err, store.ErrDamaged) {
		return faults, err
	}
	cut := err != nil
	if cut {
		fault(err)
	}
	read := 0
	for _, id := range ids {
		switch _, err := s.Get(ctx, id); {
		case errors.Is(err, store.ErrDamaged):
			fault(err)
		case errors.Is(err, store.ErrMissing): // deleted in the meantime
		case err != nil:
			return faults, err
		default:
			read++
		}
	}
	if faults == 0 {
		_, err = fmt.Fprintf(c.Out, "%s: %s, all intact\n", s.Place(), units.Plural(read, "report"))
	} else {
		_, err = fmt.Fprintf(c.Out, "%s: %s of %s can be read%s\n", s.Place(), units.Plural(read, "report"), foundWords(len(ids), cut), orMore(cut))
	}
	return faults, err
}

// replace renames a damaged store and copies everything readable into a new one. It names what
// is lost, and the exit code is then 1.
func (c *commands) replace(ctx context.Context, place string) (err error) {
	to, err := c.Aside(ctx, place)
	if err != nil {
		return err
	}
	c.Note("the damaged store is now %s", to)
	fresh, err := c.Make(ctx, place)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, fresh.Close()) }()
	old, err := c.Damaged(ctx, to)
	if err != nil {
		c.Warn(err.Error())
		return lost(fresh.Place(), to)
	}
	defer old.Close()
	ids, ended := old.Find(ctx, "", 1<<31-1)
	if ended != nil {
		c.Warn(ended.Error())
	}
	saved := 0
	for i := len(ids) - 1; i >= 0; i-- {
		d, err := old.Get(ctx, ids[i])
		if err != nil {
			c.Warn(err.Error())
			continue
		}
		if err := fresh.Put(ctx, d); err != nil {
			return err
		}
		saved++
	}
	if saved == 0 {
		return lost(fresh.Place(), to)
	}
	if _, err := fmt.Fprintf(c.Out, "%s: a new store, with %s of %s in the old one%s\n",
		fresh.Place(), units.Plural(saved, "report"), foundWords(len(ids), ended != nil), orMore(ended != nil)); err != nil {
		return err
	}
	return missing(to, len(ids), saved, ended)
}

// foundWords and orMore format the number of reports, which is a lower bound if the store
// could not be read to its end.
func foundWords(n int, cut bool) string {
	if cut {
		return "the " + units.FormatCount(uint64(n)) + " that are found"
	}
	return units.FormatCount(uint64(n))
}

func orMore(cut bool) string {
	if cut {
		return "; the number of others is unknown"
	}
	return ""
}

// missing is the error of a rescue that saved only some of the reports found. An error that
// ended the search may have hidden others.
func missing(to string, found, saved int, ended error) error {
	n := units.Plural(found-saved, "report")
	var text string
	switch {
	case ended != nil && saved < found:
		text = "at least " + n + " could not be read, and the number of others is unknown"
	case ended != nil:
		text = "the number of unreadable reports is unknown"
	case saved < found:
		text = n + " could not be read"
	default:
		return nil
	}
	return cmdutil.Exit{Code: host.ExitBroken, Err: &protocol.Error{
		Err: errors.New(text), Hint: "keep " + to + " until you have them from elsewhere: carronade report pull, carronade report import",
	}}
}

// lost is the error of a rescue that saved nothing.
func lost(fresh, to string) error {
	return cmdutil.Exit{Code: host.ExitBroken, Err: &protocol.Error{
		Err: fmt.Errorf("%s is a new store without a report: no report of the old one could be read", fresh), Hint: "the old one is " + to + "; an older backup may be intact",
	}}
}
