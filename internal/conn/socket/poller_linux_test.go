package socket

import (
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"

	"golang.org/x/sys/unix"
)

func polledPair(t *testing.T) (p *Poller, c *Conn, peer net.Conn, now func() time.Duration) {
	t.Helper()
	start := time.Now().Add(-time.Hour) // so that no offset is 0
	now = func() time.Duration { return time.Since(start) }
	if p = NewPoller(now, false); p == nil {
		t.Skip("this kernel has no epoll_pwait2")
	}
	nc, peer := testkit.Pair(t)
	c, ok := p.Take(nc)
	assert.Must(t, ok, "the connection was not taken")
	t.Cleanup(func() { c.Close() })
	return p, c, peer, now
}

// reading serves a connection, and returns a function that returns when the data of each read arrived.
func reading(t *testing.T, p *Poller, c *Conn, peer net.Conn, now func() time.Duration) func() []Arrival {
	t.Helper()
	var all []Arrival
	buf := make([]byte, 1024)
	served := make(chan struct{})
	c.Serve(func(end bool) bool {
		for {
			n, err := c.Read(buf)
			if n > 0 {
				all = append(all, c.Arrival(now()))
			}
			if n == 0 || err != nil {
				return err != nil
			}
		}
	}, func() { close(served) })
	t.Cleanup(func() {
		p.Leave()
		c.Close()
		<-served
		c.Release()
	})
	p.Prepare()
	p.Wait(now(), false, false)
	for known := p.unstamped.Load(); !known; { // the kernel takes a moment to enable timestamps
		assert.Value(peer.Write([]byte("answer")))(t)
		for all = nil; len(all) == 0; {
			p.Wait(now()+mostUnreadShared, false, false)
		}
		known = all[0].exact
	}
	all, p.sharedUntil = nil, 0
	return func() []Arrival { got := all; all = nil; return got }
}

// unread waits until this number of bytes can be read from a connection.
func unread(t *testing.T, c *Conn, bytes int) {
	t.Helper()
	for n := 0; n < bytes; {
		var err error
		n, err = unix.IoctlGetInt(c.fd, unix.SIOCINQ)
		assert.OK(t, err)
	}
}

// The arrival of an answer that was left unread is known if it was the only one; of several, only the arrival
// of the last is. It is not known if the thread is interrupted between the readings of two clocks.
func TestArrival(t *testing.T) {
	for _, patient := range []bool{true, false} {
		p, c, peer, now := polledPair(t)
		arrivals := reading(t, p, c, peer, now)
		if p.unstamped.Load() {
			t.Skip("this kernel does not stamp packets")
		}
		for known, rounds := 0, 0; known < 10; rounds++ {
			assert.Must(t, rounds != 1000, "patient %v: of %d arrivals only %d are known", patient, rounds, known)
			looked := p.looked
			assert.Value(peer.Write([]byte("answer")))(t)
			written := now() // over loopback it has arrived by now
			var got []Arrival
			for len(got) == 0 {
				p.Wait(now()+mostUnread-time.Microsecond, patient, false)
				got = arrivals()
			}
			if !got[0].exact {
				continue
			}
			known++
			if a := got[0]; a.Last < looked || a.First(1, false) > written || a.First(1, false) > a.Last {
				t.Errorf("patient %v: %+v, first %v; want a time from %v to %v", patient, a, a.First(1, false), looked, written)
			}
			if first := got[0].First(2, false); first != got[0].First(1, false) {
				t.Errorf("patient %v: of one segment, the first answer arrived no earlier than %v, the last at %v", patient, first, got[0].Last)
			}
		}
	}
}

// Answers in one segment arrived together; of answers in two segments only the arrival of the last is known.
func TestSegments(t *testing.T) {
	p, c, peer, now := polledPair(t)
	arrivals := reading(t, p, c, peer, now)
	if p.unstamped.Load() {
		t.Skip("this kernel does not stamp packets")
	}
	for i := range 20 {
		p.Wait(now(), false, false)
		looked := p.looked
		segments := 1 + i%2
		for range segments {
			assert.Value(peer.Write([]byte("answer")))(t)
		}
		unread(t, c, segments*len("answer"))
		var got []Arrival
		for len(got) == 0 {
			p.Wait(now()+mostUnreadShared/2, true, false)
			got = arrivals()
		}
		switch first := got[0].First(2, false); {
		case segments == 2 && (first > looked || first < looked-clockSet): // a pause between two clocks makes it earlier
			t.Errorf("round %d: the first of two segments arrived no earlier than %v, want %v", i, first, looked)
		case segments == 1 && first != got[0].First(1, false):
			t.Errorf("round %d: the first of one segment at %v, the last at %v", i, first, got[0].Last)
		}
	}
}

