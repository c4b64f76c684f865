package jobs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"carronade/internal/system"
	"carronade/target"
	"carronade/units"
)

// A Queue is an open data folder whose jobs run. Its methods may be called by
// several goroutines.
type Queue struct {
	o       Options
	folder  *folder
	table   *table
	writes  chan struct{} // holds a token while the table is changed
	closing chan struct{} // closed when Close is called
	hurry   chan struct{} // closed when Close must not wait any longer
	closed  chan struct{} // closed when nothing runs any more
	work    sync.WaitGroup
	once    sync.Once // closes hurry

	mu      sync.Mutex
	jobs    map[int64]*entry    // that have not ended
	lines   map[string][]*entry // queued, by system, in the order of ids
	busy    map[string]int      // by system: jobs that run, and leftovers
	running int                 // the sum of busy
	users   map[string]int      // queued jobs by user
	queued  int                 // the sum of users
	ending  bool                // Close was called
	changed chan struct{}
}

// An entry is a job that has not ended.
type entry struct {
	id           int64
	system, user string
	cancel       chan struct{} // closed when it is cancelled while it runs
	started      chan struct{} // closed when out is set
	done         chan struct{} // closed when it ended and final is set
	out          *output
	final        Job

	// Guarded by Queue.mu.
	phase phase
	begun bool // it is stored that it runs
}

// A phase is more precise than a state.
type phase int

const (
	inLine     phase = iota
	leaving          // it is being cancelled before its start
	picked           // it runs, or is about to
	cancelling       // it runs, or is about to, and was cancelled
)

// Open opens a data folder and locks it. Queued jobs in it run. Jobs that ran
// when an earlier server was killed become Interrupted; the next job of their
// system starts when their processes have ended. The context is only for
// opening. Errors are a *target.Error.
func Open(ctx context.Context, o Options) (*Queue, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	q := &Queue{
		o: o, writes: make(chan struct{}, 1), closing: make(chan struct{}), hurry: make(chan struct{}), closed: make(chan struct{}),
		jobs: make(map[int64]*entry), lines: make(map[string][]*entry), busy: make(map[string]int), users: make(map[string]int), changed: make(chan struct{}),
	}
	if err := q.open(ctx); err != nil {
		q.mu.Lock()
		q.ending = true // nothing starts
		q.mu.Unlock()
		close(q.closing)
		q.work.Wait()
		if q.table != nil {
			q.table.close()
		}
		if q.folder != nil {
			_ = q.folder.release()
		}
		return nil, fail("open the data folder "+o.Dir, o.Dir, err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.fill()
	return q, nil
}

func (q *Queue) open(ctx context.Context) (err error) {
	if q.folder, err = openFolder(q.o.Dir); err != nil {
		return err
	}
	if q.table, err = openTable(ctx, q.folder.path("jobs.db")); err != nil {
		return err
	}
	return q.recover(ctx)
}

// newEntry adds a queued job to its line.
func (q *Queue) newEntry(j *Job) {
	e := &entry{id: j.ID, system: j.System, user: j.User, cancel: make(chan struct{}), started: make(chan struct{}), done: make(chan struct{})}
	q.jobs[e.id] = e
	q.enter(e)
}

// enter puts an entry into its line, at the place of its id.
func (q *Queue) enter(e *entry) {
	e.phase = inLine
	line := append(q.lines[e.system], e)
	for i := len(line) - 1; i > 0 && line[i].id < line[i-1].id; i-- {
		line[i], line[i-1] = line[i-1], line[i]
	}
	q.lines[e.system] = line
	q.users[e.user]++
	q.queued++
}

// leave takes an entry out of its line.
func (q *Queue) leave(e *entry, to phase) {
	e.phase = to
	line := q.lines[e.system]
	for i := range line {
		if line[i] == e {
			line = append(line[:i:i], line[i+1:]...)
			break
		}
	}
	if q.lines[e.system] = line; len(line) == 0 {
		delete(q.lines, e.system)
	}
	if q.users[e.user]--; q.users[e.user] == 0 {
		delete(q.users, e.user)
	}
	q.queued--
}

// notify tells those that wait on Changed.
func (q *Queue) notify() {
	close(q.changed)
	q.changed = make(chan struct{})
}

// Changed returns a channel that is closed at the next change of any job. Get
// it before the jobs are read; then no change is missed:
//
//	for {
//		changed := q.Changed()
//		show(q.Jobs(ctx, filter))
//		<-changed
//	}
func (q *Queue) Changed() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.changed
}

// beginWrite waits for the right to change the table; endWrite gives it back.
func (q *Queue) beginWrite(ctx context.Context) error {
	select {
	case q.writes <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-q.closed:
		return ErrClosed
	}
}

func (q *Queue) endWrite() { <-q.writes }

// Submit stores a job. When it returns, the job is on disk, and runs when its
// turn comes. The number is that of the jobs ahead of it in its system's queue,
// with one that runs. The error is an ErrLimit, ErrInvalid or ErrClosed, or one
// of the folder; then there is no job.
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
	ahead := len(q.lines[j.System]) + q.busy[j.System]
	q.newEntry(&j)
	q.fill()
	q.notify()
	return j, ahead, nil
}

