//go:build unix

package system

import (
	"net"
	"os"
	"path/filepath"
	"testing"
)

func TestListenOwn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "socket")
	l, err := ListenOwn(path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := ListenOwn(path); err == nil {
		t.Error("the socket of a program that listens was replaced")
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
	if l, err = ListenOwn(path); err != nil {
		t.Fatalf("a socket that was left behind: %v", err)
	}
	l.Close()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ListenOwn(path); err == nil {
		t.Error("a file was replaced")
	}
}
