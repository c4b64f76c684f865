package cli

import (
	"context"
	"fmt"

	"carronade/internal/cli/reports"
	"carronade/internal/place"
	"carronade/internal/store"
	"carronade/internal/store/elastic"
	"carronade/internal/store/sqlite"
	"carronade/protocol"
)

// stores opens a store for commands that write, and creates it if necessary.
func (s *session) stores(ctx context.Context, place string) (store.Store, error) {
	return s.openStore(ctx, place, false)
}

// existing opens a store for commands that only read or delete. A missing store is an error,
// since its name may be mistyped; except the user's own, which is empty until the first run.
func (s *session) existing(ctx context.Context, place string) (store.Store, error) {
	return s.openStore(ctx, place, true)
}

func (s *session) openStore(ctx context.Context, text string, existing bool) (store.Store, error) {
	if text == "" {
		var err error
		if text, err = s.defaultStore(); err != nil {
			return nil, err
		}
		if own, err := sqlite.Default(); err == nil && own == text {
			existing = false
		}
	}
	p, err := storeAt(text)
	if err != nil {
		return nil, err
	}
	if p.Kind == place.Cluster {
		return opened(ctx, p.Address, existing, elastic.Open, elastic.OpenExisting)
	}
	return opened(ctx, p.Value, existing, sqlite.Open, sqlite.OpenExisting)
}

// storeAt reads the place of a store.
func storeAt(text string) (place.Place, error) {
	return place.Store(text)
}

func opened[P any, S store.Store](ctx context.Context, at P, existing bool, open, openExisting func(context.Context, P) (S, error)) (store.Store, error) {
	if existing {
		open = openExisting
	}
	s, err := open(ctx, at)
	if err != nil {
		return nil, err // and no store, not one that is nil
	}
	return s, nil
}

// reportTools returns the dependencies of the commands on reports.
func (s *session) reportTools() reports.Tools {
	return reports.Tools{
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
func (s *session) file(text string) (path string, err error) {
	if text == "" {
		if text, err = s.defaultStore(); err != nil {
			return "", err
		}
	}
	p, err := storeAt(text)
	if err != nil {
		return "", err
	}
	if p.Kind != place.File {
		return "", &protocol.Error{Err: fmt.Errorf("--move-aside: %s is not a file", text), Hint: "only a file can be moved aside"}
	}
	return p.Value, nil
}
