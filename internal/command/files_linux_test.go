package command

import (
	"carronade/internal/testkit/assert"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// A pipe is not opened for the check: that would wait for its reader, and the reader
// would then see its end.
func TestTryPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	assert.OK(t, syscall.Mkfifo(path, 0o600))
	done := make(chan error, 1)
	go func() { done <- TryFile(path) }()
	select {
	case err := <-done:
		assert.True(t, err == nil, "%v", err)
	case <-time.After(20 * time.Second):
		t.Fatal("it waits for the pipe's reader")
	}
}
