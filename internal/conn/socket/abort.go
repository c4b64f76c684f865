package socket

import (
	"crypto/tls"
	"net"
)

// Abort closes a connection without a close message: TLS would first send one, and wait
// up to five seconds for a full socket, while the caller may hold a lock.
func Abort(nc net.Conn) {
	if t, ok := nc.(*tls.Conn); ok {
		nc = t.NetConn()
	}
	nc.Close()
}
