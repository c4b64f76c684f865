package fault

import (
	"time"

	"golang.org/x/sys/unix"
)

// kernelSleepers bounds the number of threads that sleep in the kernel at a time.
var nappers = make(chan struct{}, 64)

// kernelSleep sleeps in the kernel, with a precision of about 50 us, unless too
// many threads do so already.
func nap(d time.Duration) {
	if d <= 0 {
		return
	}
	select {
	case nappers <- struct{}{}:
		t := unix.NsecToTimespec(int64(d))
		_ = unix.Nanosleep(&t, nil) // if a signal cuts it short, the caller sleeps the rest
		<-nappers
	default:
	}
}
