package conn

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"carronade/internal/conn/socket"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// A testLane sends batches over one connection at a time. A batch is a frame, and is answered by one byte. What was begun and not
// answered when a connection is lost is unknown; what was not begun waits for the next one.
type testLane struct {
	t       *testing.T
	began   time.Time
	timeout time.Duration

	mu           sync.Mutex
	link         *testLink
	batches      []*batch
	head, next   int // the oldest that is not completed, the first that is not written
	offset, most int // bytes written of next; batches below most are being written
	outage       Outage
	closed       bool
}

type batch struct {
	frame      []byte
	sent, done time.Duration // -1: not yet
	outcome    string
	received   int // how often the peer received it
}

type testLink struct {
	Link
	l *testLane
}

func (l *testLane) now() time.Duration { return time.Since(l.began) }
func (k *testLink) Pending() bool      { return k.l.next < len(k.l.batches) }

func (k *testLink) Load(w *socket.Writer) (total int) {
	l := k.l
	skip := l.offset
	for l.most = l.next; l.most < len(l.batches) && l.most < l.next+3; l.most++ {
		total += w.Add([][]byte{l.batches[l.most].frame}, skip)
		skip = 0
	}
	return total
}

func (k *testLink) Written(n int, _ error) {
	l := k.l
	if l.closed {
		return
	}
	for n > 0 {
		b := l.batches[l.next]
		if b.sent < 0 {
			b.sent = k.Out.Began()
		}
		m := min(n, len(b.frame)-l.offset)
		n -= m
		if l.offset += m; l.offset == len(b.frame) {
			l.offset = 0
			l.next++
		}
	}
	l.most = l.next
}

func (k *testLink) Flushed() {}

func (k *testLink) Oldest() (time.Duration, bool) {
	l := k.l
	switch {
	case l.head < l.next || l.offset > 0:
		return l.batches[l.head].sent, true
	case l.head < l.most:
		return k.Out.Began(), true
	}
	return 0, false
}

var errNotSent = errors.New("an answer to a batch that was not sent")

// read reads answers until the connection has ended.
func (k *testLink) read() {
	l := k.l
	r := Reader{
		Conn: k.Conn, Now: l.now, Read: func(int) {},
		Received: func(b []byte, _ socket.Arrival) (int, error) {
			l.mu.Lock()
			defer l.mu.Unlock()
			for range b {
				if k.Dead() {
					return 0, k.Cause()
				}
				if l.head >= max(l.next, l.most) {
					return 0, errNotSent
				}
				if o := l.batches[l.head]; o.sent < 0 {
					o.sent = k.Out.Began() // its write has not returned yet
				}
				l.complete("acked")
			}
			return len(b), nil
		},
		Ended: func(err error) {
			l.mu.Lock()
			defer l.mu.Unlock()
			k.Kill(err)
		},
	}
	r.Run()
}

func (l *testLane) complete(outcome string) {
	b := l.batches[l.head]
	assert.True(l.t, b.outcome == "", "batch %d was %s, and then %s", l.head, b.outcome, outcome)
	b.outcome, b.done = outcome, l.now()
	l.head++
}

// giveUp completes what was begun as unknown, and with all the rest as failed.
func (l *testLane) giveUp(all bool) {
	for begun := max(l.next, l.most); l.head < begun || l.head == l.next && l.offset > 0; {
		l.complete("unknown")
	}
	for all && l.head < len(l.batches) {
		l.complete("failed")
	}
	l.next, l.offset, l.most = max(l.next, l.head), 0, l.head
}

func (l *testLane) serve(k *testLink) Next {
	k.Attach(nil)
	l.mu.Lock()
	l.link, l.outage = k, Outage{}
	if l.closed {
		k.Kill(ErrClosed)
	} else {
		k.Watch(l.timeout)
		k.PumpLater()
	}
	before := l.head
	l.mu.Unlock()
	k.read()
	l.mu.Lock()
	defer l.mu.Unlock()
	k.Bury(nil)
	k.Release()
	l.link = nil
	if l.closed {
		return Never
	}
	l.outage.Note(l.now(), k.Cause())
	served := l.head > before
	l.giveUp(false)
	if served {
		return AtOnce
	}
	return AfterPause
}

func (l *testLane) failed(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.outage.Note(l.now(), err)
	if !l.closed && l.outage.Longer(l.now(), 2*l.timeout) {
		l.giveUp(true)
	}
}

// close ends the lane. What is being written may have been written.
func (l *testLane) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.giveUp(true)
	if l.link != nil {
		l.link.Kill(ErrClosed)
	}
}

// A testPeer refuses connections, or reads and answers them at random, and at some time does something else.
type testPeer struct {
	l     *testLane
	r     *rand.Rand
	dials int  // guarded by the lane's lock
	lied  bool // it answered batches that it had not received; likewise
}

