package riemann

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"carronade/internal/conn"
	"carronade/internal/conn/socket"
	embedded "carronade/internal/riemann/standin"
	"carronade/internal/riemann/wire"
	"carronade/internal/standin"
	"carronade/load"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// A countingSink counts what is completed.
type countingSink struct {
	start                              time.Time
	mu                                 sync.Mutex
	batches                            uint64
	acked, failed, unknown, readyCalls int
	changed                            chan struct{}
	early, backwards, wrong            int
	next                               uint64
}

func newCountingSink() *countingSink {
	return &countingSink{start: time.Now(), changed: make(chan struct{}, 1)}
}

func (s *countingSink) Now() time.Duration { return time.Since(s.start) + 1 }

func (s *countingSink) Complete(out []load.Outcome) {
	s.mu.Lock()
	for i := range out {
		o := &out[i]
		if o.Seq != s.next {
			s.wrong++
		}
		s.next = o.Seq + uint64(max(o.Batches, 1))
		s.batches += uint64(max(o.Batches, 1))
		s.acked += int(o.Acked)
		s.failed += int(o.Failed)
		s.unknown += int(o.Unknown)
		if o.Sent > o.Done {
			s.backwards++
		}
		if o.Acked > 0 && o.Sent < 0 {
			s.early++
		}
	}
	s.mu.Unlock()
	s.signal()
}

func (s *countingSink) Ready(int, time.Duration) {
	s.mu.Lock()
	s.readyCalls++
	s.mu.Unlock()
	s.signal()
}

func (s *countingSink) signal() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// until waits until the given number of batches is completed.
func (s *countingSink) until(t testing.TB, batches uint64) {
	t.Helper()
	deadline := time.After(time.Minute)
	for {
		s.mu.Lock()
		n := s.batches
		s.mu.Unlock()
		if n >= batches {
			return
		}
		select {
		case <-s.changed:
		case <-deadline:
			t.Fatalf("%d of %d batches completed", n, batches)
		}
	}
}

// While a message is being written, an answer may already be to it. One answer
// more than there are messages is an error, and ends the connection.
func TestAnswersWhileWriting(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	spec := specOf(t, "riemann://"+f.addr, "reconnect-backoff=1h")
	spec.BatchEvents = 1000
	s := openSession(t, spec)
	l := s.lanes[0].(*lane)
	here, there := net.Pipe() // a write ends only when all of it is read
	l.link.Conn.Close()
	k := newLink(l, here)
	l.link = k
	sink := newCountingSink()
	s.Start(sink)
	batches := []load.Batch{{Events: 1000, DueFirst: -1, DueLast: -1}, {Seq: 1, First: 1000, Events: 1000, DueFirst: -1, DueLast: -1}}
	assert.Must(t, l.Fire(batches) == 2, "not taken")
	l.Flush()
	var head [wire.FrameHead]byte
	assert.Value(io.ReadFull(there, head[:]))(t)
	assert.Value(io.CopyN(io.Discard, there, int64(binary.BigEndian.Uint32(head[:]))))(t)
	// The first is written, the second is not.
	assert.Value(io.WriteString(there, wire.Ack))(t)
	sink.until(t, 1)
	assert.Value(io.WriteString(there, wire.Ack+wire.Ack))(t)
	sink.until(t, 2)
	assert.OK(t, l.Close())
	assert.True(t, sink.acked == 1000 && sink.unknown == 1000 && sink.backwards <= 0 && sink.early <= 0 && sink.wrong <= 0,
		"%d acked, %d unknown", sink.acked, sink.unknown)
	l.mu.Lock()
	defer l.mu.Unlock()
	assert.True(t, errors.As(k.Cause(), new(*protocolError)), "the connection ended with %v", k.Cause())
}

