package host

import (
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// A cgroup has the control groups that this process belongs to: they carry the limits of a container.
// Each list has the folder of the process's own group first, and then the folders of the groups above it
// that can be seen. In a container often only its own group can be seen. The kernel enforces the limits of
// all these groups, so the lowest one counts. The list is empty without such a group.
type cgroup struct {
	unified           []string // version 2
	cpu, memory, pids []string // version 1
}

// findCgroup reads /proc/self/cgroup. Inside a container the path there may be
// the host's, which is not mounted; then the mount's root is the container's
// own group.
func findCgroup(root fs.FS) (g cgroup) {
	const base = "sys/fs/cgroup"
	at := func(mount, p, file string) []string {
		for _, dir := range []string{path.Join(mount, path.Clean("/"+p)), mount} {
			if _, err := fs.Stat(root, path.Join(dir, file)); err == nil {
				return upTo(dir, mount)
			}
		}
		return nil
	}
	for l := range strings.Lines(text(root, "proc/self/cgroup")) {
		f := strings.SplitN(strings.TrimSpace(l), ":", 3)
		if len(f) != 3 {
			continue
		}
		if f[0] == "0" && f[1] == "" {
			g.unified = at(base, f[2], "cgroup.controllers")
			continue
		}
		for c := range strings.SplitSeq(f[1], ",") {
			switch c {
			case "cpu":
				g.cpu = at(path.Join(base, f[1]), f[2], "cpu.stat")
			case "memory":
				g.memory = at(path.Join(base, "memory"), f[2], "memory.limit_in_bytes")
			case "pids":
				g.pids = at(path.Join(base, "pids"), f[2], "pids.current")
			}
		}
	}
	return g
}

// upTo returns a folder and those above it, up to a mount.
func upTo(dir, mount string) []string {
	out := []string{dir}
	for dir != mount && strings.HasPrefix(dir, mount+"/") {
		dir = path.Dir(dir)
		out = append(out, dir)
	}
	return out
}

// cpuLimit returns how many processors the process may use: the lowest limit of its groups; 0 is
// unlimited.
func (g cgroup) cpuLimit(root fs.FS) (lowest float64) {
	note := func(quota, period string) {
		q, err1 := strconv.ParseFloat(quota, 64) // "max" and -1 are none
		p, err2 := strconv.ParseFloat(period, 64)
		if err1 == nil && err2 == nil && q > 0 && p > 0 && (lowest == 0 || q/p < lowest) {
			lowest = q / p
		}
	}
	for _, dir := range g.unified {
		quota, period, _ := strings.Cut(line(root, path.Join(dir, "cpu.max")), " ")
		note(quota, period)
	}
	for _, dir := range g.cpu {
		note(line(root, path.Join(dir, "cpu.cfs_quota_us")), line(root, path.Join(dir, "cpu.cfs_period_us")))
	}
	return lowest
}

// A groupLimit is a limit of a group, and how much of it is used by the processes of that group.
type groupLimit struct{ limit, used uint64 }

// left is what is not used.
func (l groupLimit) left() uint64 { return l.limit - min(l.limit, l.used) }

// tightest returns the limit of which the least is left; the zero value without limits.
func tightest(all []groupLimit) (least groupLimit) {
	for i, l := range all {
		if i == 0 || l.left() < least.left() {
			least = l
		}
	}
	return least
}

// unlimited is below the number of bytes that version 1 shows for no limit.
const unlimited = 1 << 62

// memoryLimits returns the groups' limits of memory, in bytes, except those that are not below memory,
// the size of the machine's memory. With memory 0, which means that the size is not known, it returns
// all limits. The used bytes do not include cached files that no program has used lately: if memory is
// short, the kernel first frees those (Documentation/admin-guide/cgroup-v2.rst, memory.stat).
func (g cgroup) memoryLimits(root fs.FS, memory uint64) (out []groupLimit) {
	note := func(dir, limit, current, cached string) {
		n, err := strconv.ParseUint(limit, 10, 64) // "max" is none
		if err != nil || n >= unlimited || memory > 0 && n >= memory {
			return
		}
		used, err := strconv.ParseUint(line(root, path.Join(dir, current)), 10, 63)
		if err != nil {
			used = 0
		}
		dropped, _ := field(text(root, path.Join(dir, "memory.stat")), cached)
		out = append(out, groupLimit{n, used - min(used, dropped)})
	}
	for _, dir := range g.unified {
		note(dir, line(root, path.Join(dir, "memory.max")), "memory.current", "inactive_file")
	}
	for _, dir := range g.memory {
		note(dir, line(root, path.Join(dir, "memory.limit_in_bytes")), "memory.usage_in_bytes", "total_inactive_file")
	}
	return out
}

// memoryLimit returns the lowest limit of the groups, in bytes; 0: there is none. With version 1 of
// control groups it includes the limits of groups above that this process cannot see.
func (g cgroup) memoryLimit(root fs.FS, memory uint64) (lowest uint64) {
	for _, l := range g.memoryLimits(root, memory) {
		if lowest == 0 || l.limit < lowest {
			lowest = l.limit
		}
	}
	if len(g.memory) > 0 {
		n, ok := field(text(root, path.Join(g.memory[0], "memory.stat")), "hierarchical_memory_limit")
		if ok && n > 0 && n < unlimited && (memory == 0 || n < memory) && (lowest == 0 || n < lowest) {
			lowest = n
		}
	}
	return lowest
}

// taskLimits returns the limits of the number of processes and threads (pids.max).
func (g cgroup) taskLimits(root fs.FS) (out []groupLimit) {
	for _, list := range [][]string{g.unified, g.pids} {
		for _, dir := range list {
			n, err := strconv.ParseUint(line(root, path.Join(dir, "pids.max")), 10, 63) // "max" is none
			if err != nil {
				continue
			}
			used, err := strconv.ParseUint(line(root, path.Join(dir, "pids.current")), 10, 63)
			if err != nil {
				used = 0
			}
			out = append(out, groupLimit{n, used})
		}
	}
	return out
}

// throttled returns how many nanoseconds the processor limits of the groups have delayed their
// processes so far. Each group counts what its own limit did.
func (g cgroup) throttled(root fs.FS) (sum uint64) {
	for _, dir := range g.unified {
		usec, _ := field(text(root, path.Join(dir, "cpu.stat")), "throttled_usec")
		sum += usec * 1000
	}
	for _, dir := range g.cpu {
		nsec, _ := field(text(root, path.Join(dir, "cpu.stat")), "throttled_time")
		sum += nsec
	}
	return sum
}
