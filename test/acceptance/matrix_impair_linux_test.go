//go:build conformance

package acceptance

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// This file contains the impairments of a run: of the generator, or of the system.

// An impairment is one disturbance of a run.
type impairment struct {
	name         string
	system       bool // it stops the system, so the generator is not to blame
	fitsShortRun bool // it fits into a run of three seconds

	// Before the run: flags and environment, and whether this machine allows it.
	flags    func(t *testing.T, dir string) []string
	env      []string
	possible func() error
	// During the run, once events are sent.
	during func(t *testing.T, generator, system int)
}

func stopProcess(t *testing.T, pid int, lengths ...time.Duration) {
	t.Helper()
	for i, d := range lengths {
		if i > 0 {
			pause(t, 200*time.Millisecond)
		}
		if syscall.Kill(pid, syscall.SIGSTOP) != nil {
			return // the run is over
		}
		pause(t, d)
		_ = syscall.Kill(pid, syscall.SIGCONT)
	}
}

func repeated(n int, d time.Duration) (all []time.Duration) {
	for range n {
		all = append(all, d)
	}
	return all
}

func impairments() (all []impairment) {
	add := func(i impairment) { all = append(all, i) }
	const six = 6
	for _, s := range []struct {
		name    string
		small   bool
		lengths []time.Duration
	}{
		{"50ms", true, repeated(1, 50*time.Millisecond)},
		{"200ms", true, repeated(1, 200*time.Millisecond)},
		{"500ms", true, repeated(1, 500*time.Millisecond)},
		{"2s", false, repeated(1, 2*time.Second)},
		{"6x100ms", true, repeated(six, 100*time.Millisecond)},
	} {
		add(impairment{name: "generator stopped " + s.name, fitsShortRun: s.small, during: func(t *testing.T, generator, _ int) { stopProcess(t, generator, s.lengths...) }})
		add(impairment{name: "system stopped " + s.name, fitsShortRun: s.small, system: true, during: func(t *testing.T, _, system int) { stopProcess(t, system, s.lengths...) }})
	}
	for name, hook := range map[string]string{
		"sending late once": "send=200ms@1500ms", "sending late often": "send=20ms/200ms",
		"reading late once": "receive=200ms@1500ms", "reading late often": "receive=20ms/200ms",
		"wall clock set": "wall=1h@1500ms",
	} {
		add(impairment{name: name, fitsShortRun: true, env: []string{"CARRONADE_IMPAIR=" + hook}, possible: hooksExist})
	}
	add(impairment{name: "duty cycle of 20 %", fitsShortRun: true, during: func(t *testing.T, generator, _ int) {
		for end := time.Now().Add(1500 * time.Millisecond); time.Now().Before(end); {
			stopProcess(t, generator, 80*time.Millisecond)
			pause(t, 20*time.Millisecond)
		}
	}})
	add(impairment{name: "quota of 20 %", fitsShortRun: true, possible: func() error { _, err := limitCPU(0); return err }, during: func(t *testing.T, generator, _ int) {
		undo := assert.Value(limitCPU(generator))(t)
		pause(t, 1500*time.Millisecond)
		undo()
	}})
	add(impairment{name: "eight hogs", fitsShortRun: true, during: func(t *testing.T, _, _ int) {
		stop := startHogs(t, 8)
		pause(t, 1500*time.Millisecond)
		stop()
	}})
	add(impairment{name: "collector always on", fitsShortRun: true, env: []string{"GOMEMLIMIT=8MiB", "GOGC=5"}})
	add(impairment{name: "slow HDR file", fitsShortRun: true, flags: func(t *testing.T, dir string) []string {
		return []string{"--hdr", slowPipe(t, dir, 2*time.Second), "--interval", "100ms"}
	}})
	return all
}

// hooksExist reports as an error that the build tag impair adds no files to the program.
var hooksExist = sync.OnceValue(func() error {
	out, err := exec.Command("go", "list", "-tags", "impair", "-f", `{{join .GoFiles "\n"}}`, "carronade/...").Output()
	if err != nil {
		return fmt.Errorf("listing the program's files: %w", err)
	}
	plain, err := exec.Command("go", "list", "-f", `{{join .GoFiles "\n"}}`, "carronade/...").Output()
	if err != nil {
		return fmt.Errorf("listing the program's files: %w", err)
	}
	if string(out) == string(plain) {
		return fmt.Errorf("the program has no files for the tag impair")
	}
	return nil
})

