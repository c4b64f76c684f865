package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"carronade/internal/store"
	"carronade/internal/store/sqlitefile"
	"carronade/protocol"
)

// A Store is an open file of reports. Its methods may be called by several
// goroutines.
type Store struct {
	path     string
	format   sqlitefile.Format
	db       *sql.DB
	existing bool // open it only if it exists
	readOnly bool
	damaged  bool // see OpenDamaged

	mu     sync.Mutex
	series *sql.DB // for intervals of runs in progress; nil until the first
}

// Open opens the store in a file. If there is none, it is made, of the default place
// with the folders above it: elsewhere a folder that is missing may be mistyped. A file that cannot be written is opened for reading. The
// error is a *protocol.Error that wraps an error of package store if one fits;
// then nothing was written to the file.
func Open(ctx context.Context, path string) (*Store, error) {
	return openWith(ctx, path, format)
}

// OpenExisting is Open for callers that only read, or delete: if the file is
// missing, the error is a store.ErrAbsent, and nothing is made.
func OpenExisting(ctx context.Context, path string) (*Store, error) {
	return (&Store{path: path, format: format, existing: true}).opened(ctx)
}

func openWith(ctx context.Context, path string, f sqlitefile.Format) (*Store, error) {
	return (&Store{path: path, format: f}).opened(ctx)
}

func (s *Store) opened(ctx context.Context) (*Store, error) {
	if err := s.open(ctx); err != nil {
		s.Close()
		return nil, s.fail("open the store", err)
	}
	return s, nil
}

func (s *Store) open(ctx context.Context) error {
	abs, err := filepath.Abs(s.path)
	if err != nil {
		return err
	}
	mode := os.O_RDWR
	if !s.existing {
		if err := s.makeFolder(abs); err != nil {
			return err
		}
		mode |= os.O_CREATE
	}
	f, err := os.OpenFile(abs, mode, 0o600)
	if s.existing && errors.Is(err, fs.ErrNotExist) {
		return store.ErrAbsent
	}
	if err != nil {
		var cannot error
		if f, cannot = os.Open(abs); cannot != nil {
			return err // the first error says why it cannot be written
		}
		s.readOnly = true
	}
	err = s.format.CheckHeader(f)
	f.Close()
	if err != nil {
		return err
	}
	if !s.readOnly {
		s.db, err = s.format.Prepare(ctx, abs)
		if err == nil || !errors.Is(cause(err), store.ErrReadOnly) && !sqlitefile.CannotOpen(err) {
			return err
		}
		// The file is writable but its folder is not, so that no log can be
		// created.
		s.Close()
		s.readOnly = true
	}
	return s.openReadOnly(ctx, abs)
}

// makeFolder makes the folder of the default place. Of others it must exist.
func (s *Store) makeFolder(abs string) error {
	dir := filepath.Dir(abs)
	if own, err := Default(); err == nil && own == abs {
		return os.MkdirAll(dir, 0o700)
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return &protocol.Error{Doing: "open the store in " + s.path, Err: noFolder(dir), Hint: "check the name, or make the folder first"}
	}
	return nil
}

// A noFolder is the folder of a store, which does not exist. It is a store.ErrAbsent.
type noFolder string

func (n noFolder) Error() string { return "the folder " + string(n) + " does not exist" }
func (noFolder) Unwrap() error   { return store.ErrAbsent }

// openReadOnly opens a file that cannot be written, or whose folder cannot.
func (s *Store) openReadOnly(ctx context.Context, path string) error {
	options := []string{"mode=ro"}
	if _, err := os.Stat(path + "-wal"); errors.Is(err, os.ErrNotExist) {
		options = append(options, "immutable=1") // no process can write, so no lock is needed
	}
	db, err := s.format.Connect(path, options...)
	if err != nil {
		return err
	}
	s.db = db
	if err := s.format.CheckOwner(ctx, s.db); err != nil {
		if sqlitefile.CannotOpen(err) || errors.Is(cause(err), store.ErrReadOnly) {
			return &protocol.Error{
				Doing: "open the store in " + s.path, Err: fmt.Errorf("%w, and its last write was interrupted", store.ErrReadOnly),
				Hint: "copy its folder to a writable place, and give the copy with --store",
			}
		}
		return err
	}
	switch v, err := s.format.CheckVersion(ctx, s.db); {
	case err != nil:
		return err
	case v < len(s.format.Steps):
		return fmt.Errorf("%w, and an older carronade made it (its schema is version %d)", store.ErrReadOnly, v)
	}
	return nil
}

// Place implements store.Store.
func (s *Store) Place() string { return s.path }

// Close implements store.Store. Open writers fail after it.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, db := range []**sql.DB{&s.series, &s.db} {
		if *db != nil {
			errs = append(errs, (*db).Close())
			*db = nil
		}
	}
	return errors.Join(errs...)
}
