package system

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	"carronade/internal/conn"
	"carronade/internal/host"
	"carronade/internal/secret"
	"carronade/protocol"
)

// A System is a system under test that was started or found. Its methods are
// safe for concurrent use.
type System struct {
	spec  Spec
	ready readiness
	tag   string
	mask  *secret.Mask
	shown string // the command line, without secrets
	flags map[string]string
	git   *GitFacts
	web   *http.Client

	words, env []string // of the command, and its folder, to start it again
	dir        string

	child     *host.Child // what was started: the command, or the engine's client
	container *container  // nil without an engine
	limits    *limits     // nil without limits, or if the engine applies them
	tail      *tail
	output    output
	printer   *printer      // nil if the output is not shown, or if nothing was started
	died      chan struct{} // closed when it ended by itself
	ended     chan struct{} // closed when it ended, stopped or not
	once      sync.Once     // of its end

	readyAfter time.Duration
	started    time.Time
	stop       func() error
	gcDir      string // made for the JVM's log

	vars, metrics *source
	gc            *gcLog

	reading  sync.Mutex // of the sources of figures: held while they are read
	mu       sync.Mutex // of what follows
	tree     *host.Tree
	process  string    // the root's name
	before   host.Look // at the last Figures
	latest   host.Look // the last with a living process
	exit     *Exit
	stopping bool
	forked   bool
	// restarting is set while the command is not running because of Restart.
	restarting bool
	warnings   []string
}

// An Exit is how a system ended.
type Exit struct {
	Status      string        // "exit status 3", "signal: killed", ...
	Code        int           // -1 if a signal ended it, or if it is unknown
	Signal      string        // that ended it; ""
	OutOfMemory bool          // the kernel ended it at its memory limit
	At          time.Time     // when that was noticed
	After       time.Duration // since it was started or found
}

// Start starts the system, or finds it, and waits until it is ready. If it
// returns an error, nothing that was started here is left running; the error
// says what was tried, with the system's last output, and is a *protocol.Error
// with a hint. The context is only for starting. Stop releases the build in
// spec, or Start itself after an error.
func Start(ctx context.Context, spec Spec) (*System, error) {
	s := &System{
		spec: spec, mask: new(secret.Mask), flags: make(map[string]string), tag: rand.Text(), output: output{most: keptOutput},
		died: make(chan struct{}), ended: make(chan struct{}), started: time.Now(),
		web: newWeb(),
	}
	s.stop = sync.OnceValue(s.end)
	if err := s.check(); err != nil {
		return nil, err
	}
	if err := s.describe(ctx); err != nil {
		return nil, err
	}
	if err := s.start(ctx); err != nil {
		s.stopSilently()
		return nil, err
	}
	if err := s.await(ctx); err != nil {
		s.stopSilently()
		return nil, err
	}
	return s, nil
}

// Check finds the errors of a spec that can be found without starting anything,
// since a long build may come before Start. The errors are those of Start.
func Check(spec Spec) error {
	s := &System{spec: spec, mask: new(secret.Mask), flags: make(map[string]string)}
	if err := s.check(); err != nil {
		return err
	}
	err := s.openSources()
	switch {
	case err != nil:
	case spec.Command != "":
		_, _, err = s.prepareCommand(spec.Command)
	case spec.Image != "":
		if _, err = s.flagWords(); err == nil {
			_, err = s.environment()
		}
	}
	return err
}

// newWeb returns a client for asking whether the system is ready. It keeps no
// connection, which would be one more than the run has.
func newWeb() *http.Client {
	client := conn.HTTPClient(&http.Transport{Proxy: nil, DisableKeepAlives: true})
	client.Timeout = tryTimeout
	return client
}

func (s *System) stopSilently() {
	_ = s.Stop()
}

