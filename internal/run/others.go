package run

import (
	"context"

	"carronade/internal/verdict/trust"
)

// Others is what else uses a machine.
type Others = trust.Others

// lookAround begins to measure what else uses this machine, unless that is known. A system that this run starts would
// count, so it is measured before; else while the target is opened.
func (e *execution) lookAround(ctx context.Context) {
	if e.Others != nil || e.Portable {
		return
	}
	e.look = trust.Look()
	if e.Workload.Has("system-cmd") {
		e.lookedAround(ctx)
	}
}

// lookedAround ends that, and says if it disturbs.
func (e *execution) lookedAround(ctx context.Context) {
	if e.look != nil {
		e.Others, e.look = e.look.Others(ctx), nil
	}
	if e.Others.Text() != "" && e.Disturbed != nil {
		e.Disturbed("", e.Others.Text())
		e.Disturbed = nil // once
	}
}
