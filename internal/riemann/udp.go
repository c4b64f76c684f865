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

	"carronade/internal/conn"
	"carronade/internal/riemann/wire"
	"carronade/load"
	"carronade/measure"
	"carronade/protocol"
)

// Bounds of what a lane collects before it writes. Writing a hundred datagrams
// together costs each a hundredth of a call, and takes a tenth of a millisecond,
// so they share one send time.
const (
	mostDatagrams   = 128
	mostBufferBytes = 1 << 20
)

// A udpLane sends one message per datagram. The server acknowledges nothing
// (riemann, transport/udp.clj). A batch is completed as unknown, with Done =
// Sent, when the operating system accepted its datagram, and as failed when it
// refused to send it, which it does once for each "port unreachable" that came
// back for an earlier one.
type udpLane struct {
	id   int
	addr string
	nc   *net.UDPConn
	out  *datagramWriter
	p    *encoder
	most int // bytes of a datagram
	fits int // events in one
	sink load.Sink

	mu             sync.Mutex
	buf            []byte // the datagrams to write, one after the other
	ready          []datagram
	next           int // of ready: the first one that is not written
	pendingBatches []pendingBatch
	pendingBatch   int // of pendingBatches: the first one that is not completed
	outcomes       []load.Outcome
	busy           bool // the socket is full, and writing is left to the flusher
	readyDue       bool // Fire was refused for lack of room, so Ready is due
	closed         bool
	work           chan struct{} // wakes the flusher; nil before start
	flusherDone    chan struct{} // closed when the flusher has ended

	carried   measure.Client
	refused   atomic.Uint64 // answers "port unreachable" and the like
	refusedBy atomic.Pointer[string]
	written   atomic.Uint64
}

// A datagram is one datagram in the buffer.
type datagram struct {
	end   int   // where it ends in the buffer
	bytes int64 // size of its events
}

// A pendingBatch is a batch, or a batch group, that was accepted. batch describes
// its uncompleted datagrams, left counts them.
type pendingBatch struct {
	batch load.Batch
	left  int32
}

// probeUDP checks whether the port is open: a host reports a closed one at once,
// a firewall may not. The message is empty and has no effect.
func probeUDP(ctx context.Context, _ *config, addr string) (map[string]any, error) {
	if err := conn.Allowed(addr); err != nil {
		return nil, err
	}
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
	if conn.IsRefused(err) {
		return nil, &protocol.Error{
			Doing: "send a datagram to " + addr, Err: errors.New("nothing listens there (port unreachable)"),
			Hint: "check that the server has a UDP server at that port: (udp-server {:host \"...\" :port 5555})",
		}
	}
	return map[string]any{}, nil
}

// probeUDPWait is how long to wait for "port unreachable".
const probeUDPWait = 150 * time.Millisecond

// mostUDP is the largest payload of a datagram over IPv4, in bytes.
const mostUDP = 65507

func newUDPLane(ctx context.Context, c *config, id int, addr string, encoders []*encoder) (sender, error) {
	p := encoders[id]
	l := &udpLane{id: id, addr: addr, p: p, most: int(cmp.Or(c.values.Size("max-datagram"), 16384))}
	if l.most > mostUDP {
		return nil, contradiction(fmt.Sprintf("--max-datagram is %d, but a datagram has at most %d bytes", l.most, mostUDP), "give a smaller one")
	}
	events := max(1, c.batchEvents)
	l.fits = l.most / (p.sizeOf(1) - wire.FrameHead)
	if size := p.sizeOf(events) - wire.FrameHead; size > l.most {
		e := &protocol.Error{
			Doing: "send over UDP",
			Err:   fmt.Errorf("a message of %d events may have %d bytes, and the server accepts datagrams of at most %d", events, size, l.most),
			Hint:  fmt.Sprintf("give --batch-events %d, or, where the server's max-size is larger, --max-datagram", max(1, l.fits)),
		}
		if l.fits == 0 {
			e.Hint = "give a shorter --description, or, where the server's max-size is larger, --max-datagram"
		}
		return nil, e
	}
	if err := conn.Allowed(addr); err != nil {
		return nil, err
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
	if l.out, err = newDatagramWriter(l.nc); err != nil {
		return nil, errors.Join(err, nc.Close())
	}
	l.carried.Broker = addr
	return l, nil
}

func (l *udpLane) start(sink load.Sink) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sink = sink
	l.work, l.flusherDone = make(chan struct{}, 1), make(chan struct{})
	go l.flusher()
}

