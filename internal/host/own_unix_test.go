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
	l, err = ListenOwn(path)
	assert.OK(t, err, "a socket that was left behind")
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
