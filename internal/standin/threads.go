package standin

import (
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"carronade/internal/conn/socket"
)

// Threads serve the connections of a server that discards, many on each thread, with the
// pollers of internal/conn/socket. The server shares the processors with the program that is
// measured; with a goroutine for each connection it would use more CPU than its clients do.
type Threads struct {
	all     []*thread
	adopted atomic.Uint64
	wg      sync.WaitGroup // one for each thread
}

// NewThreads starts one thread for every two processors; the other processor is for its
// clients. It returns nil if the system has no pollers or cannot drop bytes.
func NewThreads() *Threads {
	if !CanDrop() {
		return nil
	}
	r, began := new(Threads), time.Now()
	for range (runtime.GOMAXPROCS(0) + 1) / 2 {
		t := &thread{now: func() time.Duration { return time.Since(began) }, conns: map[*polledConn]bool{}}
		if t.poller = socket.NewServerPoller(t.now); t.poller == nil {
			break
		}
		r.all = append(r.all, t)
		r.wg.Go(t.run)
	}
	if len(r.all) == 0 {
		return nil
	}
	return r
}

// adopt takes over a plain TCP connection from the Go runtime, which then finds it closed.
// ended is called once with the reason when the connection is over, on the thread that
// serves all others. False: it did not take it over, or Close was called
// before; the caller then serves the connection, which is closed in the latter case. It is
// safe for concurrent use.
func (r *Threads) adopt(nc net.Conn, k Skimmer, ended func(error)) bool {
	if r == nil {
		return false
	}
	n := r.adopted.Add(1)
	return r.all[n%uint64(len(r.all))].adopt(nc, k, ended)
}

// Close ends all connections, and returns when all of them are over.
func (r *Threads) Close() {
	if r == nil {
		return
	}
	for _, t := range r.all {
		t.close()
	}
	r.wg.Wait()
}

// A thread serves some of the connections.
type thread struct {
	poller *socket.Poller
	now    func() time.Duration
	served atomic.Bool // a connection, since the wait began

	mu     sync.Mutex
	conns  map[*polledConn]bool
	closed bool
}

// shortWait is how long a wait lasts before the Go scheduler is notified of it.
const shortWait = time.Millisecond

// run serves until close was called and all connections are over.
func (t *thread) run() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	t.poller.Prepare()
	defer t.poller.Leave()
	spare := runtime.GOMAXPROCS(0) > 1 // no goroutine waits for this thread's scheduler processor
	for !t.done() {
		t.served.Store(false)
		if spare {
			t.poller.Wait(t.now()+shortWait, false, false)
		}
		if !t.served.Load() && !t.done() { // a wake may have ended the wait
			t.poller.Wait(socket.Never, false, true)
		}
	}
}

func (t *thread) done() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.closed && len(t.conns) == 0
}

func (t *thread) adopt(nc net.Conn, k Skimmer, ended func(error)) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		nc.Close()
		return false
	}
	c, ok := t.poller.Take(nc)
	if !ok {
		return false
	}
	s := &polledConn{t: t, c: c, out: socket.NewWriter(c, t.now), k: k}
	s.done = s.wroteLater
	t.conns[s] = true
	c.Serve(s.serve, func() {
		ended(s.err)
		t.mu.Lock()
		delete(t.conns, s)
		t.mu.Unlock()
		c.Release()
	})
	return true
}

func (t *thread) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for s := range t.conns {
		s.closing.Store(true)
		s.c.Close() // ends also a wait for the client to read
	}
	t.poller.Wake()
}

// A polledConn is one connection of a thread. While it is idle, it has no buffer.
type polledConn struct {
	t       *thread
	c       *socket.Conn
	out     *socket.Writer
	done    func(n int, err error) // wroteLater, as a value that is allocated once
	k       Skimmer
	closing atomic.Bool

	seg      [1][]byte
	unsent   []byte // answers that are being written
	kept     []byte // bytes that are taken once the answers are written
	err      error  // why it ends
	readable bool   // a read may find something
	sending  bool   // the poller writes with its next wait
	broken   bool   // it cannot be written to
}

// mostReads is how often a connection that is not answered is read before the others are
// served.
const mostReads = 8

// mostDropped bounds one call, because the kernel uses 32-bit lengths in places.
const mostDropped = 1 << 30

// serve does what a connection needs next: it writes the answers first, and reads only then,
// so that it reads nothing from a client that does not read its answers.
func (s *polledConn) serve(all bool) (over bool) {
	s.t.served.Store(true)
	s.readable = true
	if s.closing.Load() {
		s.fail(net.ErrClosed)
	}
	for reads := 0; !s.sending; {
		if len(s.unsent) == 0 && !s.broken {
			s.unsent = s.k.Answers()
		}
		switch {
		case len(s.unsent) > 0:
			if !s.write() {
				s.c.WhenWritable()
				return false
			}
		case s.err != nil:
			return true
		case len(s.kept) > 0:
			n, err := s.k.Take(s.kept)
			s.fail(err)
			if s.kept = s.kept[n:]; len(s.kept) == 0 {
				s.kept = nil
			}
		case !s.readable:
			return false
		case reads == mostReads:
			s.c.Again()
			return false
		default:
			reads++
			s.read(all)
		}
	}
	if s.readable || len(s.kept) > 0 || s.err != nil {
		s.c.Again() // after the write
	}
	return false
}

// write writes answers. It returns false if the socket accepts no more.
func (s *polledConn) write() bool {
	s.seg[0] = s.unsent
	s.out.Reset()
	s.out.Add(s.seg[:], 0)
	if s.sending = s.out.Later(s.done); s.sending {
		return true
	}
	s.wrote(s.out.Write(false))
	return len(s.unsent) == 0
}

// wrote notes the result of a write.
func (s *polledConn) wrote(n int, err error) {
	if s.unsent = s.unsent[n:]; err != nil {
		s.broken, s.unsent = true, nil
		s.fail(fmt.Errorf("writing an answer: %w", err))
	}
}

func (s *polledConn) wroteLater(n int, err error) {
	s.sending = false
	switch s.wrote(n, err); {
	case s.err != nil:
		s.c.Again()
	case len(s.unsent) > 0:
		s.c.WhenWritable()
	}
}

// fail ends a connection once its answers are written.
func (s *polledConn) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// read reads or drops what there is.
func (s *polledConn) read(all bool) {
	if n := s.k.Skippable(); n >= minDrop {
		n = min(n, mostDropped)
		dropped, err := s.c.Drop(int(n))
		s.readable = dropped == int(n) || all && dropped > 0
		s.readOn(dropped, err, func() error { return s.k.Skip(int64(dropped)) })
		return
	}
	buf := s.c.Scratch()
	n, err := s.c.Read(buf)
	s.readable = n == len(buf) || all && n > 0
	s.readOn(n, err, func() error {
		taken, err := s.k.Take(buf[:n])
		if err == nil && taken < n {
			s.kept = append(s.kept, buf[taken:n]...)
		}
		return err
	})
}

// readOn processes the result of a read of n bytes.
func (s *polledConn) readOn(n int, err error, take func() error) {
	switch {
	case errors.Is(err, io.EOF):
		s.fail(s.k.End())
	case err != nil:
		s.fail(err)
	case n > 0:
		s.fail(take())
	}
}
