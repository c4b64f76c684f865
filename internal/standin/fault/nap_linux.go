package fault

import (
	"time"

	"golang.org/x/sys/unix"
)

// nappers bounds the threads that sleep in the kernel at a time.
var nappers = make(chan struct{}, 64)

// nap sleeps in the kernel, which is exact to some 50 us, unless many do.
func nap(d time.Duration) {
	if d <= 0 {
		return
	}
	select {
	case nappers <- struct{}{}:
		t := unix.NsecToTimespec(int64(d))
		_ = unix.Nanosleep(&t, nil) // cut short by a signal: whoever calls sleeps the rest
		<-nappers
	default:
	}
}
