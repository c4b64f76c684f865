package jobs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"carronade/internal/host"
)

// Jobs returns the selected jobs, in the order of their ids.
func (q *Queue) Jobs(ctx context.Context, f Filter) ([]Job, error) {
	list, err := q.table.find(ctx, f)
	return list, q.fail("list the jobs", err)
}

// Job returns a job. The error is an ErrNoJob, or one of the folder.
func (q *Queue) Job(ctx context.Context, id int64) (Job, error) {
	j, err := q.table.get(ctx, id)
	doing := fmt.Sprintf("find job %d", id)
	if errors.Is(err, ErrNoJob) {
		doing = fmt.Sprintf("no job %d", id)
	}
	return j, q.fail(doing, err)
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
		return q.fail(fmt.Sprintf("read the output of job %d", id), host.Reason(err))
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
			return q.fail(fmt.Sprintf("read the output of job %d", id), host.Reason(err))
		}
	}
}
