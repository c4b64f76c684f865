//go:build unix

package testkit

import (
	"os"

	"golang.org/x/sys/unix"
)

// lock waits for the lock file and locks it; the kernel unlocks it when the process
// ends.
func lock(name string) (unlock func(), err error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		f.Close()
		return nil, err
	}
	return func() { f.Close() }, nil
}
