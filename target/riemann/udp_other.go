//go:build !linux

package riemann

import (
	"errors"
	"net"
	"sync/atomic"
	"syscall"
)

// A grams writes datagrams to a connected socket, one a call. Not safe for
// concurrent use.
type grams struct {
	nc       *net.UDPConn
	refusals atomic.Uint64 // errors that came back by another way: none
}

func newGrams(nc *net.UDPConn) (*grams, error) { return &grams{nc: nc}, nil }

// send writes those of all from the next one on and returns how many went. It
// waits where the socket is full, whatever it is told: datagrams leave as fast
// as the interface does. An error is that of the datagram after those: it was
// not sent, and the next one may be.
func (g *grams) send(buf []byte, all []gram, next int, _ bool) (n int, err error) {
	start := 0
	if next > 0 {
		start = all[next-1].end
	}
	for ; next+n < len(all) && n < mostGrams; n++ {
		end := all[next+n].end
		if _, err := g.nc.Write(buf[start:end]); err != nil {
			var no syscall.Errno
			if errors.As(err, &no) {
				return n, no
			}
			return n, err
		}
		start = end
	}
	return n, nil
}
