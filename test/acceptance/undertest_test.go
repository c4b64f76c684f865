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

// A run ends when its system is killed, with a report and exit code 3.
func TestSystemKilled(t *testing.T) {
	t.Parallel()
	for kind, scheme := range map[string]string{"riemann": "riemann", "apm": "apm+http"} {
		t.Run(kind, func(t *testing.T) {
			addr := "127.0.0.1:" + freePort(t)
			s := start(t, "run", scheme+"://"+addr, "--rate", "1000/s", "--for", "60s", "--json",
				"--system-cmd", program+" standin "+kind+" --listen "+addr)
			s.awaitStderr(progressText)
			pause(t, time.Second)
			out, err := exec.Command("pgrep", "-P", strconv.Itoa(s.cmd.Process.Pid)).Output()
			assert.OK(t, err, "find the program's child")
			assert.OK(t, host.End(assert.Value(strconv.Atoi(strings.TrimSpace(string(out))))(t)))
			killed := time.Now()
			d := s.wait(runTimeout).want(t, 3).document(t)
			if took := time.Since(killed); took > 20*time.Second { // the run would last a minute
				t.Errorf("the run ended %v after its system", took)
			}
			assert.True(t, d.Stopped == "system ended" && d.System != nil && d.System.Died &&
				strings.Contains(d.System.Exit, "killed"), "stopped by %q, system %+v", d.Stopped, d.System)
			assert.True(t, len(d.Trust.Reasons) > 0 && strings.Contains(d.Trust.Reasons[0], "system under test"),
				"reasons %q", d.Trust.Reasons)
		})
	}
}

// TestSystemIsItsOwn: the peak memory of a run's system does not include that of the
// run before, and the report contains its CPU time.
func TestSystemIsItsOwn(t *testing.T) {
	t.Parallel()
	addr := "127.0.0.1:" + freePort(t)
	runWith := func(extra ...string) *document {
		args := append([]string{
			"run", "riemann://" + addr, "--json", "--label", "team=alpha",
			"--system-cmd", program + " standin riemann --listen " + addr,
		}, extra...)
		return run(t, args...).succeeded(t).document(t)
	}
	large := runWith("--count", "300k", "--service", "s-{seq}", "--system-flag-format", "--{name}={value}", "--system-flag", "max-index=1GiB")
	small := runWith("--count", "2k")
	for name, d := range map[string]*document{"large": large, "small": small} {
		s := d.System
		assert.Must(t, s != nil && s.PeakRSS > 0 && s.Memory != nil && !s.Died && (name != "large" || s.CPUS > 0 && s.PerCPU != nil),
			"%s: %+v", name, s) // CPU time has a resolution of 10 ms
		assert.True(t, strings.Contains(fmt.Sprint(s.Facts["command"]), "standin riemann"), "%s: facts %v", name, s.Facts)
	}
	assert.True(t, small.System.PeakRSS <= large.System.PeakRSS*3/4,
		"the small run's system had %d bytes resident, the large one's before it %d", small.System.PeakRSS, large.System.PeakRSS)
	flags, _ := large.System.Facts["flags"].(map[string]any)
	assert.True(t, flags["max-index"] == "1GiB", "flags %v", large.System.Facts["flags"])
	assert.True(t, exec.Command("pgrep", "-f", "standin riemann --listen "+addr).Run() != nil, "a system was left running")
}

// TestSystemRevision builds a revision of a small server from a new repository, whose
// dirty working folder must stay unchanged.
func TestSystemRevision(t *testing.T) {
	t.Parallel()
	dir, addr := t.TempDir(), "127.0.0.1:"+freePort(t)
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=t", "-c", "user.email=t@localhost"}, args...)...)
		out, err := cmd.CombinedOutput()
		assert.Must(t, err == nil, "git %v: %v\n%s", args, err, out)
	}
	script := func(version string) {
		writeFile(t, filepath.Join(dir, "server.sh"), "#!/bin/sh\n# "+version+"\nexec "+program+" standin riemann --listen $1\n")
	}
	git("init", "-q", "-b", "main")
	script("one")
	git("add", ".")
	git("commit", "-qm", "one")
	script("two")
	git("commit", "-qam", "two")
	script("dirty")
	d := run(t, "run", "riemann://"+addr, "--count", "1000", "--json",
		"--system-git", dir, "--system-checkout", "main~1", "--system-build", "grep -q one server.sh && cp server.sh built.sh",
		"--system-cmd", "sh {tree}/built.sh "+addr).succeeded(t).document(t)
	assert.Must(t, d.System != nil && d.System.Facts["revision"] != nil && d.System.Facts["revision_date"] != nil,
		"facts %v", d.System)
	text, err := os.ReadFile(filepath.Join(dir, "server.sh"))
	assert.True(t, err == nil && strings.Contains(string(text), "dirty"), "the user's folder was changed: %s, %v", text, err)
	_, err = os.Stat(filepath.Join(dir, "built.sh"))
	assert.True(t, err != nil, "it was built in the user's folder")
	run(t, "run", "riemann://"+addr, "--count", "1000", "--system-git", dir, "--system-checkout", "main",
		"--system-build", "echo the compiler is broken; exit 7", "--system-cmd", "true").
		want(t, 2).says(t, "the compiler is broken")
	run(t, "run", "riemann://"+addr, "--count", "1000", "--system-git", filepath.Join(dir, "missing"), "--system-cmd", "true").want(t, 2)
}

