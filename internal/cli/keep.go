package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"carronade/internal/command"
	"carronade/internal/report"
	"carronade/internal/store"
	"carronade/internal/store/sqlite"
)

// keeping is where the reports of a command go besides stdout.
type keeping struct {
	store store.Store // nil: nowhere
	place string      // as it was asked for; "" is the user's own
	at    string      // where it is, as it is typed
	quiet bool
	lost  bool // the report is kept nowhere, and somebody wanted it to be
	// meanwhile is whether the store is one's own in place of another, which may
	// take its reports later.
	meanwhile bool
}

// keeping opens the store that flags and configuration name. One that cannot
// be opened is no reason not to measure: the report goes to the user's own
// store then, and where that fails, too, to stdout alone. An address that no
// store has is a mistake, and an error.
func (s *session) keeping(ctx context.Context, t *command.Settings, quiet bool) (*keeping, error) {
	k := &keeping{quiet: quiet}
	conf, err := s.configuration()
	if err != nil {
		return nil, err
	}
	for _, e := range slices.Backward(slices.Concat(conf.Entries, t.Doc.Entries)) { // the last of the two counts
		if e.Name == "no-store" && e.Values[0] == "true" {
			return k, nil
		}
		if e.Name == "store" {
			k.place = e.Values[len(e.Values)-1]
			break
		}
	}
	if err := s.knownStore(k.place); err != nil {
		return nil, err
	}
	if k.store, err = s.stores(ctx, k.place); err == nil {
		k.at = cmp.Or(k.place, k.store.Place())
		return k, nil
	}
	k.store = nil
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if local, lerr := s.elsewhere(ctx, k.place); lerr == nil && local != nil {
		s.warn(fmt.Sprintf("%v; reports go to %s meanwhile", err, local.Place()))
		k.store, k.at, k.meanwhile = local, local.Place(), !errors.Is(err, store.ErrForeign)
		return k, nil
	}
	k.lost = true
	s.beware(fmt.Errorf("reports are not kept: %w", err), hintOr(err, "they go to stdout all the same; --json-file FILE keeps one, --no-store says that none is to be kept"))
	return k, nil
}

// elsewhere opens the user's own store for reports that were to go to another;
// nil where that is the one.
func (s *session) elsewhere(ctx context.Context, place string) (store.Store, error) {
	own, err := sqlite.Default()
	if err != nil || place == "" || place == own {
		return nil, err
	}
	return s.stores(ctx, own)
}

// knownStore says whether a store has such an address.
func (s *session) knownStore(place string) error {
	scheme, _, ok := strings.Cut(place, "://")
	if !ok || slices.ContainsFunc(storeKinds, func(k storeKind) bool { return k.scheme == scheme }) {
		return nil
	}
	_, err := s.stores(context.Background(), place) // it finds the words, and opens nothing
	return err
}

func hintOr(err error, hint string) string {
	if h := hintOf(err); h != "" {
		return h
	}
	return hint
}

// kept says where a report is, unless the report itself did, and takes one to the user's own store that the
// store which was asked for did not take. Nothing of it is a failure of the
// run.
func (s *session) kept(k *keeping, d *report.Document, err error, say bool) {
	switch {
	case k.store == nil:
		s.unsafe = true
		return
	case err == nil:
		s.safe = showing(d.ID, k.at)
		if say && !k.quiet {
			s.note("kept as %s in %s", d.ID, k.store.Place())
		}
		if k.meanwhile {
			s.note("hint: %s", pushing(d.ID, k.at, k.place))
		}
		return
	}
	ctx := context.Background() // an interrupted run is kept, too
	var local store.Store
	var lerr error
	// The same file is not opened twice: closing either would give up the locks
	// of both.
	if own, err := sqlite.Default(); err == nil && own != k.store.Place() {
		local, lerr = s.elsewhere(ctx, k.place)
	}
	if lerr == nil && local != nil {
		defer local.Close()
		if lerr = local.Put(ctx, d); lerr == nil {
			s.safe = showing(d.ID, local.Place())
			s.beware(fmt.Errorf("report %s is not in %s: %w; it is kept in %s", d.ID, k.store.Place(), err, local.Place()),
				pushing(d.ID, local.Place(), k.place))
			return
		}
	}
	s.unsafe = true
	s.beware(fmt.Errorf("report %s is not kept: %w", d.ID, err),
		hintOr(err, "what stands on stdout is whole; written as JSON (--json, --json-file), carronade report import FILE keeps it later"))
}

// showing is the command that shows a report.
func showing(id, place string) string {
	return "carronade report show " + id + storeFlag(place)
}

// storeFlag is the flag that names a store; "" is one's own.
func storeFlag(place string) string {
	if own, err := sqlite.Default(); err == nil && own == place {
		return ""
	}
	return " --store " + report.Quote(place)
}

// lost is what to do where stdout took no more.
func (s *session) lost() string {
	switch {
	case s.unsafe:
		return "what was measured is lost unless it also went to a file (--json-file)"
	case s.safe != "":
		return "the report is kept: " + s.safe
	}
	return "see that there is room where it goes, or give it another place"
}

// pushing says how a report gets to the store that it was meant for.
func pushing(id, from, to string) string {
	return fmt.Sprintf("carronade report push %s --store %s --to %s takes it there later", id, report.Quote(from), report.Quote(to))
}

// close closes the store.
func (k *keeping) close() {
	if k != nil && k.store != nil {
		_ = k.store.Close() // what was kept was told already
	}
}
