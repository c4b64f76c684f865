package kafka

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"
)

// Serve runs a stand-in until ctx ends. It prints "listening on ADDR" to out
// when it is ready, and what it took and gave to words at its end.
func (o *Options) Serve(ctx context.Context, out, words io.Writer) error {
	opts := *o
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
