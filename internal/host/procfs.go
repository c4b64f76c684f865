package host

import (
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

// The following functions read Linux's files under a root, so that they can be
// tested on any system and with the files of other machines.

// describeFiles fills h from /proc, /sys and /etc under root.
func describeFiles(h *Host, root fs.FS) {
	h.Kernel = line(root, "proc/sys/kernel/osrelease")
	h.CPU = cpuModel(text(root, "proc/cpuinfo"))
	h.Virtual = hasFlag(text(root, "proc/cpuinfo"), "hypervisor")
	if kib, ok := field(text(root, "proc/meminfo"), "MemTotal:"); ok {
		h.Memory = kib << 10
	}
	h.Distribution = distribution(text(root, "etc/os-release"))
	h.Clock = line(root, "sys/devices/system/clocksource/clocksource0/current_clocksource")
	h.Governor = governors(root)
	g := findCgroup(root)
	h.CPULimit = g.cpuLimit(root)
	h.MemoryLimit = g.memoryLimit(root, h.Memory)
	var low, high int
	if f := strings.Fields(line(root, "proc/sys/net/ipv4/ip_local_port_range")); len(f) == 2 {
		low, _ = strconv.Atoi(f[0])
		high, _ = strconv.Atoi(f[1])
		if low > 0 && high >= low {
			h.Limits.LocalPorts = high - low + 1
		}
	}
	h.Limits.SendBuffer = third(line(root, "proc/sys/net/ipv4/tcp_wmem"))
	h.Limits.RecvBuffer = third(line(root, "proc/sys/net/ipv4/tcp_rmem"))
}

func text(root fs.FS, name string) string {
	b, err := fs.ReadFile(root, name)
	if err != nil {
		return ""
	}
	return string(b)
}

func line(root fs.FS, name string) string {
	s, _, _ := strings.Cut(text(root, name), "\n")
	return strings.TrimSpace(s)
}

// governors returns the governors of all processors, each once, separated by commas: kinds of
// cores may have their own.
func governors(root fs.FS) string {
	files, _ := fs.Glob(root, "sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor") // the pattern is valid
	var names []string
	for _, f := range files {
		if name := line(root, f); name != "" && !slices.Contains(names, name) && len(names) < maxListed {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// third returns the last of three numbers, as in tcp_wmem.
func third(s string) int {
	f := strings.Fields(s)
	if len(f) != 3 {
		return 0
	}
	n, _ := strconv.Atoi(f[2])
	return n
}

// cpuModel finds the processor's name in /proc/cpuinfo. ARM does not have one,
// only numbers of an implementer and a part.
func cpuModel(cpuinfo string) string {
	for l := range strings.Lines(cpuinfo) {
		k, v, ok := strings.Cut(l, ":")
		switch k = strings.TrimSpace(k); {
		case ok && (k == "model name" || k == "cpu model" || k == "Model"):
			return strings.TrimSpace(v)
		}
	}
	return ""
}

func hasFlag(cpuinfo, flag string) bool {
	for l := range strings.Lines(cpuinfo) {
		if k, v, ok := strings.Cut(l, ":"); ok && strings.TrimSpace(k) == "flags" {
			return slices.Contains(strings.Fields(v), flag)
		}
	}
	return false
}

// field finds a line "NAME NUMBER ..." and returns the number.
func field(s, name string) (uint64, bool) {
	for l := range strings.Lines(s) {
		if f := strings.Fields(l); len(f) > 1 && f[0] == name {
			n, err := strconv.ParseUint(f[1], 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}

func distribution(osRelease string) string {
	for l := range strings.Lines(osRelease) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(l), "PRETTY_NAME="); ok {
			if s, err := strconv.Unquote(v); err == nil {
				return s
			}
			return v
		}
	}
	return ""
}

// stolen returns the machine's processor time in clock ticks: all of it, and
// the part that the hypervisor gave to other guests (the eighth column of
// /proc/stat, proc(5)).
func stolen(stat string) (all, steal uint64) {
	first, _, _ := strings.Cut(stat, "\n")
	f := strings.Fields(first)
	if len(f) < 9 || f[0] != "cpu" {
		return 0, 0
	}
	for i, s := range f[1:9] { // guest time is already part of user time
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			return 0, 0
		}
		all += n
		if i == 7 {
			steal = n
		}
	}
	return all, steal
}
