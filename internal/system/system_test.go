//go:build linux

package system

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"carronade/internal/advice"
	"carronade/measure"
	"carronade/protocol/protocoltest"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

func figure(list []measure.Figure, name string) (float64, bool) {
	for _, f := range list {
		if f.Name == name {
			return f.Value, true
		}
	}
	return 0, false
}

// TestCommand goes through the life of a system: started, ready, watched, stopped.
func TestCommand(t *testing.T) {
	addr := free(t)
	spec := specOf(t, "serve", addr, "--password", canary)
	spec.Listen = []string{addr}
	spec.Flags = []Flag{{"output.file", "a b"}, {"es.password", canary}}
	spec.Vars, spec.Metrics, spec.Names = "http://"+addr+"/debug/vars", "http://"+addr+"/metrics", []string{"queue.*", "active"}
	s := start(t, spec)
	assert.Value(s.Figures(t.Context()))(t)
	get(t, addr, "/hold?mib=64")
	got := assert.Value(s.Figures(t.Context()))(t)
	v, _ := figure(got, "RSS")
	assert.True(t, v >= 64<<20, "got RSS %v, want the 64 MiB that it holds", v)
	for name, want := range map[string]float64{"processes": 1, "queue.active": 3, "active": 5} {
		v, ok := figure(got, name)
		assert.True(t, v == want, "got %s = %v, %v, want %v", name, v, ok, want)
	}
	_, ok := figure(got, "other")
	assert.True(t, !ok, "got a name that the filter excludes")
	cpu, ok := figure(got, "CPU")
	assert.True(t, ok && cpu > 0, "got %v, %v cores, want the time that it took to fill 64 MiB", cpu, ok)
	select {
	case <-s.Died():
		t.Error("it is said to have died")
	default:
	}
	pid := s.Facts()["pid"].(int)
	assert.OK(t, s.Stop())
	assert.OK(t, s.Stop(), "stop it again")
	assert.True(t, !alive(pid), "process %d is still there", pid)
	select {
	case <-s.Died():
		t.Error("a system that was stopped is said to have died")
	default:
	}
	lines := s.LastLines()
	assert.True(t, len(lines) != 0 && lines[len(lines)-1] == "bye", "got the last lines %q, want its bye: it must get TERM", lines)
	total := s.Totals()
	assert.True(t, total.Peak >= 64<<20 && total.CPU > 0, "got %+v in all, want a peak of 64 MiB and processor time", total)
	facts := s.Facts()
	flags, _ := facts["flags"].(map[string]any)
	assert.True(t, flags["output.file"] == "a b" && flags["es.password"] == "***", "got the flags %v, want them distinguished, without the secret", flags)
	command, _ := facts["command"].(string)
	assert.True(t, strings.HasSuffix(command, addr+" --password *** -E 'output.file=a b' -E es.password=***"), "got the command %s", command)
	noCanary(t, s)
}

// noCanary checks that nothing a system returns contains the secret.
func noCanary(t testing.TB, s *System) {
	t.Helper()
	text := assert.Value(json.Marshal([]any{s.Facts(), s.Warnings(), s.LastLines(), s.Exit()}))(t)
	assert.True(t, !strings.Contains(string(text), canary), "a secret is shown: %s", text)
}

// TestPeaksAreIndependent runs a large system and then a small one.
func TestPeaksAreIndependent(t *testing.T) {
	var peaks []uint64
	for _, mib := range []string{"128", "1"} {
		addr := free(t)
		spec := specOf(t, "serve", addr)
		spec.Listen = []string{addr}
		s := start(t, spec)
		get(t, addr, "/hold?mib="+mib)
		assert.OK(t, s.Stop())
		peaks = append(peaks, s.Totals().Peak)
	}
	if peaks[0] < 128<<20 || peaks[1] > 64<<20 {
		t.Errorf("got peaks of %d and %d bytes, want the second run to have its own", peaks[0], peaks[1])
	}
}

