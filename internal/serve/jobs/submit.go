package jobs

import (
	"context"
	"fmt"
	"os"
	"time"

	"carronade/protocol"
	"carronade/units"
)

// Submit stores a job. When it returns, the job is on disk, and runs when its
// turn comes. The number is that of the jobs that must end before it starts: those
// ahead of it for its system, or for all systems if it cannot run next to theirs. It
// is 0 only if the job starts at once. The error is an ErrLimit, ErrInvalid or ErrClosed, or one
// of the folder; then no job was stored.
func (q *Queue) Submit(ctx context.Context, r Request) (Job, int, error) {
	if err := r.check(); err != nil {
		return Job{}, 0, err
	}
	// Jobs are added one at a time, so that the order in memory is that of the ids.
	if err := q.beginWrite(ctx); err != nil {
		return Job{}, 0, err
	}
	defer q.endWrite()
	if err := q.room(&r); err != nil {
		return Job{}, 0, err
	}
	j := Job{Request: r, State: Queued, Submitted: now()}
	if err := q.table.add(ctx, &j); err != nil {
		return Job{}, 0, fail("store the job", q.o.Dir, err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	ahead := 0
	for system, line := range q.lines {
		if overlap(system, j.System) {
			ahead += len(line)
		}
	}
	for system, n := range q.busy {
		if overlap(system, j.System) {
			ahead += n
		}
	}
	e := q.newEntry(&j)
	q.fill()
	q.notify()
	switch {
	case e.phase != inLine:
	case q.o.Parallel == 1 || j.System == Everything:
		ahead = max(ahead, q.running+q.queued-1)
	default: // all places are taken, or a job of Everything is ahead
		ahead = max(ahead, 1)
	}
	return j, ahead, nil
}

// room returns an error if one more job does not fit.
func (q *Queue) room(r *Request) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ending {
		return ErrClosed
	}
	if n := q.users[r.User]; n >= q.o.QueuedPerUser {
		return &protocol.Error{
			Doing: "queue the job", Err: fmt.Errorf("%w: %s has %s queued jobs, the most for one user", ErrLimit, userName(r.User), units.FormatCount(uint64(n))), //nolint:gosec // a count
			Hint: "wait until some of them have run, or cancel some",
		}
	}
	if q.queued >= q.o.Queued {
		return &protocol.Error{
			Doing: "queue the job", Err: fmt.Errorf("%w: it has %s jobs, the most for all users", ErrLimit, units.FormatCount(uint64(q.queued))), //nolint:gosec // a count
			Hint: "wait until some of them have run",
		}
	}
	return nil
}

func userName(user string) string {
	if user == "" {
		return "the user without a name"
	}
	return oneLine(user)
}

// now is the time as it is stored.
func now() time.Time { return time.Unix(0, time.Now().UnixNano()) }

// Cancel cancels a job. A queued one is removed from the queue, and is Cancelled
// when Cancel returns. A running one is interrupted as by Ctrl-C: it drains,
// keeps its report and ends some time later; it is killed if that takes longer
// than Options.CancelLimit. It may end by itself before that. To cancel it again
// has no effect. The error is an ErrNoJob or ErrEnded, or one of the folder.
func (q *Queue) Cancel(ctx context.Context, id int64) error {
	doing := fmt.Sprintf("cancel job %d", id)
	e, err := q.cancellable(ctx, id) // q.mu is locked now
	if err != nil {
		return err
	}
	if e == nil {
		q.mu.Unlock()
		j, err := q.Job(ctx, id)
		if err == nil {
			err = &protocol.Error{Doing: doing, Err: fmt.Errorf("%w: it is %s", ErrEnded, j.State), Hint: "only queued and running jobs can be cancelled"}
		}
		return err
	}
	switch e.phase {
	case inLine:
		q.leave(e, leaving)
		q.mu.Unlock()
		j, err := q.Job(ctx, id)
		if err == nil {
			j.State, j.Ended, j.Exit, j.Reason = Cancelled, now(), -1, "cancelled before it started"
			err = q.store(ctx, &j)
		}
		if err == nil {
			q.ended(e, &j)
			return nil
		}
		q.mu.Lock()
		q.enter(e)
		q.fill()
		q.notify()
		q.mu.Unlock()
		return fail(doing, q.o.Dir, err)
	case picked:
		if q.ending && !e.begun {
			q.mu.Unlock()
			return ErrClosed // it stays queued
		}
		e.phase = cancelling
		close(e.cancel)
	case leaving, cancelling:
	}
	q.mu.Unlock()
	return nil
}

// cancellable returns the entry of a job, nil if it has ended, and locks q.mu
// unless there is an error. If another caller cancels the job before its start,
// it waits for that.
func (q *Queue) cancellable(ctx context.Context, id int64) (*entry, error) {
	for {
		q.mu.Lock()
		e := q.jobs[id]
		if e == nil || e.phase != leaving {
			return e, nil
		}
		changed := q.changed
		q.mu.Unlock()
		select {
		case <-changed:
		case <-q.closed:
			return nil, ErrClosed
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// store stores how a job ended, and removes what is not kept.
func (q *Queue) store(ctx context.Context, j *Job) error {
	if err := q.beginWrite(ctx); err != nil {
		return err
	}
	defer q.endWrite()
	deleted, err := q.table.end(ctx, j, q.o.KeepEnded)
	q.remove(deleted)
	return err
}

// remove removes the output of deleted jobs. What cannot be removed now is
// removed when the folder is opened.
func (q *Queue) remove(deleted []int64) {
	for _, id := range deleted {
		_ = os.Remove(q.folder.output(id))
	}
}

// ended tells those that wait that a job ended, which is stored.
func (q *Queue) ended(e *entry, j *Job) {
	q.mu.Lock()
	defer q.mu.Unlock()
	e.final = *j
	delete(q.jobs, e.id)
	close(e.done)
	q.notify()
}
