package jobs

import (
	"context"
	"errors"
	"sync"
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
// opening. Errors are a *protocol.Error.
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
func (q *Queue) newEntry(j *Job) *entry {
	e := &entry{id: j.ID, system: j.System, user: j.User, cancel: make(chan struct{}), started: make(chan struct{}), done: make(chan struct{})}
	q.jobs[e.id] = e
	q.enter(e)
	return e
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
