package command

import (
	"context"

	"github.com/spf13/pflag"

	"carronade/internal/store"
)

// Stores opens the store at a place: a file, an address, or with "" the one
// that the configuration names, which is the user's own file where it names
// none. Who opens a store closes it.
type Stores func(ctx context.Context, place string) (store.Store, error)

// Bind makes the flag --store of a command, and returns what opens the store
// that it names once the flags are parsed.
func (o Stores) Bind(fs *pflag.FlagSet) func(context.Context) (store.Store, error) {
	place := fs.String("store", "", "the reports at `PLACE`, a file or an address; left out: your own")
	return func(ctx context.Context) (store.Store, error) { return o(ctx, *place) }
}
