package bench

import (
	"encoding/json"
	"flag"
	"os"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// pacerLoop wakes at a rate and does nothing else.
func pacerLoop(args []string) error {
	fs := flag.NewFlagSet("pacer", flag.ContinueOnError)
	rate := fs.Int("rate", 1000, "")
	lasts := fs.Duration("for", 5*time.Second, "")
	if err := fs.Parse(args); err != nil {
		return err
	}
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0); err != nil {
		return err
	}
	began := time.Now()
	n := uint64(lasts.Seconds() * float64(*rate))
	for i := range n {
		due := time.Duration(float64(i) / float64(*rate) * float64(time.Second))
		for left := due - time.Since(began); left > 0; left = due - time.Since(began) {
			ts := unix.NsecToTimespec(int64(left))
			// Without notifying the Go scheduler, as in the program. After a signal the
			// loop sleeps again.
			_, _, _ = syscall.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&ts)), 0, 0)
		}
	}
	return json.NewEncoder(os.Stdout).Encode(loopResult{Events: n, Nanos: int64(time.Since(began))})
}
