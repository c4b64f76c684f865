package sqlitefile

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// A Format is a kind of file.
type Format struct {
	ID uint32 // marks the files among SQLite databases: its application_id
	// Steps make version n of the schema, from 1, out of version n-1. A released
	// step is never changed.
	Steps    []string
	Patience time.Duration // how long to wait for other processes that write
}

// CheckHeader checks a file before SQLite opens it: whether it has the format,
// and whether it was cut short. An empty file passes.
func (f Format) CheckHeader(file *os.File) error {
	const (
		head    = 100 // bytes, https://www.sqlite.org/fileformat.html#the_database_header
		magic   = "SQLite format 3\x00"
		noPages = 1 << 16
	)
	var h [head]byte
	n, err := io.ReadFull(file, h[:])
	switch {
	case n == 0:
		return nil // new
	case err != nil && !errors.Is(err, io.ErrUnexpectedEOF):
		return err
	case !bytes.HasPrefix(h[:], []byte(magic)) || n < head:
		if bytes.HasPrefix([]byte(magic), h[:min(n, len(magic))]) {
			return damaged("it is cut off after %d bytes", n)
		}
		return &Error{Kind: ErrForeign}
	}
	if log, err := os.Stat(file.Name() + "-wal"); err == nil && log.Size() > 0 {
		return nil // the log may have what the file lacks
	}
	// A schema cookie of 0 means that the database is still empty.
	if id := binary.BigEndian.Uint32(h[68:]); id != f.ID && (id != 0 || binary.BigEndian.Uint32(h[40:]) != 0) {
		return &Error{Kind: ErrForeign}
	}
	if v := int(binary.BigEndian.Uint32(h[60:])); v > len(f.Steps) {
		return newer(v, len(f.Steps))
	}
	page := int64(binary.BigEndian.Uint16(h[16:]))
	if page == 1 {
		page = noPages
	}
	whole := page * int64(binary.BigEndian.Uint32(h[28:]))
	if info, err := file.Stat(); err == nil && info.Size() < whole {
		return damaged("it has %d bytes of %d", info.Size(), whole)
	}
	return nil
}

// Prepare opens a file for writing and brings its schema up to date. It makes
// the file if it is missing or empty. The database is also returned with an
// error, if there is one to close.
func (f Format) Prepare(ctx context.Context, path string) (*sql.DB, error) {
	options := []string{"_pragma=journal_mode(WAL)", "_pragma=synchronous(FULL)"}
	if info, err := os.Stat(path); err != nil || info.Size() == 0 {
		// Only before there is anything in the file: later the first of them is
		// a write.
		options = append([]string{"_pragma=auto_vacuum(2)", "_pragma=page_size(8192)"}, options...)
	}
	db, err := f.Connect(path, options...)
	if err != nil {
		return nil, err
	}
	return db, f.Retry(ctx, func() error {
		if err := f.CheckOwner(ctx, db); err != nil {
			return err
		}
		if v, err := Version(ctx, db); err != nil || v == len(f.Steps) {
			return err
		}
		return f.Migrate(ctx, db)
	})
}

// Connect opens a file with SQLite, which reads it at the first use. Options
// are those of the driver: NAME=VALUE, not escaped.
func (f Format) Connect(path string, options ...string) (*sql.DB, error) {
	options = append([]string{fmt.Sprintf("_pragma=busy_timeout(%d)", f.Patience.Milliseconds()), "_pragma=cell_size_check(1)", "_txlock=immediate"}, options...)
	u := url.URL{Scheme: "file", Opaque: (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath(), RawQuery: strings.Join(options, "&")}
	db, err := sql.Open("sqlite", u.String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(4)
	return db, nil
}

// Retry repeats do while others keep the file locked, at most as long as
// Patience: SQLite itself does not wait for the change to WAL and for the
// recovery of a log that a killed process left.
func (f Format) Retry(ctx context.Context, do func() error) error {
	end := time.Now().Add(f.Patience)
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		err := do()
		if err == nil || !errors.Is(Cause(err), ErrBusy) || time.Now().After(end) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// CheckOwner returns an error if the file belongs to another program.
func (f Format) CheckOwner(ctx context.Context, db *sql.DB) error {
	// Another process may create the schema, and set the ID with it, between the two
	// statements. The tables come first, so tables that are seen have their ID.
	var id, tables int64
	if err := db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&tables); err != nil {
		return err
	}
	if err := db.QueryRowContext(ctx, "PRAGMA application_id").Scan(&id); err != nil {
		return err
	}
	if id != int64(f.ID) && (id != 0 || tables > 0) {
		return &Error{Kind: ErrForeign}
	}
	return nil
}

// CheckVersion returns an error if a newer version of this program wrote the
// file. Otherwise it returns the version of the file's schema.
func (f Format) CheckVersion(ctx context.Context, db *sql.DB) (int, error) {
	v, err := Version(ctx, db)
	if err == nil && v > len(f.Steps) {
		err = newer(v, len(f.Steps))
	}
	return v, err
}

// Version is the version of a file's schema, 0 for an empty file.
func Version(ctx context.Context, db *sql.DB) (v int, err error) {
	err = db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&v)
	return v, err
}

// Migrate applies the missing steps, all or none. Concurrent processes wait for
// the first.
func (f Format) Migrate(ctx context.Context, db *sql.DB) error {
	return InTransaction(ctx, db, func(tx *sql.Tx) error {
		var version int
		if err := tx.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
			return err
		}
		if version > len(f.Steps) {
			return newer(version, len(f.Steps))
		}
		for n := version; n < len(f.Steps); n++ {
			if _, err := tx.ExecContext(ctx, f.Steps[n]); err != nil {
				return fmt.Errorf("make version %d of the schema: %w", n+1, err)
			}
		}
		_, err := tx.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d; PRAGMA application_id = %d", len(f.Steps), f.ID))
		return err
	})
}

// InTransaction runs do in a transaction, which has the write lock from its
// start. If it returns no error, the data is on disk.
func InTransaction(ctx context.Context, db *sql.DB, do func(tx *sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if err := do(tx); err != nil {
		return err
	}
	return tx.Commit()
}