// TestPeakBetweenLooks: memory that was resident only between two readings counts.
func TestPeakBetweenLooks(t *testing.T) {
	addr := free(t)
	spec := specOf(t, "serve", addr)
	spec.Listen = []string{addr}
	s := start(t, spec)
	s.Begin(t.Context())
	get(t, addr, "/spike?mib=96")
	assert.Value(s.Figures(t.Context()))(t)
	got := s.Finish(t.Context())
	assert.True(t, got.Peak >= 96<<20, "got a peak of %d bytes, want the 96 MiB that came and went", got.Peak)
}

// TestNoExtraRequests: Begin and Finish send no request to a source.
func TestNoExtraRequests(t *testing.T) {
	asked := 0
	web := testkit.HTTP(t, func(w http.ResponseWriter, _ *http.Request) { asked++; fmt.Fprint(w, `{"a":1}`) })
	s := start(t, Spec{Vars: web.URL})
	s.Begin(t.Context())
	s.Finish(t.Context())
	assert.Equal(t, asked, 0, "the source requests")
}

// TestKill ends everything that was started, even if it ignores TERM, without waiting.
func TestKill(t *testing.T) {
	addr := free(t)
	spec := specOf(t, "family", addr)
	spec.Listen, spec.StopWithin = []string{addr}, time.Hour
	var kill func()
	spec.Launched = func(k func()) { kill = k }
	s := start(t, spec)
	var child int
	testkit.Until(t, "its child", func() bool {
		for _, l := range s.LastLines() {
			if _, err := fmt.Sscanf(l, "child %d", &child); err == nil {
				return true
			}
		}
		return false
	})
	began := time.Now()
	kill()
	took := time.Since(began)
	assert.True(t, took <= spec.StopWithin/2, "it took %v: it waits as after TERM", took)
	for _, pid := range []int{s.child.Pid(), child} {
		assert.True(t, !alive(pid), "process %d is still there", pid)
	}
}

func TestReady(t *testing.T) {
	for _, test := range []struct {
		name  string
		ready func(addr string) string
	}{
		{"URL", func(addr string) string { return "http://" + addr + "/" }},
		{"port", func(addr string) string { return "port:" + addr[strings.LastIndexByte(addr, ':')+1:] }},
		{"bare port", func(addr string) string { return addr[strings.LastIndexByte(addr, ':'):] }},
		{"address", func(addr string) string { return addr }},
		{"log", func(string) string { return "log:listening on" }},
	} {
		t.Run(test.name, func(t *testing.T) {
			addr := free(t)
			spec := specOf(t, "serve", addr)
			spec.Ready = test.ready(addr)
			s := start(t, spec)
			get(t, addr, "/")
			_, ok := s.Facts()["ready_after_s"]
			assert.True(t, ok, "the time until it was ready is missing")
		})
	}
}

