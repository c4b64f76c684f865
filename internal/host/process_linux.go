package host

import (
	"os"
	"path/filepath"
	"runtime"
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
