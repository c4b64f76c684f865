package socket

import (
	"crypto/tls"
	"net"
	"net/http/httptest"
	"testing"
	"time"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// TestAbort aborts connections, and checks what the other side can read.
func TestAbort(t *testing.T) {
	srv := httptest.NewTLSServer(nil)
	defer srv.Close()
	for _, test := range []struct {
		name string
		over func(here, there *net.TCPConn) net.Conn
	}{
		{"plain", func(here, _ *net.TCPConn) net.Conn { return here }},
		{"TLS", func(here, there *net.TCPConn) net.Conn {
			done := make(chan error, 1)
			go func() {
				done <- tls.Server(there, &tls.Config{Certificates: srv.TLS.Certificates}).Handshake()
			}()
			c := tls.Client(here, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // a test's own
			assert.OK(t, c.Handshake())
			assert.OK(t, <-done)
			return c
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			here, there := testkit.Pair(t)
			nc := test.over(here, there)
			Abort(nc)
			_, err := here.Write([]byte{1})
			assert.True(t, err != nil, "the connection is open, want it closed")
			assert.OK(t, there.SetReadDeadline(time.Now().Add(time.Minute)))
			n, err := there.Read(make([]byte, 100))
			assert.True(t, n <= 0 && err != nil, "got %d bytes, %v: want none, and the end", n, err)
		})
	}
}
