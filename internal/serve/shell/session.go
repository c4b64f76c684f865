package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"carronade/internal/advice"
	"carronade/protocol"
)

// Options are what a session needs from the program around it.
type Options struct {
	Queue Queue
	User  string
	Home  string // the folder of this user's settings; made with mode 0700
	// Dir is the folder in which jobs run, and to which relative paths refer; "" is the
	// queue's own folder for jobs, and this process's for paths.
	Dir string

	// Run runs one of carronade's commands at once and returns its exit code.
	Run func(ctx context.Context, args []string, out io.Writer) int
	// Commands are the names of carronade's commands.
	Commands []string
	// Loads reports whether a command line of carronade generates load, so that it is
	// queued.
	Loads func(args []string) bool
	// System is the name of the queue of a command line that generates load.
	System func(args []string) string
	// Walls says that a job may do more than others, with the flag that allows it; "" if it may not. May
	// be nil.
	Walls func(args []string) string
	// Complete returns completions of the last word, which may be empty, of a command line of carronade:
	// those that need neither a file nor a connection. May be nil.
	Complete func(words []string) []string

	Color bool
	// Allow limits what the session may do; nil: everything, for the user of this
	// machine.
	Allow *Permit
	// Owner may cancel the jobs of other users.
	Owner bool
	// Terminal edits the lines of a terminal; nil: lines are read from the connection.
	// It writes to that connection. The caller sets its size.
	Terminal *Terminal
}

// A Permit is what a session over a network may do.
type Permit struct {
	// Folders are those in and below which repositories are built and servers
	// started.
	Folders []string
	// Address checks the address of a system; nil allows all.
	Address func(url string) error
	// Command checks a command line of carronade; nil refuses all but help, report
	// list, report show, and version. Arguments may name files and programs.
	Command func(args []string) error
}

// A session is one user's dialog.
type session struct {
	Options
	out    *output
	conn   io.ReadWriter
	lines  *lineReader
	home   home
	ctx    context.Context
	leave  context.CancelFunc
	work   context.Context // of the command that runs
	names  names
	es     cluster
	system map[string]*server // apm, kafka and riemann

	mu       sync.Mutex
	attached map[int64]context.CancelFunc
	showing  map[chan struct{}]bool // of each attached job; closed when all of its output was written
	last     int64                  // the job whose output was written last
	follows  sync.WaitGroup         // goroutines of the session
}

// errQuit ends a session.
var errQuit = errors.New("quit")

// Serve runs a session until its user leaves, the connection ends, or ctx ends. It
// then closes conn if that is an io.Closer; otherwise the end of ctx has an effect only
// after the next line. Jobs of the session go on. The error is nil if the user left or the
// connection was closed.
func Serve(ctx context.Context, conn io.ReadWriter, o Options) error {
	ctx, leave := context.WithCancel(ctx)
	s := &session{
		Options: o, ctx: ctx, leave: leave, work: ctx, conn: conn, lines: newLineReader(conn),
		attached: map[int64]context.CancelFunc{}, showing: map[chan struct{}]bool{},
		out:    &output{w: conn, color: o.Color, lost: leave},
		system: map[string]*server{"apm": {}, "kafka": {}, "riemann": {}},
		names:  names{},
	}
	if o.Terminal != nil {
		s.setTerminal(o.Terminal)
	}
	closed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(closed)
		if c, ok := conn.(io.Closer); ok {
			c.Close()
		}
	})
	defer func() {
		leave()
		if !stop() {
			<-closed
		}
		if s.Terminal != nil {
			s.Terminal.keys.end(io.EOF)
		}
		s.follows.Wait()
	}()
	if err := s.load(); err != nil {
		s.fail(err)
		return err
	}
	s.greet()
	for {
		s.out.prompt()
		line, err := s.readLine()
		s.out.typed()
		switch {
		case errors.Is(err, errLong):
			s.fail(err)
			continue
		case errors.As(err, new(*noiseError)):
			s.fail(hinted(err, "arrow keys need rlwrap"))
			continue
		case errors.Is(err, errHTTP):
			return err
		case errors.Is(err, io.EOF) || ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("read a line: %w", err)
		}
		if err := s.line(line); errors.Is(err, errQuit) {
			return nil
		}
	}
}

