package socket

import (
	"net"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// together makes the writes of many connections, and a wait for answers, in one system
// call. The io_uring watches the epoll descriptor: what became readable, and wakes, come
// from there, as without it.
type together struct {
	*Ring
	writers   []*Writer     // by tag: their writes are queued, and not completed
	open      int           // of them
	watched   bool          // the epoll descriptor
	more      bool          // the last look may have left events
	waitEnded time.Duration // when everything that had come was taken
}

// tagReady is the tag of a report that something is ready.
const tagReady = 1<<64 - 1

// mostLater is the largest write that may be made together with others, in bytes: a socket
// may accept only a part of a larger one, and the rest would have to wait.
const mostLater = 32 << 10

// openTogether makes an io_uring for the calling thread, if the system has one and allows
// it.
func (p *Poller) openTogether() {
	if r, err := NewRing(0, 0, 0); err == nil {
		p.together = &together{Ring: r, waitEnded: p.now()}
		p.method.Store("io_uring")
	}
}

// Later makes the write with the next wait of the poller that reads the connection. It is
// for the poller's thread. On this thread done gets the result, as Write returns it; until
// then the pieces must not change. It returns false if that is not possible; then nothing
// is written, and Write must be called.
func (w *Writer) Later(done func(n int, err error)) bool {
	if w.polled == nil || w.polled.alone || w.polled.p.together == nil || len(w.iov) != 1 || w.iov[0].Len > mostLater {
		return false
	}
	g := w.polled.p.together
	if g.Full() { // it would be sent now, before its time is taken
		return false
	}
	w.began.Store(int64(g.waitEnded)) // until the time is known
	w.done = done
	g.Send(w.polled.fd, unsafe.Slice(w.iov[0].Base, w.iov[0].Len), uint64(len(g.writers)))
	g.writers = append(g.writers, w)
	g.open++
	return true
}

// wait makes the writes, waits like Waiter.Sleep, and returns the number of events.
func (g *together) wait(p *Poller, until time.Duration, idle bool) (n int) {
	if !g.watched {
		g.watched = true
		g.Watch(p.fd, unix.POLLIN, true, tagReady)
	}
	wait, left := 0, time.Duration(-1)
	entered, writes := p.now(), g.open
	if p.MayWait() && !g.more {
		wait = writes + 1 // all writes, and something else
		if until != Never {
			left = max(0, until-entered)
		}
	}
	err := g.Enter(wait, left, !idle)
	p.Awake() // what follows needs no wake
	now := p.now()
	p.Waited(g.waitEnded, entered, now, LeastSleep+time.Duration(writes)*transferCost)
	ready := g.complete(entered) || g.more
	if ready {
		n, _ = p.peek()
	}
	g.more = n == len(p.events)
	if ready || err == syscall.ETIME {
		g.waitEnded = now
	} else { // interrupted, perhaps after the process was stopped: nothing was read
		g.waitEnded = entered
	}
	return n
}

// transferCost is an upper bound of the kernel's usual time for a write.
const transferCost = 10 * time.Microsecond

// complete passes on the results of writes that began at entered, and reports whether
// something is ready.
func (g *together) complete(entered time.Duration) (ready bool) {
	for {
		c, ok := g.Next()
		switch {
		case !ok:
			return ready
		case c.Tag == tagReady:
			ready, g.watched = true, c.More
			continue
		}
		w := g.writers[c.Tag]
		if g.open--; g.open == 0 {
			g.writers = g.writers[:0]
		}
		w.began.Store(int64(entered))
		clear(w.iov)
		var err error
		if c.Err != 0 && c.Err != syscall.EAGAIN && c.Err != syscall.EINTR {
			err = &net.OpError{Op: "write", Net: "tcp", Addr: w.polled.remote, Err: c.Err}
		}
		w.done(c.N, err)
	}
}

// close completes the writes that are queued.
func (g *together) close(p *Poller) {
	p.together = nil
	for g.open > 0 {
		entered := p.now()
		_ = g.Enter(g.open, -1, false)
		g.complete(entered)
	}
	_ = g.Close()
}