func TestStartFails(t *testing.T) {
	testkit.Program(t, "git")
	addr := free(t)
	base := specOf(t, "exit", "7", "no such index, token="+canary)
	dir := t.TempDir()
	for _, test := range []struct {
		name  string
		edit  func(*Spec)
		want  []string
		early bool // found without starting anything
	}{
		{"exits at once", func(s *Spec) { s.Listen = []string{addr} }, []string{"it ended before it was ready: exit status 7", "no such index, token=***", "manually"}, false},
		{"is never ready", func(s *Spec) {
			s.Env[0], s.Listen, s.ReadyWithin = roleEnv+"=silent", []string{addr}, 300*time.Millisecond
		}, []string{"waited 300ms for " + addr, "refused", "it printed nothing", "--system-ready"}, false},
		{"never says so", func(s *Spec) { s.Env[0], s.Ready, s.ReadyWithin = roleEnv+"=silent", "log:hello", 300*time.Millisecond }, []string{`waited 300ms for "hello" in its output`}, false},
		{"no such program", func(s *Spec) { s.Command = "/nowhere/server --x" }, []string{"start /nowhere/server --x: no such file", "first word"}, false},
		{"no such program in PATH", func(s *Spec) { s.Command = "no-such-server-anywhere" }, []string{"not found"}, false},
		{"no such folder", func(s *Spec) { s.Dir = "/nowhere" }, []string{"working folder /nowhere", "no such file", "--system-dir"}, false},
		{"bad quotes", func(s *Spec) { s.Command = "server 'x" }, []string{"unclosed '", "sh -c"}, true},
		{"blank", func(s *Spec) { s.Command = " " }, []string{"it is empty"}, true},
		{"nothing", func(s *Spec) { s.Command = "" }, []string{"exactly one way to find it"}, true},
		{"two at once", func(s *Spec) { s.PID = 1 }, []string{"exactly one way"}, true},
		{"bad readiness", func(s *Spec) { s.Ready = "soon" }, []string{"neither http", "port:8200"}, true},
		{"bad port", func(s *Spec) { s.Ready = "port:99999" }, []string{"neither http"}, true},
		{"bad environment", func(s *Spec) { s.Env = append(s.Env, "x") }, []string{`"x" is not NAME=VALUE`}, true},
		{"unset reference", func(s *Spec) { s.Env = append(s.Env, "A=env:SUT_NOT_SET") }, []string{"variable SUT_NOT_SET is not set"}, true},
		{"missing file", func(s *Spec) { s.Flags = []Flag{{"a", "file:" + dir + "/x"}} }, []string{"--system-flag a", "no such file"}, true},
		{"bad flag format", func(s *Spec) { s.Flags, s.FlagFormat = []Flag{{"a", "b"}}, "--x" }, []string{"does not contain {name}"}, true},
		{"no git folder", func(s *Spec) { s.Git = dir }, []string{"not a git repository"}, false},
		{"missing git folder", func(s *Spec) { s.Git = dir + "/x" }, []string{"no such file"}, false},
		{"bad vars", func(s *Spec) { s.Vars = "localhost" }, []string{"--system-vars", "want http"}, true},
		{"bad metrics", func(s *Spec) { s.Metrics = "http://me:" + canary + "@" }, []string{"--system-metrics", "want http"}, true},
		{"both logs", func(s *Spec) { s.JVMGC, s.GCLog = true, "x" }, []string{"leave one out"}, true},
		{"negative limit", func(s *Spec) { s.CPUs = -1 }, []string{"a limit must not be negative"}, true},
		{"flags for what runs", func(s *Spec) { s.Command, s.Env, s.PID, s.Flags = "", nil, 1, []Flag{{"a", "b"}} }, []string{"it is already running"}, true},
		{"no such process", func(s *Spec) { s.Command, s.Env, s.PID = "", nil, 1<<22-1 }, []string{"no such process"}, false},
		{"itself", func(s *Spec) { s.Command, s.Env, s.PID = "", nil, os.Getpid() }, []string{"carronade's own process"}, false},
		{"the log of a process", func(s *Spec) { s.Command, s.Env, s.PID, s.Ready = "", nil, 1, "log:x" }, []string{"cannot be read"}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			spec := base
			spec.Env = slices.Clone(base.Env)
			test.edit(&spec)
			if err := Check(spec); (err != nil) != test.early {
				t.Errorf("Check: got %v, want an error: %v", err, test.early)
			}
			s, err := Start(t.Context(), spec)
			if err == nil {
				_ = s.Stop()
				t.Fatal("it started, want an error")
			}
			protocoltest.Explained(t, err, "", "")
			text := err.Error() + " / " + advice.Hint(err)
			for _, want := range test.want {
				assert.True(t, strings.Contains(text, want), "got %q, want it to contain %q", text, want)
			}
			assert.True(t, !strings.Contains(text, canary), "a secret is shown: %s", text)
		})
	}
}

// TestSomethingElseAnswers starts a system whose port another program uses.
func TestSomethingElseAnswers(t *testing.T) {
	addr := free(t)
	spec := specOf(t, "serve", addr)
	spec.Listen = []string{addr}
	start(t, spec)
	for _, ready := range []string{"", "http://" + addr + "/", addr} {
		spec.Ready = ready
		_, err := Start(t.Context(), spec)
		assert.True(t, err != nil && strings.Contains(err.Error(), "already answers on "+addr), "%s: got %v, want it refused", ready, err)
	}
}

