package system_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"carronade/internal/system"
	"carronade/internal/testkit/assert"
)

func TestReplaceFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	for _, text := range []string{"first", "second, longer", ""} {
		assert.OK(t, system.ReplaceFile(path, []byte(text)))
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Fatalf("the file has %q, %v, want %q", got, err, text)
		}
	}
	info, err := os.Stat(path)
	assert.OK(t, err)
	if runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, want 0600", info.Mode())
	}
	if err := system.ReplaceFile(filepath.Join(dir, "no", "file"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in a folder that is missing: %v", err)
	}
	// What a rename cannot replace leaves nothing behind.
	assert.OK(t, os.MkdirAll(filepath.Join(dir, "folder", "x"), 0o700))
	if err := system.ReplaceFile(filepath.Join(dir, "folder"), nil); err == nil {
		t.Error("a folder was replaced")
	}
	all, err := os.ReadDir(dir)
	assert.True(t, err == nil && len(all) == 2, "%v %v, want the file and the folder", all, err)
}

func TestCreateFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	assert.OK(t, system.CreateFile(path, []byte("one")))
	if err := system.CreateFile(path, []byte("two")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("again: %v, want fs.ErrExist", err)
	}
	if got, _ := os.ReadFile(path); string(got) != "one" {
		t.Errorf("the file has %q", got)
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v, want 0600", info.Mode(), err)
	}
}