// setTerminal makes a terminal the side of the user.
func (s *session) setTerminal(t *Terminal) {
	s.Terminal = t
	s.out.useTerminal(t)
	t.SetPrompt(s.out.paint(cyan, promptText))
	t.AutoCompleteCallback = s.autoComplete
	t.History = history{t.History}
}

// load reads the user's settings.
func (s *session) load() (err error) {
	if s.home, err = openHome(s.Home); err != nil {
		return err
	}
	err = errors.Join(s.home.load("names", &s.names), s.home.load("elasticsearch", &s.es))
	for kind, v := range s.system {
		if err = errors.Join(err, s.home.load(kind, v)); s.refused(v) != nil {
			*v = server{}
		}
	}
	return err
}

func (s *session) greet() {
	if s.Terminal == nil {
		s.say(s.out.paint(grey, "lines are read unchanged here: for history and arrow keys use rlwrap"))
	}
	s.say("type 'help' for help")
}

func (s *session) readLine() (string, error) {
	if s.Terminal == nil {
		return s.lines.next()
	}
	line, err := s.Terminal.ReadLine()
	if errors.Is(err, term.ErrPasteIndicator) {
		err = nil
	}
	switch {
	case err != nil:
		return "", err
	case len(line) > MaxLine:
		return "", errLong
	case !isText(line):
		return "", &noiseError{line}
	}
	return line, nil
}

// ask asks a question and reads the answer. A secret is not shown while it is typed,
// if the session has a terminal.
func (s *session) ask(question string, hidden bool) (answer string, err error) {
	if s.Terminal == nil {
		s.out.Write([]byte(question)) //nolint:errcheck // the session ends then
		return s.readLine()
	}
	s.Terminal.keys.ask(true)
	defer s.Terminal.keys.ask(false)
	if hidden {
		answer, err = s.Terminal.ReadPassword(question)
	} else {
		s.Terminal.SetPrompt(question)
		defer s.Terminal.SetPrompt(s.out.paint(cyan, promptText))
		answer, err = s.readLine()
	}
	if err == nil && s.work.Err() != nil {
		err = errInterrupted
	}
	return answer, err
}

// errInterrupted ends a command: its user typed Ctrl-C.
var errInterrupted = errors.New("interrupted")

// line runs the commands of a line. It stops at the first one that fails or is interrupted.
func (s *session) line(line string) error {
	work, interrupt := context.WithCancel(s.ctx)
	defer interrupt()
	s.work = work
	if t := s.Terminal; t != nil {
		t.keys.during(interrupt)
		defer t.keys.during(nil)
	}
	commands, definition, err := s.names.parse(line)
	if err == nil && definition != nil {
		err = s.define(definition[1:])
	}
	for _, words := range commands {
		if work.Err() != nil {
			err = errInterrupted
		} else {
			err = s.command(words)
		}
		if err != nil {
			break
		}
	}
	if errors.Is(err, context.Canceled) && s.ctx.Err() == nil {
		err = errInterrupted
	}
	if err != nil && !errors.Is(err, errQuit) && !errors.As(err, new(errSilent)) {
		s.fail(err)
	}
	return err
}

// say writes a line of an answer.
func (s *session) say(format string, args ...any) {
	fmt.Fprintf(s.out, format+"\n", args...)
}

// fail writes an error, with its hint.
func (s *session) fail(err error) {
	text := err.Error()
	if hint := advice.Hint(err); hint != "" {
		text += " (hint: " + hint + ")"
	}
	var lines []string
	for l := range strings.Lines(text) {
		lines = append(lines, Printable(strings.TrimRight(l, "\r\n")))
	}
	s.say("%s", s.out.paint(red, strings.Join(lines, "\n")))
}

func hinted(err error, hint string) error {
	return &protocol.Error{Doing: err.Error(), Hint: hint}
}

// soon bounds what a command does that answers at once, other than running commands of
// carronade.
const soon = 30 * time.Second
