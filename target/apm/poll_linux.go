package apm

import (
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"carronade/internal/conn"
	"carronade/internal/impair"
	"carronade/internal/socket"
)

// A poller reads the answers of many plaintext connections on one goroutine, and
// writes what their sockets did not accept at once. It has separate descriptors
// that the Go runtime's poller does not watch: with the runtime's, each answer
// costs a second, empty read and a switch to the goroutine of its connection.
// Together they are half of a request's cost outside of the kernel.
type poller struct {
	*socket.Waiter
	s   *session
	buf []byte

	mu    sync.Mutex
	links map[int]*link // by descriptor
	ended atomic.Bool
	armed atomic.Int32 // connections that wait until they are writable

	// State of the thread that waits here.
	got          int         // events that epoll reported
	at           int         // the next of these to handle
	ringTried    bool        // to make a ring
	ring         *ring       // nil: none; only the sending thread uses it
	ringNotified atomic.Bool // there is work that only that thread may do
}

// socketOf is a link's state for its descriptor.
type socketOf struct {
	p     *poller // nil: the runtime's poller has the connection
	in    *socket.Conn
	at    time.Duration // when the last write began
	armed bool          // waits until it is writable
	onRing
	released chan struct{} // closed when the poller has closed the descriptor
}

const pollBuffer = 64 << 10

// newPollers says whether this system supports pollers.
const newPollers = true

// newPoller makes a poller; nil if the system refuses one.
func newPoller(s *session) *poller {
	w := socket.NewWaiter(func() time.Duration { return s.sink.Now() })
	if w == nil {
		return nil
	}
	return &poller{Waiter: w, s: s, buf: make([]byte, pollBuffer), links: map[int]*link{}}
}

// adopt moves a connection from the runtime's poller to this one, and returns what
// replaces it: nc itself if that is not possible.
func (p *poller) adopt(k *link, nc net.Conn) net.Conn {
	c, ok := p.Take(nc)
	if !ok {
		return nc
	}
	k.p, k.in, k.released = p, c, make(chan struct{})
	return c
}

// add starts to read a connection.
func (p *poller) add(k *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fd := k.in.Descriptor()
	err := conn.ErrClosed
	if !p.ended.Load() { // otherwise the epoll descriptor may be closed, and its number reused
		err = p.control(unix.EPOLL_CTL_ADD, k, false)
	}
	if err != nil {
		k.l.mu.Lock()
		k.Kill(err)
		k.l.mu.Unlock()
		k.Release()
		close(k.released)
		return
	}
	p.links[fd] = k
	p.notifyRing() // if there is a ring, the connection moves there
}

// control sets which events of a connection the kernel reports.
func (p *poller) control(op int, k *link, writable bool) error {
	events := uint32(socket.WatchedEvents)
	if writable {
		events |= unix.EPOLLOUT
	}
	if err := p.Waiter.Control(op, k.in.Descriptor(), events); err != nil {
		return fmt.Errorf("watch the connection: %w", err)
	}
	return nil
}

// run reads until the poller is ended and has no connections left.
func (p *poller) run() {
	for !p.closeIfDone() {
		if p.at == p.got {
			p.at, p.got = 0, p.Look(time.Second)
		}
		p.handle(p.got - p.at)
	}
}

// closeIfDone closes the poller if it may end and has no connections, and reports
// whether it did.
func (p *poller) closeIfDone() bool {
	if !p.ended.Load() {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.links) > 0 {
		return false
	}
	p.Close()
	return true
}

// handle handles the next n events.
func (p *poller) handle(n int) {
	for range n {
		fd, events := p.Found(p.at)
		p.at++
		p.mu.Lock()
		k := p.links[fd]
		p.mu.Unlock()
		if k != nil && p.serve(k, events) {
			p.drop(k)
		}
	}
}

