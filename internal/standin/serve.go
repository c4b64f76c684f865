package standin

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/spf13/pflag"

	"carronade/internal/standin/apm"
	"carronade/internal/standin/kafka"
	"carronade/internal/standin/riemann"
)

// listening begins the line that contains the addresses.
const listening = "listening on "

// A server is a stand-in of one protocol with its options, before it runs.
type server struct {
	bind        func(fs *pflag.FlagSet)
	start       func(log io.Writer) (*running, error) // log is the default for the options' Log
	keepsLittle func() bool                           // with these options it keeps little in memory
}

// A running is a stand-in that has been started.
type running struct {
	listening string              // its addresses, as Serve prints them
	counts    func() fmt.Stringer // its counts so far
	close     func() error
}

func newKafka() Server {
	var o kafka.Options
	return &server{bind: o.Bind, keepsLittle: func() bool { return true }, start: func(log io.Writer) (*running, error) {
		o.Log = cmp.Or(o.Log, log)
		s, err := kafka.Start(o)
		if err != nil {
			return nil, err
		}
		return &running{s.Addr(), func() fmt.Stringer { return s.Counts() }, s.Close}, nil
	}}
}

func newRiemann() Server {
	var o riemann.Options
	return &server{bind: o.Bind, keepsLittle: func() bool { return o.Discard }, start: func(log io.Writer) (*running, error) {
		o.Log = cmp.Or(o.Log, log)
		s, err := riemann.Start(o)
		if err != nil {
			return nil, err
		}
		return &running{s.Listening(), func() fmt.Stringer { return s.Counts() }, s.Close}, nil
	}}
}

func newAPM() Server {
	var o apm.Options
	return &server{bind: o.Bind, keepsLittle: func() bool { return true }, start: func(log io.Writer) (*running, error) {
		o.Log = cmp.Or(o.Log, log)
		s, err := apm.Start(o)
		if err != nil {
			return nil, err
		}
		return &running{s.Addr(), func() fmt.Stringer { return s.Counts() }, s.Close}, nil
	}}
}

// Bind implements Server.
func (s *server) Bind(fs *pflag.FlagSet) { s.bind(fs) }

// Serve implements Server.
func (s *server) Serve(ctx context.Context, out, log io.Writer) error {
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
