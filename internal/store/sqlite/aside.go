package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"carronade/internal/store"
	"carronade/target"
)

// MoveAside gives the file of a store another name, in the same folder, and
// returns it: for a store that is damaged, when somebody asked for it. The log
// beside it goes along.
func MoveAside(path string) (to string, err error) {
	fail := func(err error) error {
		return &target.Error{Doing: "move the store " + path + " aside", Err: errors.New(reason(err)), Hint: "move it yourself, with the files beside it that end in -wal and -shm"}
	}
	if _, err := os.Stat(path); err != nil {
		return "", fail(err)
	}
	ext := filepath.Ext(path)
	to = fmt.Sprintf("%s.damaged-%s%s", strings.TrimSuffix(path, ext), time.Now().UTC().Format("20060102-150405"), ext)
	for n := 2; exists(to); n++ {
		to = fmt.Sprintf("%s.damaged-%s-%d%s", strings.TrimSuffix(path, ext), time.Now().UTC().Format("20060102-150405"), n, ext)
	}
	// The log first: without it the file is older, but never something else.
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

// OpenDamaged opens a store that Open refuses, to read what can be read of it.
// Nothing is written.
func OpenDamaged(ctx context.Context, path string) (*Store, error) {
	s := &Store{path: path, readOnly: true, patience: usualPatience}
	abs, err := filepath.Abs(path)
	if err == nil {
		s.db, err = s.connect(abs, "mode=ro")
	}
	if err == nil {
		err = s.db.PingContext(ctx)
	}
	if err != nil {
		s.Close()
		return nil, s.fail("read what is left", err)
	}
	return s, nil
}

// Check implements store.Checker: the file's own structure is looked at whole.
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
