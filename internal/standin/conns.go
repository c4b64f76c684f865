package standin

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// Conns are the connections that a server has open, each with a T of the server, such as its
// counters.
type Conns[T any] struct {
	Log   io.Writer // gets the errors that end connections; nil: nothing does
	Ended func(T)   // is called with the lock when a connection is over; nil: nothing is

	sync.Mutex // for Open, and for what Ended changes
	Open       map[net.Conn]T
	closed     bool

	Serving sync.WaitGroup // the connections, and what else the server waits for when it ends
}

// Accept calls serve with each connection to a listener, until the listener is closed.
func Accept(ln net.Listener, serve func(net.Conn)) {
	for {
		nc, err := ln.Accept()
		switch {
		case err == nil:
			serve(nc)
		case errors.Is(err, net.ErrClosed):
			return
		default:
			// Most likely the process has no descriptors left: retry after a pause
			// instead of spinning.
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// Enter adds a connection, and returns what must be called once with the reason when it is
// over: this closes it. After Close, Enter closes it itself, and returns nil.
func (s *Conns[T]) Enter(nc net.Conn, t T) (ended func(error)) {
	s.Lock()
	defer s.Unlock()
	if s.closed {
		nc.Close()
		return nil
	}
	if s.Open == nil {
		s.Open = map[net.Conn]T{}
	}
	s.Open[nc] = t
	s.Serving.Add(1)
	return func(err error) {
		defer s.Serving.Done()
		s.Lock()
		logs := !s.closed && err != nil && !Disconnected(err)
		if s.Ended != nil {
			s.Ended(t)
		}
		delete(s.Open, nc)
		s.Unlock()
		if logs {
			// Before the client can notice the end, and then end the server.
			Logf(s.Log, "connection from %s: %v", nc.RemoteAddr(), err)
		}
		nc.Close()
	}
}

// Close closes all connections, and those that enter later. They are over after Serving.Wait.
func (s *Conns[T]) Close() {
	s.Lock()
	defer s.Unlock()
	s.closed = true
	for nc := range s.Open {
		nc.Close()
	}
}
