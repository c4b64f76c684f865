package command

import (
	"context"
	"errors"

	"github.com/spf13/pflag"

	"carronade/internal/report"
	"carronade/internal/store"
)

// Stores opens the store at a place: a file, an address, or with "" the one
// that the configuration names, which is the user's own file where it names
// none. Who opens a store closes it.
type Stores func(ctx context.Context, place string) (store.Store, error)

// Opening opens the store that a command's flags name, once they are parsed.
type Opening func(ctx context.Context) (store.Store, error)

// Bind makes the flag --store of a command, and returns what opens the store
// that it names.
func (o Stores) Bind(fs *pflag.FlagSet) Opening {
	place := fs.String("store", "", "the reports at `PLACE`, a file or an address; left out: your own")
	return func(ctx context.Context) (store.Store, error) { return o(ctx, *place) }
}

// Do does a job with the open store and closes it, whatever came of the job. A
// store that does not close well is an error too: it may have lost something.
func (o Opening) Do(ctx context.Context, job func(store.Store) error) (err error) {
	s, err := o(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return job(s)
}

// More is how to see more of a report that is kept, for the end of its brief form. The
// flag names its store; "" is the user's own.
func More(id, where, flag string) []report.Condition {
	return []report.Condition{
		{Name: "report", Text: id + where},
		{Name: "everything", Text: "carronade report show " + id + flag + " --full"},
		{Name: "pictures", Text: "carronade report open " + id + flag},
	}
}
