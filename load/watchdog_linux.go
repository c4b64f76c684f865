package load

import (
	"runtime"
	"time"

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
	_ = unix.Nanosleep(&ts, nil) // cut short by a signal: the beat comes earlier
}

func (beat) close() { runtime.UnlockOSThread() }
