package socket

import (
	"fmt"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A RunDelay measures how long a thread may have waited for a processor after it was
// woken. The kernel counts the time that a thread could run and did not in its
// schedstat.
type RunDelay struct {
	fd     int // of the thread's schedstat; 0: none
	waited time.Duration
}

const (
	// ignoredDelay: arrivals within such a short time are not examined further.
	ignoredDelay = 30 * time.Microsecond
	// LeastSleep is how long a check may take if it did not sleep.
	LeastSleep = 20 * time.Microsecond
)

// Open starts the measurement for the calling thread, to which the goroutine must be
// locked.
func (g *RunDelay) Open() {
	g.open()
	g.read()
}

func (g *RunDelay) open() {
	fd, err := unix.Open(fmt.Sprintf("/proc/self/task/%d/schedstat", unix.Gettid()), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		g.fd = fd
	}
}

// Close ends the measurement.
func (g *RunDelay) Close() {
	if g.fd > 0 {
		unix.Close(g.fd)
		g.fd = 0
	}
}

// read returns how long the thread has waited for a processor since the last call; 0: not known.
func (g *RunDelay) read() time.Duration {
	if g.fd == 0 {
		return 0
	}
	var b [64]byte
	n, _, e := syscall.RawSyscall6(unix.SYS_PREAD64, uintptr(g.fd), uintptr(unsafe.Pointer(&b)), uintptr(len(b)), 0, 0, 0)
	if e != 0 {
		return 0
	}
	field, at := 0, int64(0)
	for _, ch := range b[:n] {
		if ch == ' ' {
			if field++; field == 2 {
				break
			}
			continue
		}
		if field == 1 {
			at = 10*at + int64(ch-'0')
		}
	}
	d := time.Duration(at) - g.waited
	g.waited = time.Duration(at)
	return d
}

// RunDelays measures the same for all threads that the Go scheduler runs goroutines on.
// A goroutine that slept for a descriptor usually runs on the thread that was woken for
// it. Safe for concurrent use.
type RunDelays struct {
	mu      sync.Mutex
	threads map[int]*RunDelay
	closed  bool
}

// Waited returns how long the calling thread has waited for a processor since its last
// call; at its first call, since the thread began.
func (g *RunDelays) Waited() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return 0
	}
	id := unix.Gettid()
	t := g.threads[id]
	if t == nil {
		if g.threads == nil {
			g.threads = map[int]*RunDelay{}
		}
		t = &RunDelay{}
		t.open()
		g.threads[id] = t
	}
	return t.read()
}

// Close closes the descriptors.
func (g *RunDelays) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	for _, t := range g.threads {
		t.Close()
	}
}
