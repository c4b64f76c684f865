package load

import (
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// precise is the waiter of a scheduled run on Linux: the thread is an OS
// thread of its own with a timer slack of 1 ns, and sleeps in ppoll on an
// event descriptor. Measured against the runtime's timers it is late by some
// tens of microseconds at the median instead of half a millisecond. Over a
// long time the runtime's monitor would interrupt it every 10 ms, so that
// there the runtime's own timers are waited for, until shortly before the end.
type precise struct {
	start time.Time
	fd    int
	long  *timed // for long waits
	state atomic.Int32
	mu    sync.Mutex // over the descriptor's end, for wakes that come late
}

// longWait is what the runtime waits for; its timers are late by a millisecond or two.
const longWait, runtimeLate = 8 * time.Millisecond, 3 * time.Millisecond

const (
	running int32 = iota
	notified
	parked // in ppoll
	away   // in the runtime
)

func newPrecise(start time.Time) waiter {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil { // out of descriptors: the portable waiter still works
		return newTimed(start)
	}
	return &precise{start: start, fd: fd, long: newTimed(start)}
}

func (w *precise) prepare() {
	runtime.LockOSThread()
	precisely()
}

// precisely has the kernel wake this thread when it asked to be woken.
func precisely() {
	// Without effect the thread is merely up to 50 us later (the default
	// slack); the send delay is measured and shown in any case.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	ownSlice()
}

// ownSlice asks for a short slice of processor time for this thread, which works
// for microseconds at a time: since Linux 6.12 the scheduler lets such a one preempt
// those with longer slices as soon as it wakes. Any process may ask. Older kernels
// ignore it.
func ownSlice() {
	attr, err := unix.SchedGetAttr(0, 0)
	if err == nil && attr.Policy == unix.SCHED_NORMAL {
		attr.Runtime = uint64(slice)
		_ = unix.SchedSetAttr(0, attr, 0)
	}
}

// slice is the shortest that the kernel grants.
const slice = 100 * time.Microsecond

func (w *precise) wait(until time.Duration, _, idle bool) {
	d := until - time.Since(w.start)
	how := parked
	if d > longWait && idle {
		how = away
	}
	if !w.state.CompareAndSwap(running, how) {
		w.state.Store(running)
		return
	}
	switch {
	case how == away:
		if until != Never {
			until -= runtimeLate
		}
		w.long.wait(until, false, idle)
		w.state.Store(running)
		return
	case d <= 0:
		w.unpark(false)
		return
	}
	var ts *unix.Timespec
	if until != Never {
		t := unix.NsecToTimespec(int64(d))
		ts = &t
	}
	fds := [1]unix.PollFd{{Fd: int32(w.fd), Events: unix.POLLIN}}
	// Without notice to the Go scheduler (see procs). A collection that wants the
	// world to stop interrupts it by a signal: an early return, which is allowed for.
	_, _, _ = syscall.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&fds)), 1, uintptr(unsafe.Pointer(ts)), 0, 0, 0)
	w.unpark(fds[0].Revents&unix.POLLIN != 0)
}

// unpark takes a wake off the descriptor. A wake whose write comes after this
// makes the next wait return at once, which does no harm.
func (w *precise) unpark(readable bool) {
	if readable {
		var b [8]byte
		_, _ = unix.Read(w.fd, b[:])
	}
	w.state.Store(running)
}

func (w *precise) wake() {
	switch w.state.Swap(notified) {
	case away:
		w.long.wake()
		return
	case parked:
	default:
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fd >= 0 {
		b := [8]byte{0: 1}
		_, _ = unix.Write(w.fd, b[:])
	}
}

func (w *precise) close() {
	w.mu.Lock()
	_ = unix.Close(w.fd)
	w.fd = -1
	w.mu.Unlock()
	w.long.close()
	runtime.UnlockOSThread()
}
