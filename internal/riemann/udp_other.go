//go:build !linux

package riemann

import (
	"errors"
	"net"
	"sync/atomic"
	"syscall"
)

// A datagramWriter writes datagrams to a connected socket, one per call. It is
// not safe for concurrent use.
type datagramWriter struct {
	nc       *net.UDPConn
	refusals atomic.Uint64 // errors from an error queue: always 0
}

func newDatagramWriter(nc *net.UDPConn) (*datagramWriter, error) { return &datagramWriter{nc: nc}, nil }

// send writes the datagrams all[next:] and returns how many it wrote. It always
// waits while the socket is full, which is short: the interface soon sends what
// fills it. An error belongs to the datagram after those: it was not sent, but
// the next one may be.
func (g *datagramWriter) send(buf []byte, all []datagram, next int, _ bool) (n int, err error) {
	start := 0
	if next > 0 {
		start = all[next-1].end
	}
	for ; next+n < len(all) && n < mostDatagrams; n++ {
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
