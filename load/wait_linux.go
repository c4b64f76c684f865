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

// preciseWaiter is the waiter of a scheduled run on Linux: its goroutine is locked to
// an OS thread with a timer slack of 1 ns, and sleeps in ppoll on an event descriptor.
// It was measured to be late by some tens of microseconds at the median, the runtime's
// timers by half a millisecond. During a long sleep the runtime's monitor would
// interrupt it every 10 ms. Long waits therefore use the runtime's timers until shortly
// before the end.
type preciseWaiter struct {
	start time.Time
	fd    int
	long  *timerWaiter // for long waits
	state atomic.Int32
	mu    sync.Mutex // guards closing the descriptor against late wakes
}

// longWait is the shortest wait that uses the runtime's timers, which are late by a
// millisecond or two.
const longWait, runtimeLate = 8 * time.Millisecond, 3 * time.Millisecond

const (
	running int32 = iota
	notified
	parked    // in ppoll
	inRuntime // in the runtime's timers
)

func newPreciseWaiter(start time.Time) waiter {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil { // out of descriptors: the portable waiter needs none
		return newTimerWaiter(start)
	}
	return &preciseWaiter{start: start, fd: fd, long: newTimerWaiter(start)}
}

func (w *preciseWaiter) prepare() {
	runtime.LockOSThread()
	tuneThread()
}

// tuneThread lets the kernel wake this thread close to the requested time.
func tuneThread() {
	// If this fails, the thread is merely up to 50 us later (the default slack); the
	// send delay is measured and shown in any case.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	requestShortSlice()
}

// requestShortSlice requests a short slice of processor time for this thread, which
// works for microseconds at a time: since Linux 6.12 the scheduler lets such a thread
// preempt those with longer slices as soon as it wakes. Every process may request one.
// Older kernels ignore it.
func requestShortSlice() {
	attr, err := unix.SchedGetAttr(0, 0)
	if err == nil && attr.Policy == unix.SCHED_NORMAL {
		attr.Runtime = uint64(slice)
		_ = unix.SchedSetAttr(0, attr, 0)
	}
}

// slice is the shortest slice that the kernel grants.
const slice = 100 * time.Microsecond

func (w *preciseWaiter) wait(until time.Duration, _, idle bool) {
	d := until - time.Since(w.start)
	how := parked
	if d > longWait && idle {
		how = inRuntime
	}
	if !w.state.CompareAndSwap(running, how) {
		w.state.Store(running)
		return
	}
	switch {
	case how == inRuntime:
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
	// A raw system call, hidden from the Go scheduler (see procs). A garbage collection
	// that stops the world interrupts it by a signal: it returns early then, which is
	// allowed.
	_, _, _ = syscall.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&fds)), 1, uintptr(unsafe.Pointer(ts)), 0, 0, 0)
	w.unpark(fds[0].Revents&unix.POLLIN != 0)
}

// unpark clears a wake from the descriptor. A wake that is written after this makes the
// next wait return at once, which does no harm.
func (w *preciseWaiter) unpark(readable bool) {
	if readable {
		var b [8]byte
		_, _ = unix.Read(w.fd, b[:])
	}
	w.state.Store(running)
}

func (w *preciseWaiter) wake() {
	switch w.state.Swap(notified) {
	case inRuntime:
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

func (w *preciseWaiter) close() {
	w.mu.Lock()
	_ = unix.Close(w.fd)
	w.fd = -1
	w.mu.Unlock()
	w.long.close()
	runtime.UnlockOSThread()
}
