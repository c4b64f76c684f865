package host

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
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
	rss, _ = numberAfter(b, "VmRSS:")
	high, _ = numberAfter(b, "VmHWM:")
	return cpu, rss << 10, high << 10
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

// FreeDisk is how many bytes the disk of a folder, or of the nearest one above it that exists, has left; 0 if
// that is not known.
func FreeDisk(dir string) uint64 {
	for {
		bytes, free := diskSpace(dir)
		above := filepath.Dir(dir)
		if bytes > 0 || above == dir {
			return free
		}
		dir = above
	}
}

var self = sync.OnceValue(func() Identity {
	id := Identity{PID: os.Getpid()}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return id
	}
	space, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return id
	}
	id.Host = strings.TrimSpace(string(boot)) + " " + space
	id.Start, _ = startOf(id.PID)
	return id
})

// startOf returns when a process began, in ticks since the machine started;
// false if there is none, or only a zombie.
func startOf(pid int) (string, bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", false
	}
	s, ok := parseStat(b)
	if !ok || s.ended() {
		return "", false
	}
	return strconv.FormatUint(s.start, 10), true
}

// DiesWithParent reports whether the kernel asks a Child to end (TERM) when this
// process was killed.
const DiesWithParent = true

// tieToParent makes the kernel send TERM to the child when the thread that
// started it ends. This does not apply to grandchildren: their parent must end
// them.
func tieToParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGTERM }

// asleep returns how long the machine was suspended since it started.
func asleep() time.Duration {
	var boot, mono unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &mono) != nil || unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot) != nil {
		return 0
	}
	return time.Duration(boot.Nano() - mono.Nano())
}
