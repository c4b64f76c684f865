package standin

import (
	"time"

	"golang.org/x/sys/unix"
)

// kernelSleepers bounds the number of threads that sleep in the kernel at a time.
var kernelSleepers = make(chan struct{}, 64)

// kernelSleep sleeps in the kernel, with a precision of about 50 us, unless too
// many threads do so already.
func kernelSleep(d time.Duration) {
	if d <= 0 {
		return
	}
	select {
	case kernelSleepers <- struct{}{}:
		t := unix.NsecToTimespec(int64(d))
		_ = unix.Nanosleep(&t, nil) // if a signal cuts it short, the caller sleeps the rest
		<-kernelSleepers
	default:
	}
}