// An answer to a message that is not completely written is an error: the
// connection ends, and the rest of the message is not sent.
func TestAnswerBeforeTheMessageIsWritten(t *testing.T) {
	t.Parallel()
	const events = 100_000 // more bytes than sockets buffer
	got := make(chan int64, 1)
	var met atomic.Bool
	addr := testkit.Listen(t, func(nc *net.TCPConn) {
		if !met.Swap(true) { // the probe
			var head [wire.FrameHead]byte
			io.ReadFull(nc, head[:])
			io.WriteString(nc, wire.Ack)
			io.Copy(io.Discard, nc)
			return
		}
		nc.SetReadBuffer(4 << 10)
		var head [wire.FrameHead]byte
		if _, err := io.ReadFull(nc, head[:]); err != nil {
			return
		}
		io.WriteString(nc, wire.Ack)
		n, _ := io.Copy(io.Discard, nc)
		got <- int64(binary.BigEndian.Uint32(head[:])) - n
	})
	spec := specOf(t, "riemann://"+addr, "reconnect-backoff=1h", "send-buffer=4KiB")
	spec.BatchEvents = events
	s := openSession(t, spec)
	l := s.lanes[0].(*lane)
	if !l.link.Out.Direct() {
		t.Skip("a blocking write is complete, or the connection has ended")
	}
	s.Start(newCountingSink())
	assert.Must(t, l.Fire([]load.Batch{{Events: events, DueFirst: -1, DueLast: -1}}) == 1, "not taken")
	l.Flush()
	assert.True(t, testkit.Wait(t, "the end of the connection", got) > 0, "the rest of the message was written")
	assert.OK(t, l.Close())
}

// A message in a write that has not returned when the run ends may have been written: it does not count as failed.
func TestCloseWhileWriting(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	spec := specOf(t, "riemann://"+f.addr, "reconnect-backoff=1h")
	spec.BatchEvents = 100
	s := openSession(t, spec)
	l := s.lanes[0].(*lane)
	here, there := net.Pipe() // not a *net.TCPConn, as with TLS: one blocking write for all
	defer there.Close()
	l.link.Conn.Close()
	l.link = newLink(l, here)
	sink := newCountingSink()
	s.Start(sink)
	fire := func(seq uint64) {
		n := l.Fire([]load.Batch{{Seq: seq, First: seq * 100, Events: 100, DueFirst: -1, DueLast: -1}})
		assert.Must(t, n == 1, "not taken")
	}
	fire(0)
	fire(1)
	l.Flush()
	var head [wire.FrameHead]byte
	assert.Value(io.ReadFull(there, head[:]))(t)
	fire(2) // waits behind them
	assert.OK(t, l.Close())
	assert.True(t, sink.unknown == 200 && sink.failed == 100, "%d unknown, %d failed; want 200 and 100", sink.unknown, sink.failed)
}

// The pause after a connection grows only if it was of no use: nothing was answered on it, and it was not open for long.
func TestNextAfterLost(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		open    time.Duration
		answers bool
		want    conn.Next
	}{
		{"closed at once", 0, false, conn.AfterPause},
		{"closed after an answer", 0, true, conn.AfterFirst},
		{"closed before long", conn.ReconnectMost, false, conn.AfterPause},
		{"closed after long", conn.ReconnectMost + time.Nanosecond, false, conn.AfterFirst},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l, _ := newTestLane(t, 1, true)
				time.Sleep(time.Hour) // the run began long before the connection
				k := l.link
				k.Attach(nil)
				l.up(k)
				time.Sleep(tt.open)
				if tt.answers {
					assert.Value(k.processAnswers([]byte(wire.Ack), socket.Arrival{Last: l.sink.Now()}))(t)
				}
				k.why = errServerClosed
				assert.Equal(t, l.ended(k), tt.want, "next")
			})
		})
	}
}

// newTestLane makes a lane that has sent a batch group of messages of one event, which are written or only
// queued. The other side of its connection does nothing.
func newTestLane(t testing.TB, events int, written bool) (*lane, *countingSink) {
	t.Helper()
	spec := specOf(t, "riemann://127.0.0.1:1")
	c := assert.Value(parseConfig(spec))(t)
	sink := newCountingSink()
	p := newEncoder(c.shape, 0, 1)
	c.widest = p.size()
	l := newLane(c, 0, "127.0.0.1:1", []*encoder{p})
	l.sink, l.wall = sink, time.Now()
	here, there := net.Pipe()
	t.Cleanup(func() { here.Close(); there.Close() })
	l.link = newLink(l, here)
	assert.Must(t, l.Fire([]load.Batch{{Events: int32(events), Batches: int32(events), DueFirst: -1, DueLast: -1}}) == 1, "not taken")
	l.flushUnwritten()
	if written {
		l.out, l.waiting = l.waiting, l.out
		l.off, l.outLast = 0, l.queued
		l.wrote(len(l.out))
	}
	return l, sink
}

// flushUnwritten is Flush, without a write.
func (l *lane) flushUnwritten() {
	k := l.link
	l.link = nil
	l.Flush()
	l.link = k
}