// A system that does not start is an error that contains its last output.
func TestSystemRefusals(t *testing.T) {
	t.Setenv("CANARY", "c4n4ry-in-a-cage")
	for _, tt := range []struct {
		name string
		args []string
		says []string
	}{
		{"exits at once", []string{"--system-cmd", "sh -c 'echo no disk left; exit 4'"}, []string{"exit status 4", "no disk left"}},
		{"is not a program", []string{"--system-cmd", "/nowhere/server"}, []string{"/nowhere/server"}},
		{"never becomes ready", []string{"--system-cmd", "sleep 100", "--system-ready-within", "300ms"}, []string{"ready"}},
		{"no such process", []string{"--system-pid", "2147483646"}, []string{"2147483646"}},
		{"two of them", []string{"--system-cmd", "true", "--system-pid", "1"}, []string{"already"}},
		{"a secret that it prints", []string{"--system-cmd", "sh -c 'echo $TOKEN; exit 1'", "--system-env", "TOKEN=env:CANARY"}, []string{"exit status 1"}},
		{"an invalid host description", []string{"--system-host", "/dev/null"}, []string{"--system-host", "carronade host --json"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			addr := "127.0.0.1:" + freePort(t)
			e := run(t, append([]string{"run", "riemann://" + addr, "--count", "10"}, tt.args...)...).want(t, 2).says(t, tt.says...).says(t, "hint:")
			assert.True(t, !strings.Contains(e.stderr+e.stdout, "c4n4ry"), "the secret is shown:\n%s", e.stderr)
		})
	}
}

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
	for _, tt := range []struct {
		name string
		args []string
	}{
		{"read back afterwards", []string{"--verify"}},
		{"by a schedule", []string{"--rate", "1000/s", "--verify"}},
		{"round trip", []string{"--rate", "1000/s", "--op", "roundtrip"}},
		{"consume", []string{"--op", "consume"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pidFile, addr := filepath.Join(t.TempDir(), "pid"), "127.0.0.1:"+freePort(t)
			s := start(t, append([]string{
				"run", "kafka://" + addr + "/t", "--for", "60s", "--json",
				"--system-cmd", fmt.Sprintf("sh -c 'echo $$ > %s; exec %s standin kafka --listen %s --topic t'", pidFile, program, addr),
			}, tt.args...)...)
			s.awaitStderr(progressText)
			text := assert.Value(os.ReadFile(pidFile))(t)
			assert.OK(t, host.End(assert.Value(strconv.Atoi(strings.TrimSpace(string(text))))(t)))
			killed := time.Now()
			d := s.wait(runTimeout).want(t, 3).document(t)
			if took := time.Since(killed); took > 20*time.Second { // the run would last a minute
				t.Errorf("the run ended %v after its system", took)
			}
			assert.Equal(t, d.Stopped, "system ended", "stopped by")
		})
	}
}

// If the system prints a secret of the run, the program hides it.
func TestSystemPrintsSecret(t *testing.T) {
	const canary = "kestrel-5512"
	t.Setenv("CANARY", canary)
	for _, tt := range []struct{ name, flag, value string }{
		{"a secret option", "--secret-token", "env:CANARY"},
		{"a header", "--header", "X-Key: env:CANARY"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			script := filepath.Join(t.TempDir(), "server.sh")
			writeFile(t, script, "echo refused "+canary+" again\nexit 3\n")
			e := run(t, "run", "apm+http://127.0.0.1:"+freePort(t), "--count", "5", tt.flag, tt.value, "--system-cmd", "sh "+script).want(t, 2).says(t, "refused *** again")
			assert.True(t, !strings.Contains(e.stdout+e.stderr, canary), "the secret is shown:\n%s", e.stderr)
		})
	}
}