// TestTogether: while answers come in shared reads they are not left unread for long.
func TestTogether(t *testing.T) {
	p, c, peer, now := polledPair(t)
	reading(t, p, c, peer, now)
	stopped := now() // so that no pause shortens what is left of a wait
	p.now = func() time.Duration { return stopped }
	p.Wait(stopped+mostUnread-time.Microsecond, true, false)
	assert.True(t, p.unstamped.Load() || !p.found.woken, "it waited for answers instead of leaving them unread")
	c.Together()
	p.Wait(stopped+mostUnread-time.Microsecond, true, false)
	assert.True(t, p.found.woken, "it left answers unread although they come in shared reads")
	for _, oversleep := range []time.Duration{0, mostUnreadShared} {
		p.oversleep = oversleep
		p.Wait(stopped+mostUnreadShared/2, true, false)
		assert.True(t, p.unstamped.Load() || p.found.woken == (oversleep > 0),
			"sleeps take %v longer than requested: woken for answers is %t", oversleep, p.found.woken)
	}
}

// TestLongWait: an answer, a wake and time each end a long wait.
func TestLongWait(t *testing.T) {
	p, c, peer, now := polledPair(t)
	arrivals := reading(t, p, c, peer, now)
	const hour = time.Hour
	time.AfterFunc(2*longWait, func() { peer.Write([]byte("answer")) })
	for len(arrivals()) == 0 {
		p.Wait(now()+hour, false, true)
	}
	woken := make(chan struct{})
	time.AfterFunc(2*longWait, func() { close(woken); p.Wake() })
	for done := false; !done; {
		p.Wait(Never, false, true)
		select {
		case <-woken:
			done = true
		default:
		}
	}
	for until := now() + 2*longWait; now() < until; {
		p.Wait(until, false, true)
	}
	// Earlier wakes do not cut short all sleeps that leave answers unread. Signals of the
	// runtime may end some of them.
	p.Wake()
	early := time.Duration(1)
	for rounds := 0; early > 0 && rounds < 1000; rounds++ {
		until := now() + mostUnread/2
		p.Wait(until, true, false)
		early = until - now()
	}
	assert.True(t, p.unstamped.Load() || early <= 0, "all sleeps ended early, the last one by %v", early)
}

// TestMethod: a poller has an io_uring only if it may.
func TestMethod(t *testing.T) {
	newRing(t, 1, 1) // or skip
	for want, combine := range map[string]bool{"epoll": false, "io_uring": true} {
		p := NewPoller(func() time.Duration { return 1 }, combine)
		if p == nil {
			t.Skip("this kernel has no epoll_pwait2")
		}
		p.Prepare()
		got := p.Method()
		assert.True(t, got == want, "combine %t: it waits by %s, want %s", combine, got, want)
		p.Leave()
	}
}

// TestSince: the earliest arrival of several answers that were read together. The thread waited 4 ms for a
// processor: after the previous check and before it read the clock, or when the answers woke it.
func TestSince(t *testing.T) {
	const ms = time.Millisecond
	for _, tt := range []struct {
		name    string
		found   found
		arrival Arrival
		want    time.Duration
	}{
		{"found at once, the check before took no time", found{began: 10 * ms, looked: 10*ms + 20_000, entered: 11 * ms, now: 11*ms + 10_000}, Arrival{}, 10*ms + 20_000},
		{"found at once, the check before slept", found{began: 10 * ms, looked: 20 * ms, entered: 21 * ms, now: 21*ms + 10_000}, Arrival{}, 16 * ms},
		{"the check before was shorter than the delay", found{began: 18 * ms, looked: 20 * ms, entered: 21 * ms, now: 21*ms + 10_000}, Arrival{}, 18 * ms},
		{"woken", found{began: 10 * ms, looked: 10*ms + 5_000, entered: 11 * ms, now: 20 * ms, woken: true}, Arrival{}, 16 * ms},
		{"woken soon after the check before", found{began: 15 * ms, looked: 19 * ms, entered: 19 * ms, now: 20 * ms, woken: true}, Arrival{}, 16 * ms},
		{"the last arrived before the wait", found{began: 10 * ms, looked: 20 * ms, entered: 21 * ms, now: 21*ms + 10_000}, Arrival{first: 15 * ms, exact: true}, 15 * ms},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "schedstat")
			assert.OK(t, os.WriteFile(file, []byte("7000000 4000000 9\n"), 0o600))
			fd := assert.Value(unix.Open(file, unix.O_RDONLY, 0))(t)
			w := &Waiter{runDelay: RunDelay{fd: fd}, found: tt.found}
			w.found.asleep, w.found.waited = LeastSleep, -1
			defer w.runDelay.Close()
			s := Stream{w: w}
			assert.Equal(t, s.since(tt.arrival), tt.want, "earliest arrival")
		})
	}
}
