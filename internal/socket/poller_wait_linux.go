package socket

import (
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// How a poller's thread sleeps, by what it sleeps for. Its usual wait is one system
// call of which the Go scheduler is not told (see load's procs.go): cheap and on time,
// but the runtime's monitor looks at such a thread every 10 ms, and interrupts it. Over
// a long time that costs more than it saves.
const (
	// patience is for how long answers may be left unread when the kernel says when
	// they arrived: to wake for each costs more than all the rest of an event.
	patience = time.Millisecond
	// haste is the same while several answers come together, of which only the last
	// one's time is known. It is within what every time may be wrong by.
	haste = 125 * time.Microsecond
	// hastyFor is how long it lasts.
	hastyFor = 100 * time.Millisecond
	// longWait is what the runtime's own poller is waited in for, until shortly before
	// its end: that poller is late by a millisecond or two.
	longWait, runtimeLate = 8 * time.Millisecond, 3 * time.Millisecond
	// promptly is how long an answer is waited for here before that.
	promptly = 2 * time.Millisecond
)

// sleep waits as Wait does and returns the number of events.
func (p *Poller) sleep(until time.Duration, patient bool) (n int, e syscall.Errno) {
	var zero unix.Timespec
	if !p.state.CompareAndSwap(running, parked) {
		return p.look(&zero, true)
	}
	entered := p.found.entered
	left := max(0, until-entered)
	switch {
	case patient && p.stamps && (left <= haste || left <= patience && entered >= p.hasty):
		p.rest(left)
		return p.look(&zero, true)
	case left > longWait && p.parking != nil:
		p.found.woken = true
		ts := unix.NsecToTimespec(int64(promptly))
		if n, e = p.look(&ts, true); n > 0 || e != 0 {
			return n, e
		}
		p.found.woken = false
		return p.park(until)
	default:
		p.found.woken = true
		if until == never {
			return p.look(nil, true)
		}
		ts := unix.NsecToTimespec(int64(left))
		return p.look(&ts, true)
	}
}

// rest waits for a time or a wake, and leaves answers where they are.
func (p *Poller) rest(d time.Duration) {
	ts := unix.NsecToTimespec(int64(d))
	fds := [1]unix.PollFd{{Fd: int32(p.wake), Events: unix.POLLIN}}
	n, _, _ := syscall.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&fds)), 1, uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
	if n == 1 { // else it would say so for ever
		var b [8]byte
		_, _ = unix.Read(p.wake, b[:])
	}
}

// A parking is where a poller's thread waits in the runtime's own poller. That one
// knows a second epoll descriptor, which the first is in only for as long as somebody
// waits here: else each answer would wake the runtime as well.
type parking struct {
	fd   int
	file *os.File
	raw  syscall.RawConn
}

// newParking makes one; nil where the system has none to give.
func newParking() *parking {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil
	}
	if unix.SetNonblock(fd, true) != nil {
		unix.Close(fd)
		return nil
	}
	k := &parking{fd: fd, file: os.NewFile(uintptr(fd), "epoll")}
	if err = k.file.SetReadDeadline(time.Time{}); err == nil { // else the runtime cannot wait for it
		k.raw, err = k.file.SyscallConn()
	}
	if err != nil {
		k.file.Close()
		return nil
	}
	return k
}

// park waits there.
func (p *Poller) park(until time.Duration) (n int, e syscall.Errno) {
	k := p.parking
	deadline := time.Time{}
	if until != never {
		deadline = time.Now().Add(until - p.now() - runtimeLate)
	}
	if k.file.SetReadDeadline(deadline) != nil || unix.EpollCtl(k.fd, unix.EPOLL_CTL_ADD, p.fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(p.fd)}) != nil {
		return 0, 0
	}
	_ = k.raw.Read(func(uintptr) bool { // its error is that the time is over
		var zero unix.Timespec
		n, e = p.look(&zero, true)
		return n > 0
	})
	_ = unix.EpollCtl(k.fd, unix.EPOLL_CTL_DEL, p.fd, nil)
	return n, e
}

// close gives back the descriptors.
func (p *Poller) close() {
	unix.Close(p.wake)
	unix.Close(p.fd)
	if p.parking != nil {
		p.parking.file.Close()
	}
}

// one reports whether all that the last read returned arrived at once.
func (c *Conn) one() bool { return c.segs.one(c.fd) }

// since is the earliest moment at which what the last wait found can have arrived.
func (c *Conn) since() time.Duration {
	f := &c.p.found
	if f.since < 0 {
		f.since = f.looked
		if f.woken {
			f.since = c.p.gap.Since(f.looked, f.entered, f.now, LeastSleep)
		}
	}
	return f.since
}

// Arrival says when what the last read returned arrived; now is the present.
func (c *Conn) Arrival(now time.Duration) Arrival {
	a := Arrival{Last: now}
	if c.alone {
		return a
	}
	a.c = c
	if at := arrived(c.stamp, 0, now); at > 0 {
		// What the last look did not find came after it.
		a.Last, a.exact = max(at, c.p.found.looked), true
	} else { // the kernel takes a moment to begin, and the wall clock may be set
		c.p.hasty = now + hastyFor
	}
	return a
}

// Together notes that answers to batches of different writes came in one read: only of
// the last is it known when it arrived, so that they are not left unread for long now.
func (c *Conn) Together() { c.p.hasty = c.p.found.now + hastyFor }
