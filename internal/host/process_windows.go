package host

import (
	"fmt"
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
