package standin

import (
	"context"
	"net"
	"net/http"
)

// A connKey is the context key of a request's connection.
type connKey struct{}

// WithConn is the ConnContext of an http.Server whose requests know their connection.
func WithConn(ctx context.Context, nc net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, nc)
}

// ConnOf is the connection of a request; nil if it is not known.
func ConnOf(r *http.Request) net.Conn {
	nc, _ := r.Context().Value(connKey{}).(net.Conn)
	return nc
}
