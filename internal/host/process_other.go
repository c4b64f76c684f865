//go:build !linux && !darwin && !freebsd && !netbsd && !openbsd && !windows

package host

import (
	"os"
	"time"
)

// process reads nothing on this system.
type process struct{}

func (*process) open()                                       {}
func (*process) read() (cpu time.Duration, rss, high uint64) { return 0, 0, 0 }

// CPU is 0: this system does not report it.
func CPU() time.Duration { return 0 }

func openFiles() (now, most uint64) { return 0, 0 }

func describe(*Host) {}

// Other processes are unknown on this system.
func self() Identity { return Identity{PID: os.Getpid()} }

func startOf(int) (string, bool) { return "", false }