func TestReadyTakesAStatus(t *testing.T) {
	addr := free(t)
	spec := specOf(t, "serve", addr)
	spec.Listen = []string{addr}
	start(t, spec)
	get(t, addr, "/status?code=503")
	s := &System{web: newWeb(), ready: readiness{url: "http://" + addr + "/"}}
	assert.ErrorHas(t, s.try(t.Context()), "503")
	get(t, addr, "/status?code=204")
	assert.OK(t, s.try(t.Context()))
}

func TestStartIsCanceled(t *testing.T) {
	spec := specOf(t, "silent")
	spec.Listen = []string{free(t)}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := Start(ctx, spec)
	assert.True(t, errors.Is(err, context.DeadlineExceeded), "got %v, want it canceled", err)
}

// TestDies kills a system during a run: this is noticed, with its exit status and last output.
func TestDies(t *testing.T) {
	for _, test := range []struct {
		name string
		kill func(t *testing.T, addr string, pid int)
		want Exit
		last string
	}{
		{"KILL", func(_ *testing.T, _ string, pid int) { _ = syscall.Kill(pid, syscall.SIGKILL) }, Exit{Status: "signal: killed", Code: -1, Signal: "killed"}, "listening on"},
		{"by itself", func(_ *testing.T, addr string, _ int) {
			go getQuietly(addr, "/exit")
		}, Exit{Status: "exit status 3", Code: 3}, "last words, password=***"},
	} {
		t.Run(test.name, func(t *testing.T) {
			addr := free(t)
			spec := specOf(t, "serve", addr)
			spec.Listen = []string{addr}
			spec.Ready = "log:listening on" // the address accepts before that is printed
			s := start(t, spec)
			test.kill(t, addr, s.Facts()["pid"].(int))
			testkit.Wait(t, "its end", s.Died())
			got := s.Exit()
			assert.True(t, got.After > 0 && !got.At.IsZero(), "the time of its end is missing")
			got.After, got.At = 0, time.Time{}
			assert.Equal(t, got, test.want)
			facts := s.Facts()
			lines := fmt.Sprint(facts["last_lines"])
			assert.True(t, facts["exit"] == test.want.Status && strings.Contains(lines, test.last),
				"got %v, %s, want the exit and the last lines", facts["exit"], lines)
			figures, err := s.Figures(t.Context())
			assert.True(t, err == nil && len(figures) == 0, "got %v, %v from a dead system, want nothing", figures, err)
			assert.OK(t, s.Stop(), "stopping what died")
			assert.True(t, s.Totals().Peak != 0, "its peak is lost")
			noCanary(t, s)
		})
	}
}

// TestStubborn stops a system that ignores TERM: it is killed.
func TestStubborn(t *testing.T) {
	addr := free(t)
	spec := specOf(t, "stubborn", addr)
	spec.Listen, spec.StopWithin = []string{addr}, 300*time.Millisecond
	s := start(t, spec)
	pid := s.Facts()["pid"].(int)
	assert.ErrorHas(t, s.Stop(), "did not end within 300ms of TERM and was killed")
	assert.True(t, !alive(pid), "process %d is still there", pid)
}

// TestLeavesNoProcess stops a system whose child is in its own session and ignores TERM.
func TestLeavesNoProcess(t *testing.T) {
	addr := free(t)
	spec := specOf(t, "family", addr)
	spec.Listen, spec.StopWithin = []string{addr}, 300*time.Millisecond
	s := start(t, spec)
	var child int
	testkit.Until(t, "the child's number", func() bool {
		for _, l := range s.LastLines() {
			if _, err := fmt.Sscanf(l, "child %d", &child); err == nil {
				return true
			}
		}
		return false
	})
	got, err := s.Figures(t.Context())
	n, _ := figure(got, "processes")
	assert.True(t, err == nil && n == 2, "got %v processes, %v, want both", n, err)
	_ = s.Stop()
	testkit.Until(t, "the child's end", func() bool { return !alive(child) })
}

