package reports

import (
	"context"
	"errors"

	"github.com/spf13/pflag"

	"carronade/internal/report"
	"carronade/internal/store"
)

// Stores opens the store at a place: a file, an address, or with "" the default (from the
// configuration, or the user's own file). The caller closes it.
type Stores func(ctx context.Context, place string) (store.Store, error)

// Opening opens the store that a command's flags name, once they are parsed.
type Opening func(ctx context.Context) (store.Store, error)

// Bind defines the flag --store of a command, and returns the function that opens the store it
// names.
func (o Stores) Bind(fs *pflag.FlagSet) Opening {
	place := fs.String("store", "", "the store at `PLACE`, a file or an address (default: your own)")
	return func(ctx context.Context) (store.Store, error) { return o(ctx, *place) }
}

// Do runs a job with the open store and closes it. An error on close counts, since data may be
// lost.
func (o Opening) Do(ctx context.Context, job func(store.Store) error) (err error) {
	s, err := o(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return job(s)
}

// More says how to see more of a stored report, at the end of its brief form. flag names its
// store; "" for the user's own.
func More(d *report.Document, where, flag string) []report.Condition {
	out := []report.Condition{
		{Name: "report", Text: d.ID + where},
		{Name: "everything", Text: "carronade report show " + d.ID + flag + " --full"},
		{Name: "pictures", Text: "carronade report open " + d.ID + flag},
	}
	if d.IsRun() && d.Stall.Count > 0 {
		out = append(out, report.Condition{Name: "why", Text: "carronade explain " + d.ID + flag})
	}
	if d.Search != nil {
		out = append(out, report.Condition{Name: "trials", Text: "carronade report list label.find=" + d.ID + flag})
	}
	if d.Scenario != nil {
		out = append(out, report.Condition{Name: "steps", Text: "carronade report list label." + report.ScenarioLabel + "=" + d.ID + flag})
	}
	return out
}
