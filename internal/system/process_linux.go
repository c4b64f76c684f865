package system

import (
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// process reads the kernel's numbers of this process. It keeps a file open and
// a buffer, so that reading allocates nothing.
type process struct {
	status *os.File
	buf    [4096]byte
}

func (p *process) open() {
	f, err := os.Open("/proc/self/status")
	if err != nil {
		return
	}
	p.status = f
	runtime.AddCleanup(p, func(f *os.File) { f.Close() }, f)
}

func (p *process) read() (cpu time.Duration, rss, high uint64) {
	cpu = CPU()
	if p.status == nil {
		return cpu, 0, 0
	}
	n, _ := p.status.ReadAt(p.buf[:], 0)
	b := p.buf[:n]
	return cpu, statusKiB(b, "VmRSS:") << 10, statusKiB(b, "VmHWM:") << 10
}

// CPU is the processor time of the running process, user and system; 0 if it is not known. It costs
// about a microsecond.
func CPU() time.Duration {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

func openFiles() (now, most uint64) {
	var r syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r) != nil {
		return 0, 0
	}
	return r.Cur, r.Max
}

func describe(h *Host) {
	root := os.DirFS("/")
	describeFiles(h, root)
	describeHardware(&h.Hardware, root, diskSpace)
}

// diskSpace returns the size of a file system in bytes, and how many are free
// for users other than root.
func diskSpace(mount string) (bytes, free uint64) {
	var st unix.Statfs_t
	if unix.Statfs(mount, &st) != nil || st.Bsize <= 0 {
		return 0, 0
	}
	return st.Blocks * uint64(st.Bsize), st.Bavail * uint64(st.Bsize)
}
