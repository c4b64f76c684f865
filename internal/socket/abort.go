package socket

import (
	"crypto/tls"
	"net"
)

// Abort closes a connection without a goodbye: TLS would say one first, and
// wait for up to five seconds behind a full socket, with whatever lock the
// caller holds.
func Abort(nc net.Conn) {
	if t, ok := nc.(*tls.Conn); ok {
		nc = t.NetConn()
	}
	nc.Close()
}
