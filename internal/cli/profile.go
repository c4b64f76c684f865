package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"carronade/internal/cli/profile"
	"carronade/internal/host"
	"carronade/internal/run"
	"carronade/internal/workload"
)

// profileCommand returns the command that fits a workload to real traffic.
func (s *session) profileCommand() *cobra.Command {
	t := profile.Tools{Console: s.console(), Err: s.Err, Fire: s.fireQuietly}
	for _, p := range s.listed() {
		if k := s.kindOf(p); k != nil && k.Capabilities().Recorded != nil {
			t.Recorded = append(t.Recorded, k)
		}
		if p.profiled != nil {
			p.profiled(s, s.kindOf(p), &t)
		}
	}
	return profile.Command(t)
}

// standIn starts a stand-in, and returns its address and what stops it.
func (s *session) standIn(ctx context.Context, args []string) (addr string, stop func() error, err error) {
	starting, done := context.WithTimeout(ctx, 20*time.Second)
	defer done()
	child, err := s.spawn(starting, ctx, args...)
	if err != nil {
		return "", nil, err
	}
	return child.Addr(), child.Stop, nil
}

// fireQuietly runs a workload, shows nothing and keeps no report. It returns how many of its
// events were acked.
func (s *session) fireQuietly(ctx context.Context, w *workload.Workload) (uint64, error) {
	d, err := run.Execute(ctx, run.Job{
		Workload: w, Room: s.room(), Version: version(), RunID: run.NewID(), Repetition: 1, Repetitions: 1,
		Started: s.ends.slot(), Host: host.Describe(),
	})
	if err != nil {
		return 0, err
	}
	if ctx.Err() != nil {
		return 0, context.Canceled
	}
	return d.Totals.Acked, nil
}
