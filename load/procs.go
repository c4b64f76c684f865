package load

import (
	"runtime"
	"sync"
)

// Threads that wait in a system call that bypasses the Go scheduler keep their
// scheduler processor (GOMAXPROCS) while they wait: handing it over and getting it back
// costs more than a short wait, makes the thread late, and keeps the runtime's monitor
// awake at 20 us intervals. So that other goroutines do not have fewer processors, each
// such thread adds one. The setting belongs to the process and is counted over all
// runs.
var procs struct {
	sync.Mutex
	base int // without the added ones
	more int // added
}

// Processors returns how many processors the process may use.
func Processors() int {
	procs.Lock()
	defer procs.Unlock()
	if procs.more > 0 {
		return procs.base
	}
	return runtime.GOMAXPROCS(0)
}

// addProcs adds n scheduler processors; a negative n removes them.
func addProcs(n int) {
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
	if runtime.GOMAXPROCS(0) != procs.base { // the calling program had set it
		runtime.GOMAXPROCS(procs.base)
	}
}
