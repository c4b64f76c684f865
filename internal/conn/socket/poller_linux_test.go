package socket

import (
	"bytes"
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
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
		n = assert.Value(unix.IoctlGetInt(c.fd, unix.SIOCINQ))(t)
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
	// Earlier wakes do not cut short all sleeps that leave answers unread. Signals of the runtime may end some of them.
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

// newRing returns a ring, on a thread reserved for the test; it skips the test if the system does not provide one.
func newRing(t testing.TB, buffers, size int) *Ring {
	t.Helper()
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	r, err := NewRing(buffers, size, 0)
	if errors.Is(err, syscall.ENOSYS) || errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EINVAL) {
		t.Skip("no io_uring here: ", err)
	}
	assert.OK(t, err)
	t.Cleanup(func() { assert.OK(t, r.Close()) })
	return r
}

func unixPair(t testing.TB) (here, there int) {
	t.Helper()
	fds := assert.Value(unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0))(t)
	t.Cleanup(func() { unix.Close(fds[0]); unix.Close(fds[1]) })
	return fds[0], fds[1]
}

func await(t testing.TB, r *Ring, n int) (all []Completion) {
	t.Helper()
	for len(all) < n {
		err := r.Enter(1, time.Minute, len(all)%2 == 0)
		assert.Must(t, err == 0 || err == syscall.EINTR, "%d of %d completions: %v", len(all), n, err)
		for c, ok := r.Next(); ok; c, ok = r.Next() {
			data := bytes.Clone(c.Data)
			r.Release(&c)
			c.Data = data
			all = append(all, c)
		}
	}
	return all
}

func TestSendAndReceive(t *testing.T) {
	r := newRing(t, 4, 16)
	here, there := unixPair(t)
	r.Recv(there, 7)
	// Far more than there are buffers or submissions: each one is reused.
	var want, got []byte
	for i := range 1000 {
		p := bytes.Repeat([]byte{byte('a' + i%26)}, 1+i%16)
		want = append(want, p...)
		r.Send(here, p, 8)
		for _, c := range await(t, r, 2) {
			switch {
			case c.Err != 0:
				t.Fatalf("completion %+v", c)
			case c.Tag == 8 && (c.N != len(p) || c.More):
				t.Fatalf("sent %+v, want %d bytes and no more", c, len(p))
			case c.Tag == 7 && !c.More:
				t.Fatalf("received %+v, want More", c)
			case c.Tag == 7:
				got = append(got, c.Data...)
			}
		}
	}
	assert.True(t, bytes.Equal(got, want), "received %.60q..., want %.60q...", got, want)
	unix.Shutdown(here, unix.SHUT_WR)
	c := await(t, r, 1)[0]
	assert.True(t, c.Tag == 7 && c.N == 0 && c.Err == 0 && !c.More && c.Data == nil, "at the end %+v, want nothing, without More", c)
}

// More submissions than the queue holds are all passed to the kernel.
func TestManySubmissions(t *testing.T) {
	r := newRing(t, 4, 16)
	here, there := unixPair(t)
	n := submissions + 5
	for i := range n {
		r.Send(here, []byte{byte(i)}, uint64(i))
	}
	for i, c := range await(t, r, n) {
		assert.Must(t, c.Tag == uint64(i) && c.N == 1, "completion %d is %+v", i, c)
	}
	got := make([]byte, n+1)
	k, err := unix.Read(there, got)
	assert.True(t, k == n && err == nil && got[n-1] == byte(n-1), "read %d bytes, %v; want %d", k, err, n)
	assert.True(t, r.queued == 0, "%d are queued, want none", r.queued)
}

// A send accepts what fits, and then nothing; when there is room again, the watch reports it.
func TestRingFullSocket(t *testing.T) {
	r := newRing(t, 4, 16)
	here, there := unixPair(t)
	p := make([]byte, 1<<20)
	for {
		r.Send(here, p, 1)
		c := await(t, r, 1)[0]
		if c.Err == syscall.EAGAIN {
			break
		}
		assert.Must(t, c.Err == 0 && c.N != 0 && c.N <= len(p), "sent %+v", c)
	}
	r.Watch(here, unix.POLLOUT, false, 2)
	err := r.Enter(1, time.Millisecond, true)
	assert.True(t, err == 0, "submitting and waiting: %v, want no error", err)
	for _, most := range []time.Duration{0, time.Millisecond} {
		err := syscall.EINTR // the runtime's own signals
		for err == syscall.EINTR {
			err = r.Enter(1, most, most == 0)
		}
		assert.True(t, err == syscall.ETIME, "waiting %v for room: %v, want a timeout", most, err)
	}
	for {
		n, _, err := unix.Recvfrom(there, p, unix.MSG_DONTWAIT)
		if n <= 0 || err != nil {
			break
		}
	}
	c := await(t, r, 1)[0]
	assert.True(t, c.Tag == 2 && c.N&unix.POLLOUT != 0 && !c.More, "got %+v, want that it is writable, once", c)
}

