//go:build conformance

package acceptance

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"carronade/internal/host"
	"carronade/test/testkit/assert"
)

// TestSystemKilled: a run ends when its system is killed, with a report and exit
// code 3.
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
			if d.Stopped != "system ended" || d.System == nil || !d.System.Died || !strings.Contains(d.System.Exit, "killed") {
				t.Errorf("stopped by %q, system %+v", d.Stopped, d.System)
			}
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

// TestSystemRefusals: a system that does not start is an error that contains its last
// output.
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
