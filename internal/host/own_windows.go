package host

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"
)

// ListenOwn listens on a Unix socket that only this user can connect to: Windows 10 or later has
// them. Its right is that of the folder, so the socket must be below the user's data folder. A
// socket that a program left behind is replaced, one that a program listens on is an error.
func ListenOwn(path string) (net.Listener, error) {
	dir, err := DataDir()
	if err != nil {
		return nil, err
	}
	if below, err := filepath.Rel(dir, path); err != nil || !filepath.IsLocal(below) {
		return nil, fmt.Errorf("a socket that only you can connect to must be below %s", dir)
	}
	if err := removeAbandoned(path); err != nil {
		return nil, err
	}
	return net.Listen("unix", path)
}

// sameOwner gives a file to the owner of a folder, on Unix.
func sameOwner(string, string) error { return nil }

// IsRefused reports whether nothing listens on a Unix socket.
func IsRefused(err error) bool { return strings.Contains(err.Error(), "refused it") }
