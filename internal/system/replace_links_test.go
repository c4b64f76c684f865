package system

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"carronade/internal/testkit/assert"
)

// A file that exists stays, and on a file system without hard links one is made, too.
func TestMakeFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	none := func(string, string) error { return errors.ErrUnsupported }
	for i, link := range []func(string, string) error{none, os.Link} {
		assert.OK(t, makeFile(path, []byte{byte(i)}, link))
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "\x00" {
		t.Errorf("the file has %q, %v", got, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("the folder has %v, %v", left, err)
	}
}
