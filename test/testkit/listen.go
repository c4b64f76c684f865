package testkit

import (
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"carronade/test/testkit/assert"
)

// ClosedPort is an address where nothing listens. A port that was free a moment ago may be that of another
// test's server.
const ClosedPort = "127.0.0.1:1"

// Listen starts a server on loopback that gives each of its connections to serve, and closes it then.
// It returns its address, and ends with t.
func Listen(t testing.TB, serve func(c *net.TCPConn)) (addr string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	assert.OK(t, err)
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				serve(c.(*net.TCPConn))
			}()
		}
	}()
	return ln.Addr().String()
}

// HTTP starts a server on loopback that handles requests so. It ends with t.
func HTTP(t testing.TB, handle http.HandlerFunc) *httptest.Server {
	s := httptest.NewServer(handle)
	t.Cleanup(s.Close)
	return s
}
