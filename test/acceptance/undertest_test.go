//go:build conformance

package acceptance

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"carronade/internal/host"
	"carronade/test/testkit/assert"
)

// TestSystemEndsWithProgram interrupts a run at each of its stages, once and twice:
// all processes that it started end with the program, also those that ignore TERM,
// that a shell started in the background, or that left their group.
func TestSystemEndsWithProgram(t *testing.T) {
	t.Parallel()
	repository := t.TempDir()
	for _, args := range [][]string{{"init", "-q"}, {"commit", "-q", "--allow-empty", "-m", "one"}} {
		cmd := exec.Command("git", append([]string{"-C", repository, "-c", "user.name=t", "-c", "user.email=t@localhost"}, args...)...)
		out, err := cmd.CombinedOutput()
		assert.Must(t, err == nil, "git %v: %v\n%s", args, err, out)
	}
	for i, tt := range []struct {
		name    string
		system  string // MARK is replaced by a number of seconds that identifies the processes, ADDR and PROGRAM by those
		args    []string
		at      string // the text on stderr at which it is interrupted
		signals []os.Signal
		code    int
		killed  bool // finally by KILL, with a warning
	}{
		{"while building", "true", []string{"--system-git", repository, "--system-build", "sleep MARK & sleep MARK"}, "building revision", []os.Signal{os.Interrupt}, 130, false},
		{"while building, twice", "true", []string{"--system-git", repository, "--system-build", "trap '' TERM; sleep MARK & sleep MARK; sleep MARK"}, "building revision", []os.Signal{os.Interrupt, os.Interrupt}, 130, false},
		{"while it gets ready", "sh -c 'sleep MARK & sleep MARK'", nil, "to accept connections", []os.Signal{os.Interrupt}, 130, false},
		{"while it gets ready, twice", "sh -c 'trap \"\" TERM; setsid sleep MARK & sleep MARK; sleep MARK'", nil, "to accept connections", []os.Signal{os.Interrupt, os.Interrupt}, 130, false},
		{"while measuring", "sh -c 'sleep MARK & exec PROGRAM standin riemann --listen ADDR'", nil, progressText, []os.Signal{os.Interrupt}, 130, false},
		{"while measuring, twice", "sh -c 'trap \"\" TERM; setsid sleep MARK & PROGRAM standin riemann --listen ADDR; sleep MARK'", nil, progressText, []os.Signal{os.Interrupt, os.Interrupt}, 130, false},
		{"the terminal is closed", "sh -c 'sleep MARK & exec PROGRAM standin riemann --listen ADDR'", nil, progressText, []os.Signal{syscall.SIGHUP}, 130, false},
		{"ignores TERM", "sh -c 'trap \"\" TERM; PROGRAM standin riemann --listen ADDR; sleep MARK'", []string{"--system-stop-within", "500ms"}, progressText, []os.Signal{os.Interrupt}, 130, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			mark, addr := strconv.Itoa(90_000_000+100*os.Getpid()+i), "127.0.0.1:"+freePort(t)
			fill := strings.NewReplacer("MARK", mark, "ADDR", addr, "PROGRAM", program).Replace
			args := []string{"run", "riemann://" + addr, "--rate", "100/s", "--for", "60s", "--json", "--system-cmd", fill(tt.system)}
			for _, a := range tt.args {
				args = append(args, fill(a))
			}
			if slices.Contains(tt.signals, os.Signal(syscall.SIGHUP)) {
				unignoreSignal(t, syscall.SIGHUP)
			}
			s := start(t, args...)
			s.awaitStderr(tt.at)
			left := func() string { return pgrep(t, "-af", "(sleep "+mark+"|listen "+regexp.QuoteMeta(addr)+")") }
			for end := time.Now().Add(time.Minute); left() == ""; pause(t, 20*time.Millisecond) {
				assert.Must(t, !time.Now().After(end), "nothing was started, so this tests nothing")
			}
			pause(t, 500*time.Millisecond) // the other processes, and those that leave their group
			for _, sig := range tt.signals {
				s.signal(sig)
				pause(t, 100*time.Millisecond)
			}
			e := s.wait(20*time.Second).want(t, tt.code)
			if text := left(); text != "" {
				t.Errorf("left running:\n%s", text)
				for line := range strings.Lines(text) {
					first, _, _ := strings.Cut(line, " ")
					if pid, err := strconv.Atoi(first); err == nil {
						_ = host.End(pid)
					}
				}
			}
			if tt.killed {
				d := e.document(t)
				assert.True(t, strings.Contains(strings.Join(d.Warnings, "; "), "TERM and was killed"), "warnings %q", d.Warnings)
			}
		})
	}
}

