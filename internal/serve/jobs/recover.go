package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"carronade/internal/host"
)

// recover reads the table after an earlier server has ended, or was killed.
func (q *Queue) recover(ctx context.Context) error {
	deleted, err := q.table.recover(ctx, now(), "the server ended while it ran", q.o.KeepEnded)
	if err != nil {
		return err
	}
	q.remove(deleted)
	waiting, err := q.table.waiting(ctx)
	if err != nil {
		return err
	}
	for i := range waiting {
		q.newEntry(&waiting[i])
	}
	if err := q.removeOrphans(ctx); err != nil {
		return err
	}
	return q.awaitLeftovers(ctx)
}

// removeOrphans removes the output of jobs that were deleted.
func (q *Queue) removeOrphans(ctx context.Context) error {
	ids, err := q.folder.ids("output", ".log")
	if err != nil {
		return err
	}
	for _, id := range ids {
		_, err := q.table.get(ctx, id)
		if errors.Is(err, ErrNoJob) {
			err = os.Remove(q.folder.output(id))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// awaitLeftovers occupies the systems of jobs whose processes may still run,
// until they have ended. Each has a file in the folder running, which its
// process has locked and which says who it is.
func (q *Queue) awaitLeftovers(ctx context.Context) error {
	ids, err := q.folder.ids("running", "")
	if err != nil {
		return err
	}
	slices.Sort(ids)
	for _, id := range ids {
		j, err := q.table.get(ctx, id)
		if err != nil && !errors.Is(err, ErrNoJob) {
			return err
		}
		l, err := openLeftover(q.folder.running(id))
		if err != nil {
			return err
		}
		if l.gone() {
			l.remove()
			continue
		}
		q.mu.Lock()
		q.take(j.System)
		q.mu.Unlock()
		q.work.Go(func() {
			defer q.free(j.System)
			defer l.file.Close()
			ended, err := l.await(q.o.Drain, q.closing)
			if err != nil {
				q.o.Problem(fail(fmt.Sprintf("wait for the process of job %d, which an earlier server started", id), q.o.Dir, err))
			}
			if ended || err != nil {
				l.remove()
			}
		})
	}
	return nil
}

// A leftover is the process of a job whose server was killed. It may still wait
// for the last answers and write its report. It loads its system until then.
type leftover struct {
	file *os.File
	id   host.Identity // PID 0: the server was killed before it could write it
}

func openLeftover(path string) (*leftover, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	l := &leftover{file: f}
	if b, err := io.ReadAll(io.LimitReader(f, 4096)); err != nil || json.Unmarshal(b, &l.id) != nil || l.id.PID <= 1 {
		l.id = host.Identity{}
	}
	return l, nil
}

// gone reports whether the process has ended. If it is not known which one it
// is, the lock decides. The lock may be held longer, by processes that it
// started.
func (l *leftover) gone() bool {
	if alive, known := l.alive(); known {
		return !alive
	}
	free, err := host.TryLock(l.file, false)
	return free || err != nil
}

func (l *leftover) alive() (alive, known bool) {
	if l.id.PID == 0 {
		return false, false
	}
	return l.id.Alive()
}

// signal asks the process to end, or kills it, and reports whether it is known
// and alive.
func (l *leftover) signal(kill bool) bool {
	alive, _ := l.alive()
	if alive {
		host.Signal(l.id.PID, kill)
	}
	return alive
}

func (l *leftover) remove() {
	l.file.Close()
	_ = os.Remove(l.file.Name())
}

// errRemains says that a process does not end.
var errRemains = errors.New("it may still run")

// await waits until the process has ended, and kills it after a time. It fails
// if the process cannot be found or killed, and returns false when closing is
// closed.
func (l *leftover) await(patience time.Duration, closing <-chan struct{}) (ended bool, err error) {
	if !host.DiesWithParent {
		l.signal(false) // nothing has asked it to end
	}
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	expired := time.After(patience)
	for killed := false; ; {
		select {
		case <-closing:
			return false, nil
		case <-look.C:
			if l.gone() {
				return true, nil
			}
		case <-expired:
			if killed || !l.signal(true) {
				if l.gone() {
					return true, nil
				}
				return false, errRemains
			}
			killed, expired = true, time.After(patience)
		}
	}
}
