//go:build unix

package conn

import "syscall"

// mostFiles returns how many files this process may have open. The Go runtime has raised
// the limit as far as it may.
func mostFiles() uint64 {
	var r syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r) != nil {
		return 1<<64 - 1
	}
	return uint64(r.Cur) //nolint:unconvert // a signed number on some systems
}
