package system

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"carronade/internal/host"
)

// limits are a control group of version 2 (Documentation/admin-guide/cgroup-v2)
// for one system: the command is started in it, so the limits apply from the
// first instruction on and to all descendants. A nil pointer means no limits.
type limits struct {
	dir string
	fd  int
}

const cpuPeriod = 100_000 // microseconds, the kernel's default

// newLimits makes a group next to or below this process's own.
func newLimits(tag string, memory int64, cpus float64) (*limits, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	mount := unifiedMount(string(mounts))
	if mount == "" {
		return nil, errors.New("no cgroup of version 2 is mounted")
	}
	var errs []error
	for _, parent := range parents(mount, string(own)) {
		l, err := limitsIn(parent, "carronade-"+strings.ToLower(tag), memory, cpus)
		if err == nil {
			return l, nil
		}
		errs = append(errs, err)
	}
	return nil, explainVersion1(errs[0], string(own), memory, cpus)
}

// explainVersion1 adds to the error if version 1 has the controllers on this
// machine: then permissions cannot help.
func explainVersion1(err error, own string, memory int64, cpus float64) error {
	for line := range strings.Lines(own) {
		_, rest, _ := strings.Cut(line, ":")
		names, _, _ := strings.Cut(rest, ":")
		for name := range strings.SplitSeq(names, ",") {
			if memory > 0 && name == "memory" || cpus > 0 && name == "cpu" {
				return fmt.Errorf("%w; this machine uses version 1 for it, where only a container engine's limits work", err)
			}
		}
	}
	return err
}

// unifiedMount finds where version 2 is mounted (proc_pid_mountinfo(5)).
func unifiedMount(mountinfo string) string {
	for line := range strings.Lines(mountinfo) {
		before, after, ok := strings.Cut(line, " - ")
		if f := strings.Fields(before); ok && len(f) >= 5 && strings.HasPrefix(after, "cgroup2 ") {
			return f[4]
		}
	}
	return ""
}

// parents returns the groups in which a new one may be created, the nearest
// first. A group with processes cannot delegate controllers, so this process's
// own group is useful only if it is the mount's root.
func parents(mount, own string) []string {
	var out []string
	for line := range strings.Lines(own) {
		if p, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			for p = filepath.Clean("/" + p); p != "/"; {
				p = filepath.Dir(p)
				out = append(out, filepath.Join(mount, p))
			}
		}
	}
	if len(out) == 0 || out[len(out)-1] != mount {
		out = append(out, mount)
	}
	return out
}

func limitsIn(parent, name string, memory int64, cpus float64) (*limits, error) {
	var need []string
	if memory > 0 {
		need = append(need, "memory")
	}
	if cpus > 0 {
		need = append(need, "cpu")
	}
	there, err := os.ReadFile(filepath.Join(parent, "cgroup.controllers"))
	if err != nil {
		return nil, fmt.Errorf("the group %s cannot be read: %w", parent, host.Reason(err))
	}
	down, _ := os.ReadFile(filepath.Join(parent, "cgroup.subtree_control"))
	for _, c := range need {
		if !bytes.Contains(append([]byte{' '}, append(bytes.TrimSpace(there), ' ')...), []byte(" "+c+" ")) {
			return nil, fmt.Errorf("the group %s has no controller of %s", parent, c)
		}
		if bytes.Contains(append([]byte{' '}, append(bytes.TrimSpace(down), ' ')...), []byte(" "+c+" ")) {
			continue
		}
		if err := writeFile(filepath.Join(parent, "cgroup.subtree_control"), "+"+c); err != nil {
			return nil, fmt.Errorf("the group %s does not delegate %s: %w", parent, c, host.Reason(err))
		}
	}
	l := &limits{dir: filepath.Join(parent, name), fd: -1}
	if err := os.Mkdir(l.dir, 0o755); err != nil {
		return nil, fmt.Errorf("cannot create a group in %s: %w", parent, host.Reason(err))
	}
	madeGroup(l.dir)
	err = func() error {
		if memory > 0 {
			if err := writeFile(filepath.Join(l.dir, "memory.max"), strconv.FormatInt(memory, 10)); err != nil {
				return err
			}
			// Without swap, as --memory-swap does for containers; and if one
			// process must end, the whole system ends. Old kernels lack both.
			_ = writeFile(filepath.Join(l.dir, "memory.swap.max"), "0")
			_ = writeFile(filepath.Join(l.dir, "memory.oom.group"), "1")
		}
		if cpus > 0 {
			if err := writeFile(filepath.Join(l.dir, "cpu.max"), fmt.Sprintf("%d %d", max(1000, int64(cpus*cpuPeriod)), cpuPeriod)); err != nil {
				return err
			}
		}
		fd, err := unix.Open(l.dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		l.fd = fd
		return err
	}()
	if err != nil {
		_ = os.Remove(l.dir)
		return nil, fmt.Errorf("the group %s does not accept the limit: %w", l.dir, host.Reason(err))
	}
	return l, nil
}

// madeGroup is called with a new group's folder: tests create the files that a
// kernel would.
var madeGroup = func(string) {}

// writeFile writes to an existing file.
func writeFile(name, text string) error {
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// apply makes cmd start within the group.
func (l *limits) apply(cmd *exec.Cmd) {
	if l == nil {
		return
	}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, l.fd
}

// outOfMemory reports whether the kernel ended a process of the group at its
// limit.
func (l *limits) outOfMemory() bool {
	if l == nil {
		return false
	}
	data, err := os.ReadFile(filepath.Join(l.dir, "memory.events"))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == "oom_kill" {
			return f[1] != "0"
		}
	}
	return false
}

// kill ends every process in the group.
func (l *limits) kill() {
	if l != nil {
		_ = writeFile(filepath.Join(l.dir, "cgroup.kill"), "1")
	}
}

// remove removes the group, which the kernel allows when its last process has
// ended.
func (l *limits) remove() {
	if l == nil {
		return
	}
	l.kill()
	_ = unix.Close(l.fd)
	ticker := time.NewTicker(stopInterval)
	defer ticker.Stop()
	for range 50 {
		if err := os.Remove(l.dir); err == nil || errors.Is(err, os.ErrNotExist) {
			return
		}
		<-ticker.C
	}
}