// ID implements load.Lane.
func (l *udpLane) ID() int { return l.id }

// Room implements load.Lane: as many events as always fit into a datagram.
func (l *udpLane) Room(int32, uint64) int { return l.fits }

// Capabilities implements load.Lane.
func (l *udpLane) Capabilities() load.LaneCapabilities {
	return load.LaneCapabilities{BatchGroup: l.batchGroup}
}

func (l *udpLane) batchGroup(int32, uint64, int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.busy || l.closed {
		return 0
	}
	return mostDatagrams
}

// Fire implements load.Lane.
func (l *udpLane) Fire(batches []load.Batch) (taken int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	wall := time.Now()
	for taken < len(batches) {
		if len(l.ready) >= mostDatagrams || len(l.buf) >= mostBufferBytes {
			l.write()
		}
		if l.busy || l.closed {
			l.readyDue = true
			break
		}
		l.addBatch(&batches[taken], wall)
		taken++
	}
	l.deliver()
	return taken
}

// addBatch encodes the datagrams of a batch or a batch group.
func (l *udpLane) addBatch(s *load.Batch, wall time.Time) {
	batches := max(1, s.Batches)
	events := int(s.Events / batches)
	first := s.First
	s.Bytes = 0
	for range batches {
		var n int64
		l.buf, n = l.p.datagram(l.buf, first, events, wall)
		l.ready = append(l.ready, datagram{len(l.buf), n})
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

// write writes what the socket accepts now, and leaves the rest to the flusher.
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

// account completes n datagrams that were sent at a time, and, if err is not nil,
// the next one, which was not sent.
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

// refusal returns the class and text for a datagram that was not sent.
func (l *udpLane) refusal(err error) (load.Class, string) {
	var no syscall.Errno
	if !errors.As(err, &no) {
		return load.Canceled, load.TextUnwritten
	}
	if no == syscall.EMSGSIZE {
		return load.TooLarge, "too large for the network path: " + no.Error()
	}
	text := no.Error()
	if conn.IsRefused(err) {
		text = "nothing listens there: port unreachable"
	}
	l.refused.Add(1)
	l.refusedBy.Store(&text)
	return load.Refused, text
}

// complete completes the next n datagrams. o has the fields that they share.
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

// deliver passes the outcomes to the sink.
func (l *udpLane) deliver() {
	if len(l.outcomes) == 0 {
		return
	}
	l.sink.Complete(l.outcomes)
	clear(l.outcomes)
	l.outcomes = l.outcomes[:0]
}

// flusher waits for the socket, so that the sending thread does not have to.
func (l *udpLane) flusher() {
	defer close(l.flusherDone)
	for range l.work {
		l.mu.Lock()
		for l.next < len(l.ready) {
			l.mu.Unlock() // while busy is set, only the flusher uses buf, ready and next
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
		if l.readyDue && !l.closed {
			l.readyDue = false
			l.sink.Ready(l.id, l.sink.Now())
		}
		l.mu.Unlock()
	}
}

// pendingFree notes that batches waited behind a full socket, which is the
// system's delay.
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
		// Batches that were not flushed.
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
	// The flusher's writes, if any, fail from now on.
	err := l.nc.SetWriteDeadline(time.Unix(1, 0))
	close(l.work)
	<-l.flusherDone
	return err
}

// disconnect implements sender. A lane that was not started is still open.
func (l *udpLane) disconnect() error { return errors.Join(l.Close(), l.nc.Close()) }

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
