package standin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/pflag"
)

// A Kind is the stand-in of one protocol.
type Kind struct {
	Name    string // of the protocol, as in `carronade standin NAME`
	Short   string // one line of help
	Long    string // the full help, without how the stand-in reports readiness and ends
	Example string // command lines, indented by two spaces
	New     func() *Server
}

// listening begins the line that contains the addresses.
const listening = "listening on "

// A Server is a stand-in with its options, before it runs.
type Server struct {
	// Bind adds the flags to fs. Parsing sets the options; their values at the
	// time of the call are the defaults that help shows.
	Bind        func(fs *pflag.FlagSet)
	keepsLittle func() bool // with these options it keeps little in memory
	start       func(log io.Writer) (*running, error)
}

// A running is a stand-in that has been started.
type running struct {
	listening string              // its addresses, as Serve prints them
	counts    func() fmt.Stringer // its counts so far
	close     func() error
}

// A Process is a stand-in that has been started, which counts in C.
type Process[C fmt.Stringer] interface {
	Counts() C // so far
	Close() error
}

// NewServer returns the New of a Kind with options O: bind adds their flags; log is where they say
// to what errors of connections are written; start starts the stand-in; listening returns its
// addresses, as Serve prints them; keepsLittle reports whether it keeps little in memory, and is nil
// if it always does.
func NewServer[O any, S Process[C], C fmt.Stringer](bind func(*O, *pflag.FlagSet), log func(*O) *io.Writer, start func(O) (S, error), listening func(S) string, keepsLittle func(*O) bool) func() *Server {
	return func() *Server {
		var o O
		return &Server{
			Bind:        func(fs *pflag.FlagSet) { bind(&o, fs) },
			keepsLittle: func() bool { return keepsLittle == nil || keepsLittle(&o) },
			start: func(w io.Writer) (*running, error) {
				*log(&o) = w
				s, err := start(o)
				if err != nil {
					return nil, err
				}
				return &running{listening: listening(s), counts: func() fmt.Stringer { return s.Counts() }, close: s.Close}, nil
			},
		}
	}
}

// Serve runs the stand-in until ctx ends. When it is ready, it prints one line to
// out: "listening on ADDR", and after commas its other addresses, each "NAME ADDR".
// To log it writes errors of connections and, when it ends, its counts.
func (s *Server) Serve(ctx context.Context, out, log io.Writer) error {
	if s.keepsLittle() {
		// It shares the machine with the generator that it measures: a few
		// megabytes more save it garbage collections. An index is too large
		// for that.
		defer debug.SetGCPercent(debug.SetGCPercent(400))
	}
	r, err := s.start(log)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "%s%s\n", listening, r.listening); err != nil {
		_ = r.close()
		return fmt.Errorf("printing the address: %w", err)
	}
	<-ctx.Done()
	err = r.close()
	fmt.Fprintln(log, r.counts())
	return err
}

// Main is a plain form of `carronade standin ARGS`. Spawn's child process runs it
// if the program is not carronade but, for example, a test. It returns the exit
// code.
func Main(kinds []Kind, args []string) int {
	var names []string
	for _, k := range kinds {
		if len(args) > 0 && args[0] == k.Name {
			return run(k, args[1:])
		}
		names = append(names, k.Name)
	}
	fmt.Fprintf(os.Stderr, "error: no such stand-in\nhint: the stand-ins are: %s\n", strings.Join(names, ", "))
	return 2
}

func run(k Kind, args []string) int {
	s := k.New()
	fs := pflag.NewFlagSet("standin "+k.Name, pflag.ContinueOnError)
	s.Bind(fs)
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return 0
		}
		fmt.Fprintln(os.Stderr, "error:", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx = EndWithParent(ctx)
	if err := s.Serve(ctx, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return 2
	}
	return 0
}
