package system

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"carronade/internal/host"
	"carronade/internal/secret"
	"carronade/protocol"
	"carronade/units"
)

// prepareCommand returns a command ready to be started: its words, and its
// environment in addition to that of this process.
func (s *System) prepareCommand(command string) (words, env []string, err error) {
	if b := s.spec.Build; b != nil {
		command = b.expand(command)
	}
	if words, err = secret.Split(command); err == nil && len(words) == 0 {
		err = errors.New("it is empty")
	}
	if err != nil {
		return nil, nil, &protocol.Error{Doing: "read --system-cmd", Err: err, Hint: "quote as for a shell, and write sh -c '...' if you need one"}
	}
	flags, err := s.flagWords()
	if err != nil {
		return nil, nil, err
	}
	env, err = s.environment()
	return withFlags(words, flags), env, err
}

// flagWords returns the flags as arguments. Reports show a flag as the user
// typed it, without secrets.
func (s *System) flagWords() ([]string, error) {
	var out []string
	for _, f := range s.spec.Flags {
		shown := f.Value
		value, hidden, err := secret.Read(f.Value)
		if err != nil {
			return nil, &protocol.Error{Doing: "read --system-flag " + f.Name, Err: err, Hint: "a value env:NAME or file:PATH is read from there"}
		}
		if hidden {
			s.mask.Add(value)
		} else {
			shown = s.mask.Value(f.Name, f.Value) // a secret without a reference is hidden, too
		}
		s.flags[f.Name] = shown
		words, err := formatFlag(s.spec.FlagFormat, Flag{f.Name, value})
		if err != nil {
			return nil, &protocol.Error{Doing: "read --system-flag-format " + s.spec.FlagFormat, Err: err, Hint: "such as '" + DefaultFlagFormat + "' or '--{name}={value}'"}
		}
		out = append(out, words...)
	}
	return out, nil
}

// environment returns the variables of the started process in addition to those
// of this process, the tag first.
func (s *System) environment() ([]string, error) {
	out := []string{host.TagEnv + "=" + s.tag}
	for _, e := range s.spec.Env {
		name, value, ok := strings.Cut(e, "=")
		if !ok || name == "" {
			return nil, &protocol.Error{Doing: "read --system-env", Err: fmt.Errorf("%q is not NAME=VALUE", s.mask.Text(e)), Hint: "such as --system-env GOGC=50"}
		}
		text, hidden, err := secret.Read(value)
		if err != nil {
			return nil, &protocol.Error{Doing: "read --system-env " + name, Err: err, Hint: "a value env:NAME or file:PATH is read from there"}
		}
		if hidden {
			s.mask.Add(text)
		}
		s.mask.Value(name, value)
		out = append(out, name+"="+text)
	}
	return out, nil
}

// runCommand starts the command and watches it.
func (s *System) runCommand() error {
	words, env, err := s.prepareCommand(s.spec.Command)
	if err != nil {
		return err
	}
	s.shown = s.mask.Command(words)
	if s.spec.JVMGC {
		if words, env, err = s.logJVM(words, env); err != nil {
			return err
		}
	}
	cmd := exec.Command(words[0], words[1:]...) //nolint:gosec,noctx // what the user asked to run; ended by Stop
	cmd.Dir = s.spec.Dir
	if cmd.Dir == "" && s.spec.Build != nil {
		cmd.Dir = s.spec.Build.Tree
	}
	cmd.Env = append(host.Environ(), env...)
	if s.spec.Memory > 0 || s.spec.CPUs > 0 {
		if s.limits, err = newLimits(s.tag, s.spec.Memory, s.spec.CPUs); err != nil {
			return s.limitError(err)
		}
		s.limits.apply(cmd)
	}
	s.words, s.env, s.dir = words, cmd.Env, cmd.Dir
	return s.launch(cmd)
}

func (s *System) limitError(err error) error {
	var what []string
	if s.spec.Memory > 0 {
		what = append(what, units.FormatSize(s.spec.Memory))
	}
	if s.spec.CPUs > 0 {
		what = append(what, fmt.Sprintf("%g processors", s.spec.CPUs))
	}
	return &protocol.Error{
		Doing: "limit the system to " + strings.Join(what, " and "), Err: err,
		Hint: "limits on a plain command need a writable cgroup of version 2: run as root, or under systemd-run --user --scope -p Delegate=yes; or use a container engine with --system-image",
	}
}

