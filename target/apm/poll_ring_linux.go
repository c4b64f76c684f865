package apm

import (
	"io"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"carronade/internal/impair"
	"carronade/internal/socket"
	"carronade/internal/uring"
	"carronade/load"
)

// A ring is a poller's faster path without a schedule, while a sending thread waits in it
// (under a schedule answers may stay unread for a while, which costs less): what was
// queued since the last wait is written, and what answers came are read, by one
// system call for all connections. By epoll it is two for each request, and a
// third for a few, which is a third of what a request costs. Where the system
// has no io_uring, or forbids it, epoll remains.
//
// All of it is the sending thread's. What others want of it they leave for it,
// by call.
type ring struct {
	*uring.Ring
	slots   []*link       // by the number in tags
	free    []int         // of the slots
	sends   int           // queued, and not completed
	entered time.Duration // when the last wait began
	looked  time.Duration // when it was over
	leaving bool
	awake   bool // a wake is watched for
}

// onRing is what a link knows of its place there.
type onRing struct {
	riding   bool // is on the ring; under the lane's lock
	slot     int
	hearing  bool // answers are received
	watching bool // it is told when the socket may be written to
	sending  bool // a request is queued, or being written
}

// Tags are a slot and what was asked for.
const (
	tagSend  = 0
	tagRecv  = 1
	tagWrite = 2 // the socket may be written to
	tagBits  = 2
	tagWake  = 1<<64 - 1
	tagLeave = 1<<64 - 2
)

// Of what answers are received in. An answer of more comes in pieces.
const (
	ringBuffer  = 2 << 10
	fewBuffers  = 64 // fewer connections share as many, so that they stay in the caches
	mostBuffers = 1 << 10
)

func (k *link) tag(what uint64) uint64 { return uint64(k.slot)<<tagBits | what }

// openRing makes the ring and takes over the connections, on the thread that
// will wait.
func (p *poller) openRing() {
	if p.s.noRing {
		return
	}
	p.mu.Lock()
	n := len(p.links)
	p.mu.Unlock()
	r, err := uring.New(min(max(n, len(p.s.lanes)/max(1, len(p.s.pollers)), fewBuffers), mostBuffers), ringBuffer, socket.StampSpace)
	if err != nil {
		return
	}
	p.ring = &ring{Ring: r, looked: p.s.sink.Now()}
	p.s.ioMethod.Store("io_uring")
	p.called.Store(true)
}

// call has the ring's thread look what others have for it.
func (p *poller) call() {
	p.called.Store(true)
	p.Wake()
}

// board takes over the connections that epoll has, and queues what others could
// not.
func (p *poller) board() {
	p.mu.Lock()
	var all []*link
	for _, k := range p.links {
		all = append(all, k)
	}
	p.mu.Unlock()
	for _, k := range all {
		k.l.mu.Lock()
		if !k.riding {
			p.ring.take(k)
		}
		if !k.dead && k.l.link == k {
			k.pump()
		}
		k.l.mu.Unlock()
	}
}

// take puts a connection onto the ring.
func (g *ring) take(k *link) {
	if n := len(g.free); n > 0 {
		k.slot, g.free = g.free[n-1], g.free[:n-1]
	} else {
		k.slot = len(g.slots)
		g.slots = append(g.slots, nil)
	}
	g.slots[k.slot] = k
	_ = k.p.Waiter.Control(unix.EPOLL_CTL_DEL, k.socketOf.fd, 0) // a second that reads would only be a nuisance
	k.riding = true
	g.hear(k)
	if k.armed {
		g.watch(k)
	}
}

func (g *ring) hear(k *link) {
	k.hearing = true
	g.Recv(k.socketOf.fd, k.tag(tagRecv))
}

// watch waits until a connection can be written to.
func (g *ring) watch(k *link) {
	if k.armed && !k.watching {
		k.watching = true
		g.Watch(k.socketOf.fd, unix.POLLOUT, false, k.tag(tagWrite))
	}
}

// ringMost is how large a request may be to go out with others: a socket may
// take a part of a larger one, and nobody would look after it for a while.
const ringMost = 32 << 10

// queue has the next Wait write a request. Several of one connection are
// written at once, which is one call for them, too; and so is one that does not
// fit into the call, which would go out before the time is known.
func (k *link) queue() {
	l, g := k.l, k.p.ring
	switch {
	case k.sending || k.dead || l.next == l.tail:
		return
	}
	b := l.at(l.next).encodedRequest.bytes[k.offset:]
	if l.tail-l.next > 1 || len(b) > ringMost || g.Full() {
		k.write(false)
		return
	}
	k.marks, k.loaded, k.upto = append(k.marks[:0], mark{len(b), true}), len(b), l.next+1
	k.writing, k.sending = true, true
	k.at = g.looked // until the time is known
	g.sends++
	g.Send(k.socketOf.fd, b, k.tag(tagSend))
}

