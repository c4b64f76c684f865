package host_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"carronade/internal/host"
	"carronade/test/testkit/assert"
)

func TestReplaceFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	for _, text := range []string{"first", "second, longer", ""} {
		assert.OK(t, host.ReplaceFile(path, []byte(text)))
		got, err := os.ReadFile(path)
		assert.Must(t, err == nil && string(got) == text, "the file has %q, %v, want %q", got, err, text)
	}
	info := assert.Value(os.Stat(path))(t)
	assert.True(t, runtime.GOOS == "windows" || info.Mode().Perm() == 0o600, "mode %v, want 0600", info.Mode())
	err := host.ReplaceFile(filepath.Join(dir, "no", "file"), nil)
	assert.True(t, errors.Is(err, fs.ErrNotExist), "in a folder that is missing: %v", err)
	// What a rename cannot replace leaves nothing behind.
	assert.OK(t, os.MkdirAll(filepath.Join(dir, "folder", "x"), 0o700))
	assert.True(t, host.ReplaceFile(filepath.Join(dir, "folder"), nil) != nil, "a folder was replaced")
	all, err := os.ReadDir(dir)
	assert.True(t, err == nil && len(all) == 2, "%v %v, want the file and the folder", all, err)
}

func TestCreateFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	assert.OK(t, host.CreateFile(path, []byte("one")))
	err := host.CreateFile(path, []byte("two"))
	assert.True(t, errors.Is(err, fs.ErrExist), "again: %v, want fs.ErrExist", err)
	got, _ := os.ReadFile(path)
	assert.True(t, string(got) == "one", "the file has %q", got)
	info, err := os.Stat(path)
	assert.True(t, err == nil && (runtime.GOOS == "windows" || info.Mode().Perm() == 0o600), "mode %v, %v, want 0600", info.Mode(), err)
}
