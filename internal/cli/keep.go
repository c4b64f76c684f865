package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"carronade/internal/advice"
	"carronade/internal/cli/cmdutil"

	"carronade/internal/place"
	"carronade/internal/report"
	"carronade/internal/secret"
	"carronade/internal/store"
	"carronade/internal/store/sqlite"
)

// keeping is where the reports of a command are stored.
type keeping struct {
	store store.Store // nil: not stored
	place string      // as the user gave it; "" is the user's own
	at    string      // the same, as it is typed in commands
	quiet bool
	lost  bool // a report that should have been stored was not
	// substitute is whether the store is the user's own in place of the requested one, which
	// may receive the reports later.
	substitute bool
}

// keeping opens the store that flags and configuration name. If that fails, the run still goes
// on: the report goes to the user's own store, and if that fails too, only to stdout. An
// address with an unknown scheme is an error, and so is a server that cannot store reports.
func (s *session) keeping(ctx context.Context, t *cmdutil.Settings, quiet bool) (*keeping, error) {
	k := &keeping{quiet: quiet}
	conf, err := s.configuration()
	if err != nil {
		return nil, err
	}
	for _, e := range slices.Backward(slices.Concat(conf.Entries, t.Doc.Entries)) { // the last one counts
		if e.Name == "no-store" && e.Values[0] == "true" {
			return k, nil
		}
		if e.Name == "store" {
			k.place = e.Values[len(e.Values)-1]
			break
		}
	}
	if _, err := storeAt(k.place); err != nil {
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
	if errors.Is(err, store.ErrAbsent) || errors.Is(err, store.ErrTooOld) { // its name may be mistyped; reports never get there
		return nil, err
	}
	if local, lerr := s.ownStore(ctx, k.place); lerr == nil && local != nil {
		s.warn(fmt.Sprintf("%v; reports go to %s instead", err, local.Place()))
		k.store, k.at, k.substitute = local, local.Place(), !errors.Is(err, store.ErrForeign)
		return k, nil
	}
	k.lost = true
	s.warnWithHint(fmt.Errorf("reports are not kept: %w", err), hintOr(err, "they still go to stdout; --json-file FILE saves one, --no-store turns the store off"))
	return k, nil
}

// secrets returns those of the store's address: the system under test may be that store, and
// print a refused login.
func (k *keeping) secrets() (out []string) {
	p, err := place.Store(k.place)
	if err != nil || p.Address == nil {
		return nil
	}
	for _, ref := range []place.Place{p.Address.Password, p.Address.APIKey} {
		if text, err := secret.ReadFrom(ref); err == nil && text != "" {
			out = append(out, text)
		}
	}
	return out
}

// ownStore opens the user's own store as a replacement for another; nil if that is the one
// that failed.
func (s *session) ownStore(ctx context.Context, place string) (store.Store, error) {
	own, err := sqlite.Default()
	if err != nil || place == "" || place == own {
		return nil, err
	}
	return s.stores(ctx, own)
}

func hintOr(err error, hint string) string {
	if h := advice.Hint(err); h != "" {
		return h
	}
	return hint
}

// reportStored prints where a report is stored, unless the report itself did. A report that the
// requested store refused goes to the user's own. None of this fails the run. It returns where
// the report is, "" if it is not stored.
func (s *session) reportStored(k *keeping, d *report.Document, err error, say bool) (place string) {
	s.storing.Lock() // steps of a scenario may end at the same time
	defer s.storing.Unlock()
	switch {
	case k.store == nil:
		s.unsafe = true
		return ""
	case err == nil:
		s.safe = showCommand(d.ID, k.at)
		if say && !k.quiet {
			s.note("kept as %s in %s", d.ID, k.store.Place())
		}
		if k.substitute {
			s.note("hint: %s", s.shown(pushHint(d.ID, k.at, k.place)))
		}
		return k.store.Place()
	}
	ctx := context.Background() // interrupted runs are stored, too
	var local store.Store
	var lerr error
	// Do not open the same file twice: closing either releases the locks of both.
	if own, err := sqlite.Default(); err == nil && own != k.store.Place() {
		local, lerr = s.ownStore(ctx, k.place)
	}
	if lerr == nil && local != nil {
		defer local.Close()
		if lerr = local.Put(ctx, d); lerr == nil {
			s.safe = showCommand(d.ID, local.Place())
			s.warnWithHint(fmt.Errorf("report %s is not in %s: %w; it is kept in %s", d.ID, k.store.Place(), err, local.Place()),
				pushHint(d.ID, local.Place(), k.place))
			return local.Place()
		}
	}
	s.unsafe = true
	s.warnWithHint(fmt.Errorf("report %s is not kept: %w", d.ID, err),
		hintOr(err, "the report on stdout is complete; as JSON (--json, --json-file), carronade report import FILE keeps it later"))
	return ""
}

// showCommand is the command that shows a report.
func showCommand(id, place string) string {
	return "carronade report show " + id + storeFlag(place)
}

// storeFlag is the flag that names a store; "" for the user's own.
func storeFlag(place string) string {
	if own, err := sqlite.Default(); err == nil && own == place {
		return ""
	}
	return " --store " + advice.Quote(place)
}

// lost is the hint when stdout could not be written.
func (s *session) lost() string {
	switch {
	case s.unsafe:
		return "what was measured is lost unless it also went to a file (--json-file)"
	case s.safe != "":
		return "the report is kept: " + s.safe
	}
	return "check that the disk has space, or write it elsewhere"
}

// pushHint is the hint for copying a report to the store that it was meant for.
func pushHint(id, from, to string) string {
	return fmt.Sprintf("carronade report push %s --store %s --to %s copies it there later", id, advice.Quote(from), advice.Quote(to))
}

func (k *keeping) close() {
	if k != nil && k.store != nil {
		_ = k.store.Close() // errors of writes were reported already
	}
}