// ringWait is Wait by the ring. It serves all that came, since what is fired
// then goes out together.
func (p *poller) ringWait(until time.Duration) {
	g := p.ring
	if p.called.Load() && p.called.Swap(false) {
		p.board()
	}
	if !g.awake {
		g.awake = true
		g.Watch(p.WakeDescriptor(), unix.POLLIN, true, tagWake)
	}
	wait, left := 0, time.Duration(-1)
	g.entered = p.s.sink.Now()
	if p.MayWait() {
		wait = g.sends + 1 // each send is completed by then
		if until != load.Never {
			left = max(0, until-g.entered)
		}
	}
	sends := g.sends
	err := g.Enter(wait, left, true)
	p.Awake() // what is completed below is found without a wake
	now := p.s.sink.Now()
	p.Waited(g.looked, g.entered, now, socket.LeastSleep+time.Duration(sends+g.Ready())*transferCost)
	impair.Point(impair.Receive, now)
	if p.reap(p.s.sink.Now()) || err == syscall.ETIME {
		g.looked = now
	} else { // interrupted, perhaps at the end of a stop: what came meanwhile was not looked for
		g.looked = g.entered
	}
	p.Awake()
}

// transferCost is how long the kernel takes for a send or a receive at most, as a rule.
const transferCost = 10 * time.Microsecond

// reap takes the completions that there are, and reports whether there were any.
func (p *poller) reap(now time.Duration) (some bool) {
	g := p.ring
	for {
		c, ok := g.Next()
		if !ok {
			return some
		}
		some = true
		switch c.Tag {
		case tagWake:
			var b [8]byte
			_, _ = unix.Read(p.WakeDescriptor(), b[:])
			g.awake = c.More
		case tagLeave:
		default:
			k := g.slots[c.Tag>>tagBits]
			l := k.l
			l.mu.Lock()
			k.complete(g, &c, now)
			l.deliver()
			l.ready(now)
			l.since = 0
			over := k.dead && !k.sending && !k.hearing && !k.watching
			l.mu.Unlock()
			g.Release(&c)
			if over {
				g.slots[k.slot] = nil
				g.free = append(g.free, k.slot)
				p.drop(k)
			}
		}
	}
}

// complete takes one completion of a connection.
func (k *link) complete(g *ring, c *uring.Completion, now time.Duration) {
	l := k.l
	switch c.Tag & (1<<tagBits - 1) {
	case tagSend:
		g.sends--
		k.sending, k.writing = false, false
		k.at = g.entered
		var err error
		if c.Err != 0 && c.Err != syscall.EAGAIN && c.Err != syscall.EINTR {
			err = &net.OpError{Op: "write", Net: "tcp", Err: c.Err}
		}
		k.wrote(c.N, err, false)
		if l.next < l.tail && !k.dead {
			k.write(false) // the rest, and what was fired meanwhile
		}
	case tagRecv:
		k.hearing = c.More
		switch {
		case c.Err == 0:
			if c.N == 0 {
				k.received(nil, io.EOF, now)
				break
			}
			k.in.Received(c.N, socket.StampOf(c.Control))
			k.arrived(c.Data, nil, now)
		case c.Err == syscall.ENOBUFS || c.Err == syscall.ECANCELED || c.Err == syscall.EAGAIN || c.Err == syscall.EINTR:
		default:
			k.received(nil, &net.OpError{Op: "read", Net: "tcp", Err: c.Err}, now)
		}
		if !k.hearing && !k.dead && !g.leaving {
			g.hear(k)
		}
	case tagWrite:
		k.watching = false
		k.arm(false)
		if !k.dead && !g.leaving {
			k.write(true)
		}
	}
}

// closeRing gives the connections that are left back to epoll.
func (p *poller) closeRing() {
	g := p.ring
	g.leaving = true
	g.CancelAll(tagLeave)
	for g.busy() {
		_ = g.Enter(1, 10*time.Millisecond, false)
		p.reap(p.s.sink.Now())
	}
	p.ring = nil
	_ = g.Close()
	for _, k := range g.slots {
		if k == nil {
			continue
		}
		p.mu.Lock()
		k.l.mu.Lock()
		k.riding = false
		k.arm(k.l.next < k.l.tail && !k.dead)
		err := errClosed
		if !k.dead {
			err = p.control(unix.EPOLL_CTL_ADD, k, k.armed)
		}
		if err != nil {
			k.kill(err)
		}
		k.l.mu.Unlock()
		p.mu.Unlock()
		if err != nil {
			p.drop(k)
		}
	}
}

// busy reports whether there is something that the kernel may still tell.
func (g *ring) busy() bool {
	if g.awake {
		return true
	}
	for _, k := range g.slots {
		if k != nil && (k.sending || k.hearing || k.watching) {
			return true
		}
	}
	return false
}
