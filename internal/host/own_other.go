//go:build !unix && !windows

package host

import (
	"errors"
	"net"
)

// ListenOwn listens on a Unix socket that only this user can connect to, on Unix.
func ListenOwn(string) (net.Listener, error) {
	return nil, errors.New("not on this system")
}

// IsRefused reports whether nothing listens on a Unix socket.
func IsRefused(error) bool { return false }

// sameOwner gives a file to the owner of a folder, on Unix.
func sameOwner(string, string) error { return nil }