// If buffers run out, receiving ends, and further data stays in the socket.
func TestNoBuffers(t *testing.T) {
	r := newRing(t, 2, 4)
	here, there := unixPair(t)
	assert.Value(unix.Write(here, []byte("abcdefghij")))(t)
	r.Recv(there, 1)
	var kept []Completion
	for len(kept) < 3 {
		err := r.Enter(1, time.Minute, false)
		assert.Must(t, err == 0 || err == syscall.EINTR, "%v", err)
		for c, ok := r.Next(); ok; c, ok = r.Next() {
			kept = append(kept, c)
		}
	}
	assert.Must(t, string(kept[0].Data)+string(kept[1].Data) == "abcdefgh" && kept[2].Err == syscall.ENOBUFS &&
		!kept[2].More, "completions %+v, want eight bytes and then no buffers", kept)
	r.Release(&kept[0])
	r.Release(&kept[1])
	r.Release(&kept[1]) // once is enough
	r.Recv(there, 1)
	c := await(t, r, 1)[0]
	assert.True(t, string(c.Data) == "ij" && c.More, "then got %+v, want the rest", c)
}

// A descriptor that is watched repeatedly is reported each time, until all is canceled.
func TestWatchAndCancel(t *testing.T) {
	r := newRing(t, 4, 16)
	wake := assert.Value(unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK))(t)
	defer unix.Close(wake)
	_, there := unixPair(t)
	r.Watch(wake, unix.POLLIN, true, 1)
	r.Recv(there, 2)
	for range 3 {
		go unix.Write(wake, []byte{1, 0, 0, 0, 0, 0, 0, 0})
		c := await(t, r, 1)[0]
		assert.Must(t, c.Tag == 1 && c.N&unix.POLLIN != 0 && c.More, "got %+v, want that it is readable", c)
		unix.Read(wake, make([]byte, 8))
	}
	r.Cancel(2, 4)
	for _, c := range await(t, r, 2) {
		assert.True(t, !c.More && (c.Tag != 2 || c.Err == syscall.ECANCELED) && (c.Tag != 4 || c.Err == 0) &&
			(c.Tag == 2 || c.Tag == 4), "canceled one: %+v", c)
	}
	r.Recv(there, 2)
	r.CancelAll(3)
	left := map[uint64]bool{1: true, 2: true, 3: true}
	for _, c := range await(t, r, 3) {
		assert.True(t, !c.More && left[c.Tag] && (c.Tag == 3 || c.Err == syscall.ECANCELED), "canceled %+v", c)
		delete(left, c.Tag)
	}
	assert.True(t, len(left) == 0, "%v did not end", left)
}

func tcpDescriptors(t testing.TB) (here, there int) {
	t.Helper()
	fd := func(c *net.TCPConn) (fd int) {
		raw, err := c.SyscallConn()
		assert.OK(t, err)
		assert.OK(t, errors.Join(raw.Control(func(n uintptr) { fd, err = unix.FcntlInt(n, unix.F_DUPFD_CLOEXEC, 0) }), err))
		c.Close()
		t.Cleanup(func() { unix.Close(fd) })
		return fd
	}
	a, b := testkit.Pair(t)
	return fd(a), fd(b)
}

// A reset of the connection is reported.
func TestReset(t *testing.T) {
	r := newRing(t, 4, 16)
	fd, there := tcpDescriptors(t)
	r.Recv(fd, 1)
	r.Enter(0, 0, true)
	unix.SetsockoptLinger(there, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
	null := assert.Value(unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0))(t)
	defer unix.Close(null)
	unix.Dup3(null, there, unix.O_CLOEXEC) // closes it, and leaves the number taken
	c := await(t, r, 1)[0]
	assert.True(t, c.Err == syscall.ECONNRESET && !c.More, "got %+v, want a reset", c)
	r.Send(fd, []byte("x"), 2)
	c = await(t, r, 1)[0]
	assert.True(t, c.Tag == 2 && c.Err == syscall.EPIPE, "sent %+v, want a broken pipe without a signal", c)
}

// Control messages come next to the data: the time at which each piece was received.
func TestReceiveTimes(t *testing.T) {
	room := unix.CmsgSpace(int(unsafe.Sizeof(unix.Timespec{})))
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	r, err := NewRing(8, 16, room)
	if err != nil {
		t.Skip("no io_uring here: ", err)
	}
	defer r.Close()
	here, there := tcpDescriptors(t)
	assert.OK(t, unix.SetsockoptInt(there, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1))
	r.Recv(there, 7)
	before := time.Now()
	// The kernel starts to note times in the background, after the option is set: the first packets may have none.
	for stamped := false; !stamped; {
		assert.Must(t, time.Since(before) <= time.Minute, "no packet has a time")
		want := []byte("an answer of more than one buffer")
		assert.Value(unix.Write(here, want))(t)
		var got []byte
		stamped = true
		for len(got) < len(want) {
			err := r.Enter(1, time.Minute, false)
			assert.Must(t, err == 0 || err == syscall.EINTR, "%q of %q: %v", got, want, err)
			for c, ok := r.Next(); ok; c, ok = r.Next() {
				assert.Must(t, c.Err == 0 && c.N == len(c.Data) && c.N != 0 && c.N <= 16, "completion %+v", c)
				got = append(got, c.Data...)
				messages, err := unix.ParseSocketControlMessage(c.Control)
				assert.Must(t, err == nil && len(messages) <= 1 && (len(messages) != 1 || messages[0].Header.Type == unix.SCM_TIMESTAMPNS),
					"control messages %v and %v, want a time", messages, err)
				if len(messages) == 1 {
					at := time.Unix(0, (*unix.Timespec)(unsafe.Pointer(&messages[0].Data[0])).Nano())
					assert.True(t, !at.Before(before.Add(-time.Minute)) && !at.After(time.Now().Add(time.Minute)),
						"received at %v, want about %v", at, before)
				}
				stamped = stamped && len(messages) == 1
				r.Release(&c)
			}
		}
		assert.True(t, bytes.Equal(got, want), "received %q, want %q", got, want)
	}
}
