package apm

import (
	"io"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"carronade/internal/conn"
	"carronade/internal/impair"
	"carronade/internal/socket"
	"carronade/load"
)

// A ring is a poller's faster path for runs without a schedule, while a sending
// thread waits in it (with a schedule, answers may stay unread for a while, which
// costs less). One system call for all connections writes the requests that were
// queued since the last wait and reads the answers that have come. With epoll it is
// two calls per request, and for a few a third, which is a third of a request's
// cost. If the system has no io_uring, or forbids it, epoll is used.
//
// Only the sending thread uses the ring. Other threads leave work for it with
// notifyRing.
type ring struct {
	*socket.Ring
	slots       []*link       // by the number in tags
	free        []int         // unused slots
	sends       int           // queued, and not completed
	entered     time.Duration // when the last wait began
	waitEnded   time.Duration // when the last wait ended
	closing     bool
	wakeWatched bool // the wake descriptor is watched
}

// onRing is a link's state on the ring.
type onRing struct {
	inRing    bool // is on the ring; guarded by the lane's lock
	slot      int
	receiving bool // answers are received
	watching  bool // waits until the socket is writable
	sending   bool // a request is queued, or being written
}

// Tags are a slot and an operation.
const (
	tagSend  = 0
	tagRecv  = 1
	tagWrite = 2 // the socket is writable
	tagBits  = 2
	tagWake  = 1<<64 - 1
	tagLeave = 1<<64 - 2
)

// The buffers for answers. A larger answer comes in pieces.
const (
	ringBuffer  = 2 << 10
	fewBuffers  = 64 // minimum; all connections share them, so that they stay in the caches
	mostBuffers = 1 << 10
)

func (k *link) tag(what uint64) uint64 { return uint64(k.slot)<<tagBits | what }

// openRing makes the ring, on the thread that will wait. The next wait moves the
// connections to it.
func (p *poller) openRing() {
	if p.s.noRing {
		return
	}
	p.mu.Lock()
	n := len(p.links)
	p.mu.Unlock()
	r, err := socket.NewRing(min(max(n, len(p.s.lanes)/max(1, len(p.s.pollers)), fewBuffers), mostBuffers), ringBuffer, socket.StampSpace)
	if err != nil {
		return
	}
	p.ring = &ring{Ring: r, waitEnded: p.s.sink.Now()}
	p.s.ioMethod.Store("io_uring")
	p.ringNotified.Store(true)
}

// notifyRing wakes the ring's thread to move connections and write for others.
func (p *poller) notifyRing() {
	p.ringNotified.Store(true)
	p.Wake()
}

// moveToRing moves epoll's connections to the ring, and queues requests that other
// threads could not queue.
func (p *poller) moveToRing() {
	p.mu.Lock()
	var all []*link
	for _, k := range p.links {
		all = append(all, k)
	}
	p.mu.Unlock()
	for _, k := range all {
		k.l.mu.Lock()
		if !k.inRing {
			p.ring.add(k)
		}
		if !k.Dead() && k.l.link == k {
			k.pump()
		}
		k.l.mu.Unlock()
	}
}

// add puts a connection on the ring.
func (g *ring) add(k *link) {
	if n := len(g.free); n > 0 {
		k.slot, g.free = g.free[n-1], g.free[:n-1]
	} else {
		k.slot = len(g.slots)
		g.slots = append(g.slots, nil)
	}
	g.slots[k.slot] = k
	_ = k.p.Waiter.Control(unix.EPOLL_CTL_DEL, k.in.Descriptor(), 0) // two readers would interfere
	k.inRing = true
	g.receive(k)
	if k.armed {
		g.watch(k)
	}
}

func (g *ring) receive(k *link) {
	k.receiving = true
	g.Recv(k.in.Descriptor(), k.tag(tagRecv))
}

// watch waits until a connection is writable.
func (g *ring) watch(k *link) {
	if k.armed && !k.watching {
		k.watching = true
		g.Watch(k.in.Descriptor(), unix.POLLOUT, false, k.tag(tagWrite))
	}
}

// ringMost is the largest request that is sent through the ring, in bytes: a
// socket may accept only a part of a larger one, and the rest would have to wait.
const ringMost = 32 << 10

