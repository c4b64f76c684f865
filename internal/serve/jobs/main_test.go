package jobs

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"carronade/internal/advice"
	"carronade/internal/host"
	"carronade/internal/store/sqlitefile"
	"carronade/protocol"
	"carronade/test/testkit"
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

// soon returns a context of what must happen: it ends with t, and what never happens ends with all tests, however slow the machine is.
func soon(t *testing.T) context.Context {
	ctx, stop := context.WithCancel(context.Background())
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
	t.Cleanup(func() { err := q.Close(soon(t)); assert.True(t, err == nil, "%v", err) })
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
	for tick := time.Tick(time.Millisecond); !exists(path); <-tick {
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

// A folder that this program does not know is refused with a hint, and its jobs.db is not changed.
func TestFoldersThatAreRefused(t *testing.T) {
	alter := func(statement string) func(t *testing.T, path string) {
		return func(t *testing.T, path string) {
			t.Helper()
			db := assert.Value(sql.Open("sqlite", "file:"+path))(t)
			defer db.Close()
			assert.Value(db.ExecContext(t.Context(), statement))(t)
		}
	}
	for _, tt := range []struct {
		name string
		do   func(t *testing.T, path string)
		want error
	}{
		{"newer", alter("PRAGMA user_version = 99"), ErrNewer},
		{"of another program", alter("PRAGMA application_id = 7"), ErrForeign},
		{"a text", func(t *testing.T, path string) {
			assert.OK(t, os.WriteFile(path, bytes.Repeat([]byte("dear diary "), 100), 0o600))
		}, ErrForeign},
		{"cut", func(t *testing.T, path string) { assert.OK(t, os.Truncate(path, 10_000)) }, ErrDamaged},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			q := open(t, Options{Dir: dir})
			wait(t, q, submit(t, q, request("x")).ID)
			assert.OK(t, q.Close(soon(t)))
			path := filepath.Join(dir, "jobs.db")
			tt.do(t, path)
			before := assert.Value(os.ReadFile(path))(t)
			var said *protocol.Error
			for range 2 { // it is not left locked
				_, err := Open(t.Context(), Options{Dir: dir})
				assert.True(t, errors.Is(err, tt.want) && errors.As(err, &said) && said.Hint != "", "got %v, want %v", err, tt.want)
			}
			after, err := os.ReadFile(path)
			assert.True(t, err == nil && bytes.Equal(before, after), "the file was changed (%v)", err)
		})
	}
}

// An older schema is brought up to date, and the older program refuses it then.
func TestMigration(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	q := open(t, Options{Dir: dir})
	wait(t, q, submit(t, q, request("x")).ID)
	assert.OK(t, q.Close(soon(t)))
	next := format
	next.Steps = append(next.Steps[:len(next.Steps):len(next.Steps)], "ALTER TABLE jobs ADD COLUMN stars INTEGER NOT NULL DEFAULT 3")
	db := assert.Value(next.Prepare(t.Context(), filepath.Join(dir, "jobs.db")))(t)
	var stars int
	err := db.QueryRowContext(t.Context(), "SELECT stars FROM jobs").Scan(&stars)
	assert.True(t, err == nil && stars == 3, "got %d and %v", stars, err)
	db.Close()
	_, err = Open(t.Context(), Options{Dir: dir})
	assert.True(t, errors.Is(err, ErrNewer), "got %v, want %v", err, ErrNewer)
	v, err := sqlitefile.Version(t.Context(), db)
	assert.True(t, err != nil, "got version %d of a closed file", v)
}

// What is not a folder, or not a place for one, is an error with a hint.
func TestImpossibleFolders(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	touch(t, file)
	for _, dir := range []string{"", file, filepath.Join(file, "data")} {
		_, err := Open(t.Context(), Options{Dir: dir})
		assert.True(t, err != nil && advice.Hint(err) != "", "%q: got %v, want an error with a hint", dir, err)
	}
}

