package standin

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
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

// LockedWriter makes a log safe for concurrent use.
func LockedWriter(w io.Writer) io.Writer { return &lockedWriter{w: w} }

type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (o *lockedWriter) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.w.Write(p)
}

// An httpLog writes net/http's messages to the log of a stand-in.
type httpLog struct{ w io.Writer }

func (l httpLog) Write(p []byte) (int, error) {
	Logf(l.w, "%s", strings.TrimSpace(string(p)))
	return len(p), nil
}
