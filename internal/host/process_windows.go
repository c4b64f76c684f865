package host

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// process reads Windows' numbers of this process.
type process struct{}

var (
	kernel32          = windows.NewLazySystemDLL("kernel32.dll")
	getMemoryInfo     = kernel32.NewProc("K32GetProcessMemoryInfo")
	globalMemoryState = kernel32.NewProc("GlobalMemoryStatusEx")
)

// memoryCounters is PROCESS_MEMORY_COUNTERS.
type memoryCounters struct {
	size           uint32
	pageFaults     uint32
	peakWorkingSet uintptr
	workingSet     uintptr
	_              [6]uintptr
}

// memoryStatus is MEMORYSTATUSEX.
type memoryStatus struct {
	size  uint32
	load  uint32
	total uint64
	_     [6]uint64
}

func (*process) open() {}

func (*process) read() (cpu time.Duration, rss, high uint64) {
	p := windows.CurrentProcess()
	cpu = CPU()
	m := memoryCounters{size: uint32(unsafe.Sizeof(memoryCounters{}))}
	if ok, _, _ := getMemoryInfo.Call(uintptr(p), uintptr(unsafe.Pointer(&m)), uintptr(m.size)); ok == 0 {
		return cpu, 0, 0
	}
	return cpu, uint64(m.workingSet), uint64(m.peakWorkingSet)
}

// CPU is the processor time of the running process, user and system; 0 if it is not known.
func CPU() time.Duration {
	var created, exited, kernel, user windows.Filetime
	if windows.GetProcessTimes(windows.CurrentProcess(), &created, &exited, &kernel, &user) != nil {
		return 0
	}
	// These two are spans in units of 100 ns, not times since 1601.
	return time.Duration(ticks(kernel)+ticks(user)) * 100
}

func ticks(f windows.Filetime) int64 { return int64(f.HighDateTime)<<32 | int64(f.LowDateTime) }

func openFiles() (now, most uint64) { return 0, 0 }

func describe(h *Host) {
	m := memoryStatus{size: uint32(unsafe.Sizeof(memoryStatus{}))}
	if ok, _, _ := globalMemoryState.Call(uintptr(unsafe.Pointer(&m))); ok != 0 {
		h.Memory = m.total
	}
	major, minor, build := windows.RtlGetNtVersionNumbers()
	h.Kernel = version(major, minor, build&0xffff)
}

func version(major, minor, build uint32) string {
	return fmt.Sprintf("%d.%d.%d", major, minor, build)
}

var self = sync.OnceValue(func() Identity {
	host, _ := os.Hostname()
	id := Identity{Host: host, PID: os.Getpid()}
	id.Start, _ = startOf(id.PID)
	return id
})

// startOf returns when a process began, in units of 100 ns since 1601.
func startOf(pid int) (string, bool) {
	h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(pid)) //nolint:gosec // numbers of processes fit
	if err != nil {
		return "", false
	}
	defer func() { _ = windows.CloseHandle(h) }()
	var created, exited, kernel, user windows.Filetime
	if windows.GetProcessTimes(h, &created, &exited, &kernel, &user) != nil || ticks(exited) != 0 {
		return "", false
	}
	return strconv.FormatInt(ticks(created), 10), true
}

// ListenOwn listens on a Unix socket that only this user can connect to: Windows 10 or later has
// them. Its right is that of the folder, so the socket must be below the user's data folder. A
// socket that a program left behind is replaced, one that a program listens on is an error.
func ListenOwn(path string) (net.Listener, error) {
	dir, err := DataDir()
	if err != nil {
		return nil, err
	}
	if below, err := filepath.Rel(dir, path); err != nil || !filepath.IsLocal(below) {
		return nil, fmt.Errorf("a socket that only you can connect to must be below %s", dir)
	}
	if err := removeAbandoned(path); err != nil {
		return nil, err
	}
	return net.Listen("unix", path)
}

// sameOwner gives a file to the owner of a folder, on Unix.
func sameOwner(string, string) error { return nil }

// IsRefused reports whether nothing listens on a Unix socket.
func IsRefused(err error) bool { return strings.Contains(err.Error(), "refused it") }

// watchContinued does nothing: Windows has no such signal.
func watchContinued(func() time.Duration) (last func() time.Duration, end func()) {
	return func() time.Duration { return -1 }, func() {}
}
