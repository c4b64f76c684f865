//go:build unix

package conn

import (
	"os"
	"syscall"
)

// mostFiles returns how many files this process may have open. The Go runtime has raised
// the limit as far as it may.
func mostFiles() uint64 {
	var r syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r) != nil {
		return 1<<64 - 1
	}
	return uint64(r.Cur) //nolint:unconvert // a signed number on some systems
}

// openFiles returns how many files this process has open, without the folder that it reads for that.
// If the system does not show it, that is a guess.
func openFiles() int {
	for _, dir := range []string{"/proc/self/fd", "/dev/fd"} {
		if all, err := os.ReadDir(dir); err == nil {
			return max(0, len(all)-1)
		}
	}
	return 16
}
