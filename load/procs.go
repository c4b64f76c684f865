package load

import (
	"runtime"
	"sync"
)

// Threads that wait by a system call of which the Go scheduler is not told keep
// their processor of the scheduler (GOMAXPROCS) while they wait: to hand it on and to
// get it back costs more than a short wait, makes the thread late, and keeps the
// runtime's monitor awake at 20 us intervals. So that nobody else has fewer, each
// such thread brings one. It is the process's, and counted over all runs.
var procs struct {
	sync.Mutex
	base int // without those that were brought
	more int
}

// Processors is how many processors the process may use.
func Processors() int {
	procs.Lock()
	defer procs.Unlock()
	if procs.more > 0 {
		return procs.base
	}
	return runtime.GOMAXPROCS(0)
}

// bring adds n processors of the scheduler, and with a negative n takes them back.
func bring(n int) {
	procs.Lock()
	defer procs.Unlock()
	if procs.more == 0 {
		procs.base = runtime.GOMAXPROCS(0)
	}
	if procs.more += n; procs.more > 0 {
		runtime.GOMAXPROCS(procs.base + procs.more)
		return
	}
	runtime.SetDefaultGOMAXPROCS()
	if runtime.GOMAXPROCS(0) != procs.base { // a program of one's own had set it
		runtime.GOMAXPROCS(procs.base)
	}
}
