package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"carronade/internal/verdict/fault"
)

// A pause is a stop of a container that its engine makes.
type pause struct {
	fault  string
	end    func() error // after an error it may be called again
	byHand string       // the command that does the same
	err    error        // of the first attempt that failed
	marked bool         // the run has the mark of the fault
}

// left says that the pause was not ended, and what the user can do.
func (p *pause) left(err error) string {
	return fmt.Sprintf("--fault %s was not undone: %v; by hand: %s", p.fault, err, p.byHand)
}

// How often the end of a pause is tried before the end of the run, and how long after another.
const (
	undoTries = 3
	undoAgain = time.Second
)

var errLeaving = errors.New("this program ends")

// pauseContainer pauses the container of the system, and ends that when its length is over, or at the end
// of faulty. ctx ends with the run.
func (j *injector) pauseContainer(ctx, faulty context.Context, f *fault.Fault) {
	from := time.Now()
	p, err := j.beginPause(ctx, f)
	if err != nil {
		j.problem("--fault %s: %v", f, err)
		return
	}
	j.noted(fault.MarkFault, f.String(), byFault, from, time.Now())
	p.marked = true
	j.wait(faulty, from.Add(f.Length))
	for range undoTries {
		from = time.Now()
		if err = j.endPause(p); err == nil {
			j.noted(fault.MarkHeal, f.String(), byFault, from, time.Now())
			return
		}
		j.e.Logf("--fault %s is not undone yet: %v", f, err)
		j.wait(ctx, from.Add(undoAgain))
	}
}

// beginPause pauses the container, and remembers that: see release. After an error the container may be
// paused all the same, so that is undone at once.
func (j *injector) beginPause(ctx context.Context, f *fault.Fault) (*pause, error) {
	j.standing.Lock()
	defer j.standing.Unlock()
	if j.over {
		return nil, errLeaving
	}
	p := &pause{
		fault: f.String(), byHand: j.e.system.UnpauseByHand(),
		end: func() error { return j.e.system.Unpause(context.Background()) }, // it has a timeout
	}
	if err := j.e.system.Pause(ctx); err != nil {
		if p.err = p.end(); p.err != nil {
			j.pauses[p] = true
		}
		return nil, err
	}
	j.pauses[p] = true
	return p, nil
}

// endPause ends a pause. After an error it stays among those that have not ended: see release and
// endPauses.
func (j *injector) endPause(p *pause) error {
	j.standing.Lock()
	defer j.standing.Unlock()
	if !j.pauses[p] { // at an exit
		return nil
	}
	err := p.end()
	if err == nil {
		delete(j.pauses, p)
	} else if p.err == nil {
		p.err = err
	}
	return err
}

// endPauses tries for the last time to end the pauses that have not ended, and says what became of them.
func (j *injector) endPauses() {
	j.standing.Lock()
	rest := slices.Collect(maps.Keys(j.pauses))
	j.standing.Unlock()
	for _, p := range rest {
		from := time.Now()
		if err := j.endPause(p); err != nil {
			j.problem("%s", p.left(err))
			continue
		}
		j.problem("--fault %s was undone only when the run had ended: %v", p.fault, p.err)
		if !p.marked { // it was not made, or only in part
			continue
		}
		j.noted(fault.MarkHeal, p.fault, byFault, from, time.Now())
	}
}

// wait waits for a moment, or the end of ctx.
func (j *injector) wait(ctx context.Context, until time.Time) {
	select {
	case <-time.After(time.Until(until)):
	case <-ctx.Done(): // nothing may be left broken
	}
}
