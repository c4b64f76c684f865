package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	_ "modernc.org/sqlite" // the driver

	"carronade/internal/store"
	"carronade/target"
)

// defaultLockTimeout is how long a process waits for others that write.
const defaultLockTimeout = 10 * time.Second

// A Store is an open file of reports. Its methods may be called by several
// goroutines.
type Store struct {
	path        string
	lockTimeout time.Duration
	db          *sql.DB
	existing    bool // open it only if it exists
	readOnly    bool
	damaged     bool // see OpenDamaged

	mu     sync.Mutex
	series *sql.DB // for intervals of runs in progress; nil until the first
}

// Open opens the store in a file. If there is none, it is made, with the
// folders above it. A file that cannot be written is opened for reading. The
// error is a *target.Error that wraps an error of package store if one fits;
// then nothing was written to the file.
func Open(ctx context.Context, path string) (*Store, error) {
	return openWith(ctx, path, defaultLockTimeout, migrations)
}

// OpenExisting is Open for callers that only read, or delete: if the file is
// missing, the error is a store.ErrAbsent, and nothing is made.
func OpenExisting(ctx context.Context, path string) (*Store, error) {
	return (&Store{path: path, lockTimeout: defaultLockTimeout, existing: true}).opened(ctx, migrations)
}

func openWith(ctx context.Context, path string, patience time.Duration, steps []string) (*Store, error) {
	return (&Store{path: path, lockTimeout: patience}).opened(ctx, steps)
}

func (s *Store) opened(ctx context.Context, steps []string) (*Store, error) {
	if err := s.open(ctx, steps); err != nil {
		s.Close()
		return nil, s.fail("open the store", err)
	}
	return s, nil
}