// Wait implements load.PollWaiter. If something waits for answers, it handles one
// event at a time. Then a request is sent as soon as the answer before it has
// come, and the server has work while the next answer is read. If all answers
// were read first and all requests written afterwards, each side would wait for
// the other.
func (p *poller) Wait(until time.Duration, patient, idle bool) {
	if !p.ringTried {
		p.ringTried = true
		p.openRing()
	}
	if p.ring != nil {
		p.ringWait(until)
		return
	}
	if p.at == p.got {
		p.at, p.got = 0, p.Sleep(until, patient && p.armed.Load() == 0, idle)
		impair.Point(impair.Receive, p.Waiter.At())
	}
	if patient {
		p.handle(p.got - p.at)
	} else {
		p.handle(min(p.got-p.at, 1))
	}
	p.Awake()
}

// Leave implements load.PollWaiter: from now on the poller has a separate goroutine.
func (p *poller) Leave() {
	if p.ring != nil {
		p.closeRing()
	}
	p.Retire()
	p.s.tasks.Go(p.run)
}

// serve reads and writes one connection. ended reports that the connection has
// ended.
func (p *poller) serve(k *link, events uint32) (ended bool) {
	l := k.l
	var (
		n   int
		err error
	)
	if events&^unix.EPOLLOUT != 0 {
		n, err = k.in.Read(p.buf)
	}
	now := l.s.sink.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	defer func() { l.earliest = 0 }()
	for n > 0 || err != nil {
		k.arrived(p.buf[:n], err, now)
		if err != nil || n < len(p.buf) && events&socket.EndEvents == 0 {
			break // epoll reports what comes from now on
		}
		n, err = k.in.Read(p.buf)
		now = l.s.sink.Now()
	}
	if events&unix.EPOLLOUT != 0 && !k.Dead() {
		k.write(true)
	}
	l.deliver()
	l.ready(now)
	return k.Dead()
}

// arrived processes what the stream just read, and notes when the answers in it
// arrived.
func (k *link) arrived(b []byte, err error, now time.Duration) {
	l := k.l
	at, head, completed := k.in.Arrival(now), l.Head, len(l.out)
	k.received(b, err, at.Last)
	answers, out := int(l.Head-head), l.out[completed:]
	if answers == 0 || len(out) == 0 {
		return
	}
	since := at.First(answers, l.answer.Begun())
	if k.l.earliest == 0 {
		k.l.earliest = since // the first answer made room
	}
	for i := range out {
		out[i].Earliest = since
	}
	if out[0].Sent != out[len(out)-1].Sent {
		k.in.Together()
	}
}

// drop closes a connection that has ended.
func (p *poller) drop(k *link) {
	fd := k.in.Descriptor()
	p.mu.Lock()
	delete(p.links, fd)
	p.mu.Unlock()
	k.l.mu.Lock()
	k.arm(false)
	k.l.mu.Unlock()
	k.Release()
	close(k.released)
}

// end lets run return once all connections have ended.
func (p *poller) end() {
	p.mu.Lock() // otherwise run might close the descriptors before Notify writes to one, and its number be reused
	defer p.mu.Unlock()
	p.ended.Store(true)
	p.Notify()
}

// write writes what is queued. If the socket accepts no more, the poller calls it
// again when the socket is writable.
func (k *link) write(waited bool) {
	for k.Pending() && !k.Dead() {
		k.Out.Reset()
		total := k.Load(k.Out)
		n, err := k.Out.Write(false)
		k.at = k.Out.Began()
		k.wrote(n, err, waited)
		if n < total {
			break
		}
	}
	if more := k.Pending() && !k.Dead(); more != k.armed {
		k.arm(more)
		if k.inRing {
			k.p.ring.watch(k)
		} else if err := k.p.control(unix.EPOLL_CTL_MOD, k, more); err != nil {
			k.Kill(err)
		}
	}
}

// arm notes whether the connection waits until it is writable.
func (k *link) arm(on bool) {
	if on != k.armed {
		k.armed = on
		k.p.armed.Add(map[bool]int32{true: 1, false: -1}[on])
	}
}
