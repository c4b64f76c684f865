package command

import (
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
