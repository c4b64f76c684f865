package system

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"carronade/internal/host"
	"carronade/protocol"
)

// engineTimeout is how long an engine may take for a request, in addition to
// any time that it is asked to wait.
const engineTimeout = 20 * time.Second

// Label marks containers that were started here, so that they can be found
// after a crash of the machine.
const Label = "carronade.system"

// A container is a system in a container, used through an engine's command line
// program: the arguments needed are the same for docker and podman.
type container struct {
	program string // path of the engine's program
	name    string // or id
	logOnce sync.Once

	mu    sync.Mutex
	known inspected // at the last inspect
}

// inspected has the fields that are read from `inspect`, which are the same for
// both engines.
type inspected struct {
	ID    string `json:"Id"`
	Image string // its id
	State struct {
		Running   bool
		Paused    bool
		Pid       int
		ExitCode  int
		OOMKilled bool
	}
	Config struct {
		Image string // its name
	}
	HostConfig struct {
		Memory   int64
		NanoCpus int64
	}
}

// run runs the engine's program once.
func (c *container) run(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, engineTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.program, args...) //nolint:gosec // arguments, not a shell's text
	cmd.Env = host.Environ()
	host.Apart(cmd) // a second interrupt must not end what undoes a fault
	cmd.WaitDelay = time.Second
	var out, words bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &words
	err := cmd.Run()
	if err == nil {
		return out.String(), nil
	}
	if ctx.Err() != nil {
		return "", fmt.Errorf("%s %s: %w", c.kind(), args[0], ctx.Err())
	}
	if text := strings.TrimSpace(words.String()); text != "" {
		lines := strings.Split(text, "\n")
		err = errors.New(lines[len(lines)-1])
	}
	return "", fmt.Errorf("%s %s: %w", c.kind(), args[0], err)
}

func (c *container) kind() string { return strings.TrimSuffix(filepath.Base(c.program), ".exe") }

// findEngine finds an engine that works: the requested one, or the first of
// docker and podman.
func findEngine(ctx context.Context, asked string) (*container, error) {
	names := []string{"docker", "podman"}
	if asked != "" {
		names = []string{asked}
	}
	var errs []string
	for _, name := range names {
		program, err := exec.LookPath(name)
		if err != nil {
			errs = append(errs, name+" is not installed")
			continue
		}
		c := &container{program: program}
		if _, err := c.run(ctx, "info"); err != nil {
			errs = append(errs, err.Error())
			continue
		}
		return c, nil
	}
	return nil, &protocol.Error{
		Doing: "find a container engine", Err: errors.New(strings.Join(errs, "; ")),
		Hint: "install docker or podman, check that `docker info` works for this user, or start the system with --system-cmd",
	}
}

