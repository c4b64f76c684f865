package sandbox

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"github.com/landlock-lsm/go-landlock/landlock"
	"github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/psx"
)

// The versions of Landlock that brought what Wall has.
const (
	filesVersion   = 1
	portsVersion   = 4
	signalsVersion = 6
)

// Here returns what this kernel can confine.
func Here() Wall {
	v, err := syscall.LandlockGetABIVersion()
	if err != nil {
		v = 0
	}
	return Wall{Files: v >= filesVersion, Ports: v >= portsVersion, Signals: v >= signalsVersion, Name: fmt.Sprintf("Landlock %d", v)}
}

// Confine confines this process. Of what the kernel cannot confine, nothing is.
func Confine(l Limits) error {
	// Of version 6. Later ones confine Unix sockets, where runs take marks, and UDP.
	c := landlock.V6
	rules := []landlock.Rule{landlock.RWFiles("/dev/null").IgnoreIfMissing()}
	if len(l.Run) > 0 {
		run, read := libraries()
		l.Run, l.Read = append(slices.Clone(l.Run), run...), append(slices.Clone(l.Read), read...)
	}
	for _, of := range []struct {
		paths         []string
		files, folder func(...string) landlock.FSRule
	}{
		{l.Write, landlock.RWFiles, landlock.RWDirs},
		{slices.Concat(systemFiles, l.Read), readFiles, readFolders},
		{l.Run, landlock.ROFiles, landlock.RODirs},
	} {
		for _, path := range of.paths {
			info, err := os.Stat(path)
			switch {
			case err != nil:
			case info.IsDir():
				rules = append(rules, of.folder(path).IgnoreIfMissing())
			default:
				rules = append(rules, of.files(path).IgnoreIfMissing())
			}
		}
	}
	if l.AnyPort {
		c.HandledAccessNet &^= syscall.AccessNetConnectTCP
	} else {
		for _, port := range l.Ports {
			rules = append(rules, landlock.ConnectTCP(port))
		}
	}
	if err := c.BestEffort().Restrict(rules...); err != nil {
		return err
	}
	signal.Ignore(unix.SIGXFSZ) // else it ends the process, and the write has no error
	for _, of := range []struct {
		what     string
		resource int
		most     int64
	}{{"the memory", unix.RLIMIT_DATA, l.Memory}, {"the size of files", unix.RLIMIT_FSIZE, l.FileSize}} {
		if of.most <= 0 {
			continue
		}
		most := unix.Rlimit{Cur: uint64(of.most), Max: uint64(of.most)} //nolint:gosec // above 0
		if err := unix.Setrlimit(of.resource, &most); err != nil {
			return fmt.Errorf("limit %s: %w", of.what, err)
		}
	}
	return dropPrivileges()
}

// libraries are the shared libraries of this process, if its program uses the C library: what starts such a program
// (ld.so(8)) runs, and the others are read. The C library loads more by name, for its resolver.
func libraries() (run, read []string) {
	text, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return nil, nil
	}
	for line := range strings.Lines(string(text)) {
		_, path, _ := strings.Cut(line, "/")
		path = "/" + strings.TrimSpace(path)
		name := filepath.Base(path)
		switch {
		case !strings.Contains(name, ".so"):
		case strings.HasPrefix(name, "ld-"):
			run = append(run, path)
		default:
			read = append(read, path)
			if dir := filepath.Dir(path); strings.HasPrefix(dir, "/lib") || strings.HasPrefix(dir, "/usr/lib") {
				read = append(read, dir)
			}
		}
	}
	if len(run) > 0 {
		read = append(read, "/etc/ld.so.cache", "/etc/ld.so.preload")
	}
	slices.Sort(read)
	return slices.Compact(run), slices.Compact(read)
}

// Memory returns how many bytes this process has of what Limits.Memory limits; 0 if it is not known.
func Memory() int64 {
	text, err := os.ReadFile("/proc/self/statm") // proc_pid_statm(5): the sixth number is of data and stack, in pages
	if err != nil {
		return 0
	}
	const data = 5
	fields := strings.Fields(string(text))
	if len(fields) <= data {
		return 0
	}
	pages, _ := strconv.ParseInt(fields[data], 10, 64)
	return pages * int64(os.Getpagesize())
}

// dropPrivileges gives up the capabilities of root: with them, /proc shows the environment of other
// processes, which Landlock allows (perfmon_capable in kernel/fork.c). The processes that this one
// starts do not get them back, because Landlock needs no_new_privs.
func dropPrivileges() error {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	_, _, errno := psx.Syscall3(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&head)), uintptr(unsafe.Pointer(&none[0])), 0) //nolint:gosec // of the calling convention
	runtime.KeepAlive(&head)
	runtime.KeepAlive(&none)
	if errno != 0 {
		return fmt.Errorf("drop the capabilities: %w", errno)
	}
	return nil
}

// readFiles and readFolders allow no execution, unlike those of the library.
func readFiles(paths ...string) landlock.FSRule {
	return landlock.PathAccess(syscall.AccessFSReadFile, paths...)
}

func readFolders(paths ...string) landlock.FSRule {
	return landlock.PathAccess(syscall.AccessFSReadFile|syscall.AccessFSReadDir, paths...)
}
