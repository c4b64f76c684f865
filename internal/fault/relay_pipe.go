package fault

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
	firstPiece = 4 << 10 // most connections are small
	mostPiece  = 64 << 10
	// mostWaiting is how many bytes wait for their time; above it the relay reads no more, so that
	// the sender waits as for a full window of TCP.
	mostWaiting = 32 << 20
	// mostInAll is likewise of all connections together. Above it a direction takes one piece at a time.
	mostInAll = 256 << 20
)

// paths are all connections of a relay.
type paths struct {
	delay atomic.Int64 // of a round trip, ns; a direction takes half of it
	late  atomic.Int64 // the most by which a piece was later than it was due, ns
	bytes atomic.Int64 // that wait
}

// A pipe is one direction of a connection.
type pipe struct {
	from, to *net.TCPConn
	all      *paths
	back     *pipe // the other direction

	mu      sync.Mutex
	change  sync.Cond // of what follows
	waiting []piece
	bytes   int
	writing bool // the writer has a piece that is not in waiting any more
	broken  bool // nothing can be written any more
	cut     bool // the end is a reset
	over    bool // the end was passed on, or the direction is broken
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
	there, back := &pipe{from: a, to: b, all: all}, &pipe{from: b, to: a, all: all}
	there.back, back.back = back, there
	var both sync.WaitGroup
	for _, p := range []*pipe{there, back} {
		p.change.L = &p.mu
		both.Go(p.write)
		both.Go(p.read)
	}
	both.Wait()
	all.bytes.Add(-int64(there.bytes + back.bytes)) // of a direction that broke
	a.Close()
	b.Close()
}

// read takes what the sender sends until its end. A reset is passed on like an end: what was sent
// before it comes before it.
func (p *pipe) read() {
	buf := make([]byte, firstPiece)
	for {
		n, err := p.from.Read(buf)
		if n > 0 && !p.pass(buf[:n]) {
			p.put(piece{end: true}) // which ends the writer
			return
		}
		if n == len(buf) && n < mostPiece {
			buf = make([]byte, 2*n)
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				p.cutOff()
			}
			p.put(piece{at: p.due(), end: true})
			return
		}
	}
}

// cutOff makes the end of the direction a reset, when it comes. It returns false if the end was passed
// on already.
func (p *pipe) cutOff() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = true
	return !p.over
}

// fail is called when the receiver is gone. The sender gets a reset, after what the receiver had sent.
func (p *pipe) fail() {
	p.mu.Lock()
	p.broken, p.over = true, true
	p.change.Broadcast()
	p.mu.Unlock()
	if !p.back.cutOff() {
		_ = p.from.SetLinger(0)
		p.from.Close()
	}
}

// finish passes the end on.
func (p *pipe) finish() {
	p.mu.Lock()
	broken, cut := p.broken, p.cut
	p.over = true
	p.mu.Unlock()
	switch {
	case broken: // what the receiver had sent may be unread
	case cut:
		_ = p.to.SetLinger(0)
		p.to.Close()
	default:
		_ = p.to.CloseWrite()
	}
}

// due is when what was read now is written.
func (p *pipe) due() time.Time { return time.Now().Add(time.Duration(p.all.delay.Load()) / 2) }

// pass writes bytes at once if nothing delays them and nothing is before them. It returns false if the
// direction is broken.
func (p *pipe) pass(b []byte) bool {
	if p.all.delay.Load() == 0 && p.idle() {
		if _, err := p.to.Write(b); err != nil {
			p.fail()
			return false
		}
		return true
	}
	return p.put(piece{at: p.due(), data: append([]byte(nil), b...)})
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
	// If something waits, its writing wakes this up.
	for n := len(x.data); !p.broken && (p.bytes+n > mostWaiting || p.bytes > 0 && n > 0 && p.all.bytes.Load()+int64(n) > mostInAll); {
		p.change.Wait()
	}
	p.waiting = append(p.waiting, x)
	p.bytes += len(x.data)
	p.all.bytes.Add(int64(len(x.data)))
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
		time.Sleep(time.Until(x.at))
		due := x.at
		if before.After(due) {
			due = before
		}
		if x.end {
			p.finish()
			return
		}
		p.all.was(time.Since(due))
		_, err := p.to.Write(x.data)
		before = time.Now()
		p.mu.Lock()
		p.bytes -= len(x.data)
		p.all.bytes.Add(-int64(len(x.data)))
		p.change.Broadcast()
		p.mu.Unlock()
		if err != nil {
			p.fail()
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