func (p *testPeer) dial(ctx context.Context) (*testLink, error) {
	l := p.l
	l.mu.Lock()
	closed := l.closed
	if !closed {
		p.dials++
	}
	l.mu.Unlock()
	if closed {
		return nil, ErrClosed
	}
	select {
	case <-time.After(time.Duration(p.r.IntN(20)) * time.Millisecond):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if p.r.IntN(3) == 0 {
		return nil, errRefused
	}
	here, there := net.Pipe()
	go p.serve(there, rand.New(rand.NewPCG(p.r.Uint64(), 0)))
	k := &testLink{l: l}
	k.Init(here, k, &l.mu, l.now)
	return k, nil
}

func (p *testPeer) serve(c net.Conn, r *rand.Rand) {
	defer c.Close()
	last := r.IntN(40) // the request after which it behaves differently
	for n := 0; ; n++ {
		frame, err := readFrame(c, r)
		if err != nil {
			return
		}
		l := p.l
		l.mu.Lock()
		b := l.batches[binary.BigEndian.Uint32(frame[4:])]
		b.received++
		assert.True(l.t, bytes.Equal(b.frame, frame), "a batch was altered")
		l.mu.Unlock()
		time.Sleep(time.Duration(r.IntN(30)) * time.Millisecond)
		answer := []byte("a")
		if n == last {
			switch r.IntN(6) {
			case 0:
				return // no answer
			case 1:
				_, _ = io.Copy(io.Discard, c) // a black hole, which still reads
				return
			case 2:
				time.Sleep(p.l.timeout + time.Millisecond) // late, and nothing is read until then
			case 3:
				time.Sleep(p.l.timeout - time.Millisecond)
			case 4:
				answer = bytes.Repeat(answer, 100) // also to batches that were not sent
				l.mu.Lock()
				p.lied = true
				l.mu.Unlock()
			case 5:
				_, _ = c.Write(answer)
				return
			}
		}
		if _, err := c.Write(answer); err != nil {
			return
		}
	}
}

func readFrame(c net.Conn, r *rand.Rand) ([]byte, error) {
	frame := make([]byte, 4)
	if _, err := io.ReadFull(c, frame); err != nil {
		return nil, err
	}
	frame = append(frame, make([]byte, binary.BigEndian.Uint32(frame))...)
	for at := 4; at < len(frame); {
		n, err := c.Read(frame[at:min(len(frame), at+1+r.IntN(1000))])
		if at += n; err != nil {
			return nil, err
		}
	}
	return frame, nil
}

// Whatever a peer does, every batch of a lane gets one outcome, in order. A batch that is acked was received,
// one that failed was not, and none is received twice. No answer is accepted after its deadline. After the
// end nothing completes and nothing connects.
func TestLink(t *testing.T) {
	outcomes := map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		timeout := time.Duration(rapid.IntRange(50, 2000).Draw(rt, "timeout")) * time.Millisecond
		events := rapid.IntRange(1, 300).Draw(rt, "events")
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			l := &testLane{t: t, began: time.Now(), timeout: timeout}
			p := &testPeer{l: l, r: rand.New(rand.NewPCG(seed, 2))}
			ctx, cancel := context.WithCancel(context.Background())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				Keeper[testLink]{First: ReconnectFirst, Dial: p.dial, Failed: l.failed, Serve: l.serve}.Run(ctx, nil)
			}()
			for range events {
				time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
				l.mu.Lock()
				b := &batch{sent: -1, done: -1, frame: binary.BigEndian.AppendUint32(nil, uint32(4+r.IntN(3000)))}
				b.frame = binary.BigEndian.AppendUint32(b.frame, uint32(len(l.batches)))
				b.frame = append(b.frame, make([]byte, int(binary.BigEndian.Uint32(b.frame))-4)...)
				l.batches = append(l.batches, b)
				if l.link != nil {
					l.link.Pump()
				}
				l.mu.Unlock()
			}
			if r.IntN(2) == 0 {
				time.Sleep(time.Minute) // everything is answered, or lost
			}
			l.close()
			l.mu.Lock()
			end, dials := l.now(), p.dials
			l.mu.Unlock()
			time.Sleep(time.Hour)
			cancel()
			<-ended
			l.mu.Lock()
			defer l.mu.Unlock()
			assert.Equal(t, p.dials, dials, "attempts to connect, also after the end")
			for i, b := range l.batches {
				outcomes[b.outcome]++
				switch {
				case b.outcome == "" || b.done > end:
					t.Errorf("batch %d: outcome %q at %v, after the end", i, b.outcome, b.done)
				case b.received > 1 || b.outcome == "acked" && b.received == 0 && !p.lied || b.outcome == "failed" && b.received > 0:
					t.Errorf("batch %d is %s, and was received %d times", i, b.outcome, b.received)
				case b.sent >= 0 && b.done-b.sent > timeout:
					t.Errorf("batch %d is %s %v after it was sent, more than %v", i, b.outcome, b.done-b.sent, timeout)
				}
			}
		})
	})
	for _, outcome := range []string{"acked", "unknown", "failed"} {
		assert.True(t, outcomes[outcome] != 0, "no batch was %s: %v", outcome, outcomes)
	}
}

