package shell

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"carronade/internal/serve/jobs"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// A fakeQueue keeps jobs in memory. A test begins and ends them.
type fakeQueue struct {
	mu      sync.Mutex
	changed *sync.Cond
	jobs    []*fakeJob
	refuse  error
	reading int // calls of Output and Wait that have not returned
}

type fakeJob struct {
	jobs.Job
	printed string
}

func newFakeQueue() *fakeQueue {
	q := &fakeQueue{}
	q.changed = sync.NewCond(&q.mu)
	return q
}

// Submit begins a job at once if none is open.
func (q *fakeQueue) Submit(_ context.Context, r jobs.Request) (jobs.Job, int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.refuse != nil {
		return jobs.Job{}, 0, q.refuse
	}
	ahead := 0
	for _, j := range q.jobs {
		if j.Ended.IsZero() {
			ahead++
		}
	}
	j := &fakeJob{Job: jobs.Job{ID: int64(len(q.jobs) + 1), Request: r, State: jobs.Queued, Submitted: time.Now()}}
	if ahead == 0 {
		j.State = jobs.Running
	}
	q.jobs = append(q.jobs, j)
	return j.Job, ahead, nil
}

func (q *fakeQueue) find(id int64) *fakeJob { return q.jobs[id-1] }

func (q *fakeQueue) Cancel(_ context.Context, id int64) error {
	q.end(id, jobs.Cancelled, 130, "by its user")
	return nil
}

// print adds output of a job.
func (q *fakeQueue) print(id int64, text string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.find(id).printed += text
	q.changed.Broadcast()
}

// end ends a job, and begins the next.
func (q *fakeQueue) end(id int64, state jobs.State, exit int, reason string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	j := q.find(id)
	j.State, j.Exit, j.Reason, j.Ended = state, exit, reason, time.Now()
	for _, j := range q.jobs {
		if j.Ended.IsZero() {
			j.State = jobs.Running
			break
		}
	}
	q.changed.Broadcast()
}

func (q *fakeQueue) Jobs(_ context.Context, f jobs.Filter) (out []jobs.Job, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, j := range q.jobs {
		if len(f.States) == 0 || slices.Contains(f.States, j.State) {
			out = append(out, j.Job)
		}
	}
	return out, nil
}

func (q *fakeQueue) wait(ctx context.Context, ready func() bool) error {
	defer context.AfterFunc(ctx, func() { q.mu.Lock(); q.changed.Broadcast(); q.mu.Unlock() })()
	for !ready() {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		q.changed.Wait()
	}
	return nil
}

func (q *fakeQueue) Output(ctx context.Context, id int64, _ bool, w io.Writer) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.reading++
	defer func() { q.reading-- }()
	j, n := q.find(id), 0
	for {
		if err := q.wait(ctx, func() bool { return len(j.printed) > n || !j.Ended.IsZero() }); err != nil {
			return err
		}
		text := j.printed[n:]
		if text == "" {
			return nil
		}
		n += len(text)
		q.mu.Unlock()
		_, err := io.WriteString(w, text)
		q.mu.Lock()
		if err != nil {
			return err
		}
	}
}

func (q *fakeQueue) Wait(ctx context.Context, id int64) (jobs.Job, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	j := q.find(id)
	err := q.wait(ctx, func() bool { return !j.Ended.IsZero() })
	return j.Job, err
}

// args are the command lines of all jobs.
func (q *fakeQueue) args() (out []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, j := range q.jobs {
		out = append(out, typed(j.Args))
	}
	return out
}

// A dialog is a session, and its user.
type dialog struct {
	t      *testing.T
	conn   net.Conn
	ended  chan error
	mu     sync.Mutex
	cond   *sync.Cond
	all    string
	seen   int
	closed bool
}

// talk begins a session. What Run runs, it prints.
func talk(t *testing.T, o Options) *dialog {
	t.Helper()
	mine, theirs := net.Pipe()
	return talkOver(t, mine, theirs, o)
}

// talkOnTerminal begins a session with a user who types keys.
func talkOnTerminal(t *testing.T, o Options) *dialog {
	t.Helper()
	mine, theirs := net.Pipe()
	o.Terminal = newTerminal(bufio.NewReader(theirs), theirs, 80, 24)
	go o.Terminal.keys.pump()
	return talkOver(t, mine, theirs, o)
}

func talkOver(t *testing.T, mine, theirs net.Conn, o Options) *dialog {
	t.Helper()
	if o.Home == "" {
		o.Home = t.TempDir()
	}
	if o.User == "" {
		o.User = "ann"
	}
	if o.Commands == nil {
		o.Commands = []string{"run", "find", "scenario", "report", "system", "topics", "query", "version"}
	}
	if o.Run == nil {
		o.Run = func(_ context.Context, args []string, out io.Writer) int {
			fmt.Fprintf(out, "ran %s\n", typed(args))
			return 0
		}
	}
	if o.Loads == nil {
		o.Loads = func(args []string) bool { return args[0] == "run" || args[0] == "find" }
	}
	if o.System == nil {
		o.System = func(args []string) string {
			for _, a := range args {
				if strings.Contains(a, "://") {
					return a
				}
			}
			return jobs.Everything
		}
	}
	d := &dialog{t: t, conn: mine, ended: make(chan error, 1)}
	d.cond = sync.NewCond(&d.mu)
	go func() { d.ended <- Serve(t.Context(), theirs, o) }()
	go d.read()
	t.Cleanup(func() { mine.Close() })
	d.until(promptText)
	return d
}

func (d *dialog) read() {
	buf := make([]byte, 4096)
	for {
		n, err := d.conn.Read(buf)
		d.mu.Lock()
		d.all += string(buf[:n])
		d.closed = err != nil
		d.cond.Broadcast()
		d.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// until waits for a text and returns what came before it.
func (d *dialog) until(text string) string {
	d.t.Helper()
	timer := time.AfterFunc(time.Minute, func() { d.mu.Lock(); d.closed = true; d.cond.Broadcast(); d.mu.Unlock() })
	defer timer.Stop()
	d.mu.Lock()
	defer d.mu.Unlock()
	for {
		if before, _, ok := strings.Cut(d.all[d.seen:], text); ok {
			d.seen += len(before) + len(text)
			return before
		}
		if d.closed {
			d.t.Fatalf("the session did not write %q; it wrote %q", text, d.all[d.seen:])
		}
		d.cond.Wait()
	}
}

// do types a line and returns the answer.
func (d *dialog) do(line string) string {
	d.t.Helper()
	d.send(line + "\n")
	return d.until(promptText)
}

func (d *dialog) send(text string) {
	d.t.Helper()
	assert.Value(io.WriteString(d.conn, text))(d.t)
}

// end waits for the end of the session.
func (d *dialog) end() error {
	d.t.Helper()
	return testkit.Wait(d.t, "the session ends", d.ended)
}

// transcript is all that the session wrote.
func (d *dialog) transcript() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.all
}

// runPrinting is a Run that prints a text and keeps the command line.
func runPrinting(text string, ran *string) func(context.Context, []string, io.Writer) int {
	return func(_ context.Context, args []string, out io.Writer) int {
		*ran = typed(args)
		io.WriteString(out, text)
		return 0
	}
}
