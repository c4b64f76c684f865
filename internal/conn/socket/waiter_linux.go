package socket

import (
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A Waiter lets one sending thread wait in one system call: for a point in time, for
// events of descriptors, and for wakes from other goroutines. It knows how long what it
// found may have waited for it. Wake is safe for concurrent use; all other methods
// belong to the thread.
type Waiter struct {
	now  func() time.Duration
	fd   int // the epoll descriptor
	wake int // an eventfd

	mu    sync.Mutex // guards closing the descriptors
	ended bool

	unstamped atomic.Bool // the kernel does not report when data arrived, or answers must be read at once

	untimed bool // its streams do not ask when data arrived

	state         atomic.Int32
	events        []unix.EpollEvent
	began, looked time.Duration // between them was the last check for answers
	check         time.Duration // when the check of the current wait begins at the earliest
	found         found         // what the last wait found
	sharedUntil   time.Duration // until then answers are not left unread for long (see Stream.Together)
	oversleep     time.Duration // how much longer than requested the last sleeps took, a moving average
	base          clockBase     // zero: not known
	wall          wallOffset
	runDelay      RunDelay
	runtimePoller *runtimePoller // nil: not available
}

// found describes when the data that a wait found may have arrived.
type found struct {
	began, looked time.Duration // between them was the previous check
	entered, now  time.Duration // beginning and end of the wait
	woken         bool          // the thread slept until it was woken for the data
	asleep        time.Duration // a wait that took no longer may not have slept
	waited        time.Duration // how long the thread has waited for a processor, maybe also before; -1: not read
}

// States of the thread.
const (
	running  int32 = iota
	notified       // it was woken before it waited
	parked         // it waits, and a wake must write to the eventfd
)

const mostEvents = 128

// Never is later than any other offset.
const Never = 1<<63 - 1

// NewWaiter returns a waiter, nil if the system does not support one (Linux before
// 5.11, or no descriptors left). It does not call now before the first Sleep.
func NewWaiter(now func() time.Duration) *Waiter {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil
	}
	w := &Waiter{now: now, fd: fd, wake: -1, events: make([]unix.EpollEvent, mostEvents)}
	if _, e := w.peek(); e != 0 && e != syscall.EINTR {
		unix.Close(fd)
		return nil
	}
	if w.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err == nil {
		err = w.Control(unix.EPOLL_CTL_ADD, w.wake, unix.EPOLLIN|unix.EPOLLET)
	}
	if err != nil {
		if w.wake >= 0 {
			unix.Close(w.wake)
		}
		unix.Close(fd)
		return nil
	}
	w.runtimePoller = newRuntimePoller(w.fd)
	return w
}

// Control sets which events of a descriptor end a wait (epoll_ctl).
func (w *Waiter) Control(op, fd int, events uint32) error {
	return unix.EpollCtl(w.fd, op, fd, &unix.EpollEvent{Events: events, Fd: int32(fd)})
}

// Prepare implements load.PollWaiter.
func (w *Waiter) Prepare() { w.runDelay.Open() }

// Retire announces that the thread no longer waits. Look still works, from another
// goroutine.
func (w *Waiter) Retire() {
	w.runDelay.Close()
	w.found = found{}
}

// Wake implements load.PollWaiter.
func (w *Waiter) Wake() {
	if w.state.Swap(notified) == parked {
		w.Notify()
	}
}

// Notify ends a current wait, or the next one.
func (w *Waiter) Notify() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ended {
		b := [8]byte{1}
		_, _ = unix.Write(w.wake, b[:])
	}
}

// Close closes the descriptors, when no goroutine waits any longer.
func (w *Waiter) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	unix.Close(w.wake)
	unix.Close(w.fd)
	if w.runtimePoller != nil {
		w.runtimePoller.file.Close()
	}
}

// Found returns the descriptor and the events of the i-th of the events that the last
// wait found. Wakes have the descriptor -1.
func (w *Waiter) Found(i int) (fd int, events uint32) {
	e := &w.events[i]
	if int(e.Fd) == w.wake {
		return -1, 0 // edge-triggered: nothing has to be read
	}
	return int(e.Fd), e.Events
}