// If a folder cannot be opened, nothing of it is left running, and no job starts.
func TestOpenFails(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	q := open(t, Options{Dir: dir})
	gate := filepath.Join(t.TempDir(), "gate")
	j := submit(t, q, request("a", "drains", "until:"+gate))
	later := submit(t, q, request("b", "note:"+gate+".ran|"))
	until(t, q, j.ID, running)
	assert.OK(t, q.Close(soon(t)))
	bad := filepath.Join(dir, "running", "99")
	for _, err := range []error{os.Rename(alive(t), filepath.Join(dir, "running", "1")), os.Mkdir(bad, 0o700)} {
		assert.OK(t, err)
	}
	_, err := Open(t.Context(), Options{Dir: dir, Parallel: 2})
	assert.Must(t, err != nil && advice.Hint(err) != "", "got %v, want an error with a hint", err)
	assert.True(t, !exists(gate+".ran"), "a job has run")
	for _, name := range []string{bad, filepath.Join(dir, "running", "1")} {
		assert.OK(t, os.Remove(name))
	}
	q = open(t, Options{Dir: dir})
	j = wait(t, q, later.ID)
	assert.True(t, j.State == Done, "got %+v", j)
}

// The folder and what is in it belong to its user alone.
func TestModes(t *testing.T) {
	q := open(t, Options{})
	wait(t, q, submit(t, q, request("x", "out:hello")).ID)
	err := filepath.Walk(q.o.Dir, func(path string, info os.FileInfo, err error) error {
		if err == nil {
			assert.True(t, info.Mode().Perm()&0o077 == 0, "%s has the mode %v", path, info.Mode())
		}
		return err
	})
	assert.True(t, err == nil, "%v", err)
}

// No jobs.db crashes the server, or keeps it from ending.
func FuzzOpen(f *testing.F) {
	program := []string{os.Args[0]}
	dir := f.TempDir()
	q := assert.Value(Open(f.Context(), Options{Dir: dir, Program: program, QueuedPerUser: 4}))(f)
	for range 3 {
		j, _, err := q.Submit(f.Context(), request("x", "out:hello"))
		if err == nil {
			_, err = q.Wait(f.Context(), j.ID)
		}
		assert.OK(f, err)
	}
	assert.OK(f, q.Close(f.Context()))
	whole := assert.Value(os.ReadFile(filepath.Join(dir, "jobs.db")))(f)
	f.Add(whole)
	f.Add(whole[:len(whole)-8192])
	f.Add(whole[:50])
	f.Add([]byte{})
	for _, at := range []int{16, 20, 40, 60, 68, 100, 108, 8192, 9000, len(whole) - 1, len(whole) - 40} {
		b := bytes.Clone(whole)
		b[at] ^= 0xff
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		dir := t.TempDir()
		assert.OK(t, os.WriteFile(filepath.Join(dir, "jobs.db"), b, 0o600))
		q, err := Open(t.Context(), Options{Dir: dir, Program: []string{filepath.Join(dir, "no program")}})
		if err != nil {
			assert.True(t, advice.Hint(err) != "", "got %v without a hint", err)
			return
		}
		list, _ := q.Jobs(t.Context(), Filter{})
		for _, j := range list {
			_ = q.Output(t.Context(), j.ID, false, io.Discard)
		}
		j, _, err := q.Submit(t.Context(), request("x"))
		if err == nil {
			_ = q.Cancel(t.Context(), j.ID)
		}
		_ = q.Close(t.Context())
	})
}

func TestReadOnlyFolder(t *testing.T) {
	dir := testkit.Mount(t, "4096k")
	q := open(t, Options{Dir: filepath.Join(dir, "data")})
	wait(t, q, submit(t, q, request("x")).ID)
	assert.OK(t, q.Close(soon(t)))
	testkit.Seal(t, dir)
	for _, data := range []string{filepath.Join(dir, "data"), filepath.Join(dir, "new")} {
		if _, err := Open(t.Context(), Options{Dir: data}); !errors.Is(err, ErrReadOnly) || advice.Hint(err) == "" || !strings.Contains(err.Error(), data) {
			t.Errorf("got %v (%s), want %v", err, advice.Hint(err), ErrReadOnly)
		}
	}
}

