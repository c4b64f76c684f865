package run

import (
	"context"
	"errors"
	"slices"
	"time"

	"carronade/internal/host"
	"carronade/internal/verdict/fault"
)

// byFault is what made the marks of faults.
const byFault = "fault"

// make makes a fault, and undoes it if that belongs to it: when its length is over, or at the end of
// faulty. ctx ends with the run.
func (j *injector) make(ctx, faulty context.Context, f *fault.Fault) {
	switch f.Action {
	case fault.Restart:
		j.restart(ctx, f)
	default:
		if j.paused[f] {
			j.pauseContainer(ctx, faulty, f)
			return
		}
		j.signal(ctx, faulty, f)
	}
}

// restart restarts the system. An interrupt does not cut it short: without the system no answers come.
func (j *injector) restart(ctx context.Context, f *fault.Fault) {
	j.restarts.Lock() // another one that becomes due waits for it
	defer j.restarts.Unlock()
	if ctx.Err() != nil {
		j.problem("--fault %s: not made: the run ended before", f)
		return
	}
	from := time.Now()
	err := j.e.system.Restart(ctx, f.Length, func() { j.noted(fault.MarkFault, f.String(), byFault, from, time.Now()) })
	switch {
	case err == nil:
		now := time.Now()
		j.noted(fault.MarkHeal, f.String(), byFault, now, now)
	case ctx.Err() != nil:
		j.problem("--fault %s: the run ended before the system was ready again", f)
	default:
		j.problem("--fault %s: %v", f, err)
	}
}

// signal stops or ends processes.
func (j *injector) signal(ctx, faulty context.Context, f *fault.Fault) {
	pids, err := j.processes(ctx, f)
	if err != nil {
		j.problem("--fault %s: %v", f, err)
		return
	}
	signal := host.End
	if f.Action == fault.Stop {
		signal = j.stop
	}
	var reached []int
	from := time.Now()
	if f.Action == fault.Kill {
		own := j.e.system.members()
		j.e.broken.kill(func() bool {
			reached = j.each(f, pids, signal)
			return slices.ContainsFunc(reached, func(pid int) bool { return slices.Contains(own, pid) })
		})
	} else {
		reached = j.each(f, pids, signal)
	}
	if len(reached) == 0 {
		return
	}
	if f.Action == fault.Kill {
		j.ended.Store(true)
	}
	j.noted(fault.MarkFault, f.String(), byFault, from, time.Now())
	if f.Action != fault.Stop {
		return
	}
	j.wait(faulty, from.Add(f.Length))
	from = time.Now()
	if len(j.each(f, reached, j.resume)) > 0 {
		j.noted(fault.MarkHeal, f.String(), byFault, from, time.Now())
	}
}

// stop makes a process stand still, and remembers it: see release.
func (j *injector) stop(pid int) error {
	j.standing.Lock()
	defer j.standing.Unlock()
	if j.over {
		return errLeaving
	}
	err := host.Pause(pid)
	if err == nil {
		j.stopped[pid] = true
	}
	return err
}

// resume lets a process go on.
func (j *injector) resume(pid int) error {
	j.standing.Lock()
	defer j.standing.Unlock()
	err := host.Continue(pid)
	if err == nil || errors.Is(err, host.ErrNoProcess) {
		delete(j.stopped, pid)
	}
	return err
}

// release lets all processes and containers go on that stand still, for a program that exits without
// waiting for the run. None is stopped after it.
func (j *injector) release() {
	j.standing.Lock()
	defer j.standing.Unlock()
	j.over = true
	for pid := range j.stopped {
		_ = host.Continue(pid)
	}
	for p := range j.pauses {
		err := p.end()
		if err != nil {
			err = p.end()
		}
		if err != nil {
			j.e.Logf("%s", p.left(err))
			continue
		}
		delete(j.pauses, p)
	}
}

// each signals processes, and returns those that it reached. Of a system, processes may end between
// the look at them and the signal.
func (j *injector) each(f *fault.Fault, pids []int, signal func(int) error) (reached []int) {
	var gone error
	for _, pid := range pids {
		err := signal(pid)
		switch {
		case err == nil:
			reached = append(reached, pid)
		case f.What == fault.System && errors.Is(err, host.ErrNoProcess):
			gone = err
		default:
			j.problem("--fault %s: %v", f, err)
		}
	}
	if len(reached) == 0 && gone != nil {
		j.problem("--fault %s: %v", f, gone)
	}
	return reached
}
