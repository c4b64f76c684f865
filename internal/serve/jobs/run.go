package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// fill starts queued jobs, the oldest first, while there is a place for one and
// its system is idle. A job of Everything waits until no other runs, and younger
// jobs wait behind it, so that its turn comes. q.mu is locked.
func (q *Queue) fill() {
	for !q.ending && q.running < q.o.Parallel && q.busy[Everything] == 0 {
		next := q.next()
		if next == nil {
			return
		}
		q.leave(next, picked)
		q.take(next.system)
		q.work.Go(func() {
			defer q.free(next.system)
			q.run(next)
		})
	}
}

// next returns the oldest job that may start now; nil if there is none. A job waits for those that
// share an address with it: they run, or are older. q.mu is locked.
func (q *Queue) next() *entry {
	heads := make([]*entry, 0, len(q.lines))
	for _, line := range q.lines {
		heads = append(heads, line[0])
	}
	slices.SortFunc(heads, func(a, b *entry) int { return cmp.Compare(a.id, b.id) })
	taken := map[string]bool{} // addresses
	take := func(system string) {
		for _, a := range addressesOf(system) {
			taken[a] = true
		}
	}
	for system := range q.busy {
		take(system)
	}
	for _, e := range heads {
		switch {
		case e.system == Everything && q.running > 0:
			return nil
		case !slices.ContainsFunc(addressesOf(e.system), func(a string) bool { return taken[a] }):
			return e
		}
		take(e.system)
	}
	return nil
}

// addressesOf are the parts of a system's name that have a queue each: see Request.
func addressesOf(system string) []string {
	scheme, hosts, ok := strings.Cut(system, "://")
	if !ok || !strings.Contains(hosts, ",") {
		return []string{system}
	}
	parts := strings.Split(hosts, ",")
	for i := range parts {
		parts[i] = scheme + "://" + parts[i]
	}
	return parts
}

// overlap reports whether jobs of two systems run one after the other.
func overlap(a, b string) bool {
	if a == b {
		return true
	}
	others := addressesOf(b)
	return slices.ContainsFunc(addressesOf(a), func(part string) bool { return slices.Contains(others, part) })
}

// take occupies a system and one of the places. q.mu is locked.
func (q *Queue) take(system string) {
	q.busy[system]++
	q.running++
}

// free frees them again.
func (q *Queue) free(system string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.running--
	if q.busy[system]--; q.busy[system] == 0 {
		delete(q.busy, system)
	}
	q.fill()
}

// run runs a job to its end. If the queue is closed before it can start, it
// stays queued.
func (q *Queue) run(e *entry) {
	ctx := context.Background() // Close ends it in other ways
	var j Job
	started := now()
	// It is stored that the job runs before it does. So it never runs twice.
	begun := q.insist(fmt.Sprintf("start job %d", e.id), func() (err error) {
		if j, err = q.table.get(ctx, e.id); err != nil {
			return err
		}
		if err := q.beginWrite(ctx); err != nil {
			return err
		}
		defer q.endWrite()
		if isClosed(q.closing) {
			return ErrClosed
		}
		return q.table.begin(ctx, e.id, started)
	})
	q.mu.Lock()
	e.begun = begun
	cancelled := e.phase == cancelling
	q.notify()
	q.mu.Unlock()
	j.Exit = -1
	switch {
	case cancelled:
		j.State, j.Reason = Cancelled, "cancelled before it started"
	case !begun:
		return
	default:
		j.State, j.Started = Running, started
		q.perform(e, &j)
	}
	if j.Ended = now(); j.Ended.Before(j.Started) {
		j.Ended = j.Started // the clock was set back
	}
	// If it cannot be stored, the next server finds a running job without a
	// process, and says that it was interrupted.
	q.insist(fmt.Sprintf("store the end of job %d", e.id), func() error { return q.store(ctx, &j) })
	_ = os.Remove(q.folder.running(e.id))
	q.ended(e, &j)
	if e.out != nil {
		e.out.release()
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// perform runs the process of a job and sets the job's state.
func (q *Queue) perform(e *entry, j *Job) {
	out, err := createOutput(q.folder.output(j.ID), q.o.MostOutput)
	if err != nil {
		j.State, j.Reason = Failed, whyNot(err)
		return
	}
	defer out.finish()
	q.mu.Lock()
	e.out = out
	close(e.started)
	q.mu.Unlock()
	full, unwatch := q.watchFiles()
	defer unwatch()
	p, err := q.start(j, out)
	if err != nil {
		j.State, j.Reason = Failed, whyNot(err)
		return
	}
	s := q.wait(p, e.cancel, full)
	p.close(q.hurry)
	noMemory, said := "", ""
	if p.crash.TookAll() {
		noMemory = NoMemory(q.o.Memory)
	}
	verdict(j, p.child.State(), s, out.lastError(), noMemory)
	if j.Reason == noMemory && noMemory != "" {
		said = "error: " + noMemory + "\nhint: " + MemoryHint + "\n"
	}
	p.crash.End(said)
}

// insist repeats a change of a job's state until it is stored: on a full disk,
// the queue stops until there is space. When the queue is closed, it tries once
// more. It reports whether the change was stored.
func (q *Queue) insist(doing string, change func() error) bool {
	const first, most = 50 * time.Millisecond, 5 * time.Second
	for pause := first; ; pause = min(2*pause, most) {
		last := isClosed(q.closing)
		err := change()
		if err == nil {
			return true
		}
		if errors.Is(err, ErrClosed) {
			return false
		}
		if pause == first {
			q.o.Problem(fail(doing, q.o.Dir, err))
		}
		if last {
			return false
		}
		select {
		case <-time.After(pause):
		case <-q.closing:
		}
	}
}
