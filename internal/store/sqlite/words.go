package sqlite

import (
	"context"
	"errors"

	"carronade/internal/store"
	"carronade/internal/store/sqlitefile"
	"carronade/protocol"
)

// kinds are the errors of package store for those of a file.
var kinds = map[error]error{
	sqlitefile.ErrReadOnly: store.ErrReadOnly,
	sqlitefile.ErrFull:     store.ErrFull,
	sqlitefile.ErrBusy:     store.ErrBusy,
	sqlitefile.ErrDamaged:  store.ErrDamaged,
	sqlitefile.ErrForeign:  store.ErrForeign,
	sqlitefile.ErrNewer:    store.ErrNewer,
}

// cause translates errors of SQLite and of the system into those of package
// store.
func cause(err error) error {
	if e, ok := errors.AsType[*sqlitefile.Error](sqlitefile.Cause(err)); ok {
		return e.In(kinds[e.Kind])
	}
	return err
}

// hints say what to do about an error.
var hints = []struct {
	is   error
	hint string
}{
	{store.ErrAbsent, "carronade config says which is your own; --store FILE with carronade run makes one"},
	{store.ErrMissing, "carronade report list shows what is there"},
	{store.ErrExists, "a repeated run has its own id; the file may have been changed"},
	{store.ErrRunning, "wait for its end, or stop it"},
	{store.ErrReadOnly, "give another file with --store, or run as a user who may write it"},
	{store.ErrFull, "free some space, or give a file on another disk with --store"},
	{store.ErrBusy, "try again; if no carronade is running, another program has the file open"},
	{store.ErrDamaged, "carronade report check says what can still be read; with --move-aside it renames the file and copies what it can read into a new one"},
	{store.ErrForeign, "give another file with --store; this one is left as it is"},
	{store.ErrNewer, "use the newer carronade, or give another file with --store"},
}

// fail makes an error for users from one of SQLite or of this package. An error
// that is already for users, or is due to an interruption, is returned
// unchanged.
func (s *Store) fail(doing string, err error) error {
	if err == nil {
		return nil
	}
	var done *protocol.Error
	if errors.As(err, &done) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	out := &protocol.Error{Doing: doing + " in " + s.path, Err: cause(err), Hint: "carronade report check looks for damage in the store"}
	for _, h := range hints {
		if errors.Is(out.Err, h.is) {
			out.Hint = h.hint
		}
	}
	return out
}

// mayWait reports whether a failed write may be done later, because it does not
// change what readers see.
func mayWait(err error) bool {
	c := cause(err)
	return errors.Is(c, store.ErrFull) || errors.Is(c, store.ErrBusy)
}
