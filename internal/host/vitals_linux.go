package host

import (
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// hostSources are the files that a Metrics keeps open; -1 if it does
// not exist.
type hostSources struct {
	stat, memory, disks, net int
	paging                   int
	group                    cgroup
	limited                  bool
	pressure                 [3]int // processors, memory, disks
	wanted                   [][]byte
	buf                      []byte
}

func (s *hostSources) open() {
	open := func(name string) int {
		fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return -1
		}
		return fd
	}
	s.buf = make([]byte, 32<<10)
	s.stat, s.memory = open("/proc/stat"), open("/proc/meminfo")
	s.paging = open("/proc/vmstat")
	s.group = findCgroup(os.DirFS("/"))
	s.limited = s.group.cpuLimit(os.DirFS("/")) > 0
	s.disks, s.net = open("/proc/diskstats"), open("/proc/self/net/dev")
	s.pressure = [3]int{open("/proc/pressure/cpu"), open("/proc/pressure/memory"), open("/proc/pressure/io")}
	for _, d := range disks(os.DirFS("/")) {
		s.wanted = append(s.wanted, []byte(d.Name))
	}
}

func (s *hostSources) close() {
	for _, fd := range append([]int{s.stat, s.memory, s.disks, s.net, s.paging}, s.pressure[:]...) {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
	*s = hostSources{stat: -1, memory: -1, disks: -1, net: -1, paging: -1, pressure: [3]int{-1, -1, -1}}
}

// file reads at most that many bytes of a file that is kept open.
func (s *hostSources) file(fd, most int) []byte {
	if fd < 0 {
		return nil
	}
	n, err := unix.Pread(fd, s.buf[:min(most, len(s.buf))], 0)
	if err != nil || n <= 0 {
		return nil
	}
	return s.buf[:n]
}

func (s *hostSources) read() (v hostCounters) {
	v.parseCPU(s.file(s.stat, 512)) // the rest, such as interrupts, is long
	if kib, ok := numberAfter(s.file(s.memory, 512), "MemAvailable:"); ok {
		v.available = kib << 10
	}
	v.parseDisks(s.file(s.disks, 1<<30), s.wanted)
	if b := s.file(s.paging, 1<<30); b != nil {
		v.faults, v.paging = numberAfter(b, "pgmajfault ")
		v.swapped, _ = numberAfter(b, "pswpout ")
	}
	if s.limited {
		v.throttled, v.limited = s.group.throttled(os.DirFS("/")), true
	}
	v.received, v.sent, v.looping = interfaces(s.file(s.net, 1<<30))
	for i, to := range [3]*uint64{&v.cpu, &v.memory, &v.io} {
		if n, ok := pressure(s.file(s.pressure[i], 512)); ok {
			*to, v.pressed = n, true
		}
	}
	return v
}

// CPUOf is the processor time of another process, without children, in steps of 10 ms; 0 if it is
// not known.
func CPUOf(pid int) time.Duration {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	s, _ := parseStat(text)
	return time.Duration(s.user+s.sys) * tick
}

// Resident is how much memory of its own another process has in RAM, in bytes: without files,
// such as programs, that several processes share. 0 if it is not known.
func Resident(pid int) uint64 {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm") // proc_pid_statm(5), in pages
	if err != nil {
		return 0
	}
	_, text, ok := number(text)
	resident, text, ok2 := number(text)
	shared, _, ok3 := number(text)
	if !ok || !ok2 || !ok3 || shared > resident {
		return 0
	}
	return (resident - shared) * uint64(os.Getpagesize())
}
