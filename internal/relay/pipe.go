package relay

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Bounds of a direction of a connection.
const (
	pieceBytes = 64 << 10
	// mostWaiting is how many bytes wait for their time; above it the relay reads no more, so that
	// the sender waits as for a full window of TCP.
	mostWaiting = 32 << 20
)

// paths are all connections of a relay.
type paths struct {
	delay atomic.Int64 // of a round trip, ns; a direction takes half of it
	late  atomic.Int64 // the most by which a piece was later than it was due, ns
}

// A pipe is one direction of a connection.
type pipe struct {
	from, to *net.TCPConn
	all      *paths

	mu      sync.Mutex
	change  sync.Cond // of what follows
	waiting []piece
	bytes   int
	writing bool // the writer has a piece that is not in waiting any more
	broken  bool // nothing is written any more
}

// A piece is bytes that are written at a moment, or the end of the direction.
type piece struct {
	at   time.Time
	data []byte
	end  bool
}

// join passes bytes between two connections on, in both directions, until both have ended or one
// broke. It closes both.
func (all *paths) join(a, b *net.TCPConn) {
	var both sync.WaitGroup
	for _, p := range []*pipe{{from: a, to: b, all: all}, {from: b, to: a, all: all}} {
		p.change.L = &p.mu
		both.Go(p.write)
		both.Go(func() {
			if err := p.read(); err != nil { // what is on the way is lost, as with a real reset
				p.put(piece{end: true})
				for _, c := range []*net.TCPConn{a, b} {
					_ = c.SetLinger(0)
					c.Close()
				}
			}
		})
	}
	both.Wait()
	a.Close()
	b.Close()
}

// read takes what the sender sends until its end. An error is that one of the connections broke.
func (p *pipe) read() error {
	buf := make([]byte, pieceBytes)
	for {
		n, err := p.from.Read(buf)
		if n > 0 {
			if err := p.pass(buf[:n]); err != nil {
				return err
			}
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			p.put(piece{at: p.due(), end: true})
			return nil
		default:
			return err
		}
	}
}

// due is when what was read now is written.
func (p *pipe) due() time.Time { return time.Now().Add(time.Duration(p.all.delay.Load()) / 2) }

// pass writes bytes at once if nothing delays them and nothing is before them.
func (p *pipe) pass(b []byte) error {
	if p.all.delay.Load() == 0 && p.idle() {
		_, err := p.to.Write(b)
		return err
	}
	if !p.put(piece{at: p.due(), data: append([]byte(nil), b...)}) {
		return net.ErrClosed
	}
	return nil
}

func (p *pipe) idle() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.waiting) == 0 && !p.writing
}

// put lets a piece wait for its time. It returns false if the direction is broken.
func (p *pipe) put(x piece) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.bytes+len(x.data) > mostWaiting && !p.broken {
		p.change.Wait()
	}
	p.waiting = append(p.waiting, x)
	p.bytes += len(x.data)
	p.change.Broadcast()
	return !p.broken
}

// take returns the next piece when there is one.
func (p *pipe) take() piece {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writing = false
	p.change.Broadcast()
	for len(p.waiting) == 0 {
		p.change.Wait()
	}
	x := p.waiting[0]
	p.waiting[0] = piece{}
	p.waiting = p.waiting[1:]
	p.writing = true
	return x
}

// write writes the pieces, each at its time, until the end of the direction. A piece that is due
// before the one before it, since the delay became less, waits for that one.
func (p *pipe) write() {
	var before time.Time // when the piece before was written: the receiver may have been slow
	for {
		x := p.take()
		if x.end && x.at.IsZero() { // the connection broke
			return
		}
		time.Sleep(time.Until(x.at))
		due := x.at
		if before.After(due) {
			due = before
		}
		p.all.was(time.Since(due))
		if x.end {
			_ = p.to.CloseWrite()
			return
		}
		_, err := p.to.Write(x.data)
		before = time.Now()
		p.mu.Lock()
		p.bytes -= len(x.data)
		p.broken = err != nil
		p.change.Broadcast()
		p.mu.Unlock()
		if err != nil {
			_ = p.from.SetLinger(0)
			p.from.Close() // which ends the reader
			return
		}
	}
}

// was notes by how much a piece was later than it was due.
func (all *paths) was(late time.Duration) {
	for {
		most := all.late.Load()
		if int64(late) <= most || all.late.CompareAndSwap(most, int64(late)) {
			return
		}
	}
}
