package host

import (
	"io/fs"
	"path/filepath"
)

// A MemoryRoom is the memory that programs can still get.
type MemoryRoom struct {
	Bytes     uint64 // 0: not known
	Container bool   // a container's limit leaves the least
	Whole     bool   // it is all of the machine's memory: what is used of it is not known
}

// FreeMemory reads how much memory this process can get, swap space included.
func FreeMemory() MemoryRoom {
	if root := hostRoot(); root != nil {
		return freeMemory(root)
	}
	return MemoryRoom{Bytes: Describe().Memory, Whole: true}
}

func freeMemory(root fs.FS) MemoryRoom {
	memory := text(root, "proc/meminfo")
	kib := func(name string) uint64 {
		n, _ := field(memory, name)
		return n << 10
	}
	free := MemoryRoom{Bytes: kib("MemAvailable:") + kib("SwapFree:")}
	least := func(left uint64) {
		if free.Bytes == 0 || left < free.Bytes {
			free.Bytes, free.Container = left, true
		}
	}
	g := findCgroup(root)
	total := kib("MemTotal:")
	if limits := g.memoryLimits(root, total); len(limits) > 0 {
		least(tightest(limits).left())
	}
	if limit := g.memoryLimit(root, total); limit > 0 { // of a group that cannot be seen, only this is known
		least(limit)
	}
	return free
}

// AllMemory returns the bytes of memory that this machine, or the container, has; 0 if that is not known.
func AllMemory() uint64 {
	h := Describe()
	if h.MemoryLimit > 0 {
		return min(h.Memory, h.MemoryLimit)
	}
	return h.Memory
}

// FolderSize returns the size of all files below a folder, in bytes. What cannot be read, or vanishes
// while it looks, counts nothing.
func FolderSize(dir string) (bytes int64) {
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			if info, err := e.Info(); err == nil {
				bytes += info.Size()
			}
		}
		return nil
	})
	return bytes
}