func (s *Store) open(ctx context.Context, steps []string) error {
	abs, err := filepath.Abs(s.path)
	if err != nil {
		return err
	}
	mode := os.O_RDWR
	if !s.existing {
		if err := os.MkdirAll(filepath.Dir(abs), 0o700); err != nil {
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
	err = checkHeader(f, abs, len(steps))
	f.Close()
	if err != nil {
		return err
	}
	if !s.readOnly {
		err = s.prepare(ctx, abs, steps)
		if err == nil || !errors.Is(cause(err), store.ErrReadOnly) && !cannotOpen(err) {
			return err
		}
		// The file is writable but its folder is not, so that no log can be
		// created.
		s.Close()
		s.readOnly = true
	}
	return s.openReadOnly(ctx, abs, steps)
}

// checkHeader checks a file before SQLite opens it: whether it is ours, and
// whether it was cut short.
func checkHeader(f *os.File, path string, known int) error {
	const (
		head    = 100 // bytes, https://www.sqlite.org/fileformat.html#the_database_header
		magic   = "SQLite format 3\x00"
		noPages = 1 << 16
	)
	var h [head]byte
	n, err := io.ReadFull(f, h[:])
	switch {
	case n == 0:
		return nil // new
	case err != nil && !errors.Is(err, io.ErrUnexpectedEOF):
		return err
	case !bytes.HasPrefix(h[:], []byte(magic)) || n < head:
		if bytes.HasPrefix([]byte(magic), h[:min(n, len(magic))]) {
			return fmt.Errorf("%w: it is cut off after %d bytes", store.ErrDamaged, n)
		}
		return store.ErrForeign
	}
	if log, err := os.Stat(path + "-wal"); err == nil && log.Size() > 0 {
		return nil // the log may have what the file lacks
	}
	// A schema cookie of 0 means that the database is still empty.
	if id := binary.BigEndian.Uint32(h[68:]); id != applicationID && (id != 0 || binary.BigEndian.Uint32(h[40:]) != 0) {
		return store.ErrForeign
	}
	if v := int(binary.BigEndian.Uint32(h[60:])); v > known {
		return newer(v, known)
	}
	page := int64(binary.BigEndian.Uint16(h[16:]))
	if page == 1 {
		page = noPages
	}
	whole := page * int64(binary.BigEndian.Uint32(h[28:]))
	if info, err := f.Stat(); err == nil && info.Size() < whole {
		return fmt.Errorf("%w: it has %d bytes of %d", store.ErrDamaged, info.Size(), whole)
	}
	return nil
}

// prepare opens the file for writing and brings it up to date.
func (s *Store) prepare(ctx context.Context, path string, steps []string) error {
	options := []string{"_pragma=journal_mode(WAL)", "_pragma=synchronous(FULL)"}
	if info, err := os.Stat(path); err == nil && info.Size() == 0 {
		// Only before there is anything in the file: later the first of them is
		// a write.
		options = append([]string{"_pragma=auto_vacuum(2)", "_pragma=page_size(8192)"}, options...)
	}
	db, err := s.connect(path, options...)
	if err != nil {
		return err
	}
	s.db = db
	return s.retryWhileBusy(ctx, func() error {
		if err := s.checkOwner(ctx); err != nil {
			return err
		}
		if v, err := s.version(ctx); err != nil || v == len(steps) {
			return err
		}
		return migrate(ctx, db, steps)
	})
}

// retryWhileBusy repeats f while others keep the file locked: SQLite itself
// does not wait for the change to WAL and for the recovery of a log that a
// killed process left.
func (s *Store) retryWhileBusy(ctx context.Context, f func() error) error {
	end := time.Now().Add(s.lockTimeout)
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		err := f()
		if err == nil || !errors.Is(cause(err), store.ErrBusy) || time.Now().After(end) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// openReadOnly opens a file that cannot be written, or whose folder cannot.
func (s *Store) openReadOnly(ctx context.Context, path string, steps []string) error {
	options := []string{"mode=ro"}
	if _, err := os.Stat(path + "-wal"); errors.Is(err, os.ErrNotExist) {
		options = append(options, "immutable=1") // no process can write, so no lock is needed
	}
	db, err := s.connect(path, options...)
	if err != nil {
		return err
	}
	s.db = db
	if err := s.checkOwner(ctx); err != nil {
		if cannotOpen(err) || errors.Is(cause(err), store.ErrReadOnly) {
			return &target.Error{
				Doing: "open the store in " + s.path, Err: fmt.Errorf("%w, and its last write was interrupted", store.ErrReadOnly),
				Hint: "copy its folder to a writable place, and give the copy with --store",
			}
		}
		return err
	}
	switch v, err := s.version(ctx); {
	case err != nil:
		return err
	case v > len(steps):
		return newer(v, len(steps))
	case v < len(steps):
		return fmt.Errorf("%w, and an older carronade made it (its schema is version %d)", store.ErrReadOnly, v)
	}
	return nil
}

// checkOwner returns an error if the file belongs to another program.
func (s *Store) checkOwner(ctx context.Context) error {
	// Another process may create the schema, and set the ID with it, between the two
	// statements. The tables come first, so tables that are seen have their ID.
	var id, tables int
	if err := s.db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&tables); err != nil {
		return err
	}
	if err := s.db.QueryRowContext(ctx, "PRAGMA application_id").Scan(&id); err != nil {
		return err
	}
	if id != applicationID && (id != 0 || tables > 0) {
		return store.ErrForeign
	}
	return nil
}

func (s *Store) version(ctx context.Context) (v int, err error) {
	err = s.db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&v)
	return v, err
}

// connect opens a file with SQLite, which reads it at the first use.
func (s *Store) connect(path string, options ...string) (*sql.DB, error) {
	options = append([]string{fmt.Sprintf("_pragma=busy_timeout(%d)", s.lockTimeout.Milliseconds()), "_pragma=cell_size_check(1)", "_txlock=immediate"}, options...)
	u := url.URL{Scheme: "file", Opaque: (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath(), RawQuery: strings.Join(options, "&")}
	db, err := sql.Open("sqlite", u.String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(4)
	return db, nil
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
