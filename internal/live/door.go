package live

import (
	"context"
	"net"
	"net/http"
	"time"

	"carronade/internal/door"
)

// Behind returns the listener of an HTTP server behind a guard, with a door of its own, and prepares the
// server for it. A connection is known when a request has shown a token.
func Behind(l net.Listener, s *http.Server) net.Listener {
	s.ReadHeaderTimeout, s.IdleTimeout, s.MaxHeaderBytes = door.FirstExchange, time.Minute, 64<<10
	s.ConnContext = withConn
	s.ConnState = func(c net.Conn, state http.ConnState) {
		if g := door.Of(c); g != nil {
			g.Rest(state == http.StateIdle)
		}
	}
	return door.New(door.Places).Listen(l)
}

// welcome notes that a request has shown a valid token. It reports whether there is a place for its
// connection.
func welcome(ctx context.Context) bool {
	c, _ := ctx.Value(connKey{}).(net.Conn)
	g := door.Of(c)
	return g == nil || g.Known()
}
