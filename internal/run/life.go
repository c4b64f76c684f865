package run

import (
	"context"
	"time"

	"carronade/load"
)

// A stoppable is a run that await ends.
type stoppable interface {
	Stop(why load.Reason)
	End(why load.Reason) // waits no longer for answers
	Abort()
	Done() <-chan struct{}
}

// startWatching begins the report, and reads metrics of the idle system.
func (e *execution) startWatching(ctx context.Context, mode load.Mode, unanswered bool, interval time.Duration) *gaugeReader {
	e.startKeeping(ctx, mode, unanswered)
	q := newGaugeReader(e.sources(), interval, e.Figures)
	q.before(ctx)
	e.system.begin(ctx)
	return q
}

// await stops a run when the context ends, or when the system has died or cannot be reached any more, and
// aborts it on request.
func (e *execution) await(ctx context.Context, r stoppable, died <-chan struct{}) {
	stop, abort, none := ctx.Done(), e.Abort, e.unconnected
	why := load.BySystem
	var late <-chan time.Time
	for {
		select {
		case <-stop:
			stop = nil
			r.Stop(whyEnded(ctx))
		case <-died:
			died = nil
			if e.goesOn() {
				continue
			}
			late = time.After(lastAnswers)
			r.Stop(why)
		case <-none:
			none, late, why = nil, time.After(lastAnswers), load.ByLoss
			r.Stop(why)
		case <-late:
			r.End(why)
		case <-abort:
			r.Abort()
			<-r.Done()
			return
		case <-r.Done():
			return
		}
	}
}
