package socket

import (
	"bytes"
	"errors"
	"net"
	"runtime"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// newRing returns a ring, on a thread reserved for the test; it skips the test if the
// system does not provide one.
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
	t.Cleanup(func() {
		unix.Close(fds[0])
		unix.Close(fds[1])
	})
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
	if c := await(t, r, 1)[0]; c.Tag != 7 || c.N != 0 || c.Err != 0 || c.More || c.Data != nil {
		t.Errorf("at the end %+v, want nothing, without More", c)
	}
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
	// The kernel starts to note times in the background, after the option is set:
	// the first packets may have none.
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
				if err != nil || len(messages) > 1 || len(messages) == 1 && messages[0].Header.Type != unix.SCM_TIMESTAMPNS {
					t.Fatalf("control messages %v and %v, want a time", messages, err)
				}
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
