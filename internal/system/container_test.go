//go:build linux

package system

import (
	"context"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"carronade/protocol"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// fakeEngine puts this binary into PATH as docker, and returns the folder of its containers.
func fakeEngine(t testing.TB) string {
	t.Helper()
	bin := t.TempDir()
	dir := assert.Value(os.MkdirTemp("", "engine"))(t)
	// The last call of the engine may write there while the test ends.
	t.Cleanup(func() {
		testkit.Until(t, "the end of the engine's folder", func() bool { return os.RemoveAll(dir) == nil })
	})
	assert.OK(t, os.Symlink(assert.Value(os.Executable())(t), filepath.Join(bin, "docker")))
	t.Setenv("PATH", bin)
	t.Setenv("FAKE_ENGINE", dir)
	return dir
}

func calls(t testing.TB, dir string) string {
	t.Helper()
	data := assert.Value(os.ReadFile(filepath.Join(dir, "calls")))(t)
	return string(data)
}

func TestImage(t *testing.T) {
	dir := fakeEngine(t)
	t.Setenv("SUT_TEST_PASSWORD", canary)
	addr := free(t)
	s := start(t, Spec{
		Image: "server:1", Args: []string{addr}, Env: []string{roleEnv + "=serve", "PASSWORD=env:SUT_TEST_PASSWORD"},
		Flags: []Flag{{"a", "1"}}, Memory: 4 << 30, CPUs: 1.5, Publish: []string{"127.0.0.1:8200:8200"}, RunArgs: []string{"--network=host"},
		Listen: []string{addr}, ReadyWithin: time.Minute, Logf: t.Logf,
	})
	got, err := s.Figures(t.Context())
	n, _ := figure(got, "processes")
	assert.True(t, err == nil && n == 1, "got %v processes, %v, want the container's one and not the engine's client", n, err)
	facts := s.Facts()
	for name, want := range map[string]any{"engine": "docker", "image": "server:1", "image_id": "sha256:feed", "memory_limit_bytes": int64(4 << 30), "cpu_limit": 1.5} {
		assert.Equal(t, facts[name], want, "got %s", name)
	}
	_, ok := facts["pid"]
	assert.True(t, !ok, "the client's process id is in the facts")
	pid := s.tree.Members()[0]
	assert.OK(t, s.Stop())
	assert.True(t, !alive(pid), "the container's process is still there")
	log := calls(t, dir)
	assert.Has(t, log,
		"--label carronade.system=1 --env "+roleEnv+" --env PASSWORD --memory 4294967296 --memory-swap 4294967296 --cpus 1.5 --publish 127.0.0.1:8200:8200 --network=host server:1 "+addr+" -E a=1\n",
		"stop -t 10 carronade-", "rm --force --volumes carronade-",
	)
	assert.True(t, !strings.Contains(log, canary), "the secret is in the engine's command line")
	assert.True(t, s.Totals().Peak != 0, "its peak is not known")
	noCanary(t, s)
}

func TestImageDies(t *testing.T) {
	fakeEngine(t)
	t.Setenv("FAKE_OOM", "1")
	addr := free(t)
	s := start(t, Spec{Image: "server:1", Args: []string{addr}, Env: []string{roleEnv + "=serve"}, Listen: []string{addr}, ReadyWithin: time.Minute})
	testkit.Until(t, "its words", func() bool { return len(s.LastLines()) > 0 })
	_ = syscall.Kill(s.tree.Members()[0], syscall.SIGKILL)
	testkit.Wait(t, "its end", s.Died())
	e := s.Exit()
	assert.True(t, e.OutOfMemory && strings.Contains(e.Status, "exit status 137") && strings.Contains(e.Status, "memory limit"), "got %+v, want its end at the limit", e)
	lines := s.LastLines()
	assert.True(t, len(lines) > 0 && strings.Contains(lines[0], "listening on"), "got the last lines %q", lines)
}

func TestContainer(t *testing.T) {
	dir := fakeEngine(t)
	addr := free(t)
	cmd := exec.Command("docker", "run", "--name", "theirs", "server:1", addr)
	cmd.Env = append(os.Environ(), roleEnv+"=serve")
	assert.OK(t, cmd.Start())
	defer func() { _ = cmd.Wait() }()
	box := &container{program: cmd.Path, name: "theirs"}
	testkit.Until(t, "the container", func() bool { return box.inspect(t.Context()) == nil && box.facts().State.Pid > 0 })
	defer func() { _ = syscall.Kill(box.facts().State.Pid, syscall.SIGKILL) }()
	s := start(t, Spec{Container: "theirs", Ready: "log:ready to serve", ReadyWithin: time.Minute})
	got, err := s.Figures(t.Context())
	n, _ := figure(got, "processes")
	assert.True(t, err == nil && n == 1, "got %v processes, %v, want the container's", n, err)
	facts := s.Facts()
	assert.True(t, facts["container"] == "theirs" && facts["image"] == "server:1", "got %v", facts)
	assert.OK(t, s.Stop())
	assert.True(t, alive(box.facts().State.Pid), "a container that was not started here was ended")
	log := calls(t, dir)
	assert.True(t, !strings.Contains(log, "stop") && !strings.Contains(log, "rm "), "got the calls\n%swant none that ends a container", log)
	s = start(t, Spec{Container: "theirs"})
	_ = syscall.Kill(box.facts().State.Pid, syscall.SIGTERM)
	<-s.Died()
	e := s.Exit()
	assert.True(t, e.Status != "", "got %+v, want a status", e)
	lines := s.LastLines()
	assert.True(t, len(lines) == 1 && lines[0] == "logged: ready to serve", "got the last lines %q, want the engine's", lines)
}

func TestEngineFails(t *testing.T) {
	fakeEngine(t)
	for _, test := range []struct {
		name string
		spec Spec
		env  string
		want []string
	}{
		{"no such container", Spec{Container: "missing"}, "", []string{"find the container missing", "no such container", "docker ps"}},
		{"no such image", Spec{Image: "other:2"}, "", []string{"find the image other:2", "no such image", "docker pull other:2"}},
		{"an image that no build made", Spec{Image: "{image}", Build: &Build{Image: "made:1"}}, "", []string{"find the image made:1", "--system-build must make it"}},
		{"no such engine", Spec{Image: "server:1", Engine: "podman"}, "", []string{"podman is not installed", "--system-cmd"}},
		{"the engine does not work", Spec{Image: "server:1"}, "FAKE_BROKEN", []string{"Cannot connect to the daemon", "docker info"}},
		{"ends at once", Spec{Image: "server:1", Args: []string{"9", "broken"}, Env: []string{roleEnv + "=exit"}, Ready: "port:1"}, "", []string{"exit status 9", "broken"}},
		{"a JVM's log", Spec{Image: "server:1", JVMGC: true}, "", []string{"it is in a container", "--system-gc-log"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.env != "" {
				t.Setenv(test.env, "1")
			}
			s, err := Start(t.Context(), test.spec)
			if err == nil {
				_ = s.Stop()
				t.Fatal("it started, want an error")
			}
			var e *protocol.Error
			assert.Must(t, errors.As(err, &e), "got %v, want a *target.Error", err)
			text := e.Error() + " / " + e.Hint
			for _, want := range test.want {
				assert.True(t, strings.Contains(text, want), "got %q, want it to contain %q", text, want)
			}
		})
	}
}

// TestPodman runs a real container if podman works: an image with only this binary, without anything from a network.
func TestPodman(t *testing.T) {
	if os.Getenv("CARRONADE_TEST_PODMAN") == "" {
		t.Skip("set CARRONADE_TEST_PODMAN to run a real container")
	}
	podman, err := exec.LookPath("podman")
	if err != nil {
		t.Skip("podman is not installed")
	}
	dir := t.TempDir()
	exe, _ := os.Executable()
	assert.OK(t, os.WriteFile(filepath.Join(dir, "server"), assert.Value(os.ReadFile(exe))(t), 0o755))
	assert.OK(t, os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte("FROM scratch\nCOPY server /server\nENTRYPOINT [\"/server\"]\n"), 0o644))
	const image = "carronade-sut-test:1"
	out, err := exec.Command(podman, "build", "--tag", image, dir).CombinedOutput()
	assert.Must(t, err == nil, "%v: %s", err, out)
	defer func() { _ = exec.Command(podman, "image", "rm", "--force", image).Run() }()
	addr := free(t)
	s := start(t, Spec{
		Image: image, Engine: "podman", Args: []string{addr}, Env: []string{roleEnv + "=serve"}, Memory: 256 << 20, CPUs: 1,
		RunArgs: strings.Fields("--network=host " + os.Getenv("CARRONADE_TEST_PODMAN")), Listen: []string{addr}, ReadyWithin: time.Minute, Logf: t.Logf,
	})
	get(t, addr, "/hold?mib=64")
	got, err := s.Figures(t.Context())
	rss, _ := figure(got, "RSS")
	assert.True(t, err == nil && rss >= 64<<20, "got RSS %v, %v, want the container's 64 MiB", rss, err)
	go getQuietly(addr, "/hold?mib=400")
	testkit.Wait(t, "its end at the limit", s.Died())
	// Under control groups of version 1 the engine may not know why.
	e := s.Exit()
	assert.True(t, e.Code == 137, "got %+v, want its end at the limit", e)
	assert.OK(t, s.Stop())
}