// check fills in defaults and refuses invalid specs.
func (s *System) check() error {
	spec := &s.spec
	if spec.Logf == nil {
		spec.Logf = func(string, ...any) {}
	}
	if spec.accept == nil {
		spec.accept = accepts
	}
	spec.FlagFormat = cmp.Or(spec.FlagFormat, DefaultFlagFormat)
	if spec.ReadyWithin <= 0 {
		spec.ReadyWithin = DefaultReadyWithin
	}
	if spec.StopWithin <= 0 {
		spec.StopWithin = DefaultStopWithin
	}
	s.mask.Add(spec.Secrets...)
	n := 0
	for _, given := range []bool{spec.Command != "", spec.PID != 0, spec.Container != "", spec.Image != ""} {
		if given {
			n++
		}
	}
	refuse := func(doing, why, hint string) error {
		return &protocol.Error{Doing: doing, Err: errors.New(why), Hint: hint}
	}
	starts := spec.Command != "" || spec.Image != ""
	// For a system on another machine only its revision and its own metrics are
	// known.
	elsewhere := n == 0 && (spec.Git != "" || spec.Revision != "" || spec.Build != nil || spec.Vars != "" || spec.Metrics != "" || spec.GCLog != "")
	if elsewhere {
		spec.Listen = nil // opening the target says more when nothing listens
	}
	switch {
	case n != 1 && !elsewhere:
		return refuse("find the system under test", "exactly one way to find it must be given", "give one of --system-cmd, --system-pid, --system-container and --system-image")
	case spec.PID < 0:
		return refuse("find the system under test", fmt.Sprintf("%d is not a process id", spec.PID), "give --system-pid the number that ps shows")
	case !starts && (len(spec.Flags) > 0 || len(spec.Env) > 0 || spec.Memory != 0 || spec.CPUs != 0 || spec.JVMGC):
		return refuse("set up the system", "it is already running: flags, environment, limits and the JVM's log need a system that is started here", "start it with --system-cmd or --system-image")
	case spec.Memory < 0 || spec.CPUs < 0:
		return refuse("limit the system", "a limit must not be negative", "give --system-mem a size and --system-cpus a number of processors")
	case spec.Image != "" && spec.JVMGC:
		return refuse("make the JVM write its log", "it is in a container, whose files cannot be read from here", "set JAVA_TOOL_OPTIONS with --system-env, write the log to a mounted folder, and read it with --system-gc-log")
	case spec.JVMGC && spec.GCLog != "":
		return refuse("read the JVM's log", "both --system-jvm-gc and --system-gc-log are given", "the first makes its own log; leave one out")
	}
	var err error
	if s.ready, err = parseReady(spec.Ready, spec.Listen); err != nil {
		return &protocol.Error{Doing: "read --system-ready " + s.mask.Text(spec.Ready), Err: err, Hint: "such as http://127.0.0.1:8200/, port:8200 or log:started"}
	}
	if s.ready.log != "" && spec.PID != 0 {
		return refuse("wait for a text in the output", "the output of a running process cannot be read", "wait for a URL or a port")
	}
	s.tail = newTail(s.ready.log)
	return nil
}

// describe finds the facts that are known before anything is started: the
// revision, and the sources of figures.
func (s *System) describe(ctx context.Context) error {
	if b := s.spec.Build; b != nil {
		s.git = &b.GitFacts
	} else if s.spec.Git != "" {
		f, err := ReadGit(ctx, s.spec.Git)
		if err != nil {
			return err
		}
		s.git = &f
		if f.Dirty {
			s.warn("the git folder has uncommitted changes: the revision alone does not identify what ran")
		}
	}
	if err := s.openSources(); err != nil {
		return err
	}
	if s.spec.GCLog != "" {
		// Skip what a running system wrote before this run.
		s.gc = newGCLog(s.spec.GCLog, false)
		s.gc.OnPause = s.paused
		_, _ = s.gc.Figures(ctx)
	}
	return nil
}

// openSources creates the sources of figures; it reads none.
func (s *System) openSources() (err error) {
	filter := newFilter(s.spec.Names)
	if s.spec.Vars != "" {
		if s.vars, err = expvarSource(s.spec.Vars, s.spec.Header, filter); err != nil {
			return &protocol.Error{Doing: "prepare --system-vars", Err: err, Hint: "such as http://127.0.0.1:8200/debug/vars"}
		}
	}
	if s.spec.Metrics != "" {
		if s.metrics, err = prometheusSource(s.spec.Metrics, s.spec.Header, filter); err != nil {
			return &protocol.Error{Doing: "prepare --system-metrics", Err: err, Hint: "such as http://127.0.0.1:9100/metrics"}
		}
		for _, t := range s.spec.Stages {
			s.metrics.stages = append(s.metrics.stages, stage{Stage: t})
		}
	}
	return nil
}

