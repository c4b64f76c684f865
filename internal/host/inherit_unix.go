//go:build unix

package host

import "golang.org/x/sys/unix"

// KeepFromChildren makes an open file descriptor one that processes started from now on do
// not inherit. It fails if the descriptor is not open.
func KeepFromChildren(fd uintptr) error {
	_, err := unix.FcntlInt(fd, unix.F_SETFD, unix.FD_CLOEXEC)
	return err
}
