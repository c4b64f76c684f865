//go:build unix

package host

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// TryLock takes a lock on an open file without waiting; false if another process,
// or another goroutine of this one, has it.
func TryLock(f *os.File, shared bool) (bool, error) {
	how := unix.LOCK_EX
	if shared {
		how = unix.LOCK_SH
	}
	err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// CloseLocked gives up the lock of a file, and closes it. Closing alone would leave the lock to a
// process that another goroutine is just starting, until that one runs its program.
func CloseLocked(f *os.File) error {
	_ = unix.Flock(int(f.Fd()), unix.LOCK_UN) // closing is what must not fail
	return f.Close()
}
