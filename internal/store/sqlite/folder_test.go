package sqlite

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"carronade/internal/store"
	"carronade/test/testkit/assert"
)

// The default place is made with its folders. Elsewhere a missing folder is an error, and nothing is made.
func TestFolderOfTheStore(t *testing.T) {
	home := t.TempDir()
	t.Setenv("XDG_DATA_HOME", filepath.Join(home, "data"))
	own, err := Default()
	assert.OK(t, err)
	s := assert.Value(Open(t.Context(), own))(t)
	assert.OK(t, s.Close())
	s, err = Open(t.Context(), filepath.Join(home, "here.db"))
	assert.OK(t, err)
	assert.OK(t, s.Close())
	missing := filepath.Join(home, "mistyped", "reports.db")
	_, err = Open(t.Context(), missing)
	assert.True(t, errors.Is(err, store.ErrAbsent), "the error %v is not that the store is absent", err)
	assert.ErrorHas(t, err, "the folder "+filepath.Dir(missing)+" does not exist")
	_, err = os.Stat(filepath.Dir(missing))
	assert.True(t, errors.Is(err, fs.ErrNotExist), "the folder was made: %v", err)
}
