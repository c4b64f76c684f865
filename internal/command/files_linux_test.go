package command

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// A pipe is not opened for the check: that would wait for its reader, and the reader
// would then see its end.
func TestTryPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- TryFile(path) }()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("it waits for the pipe's reader")
	}
}

// TestWriteFileMode: others cannot write what is exported, whatever the umask.
func TestWriteFileMode(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	old := syscall.Umask(0)
	err := WriteFile(path, func(io.Writer) error { return nil })
	syscall.Umask(old)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o644 {
		t.Errorf("got %v", info.Mode())
	}
}
