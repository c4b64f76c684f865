package socket

import (
	"crypto/tls"
	"net"
	"net/http/httptest"
	"testing"
	"time"

	"carronade/internal/testkit/assert"
)

// TestAbort aborts connections, and checks what the other side can read.
func TestAbort(t *testing.T) {
	srv := httptest.NewTLSServer(nil)
	defer srv.Close()
	tests := []struct {
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
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			here, there := pair(t)
			nc := test.over(here, there)
			Abort(nc)
			if _, err := here.Write([]byte{1}); err == nil {
				t.Error("the connection is open, want it closed")
			}
			assert.OK(t, there.SetReadDeadline(time.Now().Add(20*time.Second)))
			if n, err := there.Read(make([]byte, 100)); n > 0 || err == nil {
				t.Errorf("got %d bytes, %v: want none, and the end", n, err)
			}
		})
	}
}
