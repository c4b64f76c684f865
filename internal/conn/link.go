package conn

import (
	"errors"
	"net"
	"sync"
	"time"

	"carronade/internal/conn/socket"
	"carronade/load"
)

// ErrTimeout ends a connection whose oldest request was not answered in time: a later
// answer could not be trusted to belong to it.
var ErrTimeout = errors.New(load.TextNoAnswer)

// A Queue is what is to be written on a link, in order. The link calls its methods with the
// lane's lock held.
type Queue interface {
	// Pending reports whether there is something to write.
	Pending() bool
	// Load adds what is written next to w, and returns its size in bytes.
	Load(w *socket.Writer) int
	// Written notes that the first n of these bytes were written, or the error of a write,
	// which ends the connection.
	Written(n int, err error)
	// Flushed is called after each write that waited for the socket.
	Flushed()
	// Oldest returns when the oldest request without an answer was sent; ok: there is one.
	Oldest() (sent time.Duration, ok bool)
}

// A Link is one connection of a lane, and belongs to one user, which embeds it. Whichever
// goroutine has queued something writes it, unless another one does: on Linux and without
// TLS that is the sending thread itself, which does not block. What the socket does not
// accept is left to the flusher, a goroutine that exists only while something is left, since each
// takes memory. All writes of other connections block: once they have one, their flusher stays,
// since a new one for each write would have to grow its stack each time.
//
// The lane's lock guards everything. It is released during writes.
type Link struct {
	Conn net.Conn
	Out  *socket.Writer

	queue Queue
	mu    *sync.Mutex // the lane's
	cond  sync.Cond   // writing or dead has changed
	now   func() time.Duration
	flush func()                 // the flusher, as a value that is allocated once
	later func(n int, err error) // wroteLater, likewise

	writing   bool // a write is in progress, or left to the flusher
	flushing  bool // the flusher writes
	standing  bool // a flusher waits for something to write
	attached  bool // Conn and Out do not change any more
	attaching bool // Attach waits until no other goroutine than the flusher writes
	slow      bool // the flusher's last write took long
	waited    bool // what is being written has waited behind a full socket

	dead    bool
	cause   error
	ended   chan struct{} // see Ended
	timeout time.Duration
	watch   *time.Timer
}

// Init prepares a link over a connection that was just made. mu is the lane's lock, now the
// clock of the run, which is not called before something is written. A link ends with Kill or
// Bury.
func (k *Link) Init(c net.Conn, q Queue, mu *sync.Mutex, now func() time.Duration) {
	k.Conn, k.queue, k.mu, k.now = c, q, mu, now
	k.cond.L = mu
	k.Out = socket.NewWriter(c, now)
	k.flush, k.later = k.flusher, k.wroteLater
}

// Attach lets a poller read the connection, if p is not nil and the connection is not
// encrypted. From now on the flusher may run.
func (k *Link) Attach(p *socket.Poller) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if p != nil {
		k.attaching = true
		for k.writing && !k.flushing {
			k.cond.Wait()
		}
		k.attaching = false
		if c, ok := p.Take(k.Conn); ok {
			k.Conn, k.Out = c, socket.NewWriter(c, k.now)
		}
	}
	k.attached = true
	if k.flushing {
		go k.flush()
	}
}

// Watch ends the connection with ErrTimeout once its oldest request has not been answered
// for that long, which must be above zero.
func (k *Link) Watch(timeout time.Duration) {
	k.timeout = timeout
	k.watch = time.AfterFunc(timeout, k.checkTimeout)
}

func (k *Link) checkTimeout() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.dead {
		return
	}
	left := k.timeout
	if sent, ok := k.queue.Oldest(); ok {
		if left += sent - k.now(); left <= 0 {
			k.Kill(ErrTimeout)
			return
		}
	}
	k.watch.Reset(left)
}

// Writing reports whether a write is in progress, or left to the flusher.
func (k *Link) Writing() bool { return k.writing }

// Flushing reports whether the flusher writes: the socket is full, or writes block.
func (k *Link) Flushing() bool { return k.flushing }

// Waited reports whether what is being written, or was just written, has waited behind a
// full socket, which is the system's delay and not the generator's.
func (k *Link) Waited() bool { return k.waited }