// On a full disk no job is accepted, what a running job prints is lost and the
// job is not, and the queue goes on when there is space.
func TestFullDisk(t *testing.T) {
	dir := testkit.Mount(t, "4096k")
	var problems atomic.Int32
	q := open(t, Options{Dir: filepath.Join(dir, "data"), QueuedPerUser: 1 << 20, Queued: 1 << 20, Problem: func(err error) {
		problems.Add(1)
		assert.True(t, errors.Is(err, ErrFull) && advice.Hint(err) != "",
			"got the problem %v (%s), want %v", err, advice.Hint(err), ErrFull)
	}})
	gate := filepath.Join(t.TempDir(), "gate")
	first := submit(t, q, request("x", "out:before", "until:"+gate, "lines:20000:50", "note:"+gate+".printed|", "until:"+gate+".free", "out:after"))
	printed(t, q, first.ID, "before")
	ballast := testkit.Fill(t, dir)
	touch(t, gate)
	var last Job
	for {
		j, _, err := q.Submit(t.Context(), request("x", "out:"+strings.Repeat("x", 1000)))
		if errors.Is(err, ErrFull) && advice.Hint(err) != "" {
			break
		}
		assert.Must(t, err == nil, "got %v (%s), want %v", err, advice.Hint(err), ErrFull)
		last = j
	}
	appears(t, gate+".printed")
	free := func() { assert.OK(t, os.Remove(ballast)) }
	free()
	touch(t, gate+".free")
	if j := wait(t, q, first.ID); j.State != Done {
		t.Errorf("got %+v", j)
	}
	if text := outputOf(t, q, first.ID, false); !strings.HasPrefix(text, "before\n") || !strings.Contains(text, "bytes of output could not be stored here") || !strings.HasSuffix(text, "after\n") {
		t.Errorf("got %q ... %q", text[:min(99, len(text))], text[max(0, len(text)-99):])
	}
	if last.ID != 0 {
		assert.OK(t, q.Cancel(t.Context(), last.ID))
	}
	// A job that ends while the disk is full.
	j := submit(t, q, request("y", "out:up", "until:"+gate+".end"))
	printed(t, q, j.ID, "up")
	testkit.Fill(t, dir)
	touch(t, gate+".end")
	for tick := time.Tick(time.Millisecond); problems.Load() == 0; <-tick { // until its end cannot be stored
	}
	got, err := q.Job(t.Context(), j.ID)
	assert.True(t, err == nil && got.State == Running, "got %+v and %v, want a running job until its end is stored", got, err)
	free()
	j = wait(t, q, j.ID)
	assert.True(t, j.State == Done, "got %+v", j)
}

// What is printed after a write that failed in part is the end of the output.
func TestFullDiskInPart(t *testing.T) {
	dir := testkit.Mount(t, "64k")
	o := assert.Value(createOutput(filepath.Join(dir, "1.log"), leastOutput<<8))(t)
	o.add([]byte("before\n"))
	ballast := testkit.Fill(t, dir)
	o.add(bytes.Repeat([]byte("x"), 20_000))
	assert.OK(t, os.Remove(ballast))
	o.add([]byte("after\n"))
	o.finish()
	o.release()
	assert.Equal(t, string(assert.Value(os.ReadFile(o.file.Name()))(t)), "before\n[... 20,000 bytes of output could not be stored here ...]\nafter\n")
}

func TestFullDiskFromTheStart(t *testing.T) {
	dir := testkit.Mount(t, "64k")
	testkit.Fill(t, dir)
	_, err := Open(t.Context(), Options{Dir: filepath.Join(dir, "data")})
	assert.True(t, errors.Is(err, ErrFull) && advice.Hint(err) != "", "got %v (%s), want %v", err, advice.Hint(err), ErrFull)
}