// queue lets the next Wait write a request. Several requests of one connection
// are written here instead, also with one call. So is a request that does not fit
// into the ring: the ring would send it before its send time is taken.
func (k *link) queue() {
	l, g := k.l, k.p.ring
	switch {
	case k.sending || k.Dead() || !k.Pending():
		return
	}
	b := l.At(l.Next).encodedRequest.bytes[l.Offset:]
	if l.Tail-l.Next > 1 || len(b) > ringMost || g.Full() {
		k.write(false)
		return
	}
	l.Begin(len(b))
	k.sending = true
	k.at = g.waitEnded // until complete knows the time
	g.sends++
	g.Send(k.in.Descriptor(), b, k.tag(tagSend))
}

// ringWait is Wait with the ring. It handles all completions, since the requests
// that follow are sent together.
func (p *poller) ringWait(until time.Duration) {
	g := p.ring
	if p.ringNotified.Load() && p.ringNotified.Swap(false) {
		p.moveToRing()
	}
	if !g.wakeWatched {
		g.wakeWatched = true
		g.Watch(p.WakeDescriptor(), unix.POLLIN, true, tagWake)
	}
	wait, left := 0, time.Duration(-1)
	g.entered = p.s.sink.Now()
	if p.MayWait() {
		wait = g.sends + 1 // all sends, and one more completion
		if until != load.Never {
			left = max(0, until-g.entered)
		}
	}
	sends := g.sends
	err := g.Enter(wait, left, true)
	p.Awake() // the completions below need no wake
	now := p.s.sink.Now()
	p.Waited(g.waitEnded, g.entered, now, socket.LeastSleep+time.Duration(sends+g.Ready())*transferCost)
	impair.Point(impair.Receive, now)
	if p.reap(p.s.sink.Now()) || err == syscall.ETIME {
		g.waitEnded = now
	} else { // interrupted, perhaps after the process was stopped: answers that came meanwhile were not read
		g.waitEnded = g.entered
	}
	p.Awake()
}

// transferCost is an upper bound of the kernel's usual time for a send or a receive.
const transferCost = 10 * time.Microsecond

// reap handles the available completions, and reports whether there were any.
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
			g.wakeWatched = c.More
		case tagLeave:
		default:
			k := g.slots[c.Tag>>tagBits]
			l := k.l
			l.mu.Lock()
			k.complete(g, &c, now)
			l.deliver()
			l.ready(now)
			l.earliest = 0
			over := k.Dead() && !k.sending && !k.receiving && !k.watching
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

// complete handles one completion of a connection.
func (k *link) complete(g *ring, c *socket.Completion, now time.Duration) {
	switch c.Tag & (1<<tagBits - 1) {
	case tagSend:
		g.sends--
		k.sending = false
		k.at = g.entered
		var err error
		if c.Err != 0 && c.Err != syscall.EAGAIN && c.Err != syscall.EINTR {
			err = &net.OpError{Op: "write", Net: "tcp", Err: c.Err}
		}
		k.wrote(c.N, err, false)
		if k.Pending() && !k.Dead() {
			k.write(false) // the rest, and requests queued meanwhile
		}
	case tagRecv:
		k.receiving = c.More
		switch c.Err {
		case 0:
			if c.N == 0 {
				k.received(nil, io.EOF, now)
				break
			}
			k.in.Received(c.N, socket.StampOf(c.Control), c.N < ringBuffer)
			k.arrived(c.Data, nil, now)
		case syscall.ENOBUFS, syscall.ECANCELED, syscall.EAGAIN, syscall.EINTR:
		default:
			k.received(nil, &net.OpError{Op: "read", Net: "tcp", Err: c.Err}, now)
		}
		if !k.receiving && !k.Dead() && !g.closing {
			g.receive(k)
		}
	case tagWrite:
		k.watching = false
		k.arm(false)
		if !k.Dead() && !g.closing {
			k.write(true)
		}
	}
}

// closeRing moves the remaining connections back to epoll.
func (p *poller) closeRing() {
	g := p.ring
	g.closing = true
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
		k.inRing = false
		k.arm(k.Pending() && !k.Dead())
		err := conn.ErrClosed
		if !k.Dead() {
			err = p.control(unix.EPOLL_CTL_ADD, k, k.armed)
		}
		if err != nil {
			k.Kill(err)
		}
		k.l.mu.Unlock()
		p.mu.Unlock()
		if err != nil {
			p.drop(k)
		}
	}
}

// busy reports whether completions are outstanding.
func (g *ring) busy() bool {
	if g.wakeWatched {
		return true
	}
	for _, k := range g.slots {
		if k != nil && (k.sending || k.receiving || k.watching) {
			return true
		}
	}
	return false
}