// start starts the system, if it is to be started, and begins to watch it.
func (s *System) start(ctx context.Context) error {
	s.started = time.Now()
	switch {
	case s.spec.PID != 0:
		return s.attach(s.spec.PID)
	case s.spec.Container != "":
		return s.attachContainer(ctx)
	case s.spec.Command == "" && s.spec.Image == "": // elsewhere
		return nil
	}
	if err := s.refuseOther(ctx); err != nil {
		return err
	}
	if s.spec.Image != "" {
		return s.runImage(ctx)
	}
	return s.runCommand()
}

// attach watches a running process and its descendants.
func (s *System) attach(pid int) error {
	tree, err := host.OpenTree(pid, "")
	if err != nil {
		hint := "give the number that ps shows"
		switch {
		case errors.Is(err, host.ErrGone) && s.container == nil:
			err = errors.New("no such process")
		case errors.Is(err, host.ErrUnwatched):
			hint = "leave out --system-pid: the system gets the load, but is not watched"
		case s.container != nil:
			hint = "the engine runs its containers in a virtual machine or on another host; run Carronade there"
		}
		return &protocol.Error{Doing: fmt.Sprintf("watch process %d", pid), Err: err, Hint: hint}
	}
	if pid == os.Getpid() {
		tree.Close()
		return &protocol.Error{Doing: fmt.Sprintf("watch process %d", pid), Err: errors.New("it is carronade's own process"), Hint: "give the process id of the system under test"}
	}
	s.watch(tree)
	go s.follow(tree)
	return nil
}

func (s *System) watch(tree *host.Tree) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tree, s.process = tree, tree.Name()
	s.before = tree.Look()
	s.latest = s.before
}

// followInterval is how often to check whether a process that is not a child is
// still there: one system call each time.
const followInterval = 100 * time.Millisecond

// follow waits for the end of a process that is not a child.
func (s *System) follow(tree *host.Tree) {
	ticker := time.NewTicker(followInterval)
	defer ticker.Stop()
	for range ticker.C {
		s.mu.Lock()
		gone := s.tree == nil // closed
		if !gone {
			gone = tree.RootEnded()
			if s.forked {
				gone = tree.Ended() && !s.lookNow().alive
			}
		}
		stopping := s.stopping
		s.mu.Unlock()
		if gone && stopping && s.child == nil {
			close(s.ended) // it may continue to run: only the watching ended
			return
		}
		if gone {
			s.recordEnd(Exit{Status: "it ended; its exit status is unknown, since it was not started here", Code: -1}, stopping)
			return
		}
	}
}

type lookResult struct{ alive bool }

// lookNow looks at the tree; s.mu is held.
func (s *System) lookNow() lookResult {
	l := s.tree.Look()
	if l.Processes > 0 {
		s.latest = l
		return lookResult{true}
	}
	peak, cpu := max(s.latest.Peak, l.Peak), max(s.latest.CPU, l.CPU)
	s.latest.Peak, s.latest.CPU = peak, cpu
	return lookResult{}
}

// recordEnd records the end of the system.
func (s *System) recordEnd(e Exit, stopping bool) {
	s.once.Do(func() { s.recordFirstEnd(e, stopping) })
}

func (s *System) recordFirstEnd(e Exit, stopping bool) {
	e.At = time.Now()
	e.After = e.At.Sub(s.started)
	if !stopping && s.spec.Happened != nil {
		s.spec.Happened("end of the system", time.Now(), 0)
	}
	if s.limits.outOfMemory() {
		e.OutOfMemory = true
		e.Status += ", ended by the kernel at its memory limit"
	}
	if s.container != nil {
		s.container.readExit(&e)
	}
	s.mu.Lock()
	s.exit = &e
	s.mu.Unlock()
	close(s.ended)
	if !stopping {
		close(s.died)
	}
}

// Died is closed when the system ended without being asked.
func (s *System) Died() <-chan struct{} { return s.died }

// Exit is how the system ended; the zero Exit while it runs.
func (s *System) Exit() Exit {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.exit == nil {
		return Exit{}
	}
	return *s.exit
}

// LastLines are the last lines of the system's output, without secrets; none
// for a process that was not started here.
func (s *System) LastLines() []string {
	if s.container != nil && s.spec.Container != "" {
		s.container.readLog(s.tail)
	}
	return s.tail.last(keptLines, s.mask.Text)
}

func (s *System) warn(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.warnings = append(s.warnings, text)
}
