//go:build unix

package host

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// ListenOwn listens on a Unix socket that only this user can connect to. A socket that a program
// left behind is replaced, one that a program listens on is an error.
func ListenOwn(path string) (net.Listener, error) {
	if err := removeAbandoned(path); err != nil {
		return nil, err
	}
	l, err := listenMasked(path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, fmt.Errorf("set the mode: %w", err)
	}
	return l, nil
}

// masking is locked while the umask is another: the second of two at once would restore that of the
// first.
var masking sync.Mutex

// listenMasked sets the mode before anybody can connect: the umask holds for the whole process, but
// only takes rights away, and only while the socket is made.
func listenMasked(path string) (net.Listener, error) {
	masking.Lock()
	defer masking.Unlock()
	old := syscall.Umask(0o177)
	defer syscall.Umask(old)
	return net.Listen("unix", path)
}

// IsRefused reports whether nothing listens on a Unix socket.
func IsRefused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }

// sameOwner gives a file to the owner of a folder. Only an administrator can give a file away.
func sameOwner(path, folder string) error {
	info, err := os.Stat(folder)
	if err != nil {
		return err
	}
	of, ok := info.Sys().(*syscall.Stat_t)
	if !ok || os.Geteuid() != 0 {
		return nil
	}
	return os.Chown(path, int(of.Uid), int(of.Gid))
}

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

// OpenFiles returns how many files this process has open, without the folder that it reads for that.
// If the system does not show it, that is a guess.
func OpenFiles() int {
	for _, dir := range []string{"/proc/self/fd", "/dev/fd"} {
		if all, err := os.ReadDir(dir); err == nil {
			return max(0, len(all)-1)
		}
	}
	return 16
}
