package riemann

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"carronade/internal/dial"
	"carronade/internal/wire/riemann"
	"carronade/load"
	"carronade/measure"
	"carronade/target"
)

// Bounds of what a lane collects before it writes. A write of a hundred
// datagrams costs a hundredth of a call each, and is over in a tenth of a
// millisecond: all of it has one time of sending.
const (
	mostGrams     = 128
	mostGramBytes = 1 << 20
)

// A udpLane sends one message a datagram and never hears of it again: the
// server acknowledges nothing (riemann, transport/udp.clj). Each batch is
// completed as unknown when its datagram was handed to the system, with Done =
// Sent; as failed when the system refused to send it, which it does once for
// each "port unreachable" that came back for an earlier one.
type udpLane struct {
	id   int
	addr string
	nc   *net.UDPConn
	out  *grams
	p    *encoder
	most int // bytes of a datagram
	fits int // events in one
	sink load.Sink

	mu             sync.Mutex
	buf            []byte // the datagrams to write, one after the other
	ready          []gram
	next           int // of ready: what was not written so far
	pendingBatches []pendingBatch
	pendingBatch   int // of pendingBatches: the first one that is not completed
	outcomes       []load.Outcome
	busy           bool // the socket is full: the flusher has what is to be written
	wanting        bool // said that it is full, and owes a Ready
	closed         bool
	work           chan struct{} // for the flusher; nil before start
	over           chan struct{} // it has ended

	carried   measure.Client
	refused   atomic.Uint64 // answers "port unreachable" and the like
	refusedBy atomic.Pointer[string]
	written   atomic.Uint64
}

// A gram is a datagram: where it ends in the buffer, and the size of its
// events.
type gram struct {
	end   int
	bytes int64
}

// A pending batch is a batch or a batch group that was taken, and how many of its datagrams
// are still to be completed. Its batch is that of those.
type pendingBatch struct {
	batch load.Batch
	left  int32
}

// probeUDP finds out whether somebody listens: where nobody does, a host says
// so at once, and a firewall says nothing. The message is empty, and does
// nothing.
func probeUDP(ctx context.Context, _ *config, addr string) (map[string]any, error) {
	var d net.Dialer
	nc, err := d.DialContext(ctx, "udp", addr)
	if err != nil {
		return nil, err
	}
	defer nc.Close()
	if _, err := nc.Write([]byte("\x10\x01")); err != nil { // ok = true, as an ack has it
		return nil, err
	}
	if err := nc.SetReadDeadline(time.Now().Add(probeUDPWait)); err != nil {
		return nil, err
	}
	_, err = nc.Read(make([]byte, 16))
	if dial.IsRefused(err) {
		return nil, &target.Error{
			Doing: "send a datagram to " + addr, Err: errors.New("nothing listens there (port unreachable)"),
			Hint: "check that the server has a UDP server at that port: (udp-server {:host \"...\" :port 5555})",
		}
	}
	return map[string]any{}, nil
}

// probeUDPWait is how long a host has to say that nobody listens.
const probeUDPWait = 150 * time.Millisecond

// mostUDP is the most that a datagram holds over IPv4.
const mostUDP = 65507

func newUDPLane(ctx context.Context, c *config, id int, addr string, presses []*encoder) (sender, error) {
	p := presses[id]
	l := &udpLane{id: id, addr: addr, p: p, most: int(cmp.Or(c.values.Size("max-datagram"), 16384))}
	if l.most > mostUDP {
		return nil, contradiction(fmt.Sprintf("--max-datagram is %d, but a datagram holds at most %d bytes", l.most, mostUDP), "give a smaller one")
	}
	events := max(1, c.batchEvents)
	l.fits = l.most / (p.sizeOf(1) - riemann.FrameHead)
	if size := p.sizeOf(events) - riemann.FrameHead; size > l.most {
		e := &target.Error{
			Doing: "send over UDP",
			Err:   fmt.Errorf("a message of %d events may have %d bytes, and the server accepts datagrams of at most %d", events, size, l.most),
			Hint:  fmt.Sprintf("give --batch-events %d, or, where the server's max-size is larger, --max-datagram", max(1, l.fits)),
		}
		if l.fits == 0 {
			e.Hint = "give a shorter --description, or, where the server's max-size is larger, --max-datagram"
		}
		return nil, e
	}
	var d net.Dialer
	nc, err := d.DialContext(ctx, "udp", addr)
	if err != nil {
		return nil, err
	}
	l.nc = nc.(*net.UDPConn)
	if n := c.dialer.SendBuffer; n > 0 {
		if err := l.nc.SetWriteBuffer(n); err != nil {
			return nil, errors.Join(err, nc.Close())
		}
	}
	if l.out, err = newGrams(l.nc); err != nil {
		return nil, errors.Join(err, nc.Close())
	}
	l.carried.Broker = addr
	return l, nil
}