// pgrep lists the processes whose command line matches; "" if there are none.
func pgrep(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("pgrep", args...).Output()
	if e, ok := errors.AsType[*exec.ExitError](err); ok && e.ExitCode() == 1 {
		return ""
	}
	assert.OK(t, err, "this test finds processes with pgrep (of procps)")
	return string(out)
}

// On Linux the system's command also ends if the program is killed.
func TestSystemEndsWhenKilled(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ends a child with its parent")
	}
	t.Parallel()
	addr := "127.0.0.1:" + freePort(t)
	s := start(t, "run", "riemann://"+addr, "--rate", "100/s", "--for", "60s", "--system-cmd", program+" standin riemann --listen "+addr)
	s.awaitStderr(progressText)
	there := func() (pid int) {
		out := pgrep(t, "-f", "^"+regexp.QuoteMeta(program+" standin riemann --listen "+addr))
		pid, _ = strconv.Atoi(strings.TrimSpace(out))
		return pid
	}
	pid := there()
	assert.Must(t, pid != 0, "nothing was started, so this tests nothing")
	s.signal(syscall.SIGKILL)
	for range 200 {
		if there() == 0 {
			return
		}
		pause(t, 100*time.Millisecond)
	}
	t.Error("the system is left running")
	_ = host.End(pid)
}

// unignoreSignal makes programs that are started until the test's end receive a signal even if the tests run
// under nohup, whose children ignore it: Go resets in a child the signals that it handles.
func unignoreSignal(t *testing.T, sig os.Signal) {
	t.Helper()
	if !signal.Ignored(sig) {
		return
	}
	received := make(chan os.Signal, 1)
	signal.Notify(received, sig)
	t.Cleanup(func() { signal.Stop(received) })
}

// A run of any kind ends when its system ends, and does not wait for answers or events that cannot arrive.
func TestSystemDiesAtOnce(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, kind, target, args string }{
		{"read back afterwards", "kafka --topic t", "kafka://ADDR/t", "--verify"},
		{"by a schedule", "kafka --topic t", "kafka://ADDR/t", "--rate 1000/s --verify"},
		{"round trip", "kafka --topic t", "kafka://ADDR/t", "--rate 1000/s --op roundtrip"},
		{"consume", "kafka --topic t", "kafka://ADDR/t", "--op consume"},
		{"riemann", "riemann", "riemann://ADDR", "--rate 1000/s"},
		{"apm", "apm", "apm+http://ADDR", "--rate 1000/s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pidFile, addr := filepath.Join(t.TempDir(), "pid"), "127.0.0.1:"+freePort(t)
			s := start(t, append([]string{
				"run", strings.Replace(tt.target, "ADDR", addr, 1), "--for", "60s", "--json",
				"--system-cmd", fmt.Sprintf("sh -c 'echo $$ > %s; exec %s standin %s --listen %s'", pidFile, program, tt.kind, addr),
			}, strings.Fields(tt.args)...)...)
			s.awaitStderr(progressText)
			text := assert.Value(os.ReadFile(pidFile))(t)
			assert.OK(t, host.End(assert.Value(strconv.Atoi(strings.TrimSpace(string(text))))(t)))
			killed := time.Now()
			d := s.wait(runTimeout).want(t, 3).document(t)
			if took := time.Since(killed); took > 20*time.Second { // the run would last a minute
				t.Errorf("the run ended %v after its system", took)
			}
			assert.True(t, d.Stopped == "system ended" && d.System.Died && strings.Contains(d.System.Exit, "killed") &&
				len(d.Trust.Reasons) > 0 && strings.Contains(d.Trust.Reasons[0], "system under test"),
				"stopped by %q, system %+v, reasons %q", d.Stopped, d.System, d.Trust.Reasons)
		})
	}
}
