package cli

import (
	"context"
	"fmt"
	"strings"

	"carronade/internal/command"
	"carronade/internal/store"
	"carronade/internal/store/sqlite"
	"carronade/internal/workload"
)

// A storeKind is a way to keep reports, by the scheme of its addresses.
type storeKind struct {
	scheme string
	open   func(ctx context.Context, place string) (store.Store, error)
}

// storeKinds are all of them. What has no scheme is a file.
var storeKinds = []storeKind{
	{"sqlite", func(ctx context.Context, place string) (store.Store, error) {
		return openFile(ctx, strings.TrimPrefix(place, "sqlite://"))
	}},
}

// stores opens stores for commands.
func (s *session) stores(ctx context.Context, place string) (store.Store, error) {
	scheme, _, ok := strings.Cut(place, "://")
	if !ok {
		return openFile(ctx, place)
	}
	names := make([]string, 0, len(storeKinds))
	for _, k := range storeKinds {
		if k.scheme == scheme {
			return k.open(ctx, place)
		}
		names = append(names, k.scheme)
	}
	w := &words{
		Err:  fmt.Errorf("--store: no store has addresses that begin with %s://", scheme),
		Hint: "give a file, or an address that begins with " + strings.Join(names, "://, ") + "://",
	}
	if near := workload.Nearest(scheme, names); near != "" {
		w.Hint = fmt.Sprintf("did you mean %s://?", near)
	}
	return nil, w
}

// openFile opens the store in a file; "" is the user's own.
func openFile(ctx context.Context, path string) (store.Store, error) {
	if path == "" {
		var err error
		if path, err = sqlite.Default(); err != nil {
			return nil, err
		}
	}
	return sqlite.Open(ctx, path)
}

var _ command.Stores = (*session)(nil).stores