// impairedProgram builds the program with the hooks and returns its path.
var impairedProgram = sync.OnceValues(func() (string, error) {
	path := filepath.Join(scratch, "carronade-impair")
	build := exec.Command("go", "build", "-buildvcs=false", "-tags", "impair", "-o", path, "carronade")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build carronade with hooks: %w\n%s", err, out)
	}
	return path, nil
})

// limitCPU gives a process a fifth of a processor, by a control group. With pid 0 it
// only tries whether that is allowed.
func limitCPU(pid int) (undo func(), err error) {
	for _, v := range []struct{ root, file, value, procs string }{
		{"/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "20000", "cgroup.procs"},
		{"/sys/fs/cgroup", "cpu.max", "20000 100000", "cgroup.procs"},
	} {
		dir := filepath.Join(v.root, fmt.Sprintf("carronade-matrix-%d", os.Getpid()))
		if err = os.Mkdir(dir, 0o755); err != nil {
			continue
		}
		if err = os.WriteFile(filepath.Join(dir, v.file), []byte(v.value), 0o644); err == nil && pid > 0 {
			err = os.WriteFile(filepath.Join(dir, v.procs), []byte(fmt.Sprint(pid)), 0o644)
		}
		undo = func() {
			if pid > 0 {
				_ = os.WriteFile(filepath.Join(v.root, v.procs), []byte(fmt.Sprint(pid)), 0o644)
			}
			_ = os.Remove(dir)
		}
		if err != nil || pid == 0 {
			undo()
		}
		if err == nil {
			return undo, nil
		}
	}
	return nil, fmt.Errorf("no control group for processors may be made: %w", err)
}

func startHogs(t *testing.T, n int) (stop func()) {
	t.Helper()
	self := assert.Value(os.Executable())(t)
	var ends []func()
	for range n {
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), hogEnv+"=1")
		in := assert.Value(cmd.StdinPipe())(t)
		assert.OK(t, testkit.Launch(cmd))
		ends = append(ends, sync.OnceFunc(func() {
			_ = in.Close()
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}))
	}
	stop = func() {
		for _, end := range ends {
			end()
		}
	}
	t.Cleanup(stop)
	return stop
}

// slowPipe is a file that accepts almost no data for some time: a named pipe with
// room for one page, which is not read.
func slowPipe(t *testing.T, dir string, d time.Duration) string {
	t.Helper()
	path := filepath.Join(dir, "pipe")
	assert.OK(t, syscall.Mkfifo(path, 0o600))
	f := assert.Value(os.OpenFile(path, os.O_RDWR, 0))(t)
	const setPipeSize = 1031 // F_SETPIPE_SZ
	_, _, errno := syscall.Syscall(syscall.SYS_FCNTL, f.Fd(), setPipeSize, 4096)
	assert.Must(t, errno == 0, "%v", errno)
	assert.OK(t, syscall.SetNonblock(int(f.Fd()), true))
	closed := make(chan struct{})
	t.Cleanup(func() { close(closed) })
	go func() {
		defer f.Close()
		select {
		case <-time.After(d):
		case <-closed:
			return
		}
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		buf := make([]byte, 64<<10)
		for {
			for n := 1; n > 0; {
				n, _ = syscall.Read(int(f.Fd()), buf)
			}
			select {
			case <-tick.C:
			case <-closed:
				return
			}
		}
	}()
	return path
}

// A runProbe is a goroutine of the test that wakes every millisecond. While it did
// not run, perhaps nothing else on this machine did.
type runProbe struct {
	longest time.Duration
	total   time.Duration // of the wake-ups that were late by more than a millisecond
	stop    chan struct{}
	done    chan struct{}
}

func startProbe() *runProbe {
	w := &runProbe{stop: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(w.done)
		const every = time.Millisecond
		tick := time.NewTicker(every)
		defer tick.Stop()
		for last := time.Now(); ; {
			select {
			case <-tick.C:
			case <-w.stop:
				return
			}
			now := time.Now()
			late := now.Sub(last) - every
			w.longest = max(w.longest, late)
			if late > every {
				w.total += late
			}
			last = now
		}
	}()
	return w
}

func (w *runProbe) end() {
	close(w.stop)
	<-w.done
}

// blamesGenerator reports whether a reason says that the generator did not run.
func blamesGenerator(reasons []string) bool {
	for _, r := range reasons {
		for _, word := range []string{"generator", "froze", "freeze", "lag", "delay", "thread"} {
			if strings.Contains(strings.ToLower(r), word) {
				return true
			}
		}
	}
	return false
}
