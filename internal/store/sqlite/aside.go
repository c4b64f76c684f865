package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"carronade/internal/host"
	"carronade/internal/store"
	"carronade/protocol"
)

// MoveAside renames the file of a damaged store within its folder, at the
// user's request, and returns the new name. Its log is renamed with it.
func MoveAside(path string) (to string, err error) {
	fail := func(err error) error {
		return &protocol.Error{Doing: "move the store " + path + " aside", Err: host.Reason(err), Hint: "move it yourself, together with its -wal and -shm files"}
	}
	if _, err := os.Stat(path); err != nil {
		return "", fail(err)
	}
	ext := filepath.Ext(path)
	to = fmt.Sprintf("%s.damaged-%s%s", strings.TrimSuffix(path, ext), time.Now().UTC().Format("20060102-150405"), ext)
	for n := 2; exists(to); n++ {
		to = fmt.Sprintf("%s.damaged-%s-%d%s", strings.TrimSuffix(path, ext), time.Now().UTC().Format("20060102-150405"), n, ext)
	}
	// The log first: without it the file is older, but never inconsistent.
	for _, suffix := range []string{"-wal", "-shm", ""} {
		if err := os.Rename(path+suffix, to+suffix); err != nil && (suffix == "" || !errors.Is(err, os.ErrNotExist)) {
			return "", fail(err)
		}
	}
	return to, nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// OpenDamaged opens a store that Open refuses, to read what can still be read:
// even in a file that was cut short, the reports whose parts, and the pages
// that lead to them, lie before the cut. Nothing is written. Find returns the
// ids found in any table or index, with the error that ended the reading of
// one, after which there may have been more; Get shows which of them are
// complete.
func OpenDamaged(ctx context.Context, path string) (*Store, error) {
	s := &Store{path: path, readOnly: true, damaged: true, format: format}
	abs, err := filepath.Abs(path)
	if err == nil {
		// With a writable schema SQLite trusts the file's length and not its
		// header (btree.c, lockBtree). Nothing is written: the mode is ro.
		options := []string{"mode=ro", "_pragma=writable_schema(1)"}
		if !exists(abs + "-wal") {
			options = append(options, "immutable=1")
		}
		s.db, err = s.format.Connect(abs, options...)
	}
	if err == nil {
		var n int
		err = s.db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema WHERE name IN ('reports', 'intervals')").Scan(&n)
		if err == nil && n < 2 {
			err = fmt.Errorf("%w: its tables cannot be found", store.ErrDamaged)
		}
	}
	if err != nil {
		s.Close()
		return nil, s.fail("read what is left", err)
	}
	return s, nil
}

// remainingIDs returns the ids of all reports found in any part of the file,
// newest first as far as is known. The error is what ended the reading of one
// part; other parts may have more.
func (s *Store) remainingIDs(ctx context.Context) (ids []string, err error) {
	seen := make(map[string]bool)
	for _, query := range []string{
		"SELECT id FROM digests ORDER BY started DESC, n DESC", // uses an index
		"SELECT id FROM digests NOT INDEXED ORDER BY n DESC",
		"SELECT id FROM digests NOT INDEXED ORDER BY n",
		"SELECT id FROM reports NOT INDEXED ORDER BY n DESC",
		"SELECT id FROM reports NOT INDEXED ORDER BY n", // from both ends, up to the damage
		"SELECT id FROM reports INDEXED BY sqlite_autoindex_reports_1 ORDER BY id",
	} {
		found, ferr := s.ids(ctx, query)
		for _, id := range found {
			if !seen[id] {
				seen[id] = true
				ids = append(ids, id)
			}
		}
		if err == nil {
			err = ferr
		}
	}
	return ids, err
}

// ids returns the results of a query, up to an error.
func (s *Store) ids(ctx context.Context, query string, args ...any) (out []string, err error) {
	rows, err := s.db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return out, err
		}
		out = append(out, id)
	}
	return out, rows.Err()
}

// Check implements store.Checker: it checks the structure of the entire file.
func (s *Store) Check(ctx context.Context) error {
	const most = 5 // findings
	rows, err := s.db.QueryContext(ctx, fmt.Sprintf("PRAGMA integrity_check(%d)", most))
	if err != nil {
		return s.fail("check the store", err)
	}
	defer rows.Close()
	var found []string
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return s.fail("check the store", err)
		}
		if text != "ok" {
			found = append(found, text)
		}
	}
	if err := rows.Err(); err != nil {
		return s.fail("check the store", err)
	}
	if len(found) > 0 {
		return s.fail("check the store", fmt.Errorf("%w: %s", store.ErrDamaged, strings.Join(found, "; ")))
	}
	return nil
}

var _ store.Checker = (*Store)(nil)