// TestAttachAfterAShortWrite: a write that the socket did not accept whole, while a
// poller takes the connection, is left to the flusher, and the poller waits for it no longer.
func TestAttachAfterAShortWrite(t *testing.T) {
	p := socket.NewPoller(func() time.Duration { return 1 }, false)
	if p == nil {
		t.Skip("pollers are not supported")
	}
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		l := &testLane{t: t, began: time.Now(), batches: []*batch{{frame: []byte("batch"), sent: -1}}}
		k := &testLink{l: l}
		k.Init(here, k, &l.mu, l.now)
		k.writing = true // by a thread that does not block
		attached := make(chan struct{})
		go func() { defer close(attached); k.Attach(p) }()
		synctest.Wait()
		select {
		case <-attached:
			t.Error("the connection was taken while it was written to")
		default:
		}
		l.mu.Lock()
		k.leave()
		l.mu.Unlock()
		<-attached
		got, err := io.ReadAll(io.LimitReader(there, 5))
		assert.True(t, err == nil && string(got) == "batch", "the flusher wrote %q, %v", got, err)
		synctest.Wait()
		assert.True(t, k.standing, "the flusher of a connection whose writes block has ended")
		l.mu.Lock()
		k.Bury(ErrClosed)
		l.mu.Unlock()
		synctest.Wait()
		assert.True(t, !k.standing, "the flusher has not ended with the connection")
		there.Close()
	})
}

// A byteQueue always has the same bytes to write, until they are written.
type byteQueue struct {
	Link
	seg  [1][]byte
	left int
}

func (q *byteQueue) Pending() bool                 { return q.left > 0 }
func (q *byteQueue) Load(w *socket.Writer) int     { return w.Add(q.seg[:], len(q.seg[0])-q.left) }
func (q *byteQueue) Written(n int, _ error)        { q.left -= n }
func (q *byteQueue) Flushed()                      { q.Wake() }
func (q *byteQueue) Oldest() (time.Duration, bool) { return 0, false }

// TestWritesAllocateNothing: writes by the sending thread and by the flusher allocate nothing.
func TestWritesAllocateNothing(t *testing.T) {
	nc, there := testkit.Pair(t)
	drained := make(chan struct{})
	go func() { defer close(drained); _, _ = io.Copy(io.Discard, there) }()
	for _, tt := range []struct {
		name  string
		write func(q *byteQueue)
	}{{"the thread that queued it", func(q *byteQueue) { q.Pump() }}, {"the flusher", func(q *byteQueue) { q.PumpLater() }}} {
		t.Run(tt.name, func(t *testing.T) {
			var mu sync.Mutex
			began := time.Now()
			q := &byteQueue{seg: [1][]byte{make([]byte, 100)}}
			q.Init(nc, q, &mu, func() time.Duration { return time.Since(began) })
			q.Attach(nil)
			mu.Lock()
			defer mu.Unlock()
			n := testing.AllocsPerRun(200, func() {
				q.left = len(q.seg[0])
				tt.write(q)
				for q.left > 0 || q.Writing() {
					q.Wait()
				}
			})
			assert.True(t, n <= 0 || !q.Out.Direct(), "%v allocations", n) // else net.Buffers allocates
		})
	}
	nc.Close()
	<-drained
}

// TestPumpTogether: writes that were left to the poller are made with its next wait, or when
// it ends, and the flusher writes what the socket does not accept.
func TestPumpTogether(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began := time.Now()
	now := func() time.Duration { return time.Since(began) }
	p := socket.NewPoller(now, true)
	if p == nil {
		t.Skip("pollers are not supported")
	}
	p.Prepare()
	combines := p.Method() == "io_uring"
	var mu sync.Mutex
	var queues [3]*byteQueue
	var peers [3]net.Conn
	for i := range queues {
		nc, there := testkit.Pair(t)
		q := &byteQueue{seg: [1][]byte{make([]byte, 20_000)}}
		q.Init(nc, q, &mu, now)
		q.Attach(p)
		queues[i], peers[i] = q, there
		defer q.Release()
	}
	var written [3]int
	pump := func(i int) {
		mu.Lock()
		defer mu.Unlock()
		q := queues[i]
		q.left = len(q.seg[0])
		written[i] += q.left
		if q.PumpTogether(); combines && q.left == 0 {
			t.Errorf("link %d wrote without the others", i)
		}
	}
	full := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return queues[0].Flushing()
	}
	for range 3 {
		pump(1)
		pump(2)
		before := now()
		p.Wait(now(), false, false)
		mu.Lock()
		for i, q := range queues {
			if at := q.Out.Began(); q.left > 0 || q.Writing() || i > 0 && combines && at < before {
				t.Errorf("link %d after the wait from %v on: %d bytes are left, the write began at %v", i, before, q.left, at)
			}
		}
		mu.Unlock()
	}
	for !full() {
		pump(0)
		p.Wait(now(), false, false)
	}
	pump(1)
	p.Leave()
	for i, there := range peers {
		n, err := io.ReadFull(there, make([]byte, written[i]))
		assert.OK(t, err, "link %d wrote %d of %d bytes", i, n, written[i])
		mu.Lock()
		for q := queues[i]; q.Writing(); {
			q.Wait()
		}
		queues[i].Bury(ErrClosed)
		mu.Unlock()
	}
}
