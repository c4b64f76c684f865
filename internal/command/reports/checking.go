package reports

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"carronade/internal/command"
	"carronade/internal/store"
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
		switch {
		case err == nil:
		case aside && (errors.Is(err, store.ErrDamaged) || errors.Is(err, store.ErrForeign)):
			c.Note("%v", err)
			return c.replace(ctx, open, cmd.Flag("store").Value.String())
		default:
			return err
		}
		faults, err := c.inspect(ctx, s)
		err = errors.Join(err, s.Close())
		if err != nil || faults == 0 {
			return err
		}
		if aside {
			return c.replace(ctx, open, cmd.Flag("store").Value.String())
		}
		return command.Exit{Code: command.Broken, Err: &command.Words{
			Err: fmt.Errorf("%s is damaged", s.Place()), Hint: "--move-aside keeps it under another name, and begins a new one with what can be read",
		}}
	})
	return cmd
}

// inspect reads everything, says what is wrong, and counts it.
func (c *commands) inspect(ctx context.Context, s store.Store) (faults int, err error) {
	fault := func(err error) {
		faults++
		c.Warn(err.Error())
	}
	if whole, ok := s.(store.Checker); ok {
		if err := whole.Check(ctx); err != nil {
			if !errors.Is(err, store.ErrDamaged) {
				return 0, err
			}
			fault(err)
		}
	}
	ids, err := s.Find(ctx, "", 1<<31-1)
	if err != nil && !errors.Is(err, store.ErrDamaged) {
		return 0, err
	}
	if err != nil {
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
		_, err = fmt.Fprintf(c.Out, "%s: %s, all whole\n", s.Place(), plural(read, "report"))
	} else {
		_, err = fmt.Fprintf(c.Out, "%s: %s can be read\n", s.Place(), plural(read, "report"))
	}
	return faults, err
}

// replace moves a damaged store aside and saves from it what can be read.
func (c *commands) replace(ctx context.Context, open func(context.Context) (store.Store, error), place string) (err error) {
	to, old, err := c.Aside(ctx, place)
	if err != nil {
		return err
	}
	c.Note("the damaged store is now %s", to)
	fresh, err := open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, fresh.Close()) }()
	saved := 0
	if old != nil {
		defer old.Close()
		ids, err := old.Find(ctx, "", 1<<31-1)
		if err != nil {
			c.Warn(err.Error())
		}
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
	}
	_, err = fmt.Fprintf(c.Out, "%s: a new store, with %s of the old one\n", fresh.Place(), plural(saved, "report"))
	return err
}
