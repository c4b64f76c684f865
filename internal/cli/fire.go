package cli

import (
	"context"

	"carronade/internal/workload"
)

// fire runs a workload as often as it says, and delivers each report as soon
// as there is one: what comes later may fail.
func (s *session) fire(ctx context.Context, w *workload.Workload, o outputs) error {
	if w.OpenEnded() {
		s.note("no limit was given: this goes on until Ctrl-C, which stops, drains and reports")
	}
	var outcome error
	for i := range w.Repeat() {
		d, err := s.execute(ctx, w, o, i)
		if err != nil {
			return worst(outcome, err)
		}
		outcome = worst(outcome, s.deliver(d, o, i))
		if ctx.Err() != nil {
			break
		}
	}
	return outcome
}