func (l *udpLane) start(sink load.Sink) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sink = sink
	l.work, l.over = make(chan struct{}, 1), make(chan struct{})
	go l.flusher()
}

// ID implements load.Lane.
func (l *udpLane) ID() int { return l.id }

// Room implements load.Lane: what surely fits into a datagram.
func (l *udpLane) Room(int32, uint64) int { return l.fits }

// BatchGroup implements load.BatchGrouper.
func (l *udpLane) BatchGroup(int32, uint64, int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.busy || l.closed {
		return 0
	}
	return mostGrams
}

// Fire implements load.Lane.
func (l *udpLane) Fire(batches []load.Batch) (taken int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	wall := time.Now()
	for taken < len(batches) {
		if len(l.ready) >= mostGrams || len(l.buf) >= mostGramBytes {
			l.write()
		}
		if l.busy || l.closed {
			l.wanting = true
			break
		}
		l.take(&batches[taken], wall)
		taken++
	}
	l.deliver()
	return taken
}

// take makes the datagrams of a batch or a batch group.
func (l *udpLane) take(s *load.Batch, wall time.Time) {
	batches := max(1, s.Batches)
	events := int(s.Events / batches)
	first := s.First
	s.Bytes = 0
	for range batches {
		var n int64
		l.buf, n = l.p.datagram(l.buf, first, events, wall)
		l.ready = append(l.ready, gram{len(l.buf), n})
		s.Bytes += n
		first += uint64(events)
	}
	l.pendingBatches = append(l.pendingBatches, pendingBatch{*s, batches})
}

// Flush implements load.Lane.
func (l *udpLane) Flush() {
	l.mu.Lock()
	l.write()
	l.deliver()
	l.mu.Unlock()
}

// write writes what the socket takes now. What it does not take is the
// flusher's.
func (l *udpLane) write() {
	if l.busy || l.closed {
		return
	}
	for l.next < len(l.ready) {
		at := l.sink.Now()
		n, err := l.out.send(l.buf, l.ready, l.next, false)
		l.account(n, at, err)
		if n == 0 && err == nil {
			l.busy = true
			l.work <- struct{}{}
			return
		}
	}
	l.reset()
}

func (l *udpLane) reset() {
	l.buf, l.ready, l.next = l.buf[:0], l.ready[:0], 0
	l.pendingBatches, l.pendingBatch = l.pendingBatches[:0], 0
}

// account completes n datagrams that were sent at a time, and, with an error, the
// one after them, which was not.
func (l *udpLane) account(n int, at time.Duration, err error) {
	if n > 0 {
		before := 0
		if l.next > 0 {
			before = l.ready[l.next-1].end
		}
		l.written.Add(uint64(l.ready[l.next+n-1].end - before))
		l.complete(n, load.Outcome{Sent: at, Done: at})
	}
	if err == nil || l.next == len(l.ready) {
		return
	}
	class, text := l.refusal(err)
	l.complete(1, load.Outcome{Sent: -1, Done: at, Class: class, Text: text})
}

// refusal finds words for a datagram that was not sent.
func (l *udpLane) refusal(err error) (load.Class, string) {
	var no syscall.Errno
	if !errors.As(err, &no) {
		return load.Canceled, load.TextUnwritten
	}
	if no == syscall.EMSGSIZE {
		return load.TooLarge, "too large for the network path: " + no.Error()
	}
	text := no.Error()
	if dial.IsRefused(err) {
		text = "nothing listens there: port unreachable"
	}
	l.refused.Add(1)
	l.refusedBy.Store(&text)
	return load.Refused, text
}

