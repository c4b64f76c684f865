package sqlite

import (
	"os"
	"path/filepath"
	"testing"

	"carronade/internal/store"
	"carronade/test/testkit/assert"
	"carronade/test/testkit/reporttest"
)

func open(t *testing.T, path string) *Store {
	t.Helper()
	s := assert.Value(Open(t.Context(), path))(t)
	t.Cleanup(func() { s.Close() })
	return s
}

func TestStore(t *testing.T) {
	reporttest.RunStore(t, func(t *testing.T) store.Store {
		dir := filepath.Join(t.TempDir(), "a folder")
		assert.OK(t, os.Mkdir(dir, 0o700))
		return open(t, filepath.Join(dir, "reports ?#%.db"))
	})
}