// Sleep waits until a time, an event or a Wake since Awake, and returns the number of
// events; it may return early. patient: no event needs an answer before it can be sent,
// and streams of this waiter read all answers; idle: no answer is expected.
func (w *Waiter) Sleep(until time.Duration, patient, idle bool) (n int) {
	f := &w.found
	*f = found{began: w.began, looked: w.looked, entered: w.now(), asleep: LeastSleep, waited: -1}
	w.check = f.entered
	n, e := w.sleep(until, patient, idle)
	f.now = w.now()
	switch {
	case e == syscall.EINTR: // perhaps after a stop of the process, during which nothing was checked
		w.began, w.looked = f.entered, f.entered
	case n < len(w.events): // otherwise there may be more events
		w.began, w.looked = w.check, f.now
	}
	w.Awake() // the caller handles the events without a wake
	return n
}

// Awake announces that the thread checks for work from other goroutines before it
// sleeps again, so that they need not write a wake.
func (w *Waiter) Awake() { w.state.Store(running) }

// At returns when the last wait ended.
func (w *Waiter) At() time.Duration { return w.found.now }

// MayWait prepares a wait by other means than Sleep: the wait ends when WakeDescriptor
// can be read, and is followed by Awake. It returns false if the thread has already
// been woken.
func (w *Waiter) MayWait() bool { return w.state.CompareAndSwap(running, parked) }

// Waited records such a wait: the previous check was between began and looked, the wait began at
// entered and ended at now. If it took no longer than asleep, it may not have slept.
func (w *Waiter) Waited(began, looked, entered, now, asleep time.Duration) {
	w.found = found{began: began, looked: looked, entered: entered, now: now, woken: true, asleep: asleep, waited: -1}
}

// ReadAtOnce makes the waiter never leave answers unread: other code waits for them,
// which the caller of Sleep does not know of.
func (w *Waiter) ReadAtOnce() { w.unstamped.Store(true) }

// Look waits for at most d, for a goroutine that is not locked to a thread.
func (w *Waiter) Look(d time.Duration) (n int) {
	ts := unix.NsecToTimespec(int64(d))
	n, _ = w.look(&ts, false)
	return n
}

// look waits for events. raw: the call is hidden from the Go scheduler, because the
// thread has its own scheduler processor and keeps it while it waits. A garbage
// collection that stops the world interrupts the wait by a signal.
func (w *Waiter) look(left *unix.Timespec, raw bool) (int, syscall.Errno) {
	call := syscall.Syscall6
	if raw {
		call = syscall.RawSyscall6
	}
	n, _, e := call(unix.SYS_EPOLL_PWAIT2, uintptr(w.fd), uintptr(unsafe.Pointer(unsafe.SliceData(w.events))), uintptr(len(w.events)),
		uintptr(unsafe.Pointer(left)), 0, 0)
	runtime.KeepAlive(left)
	if e != 0 {
		return 0, e
	}
	return int(n), 0
}

// peek checks for events without waiting.
func (w *Waiter) peek() (int, syscall.Errno) {
	var zero unix.Timespec
	return w.look(&zero, true)
}

// How the thread sleeps depends on the length. Its usual wait is one system call that
// is hidden from the Go scheduler (see load's procs.go): cheap and on time, but the
// runtime's monitor checks such a thread every 10 ms, and interrupts it. In a long wait
// that costs more than it saves.
const (
	// mostUnread is how long answers may be left unread if the kernel reports when they
	// arrived: waking for each costs more than everything else about an event.
	mostUnread = time.Millisecond
	// mostUnreadShared is the same while several answers come in one read, of which
	// only the last one's time is known. It is below the tolerance of every time, and
	// includes what the kernel adds to a sleep: 10 us, or 90 in a virtual machine.
	mostUnreadShared = 125 * time.Microsecond
	// oversleepOver is the number of sleeps that the average of oversleep covers.
	oversleepOver = 16
	// sharedFor is how long mostUnreadShared applies after such a read.
	sharedFor = 100 * time.Millisecond
	// longWait is the shortest wait in the runtime's poller, which lasts until shortly
	// before its end and is used while no answer is expected: that poller is late by a
	// millisecond or two, and does not report by how much.
	longWait, runtimeLate = 8 * time.Millisecond, 3 * time.Millisecond
)

