//go:build !linux

package host

import (
	"errors"
	"net"
)

// ListenerOf returns the process that accepts TCP connections at a port of this machine, on Linux.
func ListenerOf([]net.IP, int) (int, error) {
	return 0, errors.New("which process listens at a port can be found only on Linux")
}
