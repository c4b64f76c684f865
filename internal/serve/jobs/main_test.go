package jobs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"carronade/internal/advice"
	"carronade/internal/host"
	"carronade/test/testkit/assert"
)

// The test program is also a server and the program of the jobs, as this variable says.
const roleVariable = "CARRONADE_TEST_JOBS"

func TestMain(m *testing.M) {
	switch role := os.Getenv(roleVariable); role {
	case "":
		// Under the race detector each process would wait a second at its end.
		os.Setenv("GORACE", "atexit_sleep_ms=0")
		os.Exit(m.Run())
	case "job":
		os.Exit(fake(os.Args[1:]))
	default:
		if err := serve(role); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// fake is the program of the jobs. Its arguments are steps.
func fake(steps []string) int {
	signals := make(chan os.Signal, 1)
	var late time.Duration // before it ends after a signal
	for _, step := range steps {
		what, text, _ := strings.Cut(step, ":")
		switch what {
		case "out":
			fmt.Println(text)
		case "err":
			fmt.Fprintln(os.Stderr, text)
		case "exit":
			return number(text)
		case "drains", "late":
			signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
			late = time.Duration(number("0"+text)) * time.Millisecond
		case "deaf":
			signal.Ignore(os.Interrupt, syscall.SIGTERM)
		case "lines": // N:width
			n, width, _ := strings.Cut(text, ":")
			for i := range number(n) {
				fmt.Printf("%0*d\n", number(width)-1, i)
			}
		case "note": // FILE:text
			file, line, _ := strings.Cut(text, "|")
			note(file, line)
		case "alone": // FILE: a note in FILE.overlap if another process has it
			f, err := os.OpenFile(text, os.O_RDWR|os.O_CREATE, 0o600)
			if err != nil {
				panic(err)
			}
			if ok, err := host.TryLock(f, false); !ok || err != nil {
				note(text+".overlap", fmt.Sprint(steps, err))
			}
			defer f.Close()
		case "pause":
			select {
			case <-time.After(time.Duration(number(text)) * time.Millisecond):
			case <-signals:
				return drain(signals, late)
			}
		case "until": // the file exists
			for !exists(text) {
				select {
				case <-time.After(time.Millisecond):
				case <-signals:
					fmt.Println("draining")
					return drain(signals, late)
				}
			}
		case "frames":
			f := os.NewFile(uintptr(number(os.Getenv(FramesVariable))), "frames")
			fmt.Fprint(f, text)
		case "env":
			fmt.Println(os.Getenv(text))
		case "folder":
			dir, _ := os.Getwd()
			fmt.Println(dir)
		default:
			panic("unknown step " + step)
		}
	}
	return 0
}

// drain ends as carronade does: a second signal ends it at once.
func drain(signals <-chan os.Signal, late time.Duration) int {
	select {
	case <-time.After(late):
		return 130
	case <-signals:
		return 2
	}
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	return n
}

func note(file, line string) {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	if _, err := f.WriteString(line + "\n"); err != nil {
		panic(err)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// patience is how long a test waits for what must happen.
const patience = time.Minute

func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), patience)
	t.Cleanup(stop)
	return ctx
}

// open opens a queue whose jobs are those of fake.
func open(t *testing.T, o Options) *Queue {
	t.Helper()
	if o.Dir == "" {
		o.Dir = filepath.Join(t.TempDir(), "data")
	}
	if o.Program == nil {
		o.Program = []string{os.Args[0]}
	}
	if o.Problem == nil {
		o.Problem = func(err error) { t.Errorf("a problem: %v", err) }
	}
	q, err := Open(t.Context(), o)
	assert.Must(t, err == nil, "%v (%s)", err, advice.Hint(err))
	t.Cleanup(func() {
		err := q.Close(soon(t))
		assert.True(t, err == nil, "%v", err)
	})
	return q
}

// request is that of a job of fake.
func request(system string, steps ...string) Request {
	return Request{System: system, User: "ann", Typed: strings.Join(steps, " "), Args: steps, Env: []string{roleVariable + "=job"}}
}

func submit(t *testing.T, q *Queue, r Request) Job {
	t.Helper()
	j, _, err := q.Submit(t.Context(), r)
	assert.OK(t, err)
	return j
}

func wait(t *testing.T, q *Queue, id int64) Job {
	t.Helper()
	j := assert.Value(q.Wait(soon(t), id))(t, "job %d", id)
	return j
}

// until waits until a job is as wanted.
func until(t *testing.T, q *Queue, id int64, wanted func(j Job) bool) Job {
	t.Helper()
	for ctx := soon(t); ; {
		changed := q.Changed()
		j := assert.Value(q.Job(ctx, id))(t)
		if wanted(j) {
			return j
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("job %d is %s: %+v", id, j.State, j)
		}
	}
}

func running(j Job) bool { return j.State == Running }

// printed waits until a job that runs has printed a line.
func printed(t *testing.T, q *Queue, id int64, line string) {
	t.Helper()
	ctx, stop := context.WithCancel(soon(t))
	defer stop()
	err := q.Output(ctx, id, true, &seeker{want: line})
	assert.Must(t, errors.Is(err, errSeen), "job %d did not print %q: %v", id, line, err)
}

var errSeen = errors.New("seen")

// A seeker fails when it has got a text.
type seeker struct {
	want string
	got  strings.Builder
}

func (s *seeker) Write(p []byte) (int, error) {
	s.got.Write(p)
	if strings.Contains(s.got.String(), s.want) {
		return 0, errSeen
	}
	return len(p), nil
}

func outputOf(t *testing.T, q *Queue, id int64, follow bool) string {
	t.Helper()
	var b strings.Builder
	assert.OK(t, q.Output(soon(t), id, follow, &b))
	return b.String()
}

// appears waits until a file exists.
func appears(t *testing.T, path string) {
	t.Helper()
	for ctx := soon(t); !exists(path); runtime.Gosched() {
		assert.OK(t, ctx.Err(), "%s does not appear", path)
	}
}

// touch makes a file, for which a job waits.
func touch(t *testing.T, path string) {
	t.Helper()
	assert.OK(t, os.WriteFile(path, nil, 0o600))
}

func lines(t *testing.T, path string) []string {
	t.Helper()
	b, err := os.ReadFile(path)
	assert.Must(t, err == nil || errors.Is(err, os.ErrNotExist), "%v", err)
	return strings.FieldsFunc(string(b), func(r rune) bool { return r == '\n' })
}