// complete says the same of the next n datagrams: o has what is common to them.
func (l *udpLane) complete(n int, o load.Outcome) {
	l.next += n
	at := l.next - n
	o.Lane, o.Place = int32(l.id), -1
	for n > 0 {
		p := &l.pendingBatches[l.pendingBatch]
		k := min(int32(n), p.left)
		o.Batch = p.batch
		o.Batches = k
		o.Events = p.batch.Events / p.left * k
		o.Bytes, o.Wire = 0, 0
		for i := range int(k) {
			o.Bytes += l.ready[at+i].bytes
			o.Wire += int64(l.ready[at+i].end)
			if at+i > 0 {
				o.Wire -= int64(l.ready[at+i-1].end)
			}
		}
		o.Unknown, o.Failed = o.Events, 0
		if o.Sent < 0 {
			o.Unknown, o.Failed, o.Wire = 0, o.Events, 0
		}
		l.outcomes = append(l.outcomes, o)
		l.carried.Requests += uint64(k)
		l.carried.Batches += uint64(k)
		l.carried.Events += uint64(o.Events)
		l.carried.Bytes += uint64(o.Bytes)
		p.batch.Seq += uint64(k)
		p.batch.First += uint64(o.Events)
		p.batch.Events -= o.Events
		p.batch.Bytes -= o.Bytes
		p.batch.Batches = p.left - k
		if p.left -= k; p.left == 0 {
			l.pendingBatch++
		}
		at += int(k)
		n -= int(k)
	}
}

// deliver hands over what was completed.
func (l *udpLane) deliver() {
	if len(l.outcomes) == 0 {
		return
	}
	l.sink.Complete(l.outcomes)
	clear(l.outcomes)
	l.outcomes = l.outcomes[:0]
}

// flusher waits for the socket, so that the sending thread need not.
func (l *udpLane) flusher() {
	defer close(l.over)
	for range l.work {
		l.mu.Lock()
		for l.next < len(l.ready) {
			l.mu.Unlock() // while it is busy nobody else touches what is to be written
			n, err := l.out.send(l.buf, l.ready, l.next, true)
			l.mu.Lock()
			at := l.sink.Now()
			if n > 0 {
				l.pendingFree(n, at)
			}
			l.account(n, at, err)
		}
		l.reset()
		l.busy = false
		l.deliver()
		if l.wanting && !l.closed {
			l.wanting = false
			l.sink.Ready(l.id, l.sink.Now())
		}
		l.mu.Unlock()
	}
}

// pendingFree says of batches that waited behind a full socket that the system
// was why.
func (l *udpLane) pendingFree(n int, at time.Duration) {
	for i := l.pendingBatch; n > 0; i++ {
		l.pendingBatches[i].batch.Free = max(l.pendingBatches[i].batch.Free, at)
		n -= int(l.pendingBatches[i].left)
	}
}

// Close implements load.Lane.
func (l *udpLane) Close() error {
	l.mu.Lock()
	if l.closed || l.sink == nil {
		l.closed = true
		l.mu.Unlock()
		return nil
	}
	if !l.busy {
		// What was fired and not flushed.
		l.closed = true
		at := l.sink.Now()
		for l.next < len(l.ready) {
			l.account(0, at, os.ErrDeadlineExceeded)
		}
		l.reset()
	}
	l.closed = true
	l.deliver()
	l.mu.Unlock()
	// The flusher, if it has anything, gets an error for all that is left.
	err := l.nc.SetWriteDeadline(time.Unix(1, 0))
	close(l.work)
	<-l.over
	return err
}

// hangUp implements sender. A lane that never fired was not closed.
func (l *udpLane) hangUp() error { return errors.Join(l.Close(), l.nc.Close()) }

func (l *udpLane) wire() (written, read uint64) { return l.written.Load(), 0 }

func (l *udpLane) metrics() measure.Client {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.carried
	m.WireBytes = l.written.Load()
	if m.Batches > 0 {
		m.EventsPerBatch = float64(m.Events) / float64(m.Batches)
	}
	return m
}

func (l *udpLane) warnings() []string {
	n := l.refused.Load() + l.out.refusals.Load()
	if n == 0 {
		return nil
	}
	text := "port unreachable"
	if by := l.refusedBy.Load(); by != nil {
		text = *by
	}
	return []string{fmt.Sprintf("%s: datagrams were refused (%s): some were lost, and it is unknown which; check that the server still listens", l.addr, text)}
}
