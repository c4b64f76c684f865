package trace

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"carronade/test/testkit/assert"
)

// A pipe without a reader is refused at once.
func TestPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	assert.OK(t, syscall.Mkfifo(path, 0o600))
	_, err := Create(Options{Path: path})
	assert.True(t, err != nil && strings.Contains(err.Error(), "it is a pipe"), "got %v, want that it is a pipe", err)
}
