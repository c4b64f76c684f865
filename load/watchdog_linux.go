package load

import (
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A beat sleeps on a dedicated thread for the watchdog, so that the watchdog wakes when
// the kernel lets it and not when the Go scheduler finds the time.
type beat struct{}

func newBeat() beat {
	runtime.LockOSThread()
	requestShortSlice()
	return beat{}
}

func (beat) sleep(d time.Duration) {
	ts := unix.NsecToTimespec(int64(d))
	// A raw system call, hidden from the Go scheduler (see procs). A signal may cut it
	// short: the beat then comes earlier.
	_, _, _ = syscall.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&ts)), 0, 0)
}

func (beat) close() { runtime.UnlockOSThread() }
