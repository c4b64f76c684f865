//go:build !unix

package conn

// mostFiles returns how many files this process may have open: it has no limit.
func mostFiles() uint64 { return 1<<64 - 1 }

// openFiles returns how many files this process has open; that does not matter here.
func openFiles() int { return 0 }