// Dead reports whether the connection has ended, or is about to.
func (k *Link) Dead() bool { return k.dead }

// Cause returns why the connection is dead.
func (k *Link) Cause() error { return k.cause }

// Ended returns a channel that is closed when the connection is dead.
func (k *Link) Ended() <-chan struct{} {
	if k.ended == nil {
		k.ended = make(chan struct{})
		if k.dead {
			close(k.ended)
		}
	}
	return k.ended
}

// Kill ends the connection. Its reader notices, and cleans up.
func (k *Link) Kill(cause error) {
	if k.dead {
		return
	}
	k.dead, k.cause = true, cause
	if k.ended != nil {
		close(k.ended)
	}
	socket.Abort(k.Conn)
	k.cond.Broadcast()
}

// Wait waits until Wake is called, or the connection is dead. It may return earlier.
func (k *Link) Wait() { k.cond.Wait() }

// Wake ends waits.
func (k *Link) Wake() { k.cond.Broadcast() }

// Bury kills the connection, if it is not dead yet, and waits until nothing is written on
// it any more.
func (k *Link) Bury(cause error) {
	k.Kill(cause)
	if k.watch != nil {
		k.watch.Stop()
	}
	for k.writing {
		k.cond.Wait()
	}
}

// Release closes the descriptor of a connection that a poller has taken, once its reader
// has ended and it was buried.
func (k *Link) Release() {
	if c, ok := k.Conn.(*socket.Conn); ok {
		c.Release()
	}
}

// Pump writes what is queued, unless another goroutine does.
func (k *Link) Pump() {
	if k.writing || k.dead || !k.queue.Pending() {
		return
	}
	k.writing = true
	k.pump()
}

// PumpTogether is Pump on the thread of the poller that reads the connection. It may leave
// a small write to the poller's next wait, with those of other connections.
func (k *Link) PumpTogether() {
	if k.writing || k.dead || !k.queue.Pending() {
		return
	}
	k.writing, k.waited = true, false
	k.Out.Reset()
	k.queue.Load(k.Out)
	if !k.Out.Later(k.later) {
		k.pump()
	}
}

// wroteLater notes the result of a write that was left to the poller.
func (k *Link) wroteLater(n int, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.queue.Written(n, err)
	if err != nil {
		k.Kill(err)
	}
	k.pump()
}

// pump writes until nothing is queued, or leaves the rest to the flusher.
func (k *Link) pump() {
	if k.Out.Direct() {
		for k.queue.Pending() && !k.dead {
			if !k.write(false) {
				break
			}
		}
		if k.dead || !k.queue.Pending() {
			k.endWriting()
			return
		}
	}
	k.leave()
}

// PumpLater leaves to the flusher what is queued and has waited for the connection.
func (k *Link) PumpLater() {
	if !k.writing && !k.dead && k.queue.Pending() {
		k.writing = true
		k.leave()
	}
}

// leave leaves the writing to the flusher, which runs at once, or when the link is attached.
func (k *Link) leave() {
	k.flushing = true
	if k.attached && !k.standing {
		go k.flush()
	} else {
		k.cond.Broadcast()
	}
}

func (k *Link) flusher() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for {
		for k.queue.Pending() && !k.dead {
			k.write(true)
			k.queue.Flushed()
		}
		k.standing = !k.Out.Direct()
		k.endWriting()
		k.queue.Flushed()
		if !k.standing {
			return
		}
		for !k.flushing && !k.dead {
			k.cond.Wait()
		}
		k.standing = false
		if !k.flushing {
			return
		}
	}
}

func (k *Link) endWriting() {
	k.writing, k.flushing, k.slow = false, false, false
	if k.dead || k.attaching {
		k.cond.Broadcast()
	}
}

// write writes once. With wait it waits until the socket accepts some bytes. It returns
// false if the socket accepted fewer bytes than it was given, or the link is dead.
func (k *Link) write(wait bool) bool {
	k.Out.Reset()
	total := k.queue.Load(k.Out)
	k.waited = k.flushing && (k.Out.Direct() || k.slow)
	k.mu.Unlock()
	n, err := k.Out.Write(wait)
	k.mu.Lock()
	k.slow = k.Out.Slow()
	k.queue.Written(n, err)
	if err != nil {
		k.Kill(err)
	}
	return n == total && !k.dead
}
