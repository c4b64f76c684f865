package host

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"carronade/test/testkit/assert"
)

// A file that exists stays, and on a file system without hard links one is made, too.
func TestMakeFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	none := func(string, string) error { return errors.ErrUnsupported }
	for i, link := range []func(string, string) error{none, os.Link} {
		assert.OK(t, makeFile(path, []byte{byte(i)}, link))
	}
	got, err := os.ReadFile(path)
	assert.True(t, err == nil && string(got) == "\x00", "the file has %q, %v", got, err)
	left, err := os.ReadDir(dir)
	assert.True(t, err == nil && len(left) == 1, "the folder has %v, %v", left, err)
}
