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

const checkLong = `Reads every report of the store and compares it with its hash. What cannot be
read is named, and makes the exit code 1.

With --move-aside a store that is damaged is kept under another name, and what
can still be read of it is put into a new one. A store that is whole stays
where it is.`

func (c *commands) check() *cobra.Command {
	var aside bool
	cmd := &cobra.Command{
		Use: "check", Short: "is everything that was kept still whole?",
		Long: checkLong, Example: "\n  carronade report check", Args: command.Args(0, 0, "nothing"),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().BoolVar(&aside, "move-aside", false, "give a damaged store another name, and begin a new one with what can be read")
	open := c.Stores.Bind(cmd.Flags())
	cmd.RunE = command.Run(func(cmd *cobra.Command, _ []string) error {
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

// broken is the end of a check that found something.
func broken(place string) error {
	return command.Exit{Code: command.Broken, Err: &command.Words{
		Err: fmt.Errorf("%s is damaged", place), Hint: "--move-aside keeps it under another name, and begins a new one with what can be read",
	}}
}

// damaged checks a store that cannot be opened but to see what is left of it.
func (c *commands) damaged(ctx context.Context, place string, why error) error {
	c.Warn(why.Error())
	s, err := c.Damaged(ctx, place)
	if err != nil {
		return broken(placeOr(place, "the store")) // of which nothing can be read
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

// inspect reads everything, says what is wrong, and counts it; so many faults
// were found before.
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
		case errors.Is(err, store.ErrMissing): // deleted meanwhile
		case err != nil:
			return faults, err
		default:
			read++
		}
	}
	if faults == 0 {
		_, err = fmt.Fprintf(c.Out, "%s: %s, all whole\n", s.Place(), units.Plural(read, "report"))
	} else {
		_, err = fmt.Fprintf(c.Out, "%s: %s of %s can be read%s\n", s.Place(), units.Plural(read, "report"), foundWords(len(ids), cut), orMore(cut))
	}
	return faults, err
}

// replace moves a damaged store aside and saves from it what can be read. What
// it loses it names, and makes the exit code 1.
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

// foundWords and orMore tell how many reports a store has, or of how many what
// can be read of it tells.
func foundWords(n int, cut bool) string {
	if cut {
		return "the " + units.FormatCount(uint64(n)) + " that are found"
	}
	return units.FormatCount(uint64(n))
}

func orMore(cut bool) string {
	if cut {
		return "; how many more there were is not known"
	}
	return ""
}

// missing is the end of a rescue that found so many reports, and saved some of
// them. What ended the finding may have kept others from it.
func missing(to string, found, saved int, ended error) error {
	n := units.Plural(found-saved, "report")
	var text string
	switch {
	case ended != nil && saved < found:
		text = "at least " + n + " could not be read, and how many more there were is not known"
	case ended != nil:
		text = "how many reports could not be read is not known"
	case saved < found:
		text = n + " could not be read"
	default:
		return nil
	}
	return command.Exit{Code: command.Broken, Err: &command.Words{
		Err: errors.New(text), Hint: "keep " + to + " until you have them from elsewhere: carronade report pull, carronade report import",
	}}
}

// lost is the end of a rescue that saved nothing.
func lost(fresh, to string) error {
	return command.Exit{Code: command.Broken, Err: &command.Words{
		Err: fmt.Errorf("%s is a new store without a report: nothing could be read of the old one", fresh), Hint: "the old one is " + to + "; a copy of it from before may be whole",
	}}
}
