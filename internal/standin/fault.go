package standin

import (
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// faults are the injected ones. They hurt at the connection, in front of both
// stand-ins, so that both hurt alike.
type faults struct {
	delay time.Duration
	stall Stall
	start time.Time
	rules []ErrorRule

	mu  sync.Mutex
	rng *rand.Rand

	injected atomic.Uint64
}

func newFaults(opts KafkaOptions, start time.Time) *faults {
	return &faults{
		delay: opts.Delay, stall: opts.Stall, start: start, rules: opts.Errors,
		rng: rand.New(rand.NewPCG(opts.Seed, 0)), //nolint:gosec // repeatable, not secret
	}
}

// produceError draws whether a partition's part of a produce request is refused,
// and with which code; 0 takes it.
func (f *faults) produceError() int16 {
	if len(f.rules) == 0 {
		return 0
	}
	f.mu.Lock()
	x := f.rng.Float64()
	f.mu.Unlock()
	for _, r := range f.rules {
		if x < r.Share {
			f.injected.Add(1)
			return r.Code
		}
		x -= r.Share
	}
	return 0
}

// listener wraps ln so that its connections hurt; without faults it is ln.
func (f *faults) listener(ln net.Listener) net.Listener {
	if f.delay == 0 && f.stall == (Stall{}) {
		return ln
	}
	return &faultListener{Listener: ln, f: f}
}

type faultListener struct {
	net.Listener
	f *faults
}

func (l *faultListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	fc := &faultConn{Conn: c, f: l.f, done: make(chan struct{})}
	fc.changed.L = &fc.mu
	if l.f.delay > 0 {
		go fc.write()
	}
	return fc, nil
}

// delayBytes is how many bytes may wait on one connection before the next
// write waits too.
const delayBytes = 64 << 20

// A faultConn delays what is written to it, in order, and neither reads nor
// writes during a stall.
type faultConn struct {
	net.Conn
	f    *faults
	once sync.Once
	done chan struct{}

	mu      sync.Mutex
	changed sync.Cond // on any of these
	queue   []delayed
	waiting int // bytes in queue
	closed  bool
	err     error // of the connection, found by write
}

type delayed struct {
	due  time.Time
	data []byte
}

func (c *faultConn) Read(p []byte) (int, error) {
	if err := c.thaw(); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(p)
	if err != nil {
		return n, err
	}
	// What arrived during a stall is not looked at before its end.
	return n, c.thaw()
}

func (c *faultConn) Write(p []byte) (int, error) {
	if c.f.delay == 0 {
		if err := c.thaw(); err != nil {
			return 0, err
		}
		return c.Conn.Write(p)
	}
	due := time.Now().Add(c.f.delay)
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.waiting > delayBytes && c.err == nil && !c.closed {
		c.changed.Wait()
	}
	if c.closed {
		return 0, net.ErrClosed
	}
	if c.err != nil {
		return 0, c.err
	}
	c.queue = append(c.queue, delayed{due, append([]byte(nil), p...)})
	c.waiting += len(p)
	c.changed.Broadcast()
	return len(p), nil
}

// write writes what Write took, each when it is due.
func (c *faultConn) write() {
	for {
		c.mu.Lock()
		for len(c.queue) == 0 && !c.closed {
			c.changed.Wait()
		}
		if c.closed {
			c.mu.Unlock()
			return
		}
		d := c.queue[0]
		c.queue = c.queue[1:]
		c.mu.Unlock()
		err := c.sleep(time.Until(d.due))
		if err == nil {
			err = c.thaw()
		}
		if err == nil {
			_, err = c.Conn.Write(d.data)
		}
		c.mu.Lock()
		c.waiting -= len(d.data)
		c.err = err
		c.changed.Broadcast()
		c.mu.Unlock()
		if err != nil {
			c.Close()
			return
		}
	}
}

// thaw waits for the end of the stall that holds now, if one does.
func (c *faultConn) thaw() error {
	if c.f.stall == (Stall{}) {
		return nil
	}
	return c.sleep(c.f.stall.left(time.Since(c.f.start)))
}

func (c *faultConn) sleep(d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-c.done:
		return net.ErrClosed
	}
}

func (c *faultConn) Close() error {
	c.once.Do(func() {
		close(c.done)
		c.mu.Lock()
		c.closed = true
		c.changed.Broadcast()
		c.mu.Unlock()
	})
	return c.Conn.Close()
}
