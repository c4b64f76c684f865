package cli

import (
	"context"
	"fmt"
	"strings"

	"carronade/internal/command/reports"
	"carronade/internal/store"
	"carronade/internal/store/elastic"
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
	{elastic.Schemes[0], openCluster},
	{elastic.Schemes[1], openCluster},
}

// stores opens stores for commands.
func (s *session) stores(ctx context.Context, place string) (store.Store, error) {
	if place == "" {
		var err error
		if place, err = s.defaultStore(); err != nil {
			return nil, err
		}
	}
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

// openCluster opens the store in Elasticsearch or OpenSearch.
func openCluster(ctx context.Context, place string) (store.Store, error) {
	s, err := elastic.Open(ctx, place)
	if err != nil {
		return nil, err // and no store, not one that is nil
	}
	return s, nil
}

// openFile opens the store in a file.
func openFile(ctx context.Context, path string) (store.Store, error) {
	s, err := sqlite.Open(ctx, path)
	if err != nil {
		return nil, err // and no store, not one that is nil
	}
	return s, nil
}

// reportTools are what the commands on reports need.
func (s *session) reportTools() reports.Tools {
	return reports.Tools{Console: s.console(), Stores: s.stores, Aside: s.aside}
}

// aside moves the file of a damaged store to another name.
func (s *session) aside(ctx context.Context, place string) (to string, old store.Store, err error) {
	if place == "" {
		if place, err = s.defaultStore(); err != nil {
			return "", nil, err
		}
	}
	path := strings.TrimPrefix(place, "sqlite://")
	if strings.Contains(path, "://") {
		return "", nil, &words{Err: fmt.Errorf("--move-aside: %s is no file", place), Hint: "only a file can be moved aside"}
	}
	if to, err = sqlite.MoveAside(path); err != nil {
		return "", nil, err
	}
	if left, err := sqlite.OpenDamaged(ctx, to); err == nil {
		old = left
	}
	return to, old, nil
}
