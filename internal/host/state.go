package host

import (
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"
)

// A State is what of a host changes from one run to the next, and what else may disturb a
// measurement without being worth a place in a report. Zero is unknown, unless a field says
// otherwise.
type State struct {
	Read bool // this system shows the fields below that are read from files

	Available   uint64  // bytes of memory that programs can still get
	GroupLimit  uint64  // bytes: the container's limit of which the least is left; 0 is none
	GroupMemory uint64  // bytes that are used of it, without files that the kernel can drop
	TaskLimit   uint64  // processes and threads that the container may have: the limit of which the fewest are left; 0 is none
	Tasks       uint64  // those that exist
	SwapUsed    uint64  // bytes; 0 is none
	SwapMoved   uint64  // bytes that went to swap space or came from it since the machine started; 0 is none
	Load        float64 // average number of runnable or blocked threads in the last minute
	Runnable    int     // threads that run or want to, with the one that asks
	Processors  int     // logical ones of the machine, also those that this process may not use

	Clocks         []string // clock sources that the kernel can use
	GovernorDriver string   // the driver of the processor's frequency

	SendBufferMax int // bytes: the largest that a program can request (SO_SNDBUF)
	RecvBufferMax int

	Sync ClockSync
}

// A ClockSync is what the kernel knows of the wall clock's synchronization (adjtimex(2)).
type ClockSync struct {
	Known        bool
	Synchronized bool          // a daemon keeps the clock right, and says so
	MaxError     time.Duration // bound of the clock's error, if it is synchronized
	EstError     time.Duration // its estimate
}

// ReadState reads the current state: about ten small files, within a millisecond.
func ReadState() State {
	s := readState(hostRoot())
	s.Sync = clockSync()
	return s
}

// readState reads the files under root; nil: there are none.
func readState(root fs.FS) State {
	var s State
	if root == nil {
		return s
	}
	s.Read = true
	memory := text(root, "proc/meminfo")
	kib := func(name string) uint64 {
		n, _ := field(memory, name)
		return n << 10
	}
	s.Available = kib("MemAvailable:")
	if total, free := kib("SwapTotal:"), kib("SwapFree:"); total > free {
		s.SwapUsed = total - free
	}
	counters := text(root, "proc/vmstat")
	for _, name := range []string{"pswpin", "pswpout"} {
		n, _ := field(counters, name)
		s.SwapMoved += n * uint64(os.Getpagesize())
	}
	g := findCgroup(root)
	memoryLimit := tightest(g.memoryLimits(root, kib("MemTotal:")))
	s.GroupLimit, s.GroupMemory = memoryLimit.limit, memoryLimit.used
	tasks := tightest(g.taskLimits(root))
	s.TaskLimit, s.Tasks = tasks.limit, tasks.used
	s.Load, s.Runnable = parseLoad(line(root, "proc/loadavg"))
	for l := range strings.Lines(text(root, "proc/stat")) {
		if rest, ok := strings.CutPrefix(l, "cpu"); ok && rest != "" && rest[0] >= '0' && rest[0] <= '9' {
			s.Processors++
		}
	}
	s.Clocks = strings.Fields(line(root, "sys/devices/system/clocksource/clocksource0/available_clocksource"))
	s.Clocks = s.Clocks[:min(len(s.Clocks), maxListed)]
	s.GovernorDriver = line(root, "sys/devices/system/cpu/cpu0/cpufreq/scaling_driver")
	s.SendBufferMax, _ = strconv.Atoi(line(root, "proc/sys/net/core/wmem_max"))
	s.RecvBufferMax, _ = strconv.Atoi(line(root, "proc/sys/net/core/rmem_max"))
	return s
}

// parseLoad reads /proc/loadavg (proc_loadavg(5)): "13.95 6.87 2.99 20/257 3863".
func parseLoad(s string) (minute float64, runnable int) {
	f := strings.Fields(s)
	if len(f) < 4 {
		return 0, 0
	}
	minute, err := strconv.ParseFloat(f[0], 64)
	if err != nil || !(minute >= 0 && minute < 1e9) {
		return 0, 0
	}
	now, _, ok := strings.Cut(f[3], "/")
	if n, err := strconv.Atoi(now); ok && err == nil && n > 0 {
		runnable = n
	}
	return minute, runnable
}
