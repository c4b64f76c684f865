package load

import (
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A beat is how the watchdog sleeps: on a thread of its own, so that it wakes when
// the kernel lets it and not when the Go scheduler finds the time.
type beat struct{}

func newBeat() beat {
	runtime.LockOSThread()
	ownSlice()
	return beat{}
}

func (beat) sleep(d time.Duration) {
	ts := unix.NsecToTimespec(int64(d))
	// Of which the Go scheduler is not told (see procs). Cut short by a signal: the
	// beat comes earlier.
	_, _, _ = syscall.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&ts)), 0, 0)
}

func (beat) close() { runtime.UnlockOSThread() }
