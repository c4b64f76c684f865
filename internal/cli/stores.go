package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"carronade/internal/command"
	"carronade/internal/store"
	"carronade/internal/store/elastic"
	"carronade/internal/store/sqlite"
)

// A storeKind is a way to store reports, by the scheme of its addresses.
type storeKind struct {
	scheme string
	open   func(ctx context.Context, place string, existing bool) (store.Store, error)
}

// storeKinds are all kinds. A place without a scheme is a file.
var storeKinds = []storeKind{
	{"sqlite", func(ctx context.Context, place string, existing bool) (store.Store, error) {
		return openFile(ctx, strings.TrimPrefix(place, "sqlite://"), existing)
	}},
	{elastic.Schemes[0], openCluster},
	{elastic.Schemes[1], openCluster},
}

// noneStore is what users give who want no store. It is not taken for the name of a file.
const noneStore = "none"

// stores opens a store for commands that write, and creates it if necessary.
func (s *session) stores(ctx context.Context, place string) (store.Store, error) {
	return s.openStore(ctx, place, false)
}

// existing opens a store for commands that only read or delete. A missing store is an error,
// since its name may be mistyped; except the user's own, which is empty until the first run.
func (s *session) existing(ctx context.Context, place string) (store.Store, error) {
	return s.openStore(ctx, place, true)
}

func (s *session) openStore(ctx context.Context, place string, existing bool) (store.Store, error) {
	if place == "" {
		var err error
		if place, err = s.defaultStore(); err != nil {
			return nil, err
		}
		if own, err := sqlite.Default(); err == nil && own == place {
			existing = false
		}
	}
	if place == noneStore {
		return nil, &words{Err: errors.New("--store: none is not the place of a store"), Hint: "give a file or an address, or to a run --no-store; ./none is a file of that name"}
	}
	scheme, _, ok := strings.Cut(place, "://")
	if !ok {
		return openFile(ctx, place, existing)
	}
	names := make([]string, 0, len(storeKinds))
	for _, k := range storeKinds {
		if k.scheme == scheme {
			return k.open(ctx, place, existing)
		}
		names = append(names, k.scheme)
	}
	return nil, &words{
		Err:  fmt.Errorf("--store: unknown scheme %s:// of a store", scheme),
		Hint: command.DidYouMean(scheme, names, "%s://", "give a file, or an address that begins with "+strings.Join(names, "://, ")+"://"),
	}
}

// openCluster opens the store in Elasticsearch or OpenSearch, whose indices are created with
// the first report.
func openCluster(ctx context.Context, place string, existing bool) (store.Store, error) {
	return opened(ctx, place, existing, elastic.Open, elastic.OpenExisting)
}

// openFile opens the store in a file.
func openFile(ctx context.Context, path string, existing bool) (store.Store, error) {
	return opened(ctx, path, existing, sqlite.Open, sqlite.OpenExisting)
}

func opened[S store.Store](ctx context.Context, place string, existing bool, open, openExisting func(context.Context, string) (S, error)) (store.Store, error) {
	if existing {
		open = openExisting
	}
	s, err := open(ctx, place)
	if err != nil {
		return nil, err // and no store, not one that is nil
	}
	return s, nil
}

// reportTools returns the dependencies of the commands on reports.
func (s *session) reportTools() command.ReportTools {
	return command.ReportTools{
		Console: s.console(), Stores: s.existing, Make: s.stores, Aside: s.aside, Damaged: s.damaged,
		Err: s.Err, Interleave: s.interleave,
	}
}

// aside renames the file of a damaged store.
func (s *session) aside(_ context.Context, place string) (to string, err error) {
	path, err := s.file(place)
	if err != nil {
		return "", err
	}
	return sqlite.MoveAside(path)
}

// damaged opens a damaged store to read what can still be read.
func (s *session) damaged(ctx context.Context, place string) (store.Store, error) {
	path, err := s.file(place)
	if err != nil {
		return nil, err
	}
	left, err := sqlite.OpenDamaged(ctx, path)
	if err != nil {
		return nil, err // and no store, not one that is nil
	}
	return left, nil
}

// file returns the path of a store that is a file.
func (s *session) file(place string) (path string, err error) {
	if place == "" {
		if place, err = s.defaultStore(); err != nil {
			return "", err
		}
	}
	path = strings.TrimPrefix(place, "sqlite://")
	if strings.Contains(path, "://") {
		return "", &words{Err: fmt.Errorf("--move-aside: %s is not a file", place), Hint: "only a file can be moved aside"}
	}
	return path, nil
}