// TestPause: a container stands still by its engine, and goes on.
func TestPause(t *testing.T) {
	dir := fakeEngine(t)
	addr := free(t)
	s := start(t, Spec{Image: "server:1", Args: []string{addr}, Env: []string{roleEnv + "=serve"}, Listen: []string{addr}, ReadyWithin: time.Minute})
	assert.True(t, s.InContainer(), "it is not in a container")
	pid := s.Members()[0]
	state := func(want bool) {
		testkit.Until(t, "the state of its process", func() bool {
			data, err := os.ReadFile("/proc/" + itoa(pid) + "/stat")
			return err == nil && strings.Contains(string(data), ") T ") == want
		})
	}
	assert.OK(t, s.Pause(t.Context()))
	state(true)
	assert.OK(t, s.Unpause(t.Context()))
	state(false)
	log := calls(t, dir)
	assert.True(t, strings.Contains(log, "\npause carronade-") && strings.Contains(log, "\nunpause carronade-"), "got the calls\n%s", log)
	plain := new(System)
	err := plain.Pause(t.Context())
	assert.True(t, err != nil && !plain.InContainer(), "a command is paused as a container: %v", err)
}

// A system on another machine has its revision and its own metrics; nothing is started, waited for or ended.
func TestElsewhere(t *testing.T) {
	vars := testkit.HTTP(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"active": 5}`)) })
	// The target's address never answers, and nothing waits for it.
	s := assert.Value(Start(t.Context(), Spec{Vars: vars.URL + "/debug/vars", Listen: []string{free(t)}, ReadyWithin: time.Hour}))(t)
	got, err := s.Figures(t.Context())
	v, ok := figure(got, "active")
	assert.True(t, err == nil && ok && v == 5, "got %v, %v, want its metric", got, err)
	assert.OK(t, s.Stop())
	select {
	case <-s.Died():
		t.Error("Died is closed for a system that is not watched")
	default:
	}
}

// A system without a repository has the revision that the user gives.
func TestRevisionInWords(t *testing.T) {
	s := assert.Value(Start(t.Context(), Spec{Revision: "4.1.0-rc2", Listen: []string{free(t)}}))(t)
	defer s.Stop()
	f := s.Facts()
	assert.True(t, f["revision"] == "4.1.0-rc2" && f["revision_date"] == nil && f["branch"] == nil, "the facts are %v", f)
}

// A system that is restarted has not ended, all its processes are others, and Stop ends the new ones.
func TestRestart(t *testing.T) {
	testkit.Program(t, "sh")
	s := assert.Value(Start(t.Context(), Spec{Command: "sh -c 'sleep 1000 & sleep 1000; true'"}))(t)
	before := s.Members()
	gone := 0
	assert.OK(t, s.Restart(t.Context(), 10*time.Millisecond, func() { gone = len(s.Members()) }))
	assert.True(t, gone == 0 && len(before) != 0, "%d processes before, %d after they were killed", len(before), gone)
	after := s.Members()
	for end := time.Now().Add(time.Minute); len(after) == 0; after = s.Members() { // one that executes a program is found by the next look
		assert.Must(t, !time.Now().After(end), "no process after it")
		<-time.After(time.Millisecond)
	}
	for _, a := range after {
		for _, b := range before {
			assert.True(t, a != b, "process %d is still there", a)
		}
	}
	select {
	case <-s.Died():
		t.Error("it counts as dead")
	default:
	}
	assert.OK(t, s.Stop())
	assert.True(t, s.Exit().Status != "", "it has no end")
}

// TestRestartIsCanceled: a run that ends at the same time leaves nothing running, and Stop does not wait.
func TestRestartIsCanceled(t *testing.T) {
	testkit.Program(t, "sh")
	s := assert.Value(Start(t.Context(), Spec{Command: "sleep 1000"}))(t)
	ctx, cancel := context.WithCancel(t.Context())
	err := s.Restart(ctx, time.Hour, cancel)
	assert.True(t, errors.Is(err, context.Canceled), "got %v", err)
	assert.OK(t, s.Stop())
	found := assert.Value(Start(t.Context(), Spec{Vars: "http://127.0.0.1:1/"}))(t)
	assert.True(t, found.Restart(t.Context(), 0, func() {}) != nil, "a system that was not started here is restarted")
	_ = found.Stop()
}
