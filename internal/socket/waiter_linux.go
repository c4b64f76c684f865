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

// A Waiter is where one sending thread waits: for a point in time, for what happens to
// descriptors, and for whoever wakes it, by one system call. It knows for how long what
// it found may have waited for it. Wake may be called by anybody; all the rest belongs
// to the thread.
type Waiter struct {
	now  func() time.Duration
	fd   int // of epoll
	wake int // an eventfd

	mu    sync.Mutex // over the end of the descriptors
	ended bool

	unstamped atomic.Bool // the kernel does not say when what a stream read arrived

	state   atomic.Int32
	events  []unix.EpollEvent
	looked  time.Duration // when the last look for answers was over
	found   found         // by the last wait
	hasty   time.Duration // until then answers are not left for long (see Stream.Together)
	offset  time.Duration // of the wall clock from now, as of the last read; 0: not known
	gap     Gap
	parking *parking // nil: there is none
}

// found is what a wait knows of when that which it found arrived.
type found struct {
	looked, entered, now time.Duration // the last look before it was over, it began, it was over
	woken                bool          // the thread slept until it was woken for it
	asleep               time.Duration // a wait that took no longer may not have slept
	since                time.Duration // the earliest that it can have arrived; -1: nobody has asked
}

// What the thread is doing.
const (
	running  int32 = iota
	notified       // somebody woke it before it waited
	parked         // it waits, and a wake has to write
)

const mostEvents = 128

// never is an offset that does not come.
const never = 1<<63 - 1

// NewWaiter makes one, nil where the system has none to give (Linux before 5.11, or
// no descriptors left). now is not called before the first Sleep.
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
	w.parking = newParking(w.fd)
	return w
}

// Control says what of a descriptor ends a wait (epoll_ctl).
func (w *Waiter) Control(op, fd int, events uint32) error {
	return unix.EpollCtl(w.fd, op, fd, &unix.EpollEvent{Events: events, Fd: int32(fd)})
}

// Prepare implements load.Waiting.
func (w *Waiter) Prepare() { w.gap.Open() }

// Retire says that the thread waits no more. Look still works, for another goroutine.
func (w *Waiter) Retire() {
	w.gap.Close()
	w.found = found{}
}

// Wake implements load.Waiting.
func (w *Waiter) Wake() {
	if w.state.Swap(notified) == parked {
		w.Notify()
	}
}

// Notify ends a wait of whoever waits, or the next.
func (w *Waiter) Notify() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ended {
		b := [8]byte{1}
		_, _ = unix.Write(w.wake, b[:])
	}
}

// Close gives back the descriptors, when nobody waits any more.
func (w *Waiter) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	unix.Close(w.wake)
	unix.Close(w.fd)
	if w.parking != nil {
		w.parking.file.Close()
	}
}

// Found returns what the last wait found: of n events the i-th's descriptor and what
// happened to it. Wakes have the descriptor -1.
func (w *Waiter) Found(i int) (fd int, events uint32) {
	e := &w.events[i]
	if int(e.Fd) == w.wake {
		return -1, 0 // each write is told of once, so that nothing has to be read
	}
	return int(e.Fd), e.Events
}

// Sleep waits until a time, an event or a Wake since Awake, and returns the number of
// events; it may return early. patient says that nothing waits for answers, and
// that all of them are read by streams of this waiter; idle, that none is to come.
func (w *Waiter) Sleep(until time.Duration, patient, idle bool) (n int) {
	f := &w.found
	*f = found{looked: w.looked, entered: w.now(), asleep: LeastSleep, since: -1}
	n, e := w.sleep(until, patient, idle)
	f.now = w.now()
	switch {
	case e == syscall.EINTR: // perhaps at the end of a stop: what came meanwhile was not looked for
		w.looked = f.entered
	case n < len(w.events): // else there may be more that was not looked at
		w.looked = f.now
	}
	w.Awake() // what is done about it is found without a wake
	return n
}

// Awake says that whoever wakes the thread from here on finds that it looks at what he
// left before it sleeps.
func (w *Waiter) Awake() { w.state.Store(running) }

// At is when the last wait was over.
func (w *Waiter) At() time.Duration { return w.found.now }

// MayWait is for a wait by other means than Sleep: it ends when WakeDescriptor can be
// read, and is followed by Awake. False: somebody has woken the thread already.
func (w *Waiter) MayWait() bool { return w.state.CompareAndSwap(running, parked) }