// TestForks starts a command that goes into the background.
func TestForks(t *testing.T) {
	addr := free(t)
	spec := specOf(t, "fork", addr)
	spec.Listen = []string{addr}
	s := start(t, spec)
	testkit.Until(t, "the end of the command", func() bool { return s.child.State() != nil })
	testkit.Until(t, "the warning", func() bool { return strings.Contains(strings.Join(s.Warnings(), " "), "went into the background") })
	got, err := s.Figures(t.Context())
	n, _ := figure(got, "processes")
	assert.True(t, err == nil && n == 1, "got %v processes, %v, want the one in the background", n, err)
	pid := s.tree.Members()[0]
	get(t, addr, "/")
	select {
	case <-s.Died():
		t.Error("it is said to have died")
	default:
	}
	assert.OK(t, s.Stop())
	assert.True(t, !alive(pid), "the process in the background is still there")
}

// TestForkDies kills the process that went into the background.
func TestForkDies(t *testing.T) {
	addr := free(t)
	spec := specOf(t, "fork", addr)
	spec.Listen = []string{addr}
	s := start(t, spec)
	testkit.Until(t, "the end of the command", func() bool { return len(s.Warnings()) > 0 })
	s.mu.Lock()
	pid := s.tree.Members()[0]
	s.mu.Unlock()
	_ = syscall.Kill(pid, syscall.SIGKILL)
	testkit.Wait(t, "its end", s.Died())
}

func TestPID(t *testing.T) {
	addr := free(t)
	cmd := exec.Command(os.Args[0], addr)
	cmd.Env = append(os.Environ(), roleEnv+"=serve")
	assert.OK(t, cmd.Start())
	defer func() { _ = cmd.Wait() }()
	s := start(t, Spec{PID: cmd.Process.Pid, Listen: []string{addr}, ReadyWithin: time.Minute})
	if got := s.Facts(); got["pid"] != cmd.Process.Pid || got["process"] == "" {
		t.Errorf("got %v, want the process", got)
	}
	got, err := s.Figures(t.Context())
	v, _ := figure(got, "RSS")
	assert.True(t, err == nil && v > 0, "got RSS %v, %v", v, err)
	assert.OK(t, s.Stop())
	assert.Must(t, alive(cmd.Process.Pid), "a process that was not started here was ended")
	assert.Equal(t, s.Exit(), (Exit{}), "the exit of a system that still runs")
	s = start(t, Spec{PID: cmd.Process.Pid})
	_ = cmd.Process.Kill()
	testkit.Wait(t, "its end", s.Died())
	if got := s.Facts()["exit"]; got != s.Exit().Status || got == "" {
		t.Errorf("got %v, want its status", got)
	}
}

func TestEnvironment(t *testing.T) {
	t.Setenv("SUT_TEST_PASSWORD", canary)
	dir := t.TempDir()
	assert.OK(t, os.WriteFile(filepath.Join(dir, "token"), []byte("2-merlin-4410\n"), 0o600))
	var lines []string
	seen := make(chan struct{})
	spec := specOf(t, "environment", "first", "{flags}", "last")
	spec.Env = append(spec.Env, "SUT_PLAIN=plain", "SUT_SECRET=env:SUT_TEST_PASSWORD")
	spec.Flags, spec.FlagFormat = []Flag{{"x", "file:" + filepath.Join(dir, "token")}, {"n", "1"}}, "--{name}={value}"
	spec.Dir, spec.Ready = dir, "log:in "
	spec.Output = func(l string) {
		if lines = append(lines, l); len(lines) == 2 {
			close(seen)
		}
	}
	s := start(t, spec)
	<-seen
	want := "saw plain *** first --x=*** --n=1 last"
	assert.True(t, lines[0] == want, "got  %q\nwant %q", lines[0], want)
	want, _ = filepath.EvalSymlinks(dir)
	assert.True(t, lines[1] == "in "+want || lines[1] == "in "+dir, "got %q, want it in %s", lines[1], dir)
	facts := s.Facts()
	assert.Equal(t, fmt.Sprint(facts["environment"]), "["+roleEnv+" SUT_PLAIN SUT_SECRET]", "environment")
	flags := facts["flags"].(map[string]any)
	assert.True(t, flags["x"] == "file:"+filepath.Join(dir, "token") && flags["n"] == "1", "got the flags %v, want the reference and not the secret", flags)
	noCanary(t, s)
	s.mu.Lock()
	raw := s.tail.lines[0]
	s.mu.Unlock()
	assert.True(t, strings.Contains(raw, canary), "got %q, want the system to get the secret itself", raw)
}

