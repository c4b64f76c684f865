package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"carronade/internal/cli/cmdutil"
	"carronade/internal/host"
	"carronade/internal/live"
	"carronade/internal/report"
	"carronade/internal/run"
	"carronade/internal/serve"
	"carronade/internal/verdict/trust"
	"carronade/internal/workload"
	"carronade/protocol"
)

// A Program is one command line with its streams and signals.
type Program struct {
	Kinds []protocol.Kind
	Args  []string // without the program's name
	In    io.Reader
	Out   io.Writer // results
	Err   io.Writer // progress and messages
	// Signals delivers interrupts; nil: none. The first stops a run, the second exits at once,
	// but see sameSignal.
	Signals <-chan os.Signal
	// Exit ends the process at once. Nil: os.Exit.
	Exit func(code int)
	// Measured may change each report before it is stored, for tests; nil: none. Steps of a
	// scenario call it at the same time.
	Measured func(*report.Document)
	// Room is what runs may take of the machine, for tests; nil: what is free.
	Room *protocol.Room
	// Others is what else uses the machine, for tests; nil: each run measures it.
	Others *trust.Others
}

// OS returns the program as the operating system started it.
func OS(kinds []protocol.Kind) *Program {
	// A reader that closes early (`| head`) must not kill a run: its report may also go to a
	// file, and its exit code matters.
	signal.Ignore(syscall.SIGPIPE)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // nohup ignores it
		signal.Notify(signals, syscall.SIGHUP) // the terminal was closed, and started processes must end
	}
	return &Program{Kinds: kinds, Args: called(os.Args), In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Signals: signals}
}

// Main runs the command line and returns its exit code.
func (p *Program) Main() int {
	out := &stdout{w: p.Out}
	ctx, stop := context.WithCancelCause(context.Background())
	defer stop(nil)
	s := &session{Program: p, out: out, interrupt: stop}
	defer s.watchSignals()()

	if err := s.takeRules(); err != nil {
		s.printError(err)
		return host.ExitFailed
	}
	root := s.root()
	if completes(p.Args) {
		register(root)
	}
	root.SetArgs(p.Args)
	root.SetOut(out)
	root.SetErr(p.Err)
	root.SetIn(p.In)
	root.InitDefaultHelpCmd() // cobra would add it later, and checkOnce looks for the command
	err := checkOnce(root, p.Args)
	if err == nil {
		_, err = root.ExecuteContextC(ctx)
	}
	s.closeFrames()
	if err == nil {
		err = s.helpError
	}
	if problem := s.pprof.stop(); problem != nil {
		s.printError(problem)
		if err == nil {
			err = exitCode{Code: host.ExitFailed}
		}
	}
	code := host.ExitOK
	var c exitCode
	switch {
	case err == nil:
	case errors.As(err, &c):
		code = c.Code
		if c.Err != nil {
			s.printError(c.Err)
		}
	default:
		code = host.ExitFailed
		s.printError(err)
	}
	if errors.Is(context.Cause(ctx), run.ErrMemory) {
		s.printError(context.Cause(ctx))
		code = host.ExitFailed
	}
	if out.err != nil {
		s.printError(&protocol.Error{Err: errors.New("cannot write to stdout: " + cmdutil.Reason(out.err)), Hint: s.lost()})
		code = host.ExitFailed
	}
	return code
}

// A session is a running Program.
type session struct {
	*Program
	out       *stdout
	interrupt func(cause error)
	pprof     pprofFlags
	// restore is the watcher whose status line is on the terminal; the line is removed before
	// an exit at once.
	restore atomic.Pointer[live.Watcher]
	// ends stops what runs have started (the systems under test), which must not outlive this
	// program.
	ends ends
	// taken is the memory that the runs in progress need, in bytes; taking is locked while a run takes some.
	taken  atomic.Int64
	taking sync.Mutex
	// errLines is locked while a line of a system's output is written.
	errLines sync.Mutex

	// helpError is why the requested help could not be printed: the parser has no way to return
	// an error for it.
	helpError error
	helpAll   bool // --help-all was given

	// safe is the command that shows the report of a finished run, "" if none is stored;
	// unsafe is set when one is not.
	safe    string
	unsafe  bool
	storing sync.Mutex // of both

	// preparing is locked while a run of a tool is prepared.
	preparing sync.Mutex

	frames  *live.FrameWriter // to the process that started this one; nil: no frame was wanted
	framing sync.Mutex        // of frames

	// unwritten is set when the report of an old tool's run could not be written.
	unwritten atomic.Bool

	rules  *serve.Rules // of a server's job; nil: everything is allowed
	warned []string     // warnings about workloads, each printed once
	// disturbed are the machines of which the session has said that others use them: agents, and "" for this one.
	disturbed sync.Map
	cause     string // of the machine, why the last repetition was not trusted; "": another, or none

	config      sync.Once
	configured  *workload.Document // see configuration
	configError error
}

// watchSignals stops the run at the first signal and exits at the second. The returned function
// ends the watch.
func (s *session) watchSignals() func() {
	done := make(chan struct{})
	go func() {
		var first os.Signal
		var at time.Time // of the first
		for {
			var sig os.Signal
			select {
			case <-done:
				return
			case sig = <-s.Signals:
			}
			if first == nil {
				first, at = sig, time.Now()
				s.interrupt(nil)
				continue
			}
			if first == sig && time.Since(at) < sameSignal {
				continue
			}
			s.restore.Load().Close()
			s.ends.stopAll()
			exit := s.Exit
			if exit == nil {
				exit = os.Exit
			}
			exit(host.ExitInterrupted)
		}
	}()
	return func() { close(done) }
}

// sameSignal is how long after the first signal others of its kind mean the same, so that the run
// still keeps its report. Programs that end another one, such as timeout(1), signal it and its process
// group, and a terminal signals the group, so one Ctrl-C may come twice. If the program that started this
// one was killed, the kernel sends TERM more than once: this process gets a new parent for each of the
// dying threads (prctl(2), PR_SET_PDEATHSIG).
const sameSignal = time.Second

// exitCode is an error that decides the exit code.
type exitCode = cmdutil.Exit

// stdout ignores a closed pipe, and keeps any other error for the end.
type stdout struct {
	w   io.Writer
	err error
	cut bool
}

func (o *stdout) Write(p []byte) (int, error) {
	if o.cut || o.err != nil {
		return len(p), nil //nolint:nilerr // reported at the end
	}
	n, err := o.w.Write(p)
	switch {
	case err == nil:
		return n, nil
	case errors.Is(err, syscall.EPIPE):
		o.cut = true
	default:
		o.err = err
	}
	return len(p), nil
}

// Tree is the tree of commands for tools that read it, such as the generator of man pages. Its
// commands cannot be run.
func Tree(kinds []protocol.Kind) *cobra.Command {
	s := &session{Program: &Program{Kinds: kinds, Out: io.Discard, Err: io.Discard}, out: &stdout{w: io.Discard}}
	return s.root()
}
