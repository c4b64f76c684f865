//go:build unix

package host

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"carronade/test/testkit/assert"
)

func TestListenOwn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "socket")
	l, err := ListenOwn(path)
	assert.OK(t, err)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := ListenOwn(path); err == nil {
		t.Error("the socket of a program that listens was replaced")
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
	l = assert.Value(ListenOwn(path))(t, "a socket that was left behind")
	l.Close()
	assert.OK(t, os.WriteFile(path, nil, 0o600))
	_, err = ListenOwn(path)
	assert.True(t, err != nil, "a file was replaced")
}

// TestListenOwnAtOnce: sockets that are made at the same time leave the umask as it was.
func TestListenOwnAtOnce(t *testing.T) {
	want := syscall.Umask(0o022)
	syscall.Umask(want)
	dir := t.TempDir()
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for k := range 50 {
				l, err := ListenOwn(filepath.Join(dir, strconv.Itoa(100*i+k)))
				if err != nil {
					t.Error(err)
					return
				}
				l.Close()
			}
		})
	}
	all.Wait()
	assert.Equal(t, syscall.Umask(want), want, "the umask")
}

// The lock is free once its file is closed, although a process that is just started still has the descriptor.
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