// TestGit uses a folder with uncommitted changes: the run continues, with a warning.
func TestGit(t *testing.T) {
	dir := t.TempDir()
	for _, args := range [][]string{{"init", "--quiet", "-b", "trace"}, {"-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "--allow-empty", "-m", "x"}} {
		out, err := exec.Command(testkit.Program(t, "git"), append([]string{"-C", dir}, args...)...).CombinedOutput()
		assert.Must(t, err == nil, "%v: %s", err, out)
	}
	file := filepath.Join(dir, "server.go")
	assert.OK(t, os.WriteFile(file, []byte("x"), 0o644))
	out, err := exec.Command("git", "-C", dir, "add", file).CombinedOutput()
	assert.Must(t, err == nil, "%v: %s", err, out)
	spec := specOf(t, "silent")
	spec.Git = dir
	s := start(t, spec)
	facts := s.Facts()
	assert.True(t, facts["branch"] == "trace" && facts["unstaged_changes"] == true && len(facts["revision"].(string)) == 40 && facts["revision_date"] != "",
		"got %v, want the branch, its revision, and the change", facts)
	w := strings.Join(s.Warnings(), " ")
	assert.True(t, strings.Contains(w, "uncommitted changes"), "got the warnings %q, want one of the change", w)
}

// TestBuild runs the build of a revision, in its worktree.
func TestBuild(t *testing.T) {
	testkit.Program(t, "sh")
	tree := t.TempDir()
	assert.OK(t, os.WriteFile(filepath.Join(tree, "serve.sh"), []byte("echo serving $1 in $(pwd); exec sleep 1000"), 0o644))
	b := &Build{GitFacts: GitFacts{Branch: "main", Revision: strings.Repeat("ab", 20), Date: time.Unix(0, 0)}, Tree: tree, Cached: true}
	s := start(t, Spec{Command: "sh {tree}/serve.sh {branch}", Build: b, Ready: "log:serving main in " + tree, ReadyWithin: time.Minute})
	if f := s.Facts(); f["revision"] != b.Revision || f["branch"] != "main" || f["build_cached"] != true || f["unstaged_changes"] != false {
		t.Errorf("got %v, want the build's facts", f)
	}
}

func TestEfficiency(t *testing.T) {
	// The output in hey-apm's README: 1.6 MB/s accepted, 157.7 MB at most; its
	// 0.596 was computed before both were rounded.
	got, ok := Efficiency(30*1_600_000, 30*time.Second, 157_700_000)
	assert.True(t, ok && math.Abs(got-0.596) <= 0.02, "got %v, %v, want 0.6", got, ok)
	for _, bad := range []struct {
		over time.Duration
		peak uint64
	}{{0, 1}, {time.Second, 0}} {
		_, ok := Efficiency(1, bad.over, bad.peak)
		assert.True(t, !ok, "%+v: got a number, want none", bad)
	}
	got, ok = PerCore(1000, 500*time.Millisecond)
	assert.True(t, ok && got == 2000, "got %v, %v, want 2000 events for each second of a core", got, ok)
	_, ok = PerCore(1, 0)
	assert.True(t, !ok, "got a number without processor time")
}

func FuzzWords(f *testing.F) {
	f.Add(`a "b c" 'd' \e`, "-E {name}={value}", "port:1")
	f.Add(`'`, "{name}", "http://x")
	f.Fuzz(func(_ *testing.T, a, b, c string) {
		_, _ = formatFlag(b, Flag{a, c})
		_, _ = parseReady(c, nil)
		tail := newTail(c)
		tail.add(a)
		tail.last(keptLines, strings.ToUpper)
	})
}
