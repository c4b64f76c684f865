package testkit

import (
	"net"
	"testing"

	"carronade/test/testkit/assert"
)

// Pair returns both ends of a TCP connection, which is closed when t ends.
func Pair(t testing.TB) (here, there *net.TCPConn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	assert.OK(t, err)
	defer ln.Close()
	dialed, err := net.Dial("tcp", ln.Addr().String())
	assert.OK(t, err)
	accepted, err := ln.Accept()
	assert.OK(t, err)
	t.Cleanup(func() { dialed.Close(); accepted.Close() })
	return dialed.(*net.TCPConn), accepted.(*net.TCPConn)
}
