package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"carronade/internal/store"
	"carronade/internal/system"
	"carronade/target"
)

// newer is the error of a file with a schema that this program does not know.
func newer(version, known int) error {
	return fmt.Errorf("%w: its schema is version %d and this one knows up to %d", store.ErrNewer, version, known)
}

// cause translates errors of SQLite and of the system into those of package
// store.
func cause(err error) error {
	var s *sqlite.Error
	if errors.As(err, &s) {
		switch s.Code() & 0xff {
		case lib.SQLITE_CORRUPT:
			return fmt.Errorf("%w (%s)", store.ErrDamaged, sqliteText(s))
		case lib.SQLITE_NOTADB:
			return store.ErrForeign
		case lib.SQLITE_FULL:
			return store.ErrFull
		case lib.SQLITE_BUSY, lib.SQLITE_LOCKED, lib.SQLITE_PROTOCOL:
			return store.ErrBusy
		case lib.SQLITE_READONLY, lib.SQLITE_PERM:
			return store.ErrReadOnly
		}
	}
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return store.ErrFull
	case errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: %w", store.ErrReadOnly, system.Reason(err))
	}
	return err
}

// cannotOpen reports whether SQLite could not open a file, or one beside it.
func cannotOpen(err error) bool {
	var s *sqlite.Error
	return errors.As(err, &s) && s.Code()&0xff == lib.SQLITE_CANTOPEN
}

// sqliteText is SQLite's description of an error.
func sqliteText(e *sqlite.Error) string { return e.Error() }

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
	var done *target.Error
	if errors.As(err, &done) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	out := &target.Error{Doing: doing + " in " + s.path, Err: cause(err), Hint: "carronade report check looks for damage in the store"}
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
