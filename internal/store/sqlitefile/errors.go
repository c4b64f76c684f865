package sqlitefile

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"carronade/internal/host"
)

// The kinds of errors. The packages that own a file have their own words for
// them.
var (
	ErrReadOnly = errors.New("the file is read-only")
	ErrFull     = errors.New("the disk is full")
	ErrBusy     = errors.New("other processes keep the file locked")
	ErrDamaged  = errors.New("the file is damaged")
	ErrForeign  = errors.New("the file belongs to another program")
	ErrNewer    = errors.New("a newer version of this program wrote the file")
)

// An Error has one of the kinds above.
type Error struct {
	Kind   error
	Detail error // more about it; nil: nothing
}

// Error implements error.
func (e *Error) Error() string { return e.In(e.Kind).Error() }

// Unwrap returns the kind and the detail.
func (e *Error) Unwrap() []error {
	if e.Detail == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Detail}
}

// In returns the error with other words for its kind. The result wraps them.
func (e *Error) In(kind error) error {
	if e.Detail == nil {
		return kind
	}
	return fmt.Errorf("%w: %w", kind, e.Detail)
}

// newer is the error of a file with a schema that this program does not know.
func newer(version, known int) error {
	return &Error{Kind: ErrNewer, Detail: fmt.Errorf("its schema is version %d and this one knows up to %d", version, known)}
}

func damaged(format string, args ...any) error {
	return &Error{Kind: ErrDamaged, Detail: fmt.Errorf(format, args...)}
}

// Cause returns an error of SQLite, or of the system for a file, as an *Error
// if it has one of the kinds. Other errors are returned unchanged.
func Cause(err error) error {
	if _, ok := errors.AsType[*Error](err); ok {
		return err
	}
	if s, ok := errors.AsType[*sqlite.Error](err); ok {
		switch s.Code() & 0xff {
		case lib.SQLITE_CORRUPT:
			return &Error{Kind: ErrDamaged, Detail: s}
		case lib.SQLITE_NOTADB:
			return &Error{Kind: ErrForeign}
		case lib.SQLITE_FULL:
			return &Error{Kind: ErrFull}
		case lib.SQLITE_BUSY, lib.SQLITE_LOCKED, lib.SQLITE_PROTOCOL:
			return &Error{Kind: ErrBusy}
		case lib.SQLITE_READONLY, lib.SQLITE_PERM:
			return &Error{Kind: ErrReadOnly}
		}
	}
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return &Error{Kind: ErrFull}
	case errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission):
		return &Error{Kind: ErrReadOnly, Detail: host.Reason(err)}
	}
	return err
}

// CannotOpen reports whether SQLite could not open the file, or one next to it.
func CannotOpen(err error) bool {
	var s *sqlite.Error
	return errors.As(err, &s) && s.Code()&0xff == lib.SQLITE_CANTOPEN
}
