//go:build unix

package host

import (
	"os"
	"path/filepath"
	"testing"

	"carronade/test/testkit/assert"

	"golang.org/x/sys/unix"
)

// TestCloseLocked: the lock is free once its file is closed, although a process that is just started
// still has the descriptor.
func TestCloseLocked(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	open := func() *os.File {
		f := assert.Value(os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600))(t)
		return f
	}
	first, second := open(), open()
	defer second.Close()
	if ok, err := TryLock(first, false); !ok || err != nil {
		t.Fatalf("locked %v: %v", ok, err)
	}
	child := assert.Value(unix.Dup(int(first.Fd())))(t)
	defer unix.Close(child)
	ok, err := TryLock(second, false)
	assert.Must(t, !ok && err == nil, "locked twice %v: %v", ok, err)
	assert.OK(t, CloseLocked(first))
	ok, err = TryLock(second, false)
	assert.True(t, ok && err == nil, "locked again %v: %v", ok, err)
}