// sleep waits like Sleep.
func (w *Waiter) sleep(until time.Duration, patient, idle bool) (n int, e syscall.Errno) {
	if !w.MayWait() {
		return w.peek()
	}
	entered := w.found.entered
	left := max(0, until-entered)
	switch {
	case patient && !w.unstamped.Load() && (left+w.oversleep <= mostUnreadShared || left <= mostUnread && entered >= w.sharedUntil):
		w.sleepUnread(left)
		return w.peek()
	case idle && left > longWait && w.runtimePoller != nil:
		return w.waitInRuntime(until)
	default:
		w.found.woken = true
		if until == Never {
			return w.look(nil, true)
		}
		ts := unix.NsecToTimespec(int64(left))
		return w.look(&ts, true)
	}
}

// sleepUnread waits for a time or a wake, and leaves answers unread.
func (w *Waiter) sleepUnread(d time.Duration) {
	ts := unix.NsecToTimespec(int64(d))
	fds := [1]unix.PollFd{{Fd: int32(w.wake), Events: unix.POLLIN}}
	n, _, _ := syscall.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&fds)), 1, uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
	w.check = w.now()
	if n == 1 { // otherwise it would stay readable
		var b [8]byte
		_, _ = unix.Read(w.wake, b[:])
		return
	}
	if late := w.check - w.found.entered - d; late >= 0 { // not interrupted
		w.oversleep += (late - w.oversleep) / oversleepOver
	}
}

// A runtimePoller lets the thread wait in the Go runtime's poller. The runtime watches
// a second epoll descriptor, which watches the first only during such a wait:
// otherwise each answer would also wake the runtime.
type runtimePoller struct {
	fd   int
	file *os.File
	raw  syscall.RawConn
}

// newRuntimePoller returns a runtimePoller for an epoll descriptor; nil if the system
// does not support one. The descriptor stays added, because when one is added the kernel
// walks through everything in it.
func newRuntimePoller(watched int) *runtimePoller {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil
	}
	if unix.SetNonblock(fd, true) != nil || unix.EpollCtl(fd, unix.EPOLL_CTL_ADD, watched, &unix.EpollEvent{Fd: int32(watched)}) != nil {
		unix.Close(fd)
		return nil
	}
	k := &runtimePoller{fd: fd, file: os.NewFile(uintptr(fd), "epoll")}
	if err = k.file.SetReadDeadline(time.Time{}); err == nil { // otherwise the runtime cannot wait for it
		k.raw, err = k.file.SyscallConn()
	}
	if err != nil {
		k.file.Close()
		return nil
	}
	return k
}

// waitInRuntime waits in the runtime's poller.
func (w *Waiter) waitInRuntime(until time.Duration) (n int, e syscall.Errno) {
	k := w.runtimePoller
	deadline := time.Time{}
	if until != Never {
		deadline = time.Now().Add(until - w.now() - runtimeLate)
	}
	if k.file.SetReadDeadline(deadline) != nil || unix.EpollCtl(k.fd, unix.EPOLL_CTL_MOD, w.fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(w.fd)}) != nil {
		return 0, 0
	}
	_ = k.raw.Read(func(uintptr) bool { // the only error is that the deadline has passed
		n, e = w.peek()
		return n > 0
	})
	_ = unix.EpollCtl(k.fd, unix.EPOLL_CTL_MOD, w.fd, &unix.EpollEvent{Fd: int32(w.fd)})
	if n == 0 && e == 0 { // events that came with the deadline
		n, e = w.peek()
	}
	return n, e
}