// room returns an error if there is no place for one more job.
func (q *Queue) room(r *Request) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ending {
		return ErrClosed
	}
	if n := q.users[r.User]; n >= q.o.QueuedPerUser {
		return &target.Error{
			Doing: "queue the job", Err: fmt.Errorf("%w: %s has %s queued jobs, the most for one user", ErrLimit, userName(r.User), units.FormatCount(uint64(n))), //nolint:gosec // a count
			Hint: "wait until some of them have run, or cancel some",
		}
	}
	if q.queued >= q.o.Queued {
		return &target.Error{
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
			err = &target.Error{Doing: doing, Err: fmt.Errorf("%w: it is %s", ErrEnded, j.State), Hint: "only queued and running jobs can be cancelled"}
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
// unless there is an error. If somebody else cancels the job before its start,
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

// Jobs returns the selected jobs, in the order of their ids.
func (q *Queue) Jobs(ctx context.Context, f Filter) ([]Job, error) {
	list, err := q.table.find(ctx, f)
	return list, q.fail("list the jobs", err)
}

// Job returns a job. The error is an ErrNoJob, or one of the folder.
func (q *Queue) Job(ctx context.Context, id int64) (Job, error) {
	j, err := q.table.get(ctx, id)
	return j, q.fail(fmt.Sprintf("find job %d", id), err)
}

// fail makes an error for users.
func (q *Queue) fail(doing string, err error) error {
	if err != nil && isClosed(q.closed) {
		return ErrClosed
	}
	return fail(doing, q.o.Dir, err)
}

// Wait waits until a job has ended and returns it. If the queue is closed
// before the job has started, the error is ErrClosed.
func (q *Queue) Wait(ctx context.Context, id int64) (Job, error) {
	e := q.entry(id)
	if e == nil {
		return q.Job(ctx, id)
	}
	select {
	case <-e.done:
		return e.final, nil
	case <-ctx.Done():
		return Job{}, ctx.Err()
	case <-q.closed:
		if isClosed(e.done) { // one of the last that ended
			return e.final, nil
		}
		return Job{}, ErrClosed
	}
}

func (q *Queue) entry(id int64) *entry {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.jobs[id]
}

// Output writes what a job printed to w, stdout and stderr in the order in
// which they were printed. With follow it waits for more until the job has
// ended or ctx is done, whose error it then returns; it does not interrupt a
// write to w. However slow w is, the job does not wait for it.
//
// Of a job that printed more than Options.MostOutput, the beginning and the
// newest text are kept: at most that many bytes, the newest half of them at
// least. A line in between says how much was removed. One who follows gets
// everything unless w is so slow that text is removed first.
//
// The text is not changed: it may have control characters.
func (q *Queue) Output(ctx context.Context, id int64, follow bool, w io.Writer) error {
	e := q.entry(id)
	if e == nil {
		return q.storedOutput(ctx, id, w)
	}
	if follow {
		select {
		case <-e.started:
		case <-e.done:
			return nil // cancelled in the queue
		case <-ctx.Done():
			return ctx.Err()
		case <-q.closed:
			return ErrClosed
		}
	}
	q.mu.Lock()
	out := e.out
	if out != nil && q.jobs[id] == e {
		out.use()
		q.mu.Unlock()
		defer out.release()
		if err := out.copyTo(ctx, w, follow); err != nil || !follow {
			return err
		}
		_, err := q.Wait(ctx, id) // until it is stored that the job ended
		return err
	}
	q.mu.Unlock()
	if out == nil {
		return nil // it has not started
	}
	return q.storedOutput(ctx, id, w)
}

// storedOutput writes the output of a job that ended.
func (q *Queue) storedOutput(ctx context.Context, id int64, w io.Writer) error {
	if _, err := q.Job(ctx, id); err != nil {
		return err
	}
	f, err := os.Open(q.folder.output(id))
	if errors.Is(err, os.ErrNotExist) {
		return nil // it never started
	}
	if err != nil {
		return q.fail(fmt.Sprintf("read the output of job %d", id), system.Reason(err))
	}
	defer f.Close()
	buf := make([]byte, 32<<10)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := f.Read(buf)
		if n > 0 {
			if _, err := w.Write(buf[:n]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return q.fail(fmt.Sprintf("read the output of job %d", id), system.Reason(err))
		}
	}
}

// Close ends the queue: no job is accepted or started any more. Running jobs
// are interrupted; they drain and keep their reports, and are killed after
// Options.Drain, or when ctx is done. They become Interrupted, or Done if they
// ended by themselves. Queued jobs stay queued. The folder is free when Close
// returns. It may be called again.
func (q *Queue) Close(ctx context.Context) error {
	q.mu.Lock()
	first := !q.ending
	q.ending = true
	if first {
		close(q.closing)
	}
	q.mu.Unlock()
	if !first {
		select {
		case <-q.closed:
		case <-ctx.Done():
			q.once.Do(func() { close(q.hurry) })
			<-q.closed
		}
		return nil
	}
	idle := make(chan struct{})
	go func() {
		q.work.Wait()
		close(idle)
	}()
	select {
	case <-idle:
	case <-ctx.Done():
		q.once.Do(func() { close(q.hurry) })
		<-idle
	}
	q.writes <- struct{}{} // the last change is done
	close(q.closed)
	return fail("close the data folder "+q.o.Dir, q.o.Dir, errors.Join(q.table.close(), q.folder.release()))
}
