package standin

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"carronade/units"
)

// A Stall makes a stand-in neither read nor answer for Length. Stalls begin Every
// after its start and then every Every. The zero value never stalls.
type Stall struct {
	Every, Length time.Duration
}

// ParseStall parses "10s/1s": every 10 s, for 1 s.
func ParseStall(s string) (Stall, error) {
	every, length, ok := strings.Cut(s, "/")
	if !ok {
		return Stall{}, fmt.Errorf("stall %q: want EVERY/LENGTH, such as 10s/1s", s)
	}
	e, err := units.ParseDuration(every)
	if err != nil {
		return Stall{}, fmt.Errorf("stall %q: %w", s, err)
	}
	l, err := units.ParseDuration(length)
	if err != nil {
		return Stall{}, fmt.Errorf("stall %q: %w", s, err)
	}
	if e <= 0 || l <= 0 || l >= e {
		return Stall{}, fmt.Errorf("stall %q: want a length above 0 and below the %s between two", s, units.FormatDuration(e))
	}
	return Stall{Every: e, Length: l}, nil
}

func (s Stall) String() string {
	if s == (Stall{}) {
		return ""
	}
	return units.FlagDuration(s.Every) + "/" + units.FlagDuration(s.Length)
}

// Left is how much of a stall is left at a time since the start; 0 outside a
// stall.
func (s Stall) Left(since time.Duration) time.Duration {
	if s.Every <= 0 || since < s.Every {
		return 0
	}
	return max(0, s.Length-since%s.Every)
}

// BindFaults adds the flags of a delay and a stall to fs.
func BindFaults(fs *pflag.FlagSet, delay *time.Duration, stall *Stall) {
	fs.Var(DurationValue(delay), "delay", "delay each answer by this much")
	fs.Var(&Value[Stall]{To: stall, Parse: ParseStall, Format: Stall.String, Kind: "stall"}, "stall", "neither read nor answer, `EVERY/LENGTH` such as 10s/1s")
}

// A Dice draws which answers are errors. The zero value draws none. It is safe for
// concurrent use.
type Dice struct {
	shares []float64

	mu  sync.Mutex
	rng *rand.Rand
}

// NewDice returns dice whose side i comes up with probability shares[i]. The same
// seed draws the same sides in the same order.
func NewDice(seed uint64, shares ...float64) *Dice {
	return &Dice{shares: shares, rng: rand.New(rand.NewPCG(seed, 0))} //nolint:gosec // repeatable, not secret
}

// Draw returns the side that comes up, or -1 for none of them.
func (d *Dice) Draw() int {
	if len(d.shares) == 0 {
		return -1
	}
	d.mu.Lock()
	x := d.rng.Float64()
	d.mu.Unlock()
	for i, share := range d.shares {
		if x < share {
			return i
		}
		x -= share
	}
	return -1
}

// WithFaults wraps ln so that its connections answer late by delay and stall as stall
// says, counted from start; with timed, answers leave when DeparturesOf(conn) says. Without
// any of these it returns ln.
func WithFaults(ln net.Listener, delay time.Duration, stall Stall, timed bool, start time.Time) net.Listener {
	if delay == 0 && stall == (Stall{}) && !timed {
		return ln
	}
	return &faultListener{Listener: ln, delay: delay, late: timed || delay > 0, stall: stall, start: start}
}

type faultListener struct {
	net.Listener
	delay time.Duration
	late  bool // answers may leave later than they are written
	stall Stall
	start time.Time
}

func (l *faultListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	faulty := &faultConn{Conn: c, l: l, done: make(chan struct{})}
	faulty.changed.L = &faulty.mu
	if l.late {
		go faulty.write()
	}
	return faulty, nil
}

// delayBytes is how many delayed bytes one connection may have before the next
// write blocks.
const delayBytes = 64 << 20

// A faultConn delays written bytes, in order, and neither reads nor writes during a
// stall.
type faultConn struct {
	net.Conn
	l    *faultListener
	once sync.Once
	done chan struct{}

	mu      sync.Mutex
	until   time.Time // what is written leaves no earlier, by NotBefore
	atOnce  bool      // nothing is late any more, by Wait
	changed sync.Cond // signals a change of the fields below
	queue   []delayedBytes
	waiting int // bytes in queue
	closed  bool
	err     error // of the connection, found by write
}

type delayedBytes struct {
	due  time.Time
	data []byte
}

// NetConn is the wrapped connection.
func (c *faultConn) NetConn() net.Conn { return c.Conn }

func (c *faultConn) Read(p []byte) (int, error) {
	if err := c.waitStall(); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(p)
	if err != nil {
		return n, err
	}
	// Bytes that arrive during a stall are not returned before its end.
	return n, c.waitStall()
}

func (c *faultConn) Write(p []byte) (int, error) {
	if !c.l.late {
		if err := c.waitStall(); err != nil {
			return 0, err
		}
		return c.Conn.Write(p)
	}
	due := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if due.Before(c.until) {
		due = c.until
	}
	due = due.Add(c.l.delay)
	for c.waiting > delayBytes && c.err == nil && !c.closed {
		c.changed.Wait()
	}
	if c.closed {
		return 0, net.ErrClosed
	}
	if c.err != nil {
		return 0, c.err
	}
	if c.atOnce {
		c.mu.Unlock() // Close, which ends a blocked write, needs it
		defer c.mu.Lock()
		return c.Conn.Write(p)
	}
	c.queue = append(c.queue, delayedBytes{due, append([]byte(nil), p...)})
	c.waiting += len(p)
	c.changed.Broadcast()
	return len(p), nil
}

// write writes the data passed to Write, each piece when it is due.
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
		err := c.sleepUntil(d.due)
		if err == nil {
			err = c.waitStall()
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

// waitStall waits for the end of the current stall, if there is one.
func (c *faultConn) waitStall() error {
	if c.l.stall == (Stall{}) {
		return nil
	}
	return c.sleep(c.l.stall.Left(time.Since(c.l.start)))
}

func (c *faultConn) sleepUntil(due time.Time) error {
	if !SleepUntil(c.done, due) {
		return net.ErrClosed
	}
	return nil
}

func (c *faultConn) sleep(d time.Duration) error {
	if !sleep(d, c.done, nil) {
		return net.ErrClosed
	}
	return nil
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

// Disconnected reports whether err is an ordinary end of a client's connection,
// which is not worth logging.
func Disconnected(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
