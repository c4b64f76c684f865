package standin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/pflag"
)

// Serve runs a Kafka stand-in until ctx ends. It prints "listening on ADDR" to
// out when it is ready, and what it took and gave to words at its end.
func Serve(ctx context.Context, opts KafkaOptions, out, words io.Writer) error {
	if opts.Log == nil {
		opts.Log = words
	}
	// A sink beside the generator it measures: fewer collections for a few
	// megabytes more.
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	s, err := Start(opts)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "listening on %s\n", s.Addr()); err != nil {
		s.Close()
		return fmt.Errorf("telling the address: %w", err)
	}
	<-ctx.Done()
	err = s.Close()
	fmt.Fprintln(words, s.Counts())
	return err
}

// Main is `carronade standin ARGS`, without the command line's finery: the
// process that Spawn starts where the running program is no carronade but, say,
// a test. It returns the exit code.
func Main(args []string) int {
	if len(args) == 0 || args[0] != "kafka" {
		fmt.Fprintln(os.Stderr, "error: no such stand-in\nhint: the stand-ins are: kafka")
		return 2
	}
	var opts KafkaOptions
	fs := pflag.NewFlagSet("standin kafka", pflag.ContinueOnError)
	opts.Bind(fs)
	if err := fs.Parse(args[1:]); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return 0
		}
		fmt.Fprintln(os.Stderr, "error:", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx = EndWithParent(ctx)
	if err := Serve(ctx, opts, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return 2
	}
	return 0
}