// launch starts cmd and watches it.
func (s *System) launch(cmd *exec.Cmd) error {
	s.spec.Logf("starting %s", s.shown)
	if s.spec.Output != nil {
		s.printer = newPrinter(func(line string) { s.spec.Output(s.mask.Text(line)) })
	}
	child, err := host.StartChild(cmd, s.line)
	if err != nil {
		hint := "the first word must be a program; shell built-ins need sh -c '...'"
		if p, ok := errors.AsType[*fs.PathError](err); ok {
			err = p.Err
			if st, e := os.Stat(cmd.Dir); cmd.Dir != "" && (e != nil || !st.IsDir()) { // the kernel's error does not say which of the two
				err = fmt.Errorf("go to its working folder %s: %w", cmd.Dir, err)
				hint = "--system-dir must be an existing folder"
			}
		}
		if x, ok := errors.AsType[*exec.Error](err); ok {
			err = x.Err
		}
		return &protocol.Error{Doing: "start " + s.shown, Err: err, Hint: hint}
	}
	s.child = child
	s.started = time.Now()
	if s.spec.Launched != nil {
		s.spec.Launched(s.Kill)
	}
	if s.container == nil {
		tree, err := host.OpenTree(child.Pid(), s.tag)
		for range leftoverChecks {
			if !errors.Is(err, host.ErrGone) {
				break
			}
			<-time.After(stopInterval)
			tree, err = host.OpenTree(child.Pid(), s.tag)
		}
		switch {
		case err == nil:
			s.watch(tree)
		case errors.Is(err, host.ErrUnwatched):
			s.warn("resource use can be read only on Linux: the system is started and stopped, but not watched")
		case !errors.Is(err, host.ErrGone):
			s.warn("the system is not watched: " + err.Error())
		}
	}
	go s.wait(child)
	return nil
}

// wait waits for the end of the started command. If it succeeds and leaves
// processes behind, it has gone into the background: then those are the system.
func (s *System) wait(child *host.Child) {
	<-child.Done()
	e := exitOf(child)
	s.mu.Lock()
	stopping, tree := s.stopping, s.tree
	replaced := child != s.child || s.restarting
	s.mu.Unlock()
	if replaced && !stopping {
		return // see Restart
	}
	forked := tree != nil && s.container == nil && !stopping && e.Code == 0 && s.hasLeftovers()
	if forked {
		s.follow(tree)
		return
	}
	// Its last output may still be in the pipe, but processes that it left
	// running may keep the pipe open forever.
	select {
	case <-child.Drained():
	case <-time.After(lastOutputTimeout):
	}
	s.recordEnd(e, stopping)
}

// leftoverChecks is how many times processes that an ended command left running
// are looked for, at stopInterval: a process cannot be recognized while it
// executes another program.
const leftoverChecks = 5

// hasLeftovers reports whether an ended command left processes running, and
// adds a warning if so.
func (s *System) hasLeftovers() bool {
	for range leftoverChecks {
		s.mu.Lock()
		if s.tree == nil {
			s.mu.Unlock()
			return false
		}
		if s.lookNow().alive {
			s.forked = true
			s.warnings = append(s.warnings, "the command went into the background: the processes it left running are watched, but their exit status is unknown")
			s.mu.Unlock()
			return true
		}
		s.mu.Unlock()
		<-time.After(stopInterval)
	}
	return false
}

// lastOutputTimeout is how long to wait for the last output.
const lastOutputTimeout = 200 * time.Millisecond

func exitOf(child *host.Child) Exit {
	state := child.State()
	if state == nil {
		return Exit{Status: fmt.Sprint(child.Err()), Code: -1}
	}
	return Exit{Status: state.String(), Code: state.ExitCode(), Signal: host.DeathSignal(state)}
}

// logJVM makes the JVM that the command starts write its log of collections to
// a file that is read here. If the command is not java itself but a script, the
// JVM takes the option from the environment.
func (s *System) logJVM(words, env []string) ([]string, []string, error) {
	dir, err := os.MkdirTemp("", "carronade-gc-")
	if err != nil {
		return nil, nil, fmt.Errorf("make a folder for the JVM's log: %w", err)
	}
	s.gcDir = dir
	log := filepath.Join(dir, "gc-%p.log")
	option := "-Xlog:gc*:file=" + log + ":time,uptime,level,tags:filecount=0"
	s.gc = newGCLog(log, true)
	s.gc.OnPause = s.paused
	if base := strings.TrimSuffix(filepath.Base(words[0]), ".exe"); base == "java" {
		return append([]string{words[0], option}, words[1:]...), env, nil
	}
	const name = "JAVA_TOOL_OPTIONS"
	if strings.ContainsAny(log, " \t'\"") {
		return nil, nil, &protocol.Error{Doing: "make the JVM write its log", Err: errors.New("the folder for temporary files has a space in its name, which " + name + " cannot hold"), Hint: "set TMPDIR to a folder without spaces"}
	}
	had := os.Getenv(name)
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, name+"="); ok {
			had = v
		}
	}
	return words, append(env, strings.TrimSpace(name+"="+strings.TrimSpace(had+" "+option))), nil
}
