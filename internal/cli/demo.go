package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"carronade/internal/standin"
	"carronade/internal/workload"
)

const demoLong = `Starts an embedded Kafka broker as a process of its own, fires at it for about
ten seconds in an open loop, reads everything back at once, and reports: how long
events took from when they were due to when they were consumed, and whether every
one of them arrived once, in order and unaltered.

The broker shares this machine. When that was in the way of the times, the report
says so; the exit code is about the events alone.`

// demoWorkload is what the demo fires: enough to see a rate, batches and times,
// and little enough for two slow processors with the broker beside it.
var demoWorkload = [][2]string{
	{"op", workload.RoundTrip},
	{"verify", "true"},
	{"rate", "10k/s"},
	{"for", "9s"},
	{"warmup", "1s"},
	{"size", "100-300"},
	{"key", "uniform(1000)"},
	{"create-topic", "partitions=3"},
}

const demoNext = `
That was an embedded broker, on this machine. What to type next:

  carronade run kafka://HOST:9092/TOPIC --rate 50k/s --for 20s
                                   the same at your own cluster
  carronade run kafka://HOST:9092/TOPIC --for 20s
                                   as fast as it goes
  carronade calibrate              what this machine can generate
  carronade help words             what the words of the report mean
`

func (s *session) demoCommand() *cobra.Command {
	var t typed
	cmd := &cobra.Command{
		Use: "demo [kafka]", Short: "an embedded server, ten seconds of load, a report",
		Long:      demoLong,
		ValidArgs: []string{"kafka"},
		Args: func(cmd *cobra.Command, list []string) error {
			if err := args(0, 1, "at most the name of a protocol")(cmd, list); err != nil {
				return err
			}
			if len(list) == 1 && list[0] != "kafka" {
				return &words{err: fmt.Errorf("there is no demo of %q", list[0]), hint: "the demos are: kafka"}
			}
			return nil
		},
		RunE: s.run(func(cmd *cobra.Command, _ []string) error { return s.demo(cmd.Context(), &t) }),
	}
	for _, name := range []string{"json", "json-file", "quiet"} {
		t.bindOne(cmd.Flags(), name)
	}
	return cmd
}

func (s *session) demo(ctx context.Context, t *typed) error {
	starting, done := context.WithTimeout(ctx, 20*time.Second)
	defer done()
	broker, err := s.spawn(starting, ctx, "kafka", "--listen", "127.0.0.1:0", "--in-memory")
	if err != nil {
		return err
	}
	var d workload.Document
	for _, row := range demoWorkload {
		d.Add(row[0], "the demo's "+row[0], row[1])
	}
	d.Add("target", "the demo's target", "kafka://"+broker.Addr()+"/demo")
	var o outputs
	w, err := workload.Resolve(s.Kinds, &d, nil)
	if err == nil {
		o, err = s.outputs(t, w)
	}
	if err == nil {
		if !o.quiet {
			s.note("an embedded Kafka broker listens on %s", broker.Addr())
		}
		err = s.fire(ctx, w, o)
	}
	if stopErr := broker.Stop(); stopErr != nil && err == nil {
		err = fmt.Errorf("the embedded broker: %w", stopErr)
	}
	// What the demo shows is an accounting, on a machine that the broker
	// shares and that may be busy with anything: the report says when its
	// times are not to be trusted, the exit code does not.
	var c exitCode
	if errors.As(err, &c) && c.code == exitUntrusted {
		err = nil
	}
	if err == nil && !o.quiet && !o.json {
		s.note("%s", strings.TrimRight(demoNext, "\n"))
	}
	return err
}

// spawn starts a stand-in as a process of its own, so that what it costs is not
// counted as the generator's. It lives as long as life, and until it is
// stopped.
func (s *session) spawn(starting, life context.Context, args ...string) (*standin.Child, error) {
	type started struct {
		c   *standin.Child
		err error
	}
	// An interrupt while firing must not end the server before the answers
	// are in, so the child's life does not hang on the run's context.
	ch := make(chan started, 1)
	go func() {
		c, err := standin.Spawn(context.WithoutCancel(life), "", args...)
		ch <- started{c, err}
	}()
	select {
	case r := <-ch:
		if r.err != nil {
			return nil, &words{err: r.err, hint: fmt.Sprintf("carronade standin %s starts it alone, and says more", strings.Join(args, " "))}
		}
		return r.c, nil
	case <-starting.Done():
		go func() {
			if r := <-ch; r.c != nil {
				_ = r.c.Stop()
			}
		}()
		if errors.Is(starting.Err(), context.Canceled) {
			return nil, context.Canceled
		}
		return nil, errors.New("the embedded server did not start within 20 s")
	}
}