// Whatever bytes a server sends, in whatever pieces, the reader completes no message that was not sent, and none twice.
func FuzzAnswers(f *testing.F) {
	f.Add([]byte(wire.Ack), uint8(1), true)
	f.Add([]byte(wire.Ack+wire.Ack+wire.Ack), uint8(7), true)
	f.Add([]byte(wire.Ack), uint8(3), false)
	f.Add(wire.AppendFramed(nil, &wire.Msg{HasOK: true, Error: "no"}), uint8(5), true)
	f.Add(wire.AppendFramed(wire.AppendAcks(nil, 9), &wire.Msg{HasOK: true, OK: true, Events: []wire.Event{{Service: "x"}}}), uint8(2), true)
	f.Add([]byte("HTTP/1.1 400 Bad Request\r\n"), uint8(30), true)
	f.Add([]byte("\x00\x00\x00\x00\x00\x00\x00\x02\x10"), uint8(4), true)
	f.Fuzz(func(t *testing.T, b []byte, piece uint8, written bool) {
		const messages = 10
		l, sink := newTestLane(t, messages, written)
		k := l.link
		var rest []byte
		var err error
		for len(b) > 0 && err == nil {
			n := min(len(b), int(piece)+1)
			rest = append(rest, b[:n]...)
			b = b[n:]
			rest, err = k.processAnswers(rest, socket.Arrival{Last: sink.Now()})
		}
		assert.True(t, written || sink.batches == 0, "%d batches completed, but none was sent", sink.batches)
		l.lost(k, errServerClosed)
		completed := sink.batches
		assert.True(t, (!written || completed == messages) && sink.wrong <= 0,
			"%d batches completed, %d out of order", completed, sink.wrong)
		assert.OK(t, l.Close())
		assert.True(t, sink.batches == messages && sink.acked+sink.failed+sink.unknown == messages && sink.wrong <= 0,
			"%d batches completed, %d out of order; %d acked, %d failed, %d unknown", sink.batches, sink.wrong, sink.acked, sink.failed, sink.unknown)
	})
}

func TestMain(m *testing.M) {
	standin.Hook(embedded.Kind) // a benchmark's sink is this program
	testkit.MostlyWaiting()
	os.Exit(m.Run())
}

// Sending and completing a batch group allocates nothing once the buffers have grown.
func TestLaneAllocatesNothing(t *testing.T) {
	if raced {
		t.Skip("pools drop what they keep")
	}
	here, there := net.Pipe()
	defer there.Close()
	l, sink := newTestLane(t, 1, true)
	l.link.Conn.Close()
	l.link.Conn = here
	answers := wire.AppendAcks(nil, 100)
	assert.Value(l.link.processAnswers(answers[:wire.AckSize], socket.Arrival{Last: sink.Now()}))(t)
	seq := uint64(1)
	batches := make([]load.Batch, 1)
	complete := func(n int32) {
		batches[0] = load.Batch{Seq: seq, First: seq, Events: n, Batches: n, DueFirst: -1, DueLast: -1}
		seq += uint64(n)
		assert.Must(t, l.Fire(batches) == 1, "not taken")
		l.flushUnwritten()
		l.out, l.waiting = l.waiting, l.out[:0]
		l.off, l.edge, l.outLast = 0, 0, l.queued
		l.wrote(len(l.out))
		assert.Value(l.link.processAnswers(answers[:int(n)*wire.AckSize], socket.Arrival{Last: sink.Now()}))(t)
	}
	complete(100)
	assert.Equal(t, testing.AllocsPerRun(1000, func() { complete(100) }), 0, "allocations for a batch group of 100 messages")
	assert.Equal(t, testing.AllocsPerRun(1000, func() { complete(1) }), 0, "allocations for a message")
}

// TestThreads: with a schedule and many clients, half of the processors are left to the server.
func TestThreads(t *testing.T) {
	for _, tt := range []struct {
		name          string
		scheduled     bool
		clients, want int
	}{
		{"many clients", true, manyClients, 2},
		{"fewer", true, manyClients - 1, 3},
		{"without a schedule", false, manyClients, 3},
	} {
		s := &session{cfg: &config{scheduled: tt.scheduled, clients: tt.clients}}
		assert.Equal(t, s.Threads(3), tt.want, "%s threads on 3 processors", tt.name)
	}
}
