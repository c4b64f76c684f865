package cmdutil

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// A pipe is not opened for the check: that would wait for its reader, and the reader would then see its end.
func TestTryPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	assert.OK(t, syscall.Mkfifo(path, 0o600))
	done := make(chan error, 1)
	go func() { done <- TryFile(path) }()
	assert.OK(t, testkit.Wait(t, "the check of a pipe without a reader ends", done))
}

// TestWriteFileMode: others cannot write what is exported, whatever the umask.
func TestWriteFileMode(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	old := syscall.Umask(0)
	err := WriteFile(path, func(io.Writer) error { return nil })
	syscall.Umask(old)
	assert.OK(t, err)
	info := assert.Value(os.Stat(path))(t)
	assert.True(t, info.Mode().Perm() == 0o644, "got %v", info.Mode())
}