func (c *container) inspect(ctx context.Context) error {
	out, err := c.run(ctx, "inspect", "--type", "container", c.name)
	if err != nil {
		return err
	}
	var all []inspected
	if err := json.Unmarshal([]byte(out), &all); err != nil || len(all) != 1 {
		return fmt.Errorf("%s inspect printed invalid output: %w", c.kind(), cmpErr(err))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known = all[0]
	return nil
}

// facts returns the result of the last inspect.
func (c *container) facts() inspected {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known
}

func cmpErr(err error) error {
	if err == nil {
		return errors.New("not one container")
	}
	return err
}

// attachContainer watches a container that is already running.
func (s *System) attachContainer(ctx context.Context) error {
	box, err := findEngine(ctx, s.spec.Engine)
	if err != nil {
		return err
	}
	box.name = s.spec.Container
	if err := box.inspect(ctx); err != nil {
		return &protocol.Error{Doing: "find the container " + box.name, Err: err, Hint: "see " + box.kind() + " ps"}
	}
	state := box.facts().State
	if !state.Running || state.Pid <= 0 {
		return &protocol.Error{Doing: "find the container " + box.name, Err: errors.New("it is not running"), Hint: "start it first: " + box.kind() + " start " + box.name}
	}
	s.container = box
	if s.ready.log != "" {
		go s.followLog(box)
	}
	return s.attach(state.Pid)
}

// followLog looks for the readiness text in the container's future and recent
// output.
func (s *System) followLog(box *container) {
	cmd := exec.Command(box.program, "logs", "--follow", "--tail", "1000", box.name) //nolint:gosec,noctx // ended below
	cmd.Env = host.Environ()
	child, err := host.StartChild(cmd, s.tail.add)
	if err != nil {
		return
	}
	select {
	case <-s.tail.found:
	case <-s.ended:
	case <-time.After(s.spec.ReadyWithin):
	}
	child.Kill()
}

// runImage starts a container of an image. The engine's client stays in the
// foreground: its output is the container's, it ends with the container, and it
// forwards the TERM that the kernel sends to it when this process ends.
func (s *System) runImage(ctx context.Context) error {
	box, err := findEngine(ctx, s.spec.Engine)
	if err != nil {
		return err
	}
	image := s.spec.Image
	if s.spec.Build != nil {
		image = s.spec.Build.expand(image)
	}
	if _, err := box.run(ctx, "image", "inspect", image); err != nil {
		hint := box.kind() + " pull " + image + " first: a run does not pull images"
		if s.spec.Build != nil && image == s.spec.Build.Image {
			hint = "--system-build must make it: " + box.kind() + " build --tag {image} . ; if the image was built before, carronade system prune --all forces a rebuild"
		}
		return &protocol.Error{Doing: "find the image " + image, Err: errors.New(s.mask.Text(err.Error())), Hint: hint}
	}
	flags, err := s.flagWords()
	if err != nil {
		return err
	}
	env, err := s.environment()
	if err != nil {
		return err
	}
	// No tag: the engine's own processes would have it, and within a container
	// the first process is the parent of all orphans.
	env = env[1:]
	box.name = "carronade-" + strings.ToLower(s.tag[:12])
	args := []string{"run", "--name", box.name, "--label", Label + "=1"}
	for _, e := range env {
		name, _, _ := strings.Cut(e, "=") // the value stays out of the command line
		args = append(args, "--env", name)
	}
	if m := s.spec.Memory; m > 0 {
		n := strconv.FormatInt(m, 10)
		args = append(args, "--memory", n, "--memory-swap", n)
	}
	if s.spec.CPUs > 0 {
		args = append(args, "--cpus", strconv.FormatFloat(s.spec.CPUs, 'g', -1, 64))
	}
	for _, p := range s.spec.Publish {
		args = append(args, "--publish", p)
	}
	args = append(args, s.spec.RunArgs...)
	args = append(args, image)
	args = append(args, withFlags(s.spec.Args, flags)...)
	s.shown = s.mask.Command(append([]string{box.kind()}, args...))
	s.container = box
	cmd := exec.Command(box.program, args...) //nolint:gosec,noctx // ended by Stop
	cmd.Dir = s.spec.Dir
	cmd.Env = append(host.Environ(), env...)
	if err := s.launch(cmd); err != nil {
		return err
	}
	return s.watchContainer(ctx)
}

// watchContainer waits until the container has a process, and watches it.
func (s *System) watchContainer(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.spec.ReadyWithin)
	defer cancel()
	ticker := time.NewTicker(followInterval)
	defer ticker.Stop()
	for {
		err := s.container.inspect(ctx)
		if state := s.container.facts().State; err == nil && state.Running && state.Pid > 0 {
			break
		}
		select {
		case <-s.died:
			return &protocol.Error{Doing: "start the system", Err: s.withLastOutput(fmt.Errorf("its container exited at once: %s", s.Exit().Status)), Hint: "try it manually: " + s.shown}
		case <-ctx.Done():
			return &protocol.Error{Doing: "start the system", Err: s.withLastOutput(fmt.Errorf("its container is not running: %w", ctx.Err())), Hint: "try it manually: " + s.shown}
		case <-ticker.C:
		}
	}
	tree, err := host.OpenTree(s.container.facts().State.Pid, s.tag)
	switch {
	case err == nil:
		s.watch(tree)
	case errors.Is(err, host.ErrGone):
		select {
		case <-s.died:
		case <-time.After(lastOutputTimeout):
			s.warn("the engine runs the container in a virtual machine or on another host: it is started and stopped, but not watched")
		}
	default:
		s.warn("the container is not watched: " + err.Error())
	}
	return nil
}

// stop asks the container to end, and makes the engine kill it after patience.
func (c *container) stop(patience time.Duration) {
	seconds := strconv.Itoa(max(1, int((patience+time.Second-1)/time.Second)))
	ctx, cancel := context.WithTimeout(context.Background(), patience+engineTimeout)
	go func() {
		defer cancel()
		cmd := exec.CommandContext(ctx, c.program, "stop", "-t", seconds, c.name) //nolint:gosec // arguments, not a shell's text
		cmd.Env = host.Environ()
		host.Apart(cmd)
		_ = cmd.Run()
	}()
}

func (c *container) kill() { _, _ = c.run(context.Background(), "kill", c.name) }

// close removes a container that was started here.
func (c *container) close(byUs bool) {
	if byUs {
		_, _ = c.run(context.Background(), "rm", "--force", "--volumes", c.name)
	}
}

// readExit adds what the engine knows about the end. A container that removes
// itself is gone by then.
func (c *container) readExit(e *Exit) {
	if c.inspect(context.Background()) != nil {
		return
	}
	state := c.facts().State
	if state.Running {
		return
	}
	e.Code = state.ExitCode
	e.Status = fmt.Sprintf("exit status %d", e.Code)
	if e.Code == 128+9 {
		e.Status += ", which is KILL"
	}
	if e.OutOfMemory = state.OOMKilled; e.OutOfMemory {
		e.Status += ", ended by the kernel at its memory limit"
	}
}

// readLog fetches the last lines of a container that was not started here,
// after its end.
func (c *container) readLog(t *tail) {
	c.logOnce.Do(func() {
		cmd := exec.Command(c.program, "logs", "--tail", strconv.Itoa(keptLines), c.name) //nolint:gosec,noctx // it ends after printing
		cmd.Env = host.Environ()
		child, err := host.StartChild(cmd, t.add)
		if err != nil {
			return
		}
		select {
		case <-child.Drained():
		case <-time.After(engineTimeout):
			child.Kill()
		}
	})
}
