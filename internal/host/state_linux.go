package host

import (
	"io/fs"
	"math"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// clockSync asks the kernel about the wall clock. Everyone may ask.
func clockSync() ClockSync {
	var t unix.Timex // modes 0: nothing is changed
	state, err := unix.Adjtimex(&t)
	if err != nil {
		return ClockSync{}
	}
	const unsynchronized = 0x40 // STA_UNSYNC
	return ClockSync{
		Known:        true,
		Synchronized: state != unix.TIME_ERROR && t.Status&unsynchronized == 0,
		MaxError:     time.Duration(t.Maxerror) * time.Microsecond,
		EstError:     time.Duration(t.Esterror) * time.Microsecond,
	}
}

// hostFiles are the files of this machine. They are read without the Go runtime's poller,
// which os.ReadFile asks about each file and which a file of /proc wakes: some of them are
// read every second of a run.
type hostFiles struct{ fs.FS }

func hostRoot() fs.FS { return hostFiles{os.DirFS("/")} }

// Stat implements fs.StatFS.
func (hostFiles) Stat(name string) (fs.FileInfo, error) { return os.Stat("/" + name) }

// ReadDir implements fs.ReadDirFS.
func (hostFiles) ReadDir(name string) ([]fs.DirEntry, error) { return os.ReadDir("/" + name) }

// ReadFile implements fs.ReadFileFS.
func (hostFiles) ReadFile(name string) ([]byte, error) {
	fd, err := unix.Open("/"+name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	defer unix.Close(fd)
	b := make([]byte, 0, 1<<10)
	for {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		n, err := unix.Read(fd, b[len(b):cap(b)])
		switch {
		case err == unix.EINTR:
		case err != nil:
			return nil, &fs.PathError{Op: "read", Path: name, Err: err}
		case n == 0:
			return b, nil
		default:
			b = b[:len(b)+n]
		}
	}
}

// MonotonicOf returns the machine's monotonic clock (CLOCK_MONOTONIC) at t, in
// nanoseconds. It is the same for all processes of a machine, so the records of
// two of them can be joined. Go's own monotonic readings are of that clock, but
// count from the start of each process. ok is false for a t without such a
// reading, and on systems where the clock cannot be read.
func MonotonicOf(t time.Time) (ns int64, ok bool) {
	if t.Round(0) == t { //nolint:staticcheck // unlike Equal, this reports whether it has a monotonic reading
		return 0, false
	}
	// The two clocks are read one after the other, and this thread may lose its
	// processor in between: the closest of several pairs is exact to some 50
	// ns.
	closest := int64(math.MaxInt64)
	for range 8 {
		var before, after unix.Timespec
		if unix.ClockGettime(unix.CLOCK_MONOTONIC, &before) != nil {
			return 0, false
		}
		now := time.Now()
		if unix.ClockGettime(unix.CLOCK_MONOTONIC, &after) != nil {
			return 0, false
		}
		if gap := after.Nano() - before.Nano(); gap < closest {
			closest, ns = gap, before.Nano()+gap/2-int64(now.Sub(t))
		}
	}
	return ns, true
}