// WakeDescriptor can be read once somebody has woken the thread.
func (w *Waiter) WakeDescriptor() int { return w.wake }

// Waited says how such a wait went: the last look before it was over at looked, it began
// at entered and was over at now. If it took no longer than asleep, it may not have slept.
func (w *Waiter) Waited(looked, entered, now, asleep time.Duration) {
	w.found = found{looked: looked, entered: entered, now: now, woken: true, asleep: asleep, since: -1}
}

// Impatient has answers never left unread: something waits for them of which whoever
// calls Sleep does not know.
func (w *Waiter) Impatient() { w.unstamped.Store(true) }

// Look is a wait for d at most, by a goroutine that has no thread of its own.
func (w *Waiter) Look(d time.Duration) (n int) {
	ts := unix.NsecToTimespec(int64(d))
	n, _ = w.look(&ts, false)
	return n
}

// look waits for something to do. own: the thread has a processor of the Go
// scheduler of its own, and keeps it while it waits. A collection that wants the
// world to stop interrupts the wait by a signal.
func (w *Waiter) look(left *unix.Timespec, own bool) (int, syscall.Errno) {
	call := syscall.Syscall6
	if own {
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

// peek looks for what there is to do, and does not wait.
func (w *Waiter) peek() (int, syscall.Errno) {
	var zero unix.Timespec
	return w.look(&zero, true)
}

// How the thread sleeps, by what it sleeps for. Its usual wait is one system
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
	// its end, while no answer is to come: that poller is late by a millisecond or two,
	// and does not say by how much.
	longWait, runtimeLate = 8 * time.Millisecond, 3 * time.Millisecond
)

// sleep waits as Sleep does.
func (w *Waiter) sleep(until time.Duration, patient, idle bool) (n int, e syscall.Errno) {
	if !w.MayWait() {
		return w.peek()
	}
	entered := w.found.entered
	left := max(0, until-entered)
	switch {
	case patient && !w.unstamped.Load() && (left <= haste || left <= patience && entered >= w.hasty):
		w.rest(left)
		return w.peek()
	case idle && left > longWait && w.parking != nil:
		return w.park(until)
	default:
		w.found.woken = true
		if until == never {
			return w.look(nil, true)
		}
		ts := unix.NsecToTimespec(int64(left))
		return w.look(&ts, true)
	}
}

// rest waits for a time or a wake, and leaves answers where they are.
func (w *Waiter) rest(d time.Duration) {
	ts := unix.NsecToTimespec(int64(d))
	fds := [1]unix.PollFd{{Fd: int32(w.wake), Events: unix.POLLIN}}
	n, _, _ := syscall.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&fds)), 1, uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
	if n == 1 { // else it would say so for ever
		var b [8]byte
		_, _ = unix.Read(w.wake, b[:])
	}
}

// A parking is where the thread waits in the runtime's own poller. That one
// knows a second epoll descriptor, which looks at the first only while the thread
// waits here: otherwise each answer would wake the runtime as well.
type parking struct {
	fd   int
	file *os.File
	raw  syscall.RawConn
}

// newParking makes one for an epoll descriptor; nil where the system has none to give. The
// descriptor stays added: adding one has the kernel walk through all that is in it.
func newParking(watched int) *parking {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil
	}
	if unix.SetNonblock(fd, true) != nil || unix.EpollCtl(fd, unix.EPOLL_CTL_ADD, watched, &unix.EpollEvent{Fd: int32(watched)}) != nil {
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
func (w *Waiter) park(until time.Duration) (n int, e syscall.Errno) {
	k := w.parking
	deadline := time.Time{}
	if until != never {
		deadline = time.Now().Add(until - w.now() - runtimeLate)
	}
	if k.file.SetReadDeadline(deadline) != nil || unix.EpollCtl(k.fd, unix.EPOLL_CTL_MOD, w.fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(w.fd)}) != nil {
		return 0, 0
	}
	_ = k.raw.Read(func(uintptr) bool { // its error is that the time is over
		n, e = w.peek()
		return n > 0
	})
	_ = unix.EpollCtl(k.fd, unix.EPOLL_CTL_MOD, w.fd, &unix.EpollEvent{Fd: int32(w.fd)})
	if n == 0 && e == 0 { // what came with the end of the time
		n, e = w.peek()
	}
	return n, e
}
