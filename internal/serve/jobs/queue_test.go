package jobs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"carronade/internal/advice"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// The state follows from the exit code.
func TestStates(t *testing.T) {
	q := open(t, Options{Memory: 64 << 20})
	const noMemory = "it needed more memory than this server allows a job: 64 MiB (--job-memory)"
	for _, tt := range []struct {
		steps  []string
		state  State
		exit   int
		reason string
	}{
		{nil, Done, 0, ""},
		{[]string{"exit:1"}, Done, 1, ""},
		{[]string{"exit:3"}, Done, 3, ""},
		{[]string{"exit:4"}, Done, 4, ""},
		{[]string{"err:error: no\tsuch host", "err:hint: look", "exit:2"}, Failed, 2, "no such host"},
		{[]string{"exit:2"}, Failed, 2, "its process ended with exit code 2"},
		{[]string{"exit:77"}, Failed, 77, "its process ended with exit code 77"},
		{[]string{"err:fatal error: runtime: out of memory", "err:", "err:goroutine 1 [running]:", "exit:2"}, Failed, 2, noMemory},
		{[]string{"err:runtime/cgo: pthread_create failed: Resource temporarily unavailable", "exit:2"}, Failed, 2, noMemory},
		{[]string{"err:fatal error: all goroutines are asleep - deadlock!", "exit:2"}, Failed, 2, "its process ended with exit code 2"},
		{[]string{"out:fatal error: runtime: out of memory", "exit:0"}, Done, 0, ""},
		{[]string{"out:fatal error: runtime: out of memory", "exit:1"}, Done, 1, ""}, // a text of the system under test
		{[]string{"exit:130"}, Failed, 130, "its process was interrupted from outside"},
	} {
		j := submit(t, q, request("x", tt.steps...))
		got := wait(t, q, j.ID)
		assert.True(t, got.State == tt.state && got.Exit == tt.exit && got.Reason == tt.reason,
			"%v: got %s, %d, %q, want %s, %d, %q", tt.steps, got.State, got.Exit, got.Reason, tt.state, tt.exit, tt.reason)
		assert.True(t, !got.Started.Before(got.Submitted) && !got.Ended.Before(got.Started),
			"got the times %v, %v, %v", got.Submitted, got.Started, got.Ended)
		output := outputOf(t, q, j.ID, false)
		assert.True(t, (output == "error: "+noMemory+"\nhint: "+MemoryHint+"\n") == (tt.reason == noMemory), "%v: %q", tt.steps, output)
		stored, err := q.Job(t.Context(), j.ID)
		diff := cmp.Diff(got, stored)
		assert.True(t, diff == "" && err == nil, "stored otherwise (%v):\n%s", err, diff)
		assert.True(t, !exists(q.folder.running(j.ID)), "a file for the running process was left")
	}
}

// TestFullFolder: a job that makes the folder of files larger than it may be ends, and one that writes nothing does not.
func TestFullFolder(t *testing.T) {
	q := open(t, Options{MostFiles: 1000})
	touch(t, q.folder.path("files", "old"))
	assert.OK(t, os.Truncate(q.folder.path("files", "old"), 2000))
	j := submit(t, q, request("x", "drains", "note:new|more", "pause:600000"))
	got := wait(t, q, j.ID)
	const want = "the folder files has 1.96 KiB, more than the 1000 B that this server allows (--job-disk): remove files from it"
	assert.True(t, got.State == Failed && got.Exit == 130 && got.Reason == want, "got %s, %d, %q", got.State, got.Exit, got.Reason)
	j = submit(t, q, request("x", "pause:2500"))
	got = wait(t, q, j.ID)
	assert.True(t, got.State == Done, "a job that writes nothing: %s, %q", got.State, got.Reason)
}

// A request arrives at the process and in lists exactly.
func TestRequest(t *testing.T) {
	dir := t.TempDir()
	q := open(t, Options{})
	r := Request{
		System: "élan 1", User: "zoë", Typed: "typed 'line'\x1b[1m", Dir: dir,
		Args: []string{"out:", "out:two\nlines \xff", "folder", "env:A", "env:EMPTY"},
		Env:  []string{roleVariable + "=job", "A=b=c", "EMPTY="},
	}
	j := submit(t, q, r)
	got := wait(t, q, j.ID)
	assert.True(t, reflect.DeepEqual(got.Request, r), "got %+v, want %+v", got.Request, r)
	assert.Equal(t, outputOf(t, q, j.ID, false), "\ntwo\nlines \xff\n"+dir+"\nb=c\n\n")
	j = submit(t, q, request("", "folder"))
	wait(t, q, j.ID)
	assert.Equal(t, outputOf(t, q, j.ID, false), q.folder.path("files")+"\n", "folder")
}

func TestInvalidRequests(t *testing.T) {
	q := open(t, Options{})
	for name, r := range map[string]Request{
		"zero byte in an argument": {Args: []string{"a\x00b"}},
		"zero byte in the user":    {User: "\x00"},
		"not UTF-8":                {System: "\xff"},
		"not a variable":           {Env: []string{"PATH"}},
		"no name":                  {Env: []string{"=x"}},
		"zero byte in a variable":  {Env: []string{"A=\x00"}},
		"relative folder":          {Dir: "here"},
		"too large":                {Args: []string{strings.Repeat("x", mostRequest+1)}},
	} {
		_, _, err := q.Submit(t.Context(), r)
		assert.True(t, errors.Is(err, ErrInvalid) && advice.Hint(err) != "", "%s: got %v, want %v", name, err, ErrInvalid)
	}
	list, err := q.Jobs(t.Context(), Filter{})
	assert.True(t, len(list) == 0 && err == nil, "got %v and %v, want no jobs", list, err)
}

// A process that cannot be started is a failed job, and the next one runs.
func TestCannotStart(t *testing.T) {
	q := open(t, Options{})
	r := request("x")
	r.Dir = filepath.Join(t.TempDir(), "none")
	bad, good := submit(t, q, r), submit(t, q, request("x"))
	j := wait(t, q, bad.ID)
	assert.True(t, j.State == Failed && j.Exit == -1 && strings.Contains(j.Reason, "could not be started"), "state of %+v", j)
	j = wait(t, q, good.ID)
	assert.True(t, j.State == Done, "state of %+v", j)
	q = open(t, Options{Program: []string{filepath.Join(t.TempDir(), "none")}})
	j = wait(t, q, submit(t, q, request("x")).ID)
	assert.True(t, j.State == Failed && strings.Contains(j.Reason, "no such file"), "state of %+v", j)
}

// Jobs of different systems run side by side, those of one system never, and the oldest first.
func TestPlaces(t *testing.T) {
	q := open(t, Options{Parallel: 2})
	gate := filepath.Join(t.TempDir(), "gate")
	wait1 := request("a", "out:up", "until:"+gate)
	var ids []int64
	for i, system := range []string{"a", "a", "b", "c", "a"} {
		wait1.System = system
		j, ahead, err := q.Submit(t.Context(), wait1)
		assert.OK(t, err)
		want := []int{0, 1, 0, 1, 2}[i]
		assert.True(t, ahead == want, "job %d: got %d jobs ahead, want %d", j.ID, ahead, want)
		ids = append(ids, j.ID)
	}
	printed(t, q, ids[0], "up")
	printed(t, q, ids[2], "up")
	list, err := q.Jobs(t.Context(), Filter{States: []State{Running}})
	assert.True(t, err == nil && len(list) == 2 && list[0].ID == ids[0] && list[1].ID == ids[2],
		"got %v and %v, want the first of a and of b", list, err)
	touch(t, gate)
	var before time.Time
	for _, id := range []int64{ids[0], ids[1], ids[4]} {
		j := wait(t, q, id)
		assert.True(t, !j.Started.Before(before), "job %d started before the one ahead of it ended", id)
		before = j.Ended
	}
	wait(t, q, ids[3])
}

// TestAhead: a job of another system waits, too, if there is one place, or if either is alone.
func TestAhead(t *testing.T) {
	for _, tt := range []struct {
		name     string
		parallel int
		systems  []string
		want     []int
	}{
		{"one place", 1, []string{"a", "b", "a", "c"}, []int{0, 1, 2, 3}},
		{"alone", 3, []string{"a", Everything, "b"}, []int{0, 1, 1}},
		{"after one that is alone", 3, []string{Everything, "a"}, []int{0, 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			q := open(t, Options{Parallel: tt.parallel})
			gate := filepath.Join(t.TempDir(), "gate")
			for i, system := range tt.systems {
				_, ahead, err := q.Submit(t.Context(), request(system, "until:"+gate))
				if err != nil || ahead != tt.want[i] {
					t.Errorf("job %d of %s: got %d jobs ahead and %v, want %d", i, system, ahead, err, tt.want[i])
				}
			}
			touch(t, gate)
		})
	}
}

// Systems with an address in common are one: their jobs run in the order of submission.
func TestOverlappingSystems(t *testing.T) {
	q := open(t, Options{Parallel: 4})
	gate := filepath.Join(t.TempDir(), "gate")
	var ids []int64
	for i, system := range []string{"k://a,b", "k://b,c", "k://c,d", "k://d", "x://a,b", "k://ab"} {
		r := request(system, "out:up", "until:"+gate)
		j, ahead, err := q.Submit(t.Context(), r)
		assert.OK(t, err)
		want := []int{0, 1, 1, 1, 0, 0}[i]
		assert.True(t, ahead == want, "%s: got %d jobs ahead, want %d", system, ahead, want)
		ids = append(ids, j.ID)
	}
	for _, i := range []int{0, 4, 5} {
		printed(t, q, ids[i], "up")
	}
	list, err := q.Jobs(t.Context(), Filter{States: []State{Running}})
	assert.True(t, err == nil && len(list) == 3, "got %v and %v, want the three that share no address", list, err)
	touch(t, gate)
	var before Job
	for _, id := range ids[:4] { // each waits for the one before it, also the last: it is younger
		j := wait(t, q, id)
		assert.True(t, !j.Started.Before(before.Ended), "job %d started before job %d ended", j.ID, before.ID)
		before = j
	}
}

// With one place, jobs of all systems run in the order of submission.
func TestOldestFirst(t *testing.T) {
	q := open(t, Options{})
	gate := filepath.Join(t.TempDir(), "gate")
	submit(t, q, request("a", "until:"+gate))
	for _, system := range []string{"d", "b", "e", "a", "c", "b"} {
		submit(t, q, request(system))
	}
	touch(t, gate)
	var before time.Time
	for id := range int64(7) {
		j := wait(t, q, id+1)
		assert.True(t, !j.Started.Before(before), "job %d started before an older one", j.ID)
		before = j.Started
	}
}

// Many jobs of one system from two goroutines run one at a time, in order, each once.
func TestManyJobs(t *testing.T) {
	testkit.Need(t, "some seconds")
	if runtime.GOOS == "windows" {
		t.Skip("needs a Unix shell")
	}
	dir := t.TempDir()
	script := `mkdir here || echo overlap >> overlaps; echo "$0" >> ran; rmdir here`
	q := open(t, Options{Program: []string{"/bin/sh", "-c", script}, Parallel: 3, QueuedPerUser: 1000})
	const each = 100
	var work sync.WaitGroup
	for k := range 2 {
		work.Go(func() {
			for i := range each {
				r := Request{System: "x", User: fmt.Sprint(k), Args: []string{fmt.Sprintf("%d-%d", k, i)}, Dir: dir}
				_, _, err := q.Submit(t.Context(), r)
				assert.True(t, err == nil, "%v", err)
			}
		})
	}
	work.Wait()
	wait(t, q, 2*each)
	list, err := q.Jobs(t.Context(), Filter{})
	assert.Must(t, err == nil && len(list) == 2*each, "got %d jobs and %v", len(list), err)
	var want []string
	for _, j := range list {
		assert.Equal(t, j.State, Done, "state of %+v", j)
		want = append(want, j.Args[0])
	}
	assert.Same(t, lines(t, filepath.Join(dir, "ran")), want, "ran in another order")
	l := lines(t, filepath.Join(dir, "overlaps"))
	assert.True(t, len(l) == 0, "%d times two ran at once", len(l))
}

func TestCancel(t *testing.T) {
	q := open(t, Options{})
	never := filepath.Join(t.TempDir(), "never")
	first := submit(t, q, request("x", "drains", "out:up", "until:"+never))
	second := submit(t, q, request("x", "exit:2"))
	third := submit(t, q, request("x", "exit:4"))
	assert.OK(t, q.Cancel(t.Context(), second.ID))
	if j, err := q.Job(t.Context(), second.ID); err != nil || j.State != Cancelled || j.Reason == "" || !j.Started.IsZero() || j.Ended.IsZero() {
		t.Errorf("got %+v and %v", j, err)
	}
	printed(t, q, first.ID, "up")
	for range 2 { // the second has no effect
		assert.OK(t, q.Cancel(t.Context(), first.ID))
	}
	j := wait(t, q, first.ID)
	assert.True(t, j.State == Cancelled && j.Exit == 130 && j.Reason == "cancelled while it ran", "state of %+v", j)
	assert.Equal(t, outputOf(t, q, first.ID, false), "up\ndraining\n", "output of a drain")
	j = wait(t, q, third.ID)
	assert.True(t, j.State == Done && j.Exit == 4, "state of %+v", j)
	for _, id := range []int64{first.ID, second.ID, third.ID} {
		err := q.Cancel(t.Context(), id)
		assert.True(t, errors.Is(err, ErrEnded) && advice.Hint(err) != "", "got %v, want %v", err, ErrEnded)
	}
	if err := q.Cancel(t.Context(), 99); !errors.Is(err, ErrNoJob) || advice.Hint(err) == "" || err.Error() != "no job 99: it was not submitted, or is no longer kept" {
		t.Errorf("got %v, want %v", err, ErrNoJob)
	}
}

// A job that does not end after it was cancelled is killed.
func TestCancelDeaf(t *testing.T) {
	q := open(t, Options{CancelLimit: 50 * time.Millisecond})
	j := submit(t, q, request("x", "deaf", "out:up", "until:never"))
	printed(t, q, j.ID, "up")
	assert.OK(t, q.Cancel(t.Context(), j.ID))
	j = wait(t, q, j.ID)
	assert.True(t, j.State == Cancelled && j.Exit == -1 && strings.Contains(j.Reason, "did not end within 50 ms"), "state of %+v", j)
}

// Cancel at any moment, from several goroutines at once, ends the job.
func TestCancelAtRandomMoments(t *testing.T) {
	testkit.Need(t, "some seconds")
	q := open(t, Options{Parallel: 2})
	for i := range 30 {
		j := submit(t, q, request(fmt.Sprint(i%2), "drains", "until:never"))
		var work sync.WaitGroup
		for range 3 {
			work.Go(func() {
				for range i % 5 {
					runtime.Gosched()
				}
				err := q.Cancel(soon(t), j.ID)
				assert.True(t, err == nil || errors.Is(err, ErrEnded), "%v", err)
			})
		}
		work.Wait()
		if j := wait(t, q, j.ID); j.State != Cancelled {
			t.Errorf("state of %+v", j)
		}
	}
}

func TestFilters(t *testing.T) {
	q := open(t, Options{})
	for i, r := range []Request{{System: "a", User: "ann"}, {System: "b", User: "ann"}, {System: "a", User: "bob"}, {System: "a", User: "ann"}} {
		r.Env = []string{roleVariable + "=job"}
		if i == 3 {
			r.Args = []string{"exit:2"}
		}
		wait(t, q, submit(t, q, r).ID)
	}
	for _, tt := range []struct {
		f    Filter
		want []int64
	}{
		{Filter{}, []int64{1, 2, 3, 4}},
		{Filter{System: "a"}, []int64{1, 3, 4}},
		{Filter{User: "ann"}, []int64{1, 2, 4}},
		{Filter{User: "ann", System: "a", Newest: 1}, []int64{4}},
		{Filter{States: []State{Done}}, []int64{1, 2, 3}},
		{Filter{States: []State{Done, Failed}, Newest: 3}, []int64{2, 3, 4}},
		{Filter{States: []State{Queued, Running}}, nil},
	} {
		list, err := q.Jobs(t.Context(), tt.f)
		var got []int64
		for _, j := range list {
			got = append(got, j.ID)
		}
		diff := cmp.Diff(tt.want, got)
		assert.True(t, diff == "" && err == nil, "%+v: %v\n%s", tt.f, err, diff)
	}
}

func TestLimits(t *testing.T) {
	q := open(t, Options{QueuedPerUser: 2, Queued: 3})
	gate := filepath.Join(t.TempDir(), "gate")
	first := submit(t, q, request("x", "until:"+gate)) // runs, and so is not queued
	until(t, q, first.ID, running)
	r := request("x")
	submit(t, q, r)
	last := submit(t, q, r)
	if _, _, err := q.Submit(t.Context(), r); !errors.Is(err, ErrLimit) || !strings.Contains(err.Error(), "ann has 2 queued jobs") || advice.Hint(err) == "" {
		t.Errorf("got %v (%s), want %v", err, advice.Hint(err), ErrLimit)
	}
	r.User = "bob"
	submit(t, q, r)
	if _, _, err := q.Submit(t.Context(), r); !errors.Is(err, ErrLimit) || !strings.Contains(err.Error(), "it has 3 jobs") || advice.Hint(err) == "" {
		t.Errorf("got %v (%s), want %v", err, advice.Hint(err), ErrLimit)
	}
	assert.OK(t, q.Cancel(t.Context(), last.ID))
	last = submit(t, q, r) // there is room again
	touch(t, gate)
	wait(t, q, last.ID)
}

// Only the newest ended jobs are kept, with their output.
func TestKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	q := open(t, Options{Dir: dir, KeepEnded: 2})
	for range 5 {
		wait(t, q, submit(t, q, request("x", "out:hello")).ID)
	}
	check := func(want ...int64) {
		t.Helper()
		list, err := q.Jobs(t.Context(), Filter{})
		var got []int64
		for _, j := range list {
			got = append(got, j.ID)
		}
		diff := cmp.Diff(want, got)
		assert.True(t, diff == "" && err == nil, "%v\n%s", err, diff)
		entries, _ := os.ReadDir(q.folder.path("output"))
		assert.Equal(t, len(entries), len(want), "jobs with an output")
	}
	check(4, 5)
	err := q.Output(t.Context(), 3, true, io.Discard)
	assert.True(t, errors.Is(err, ErrNoJob), "got %v, want %v", err, ErrNoJob)
	assert.OK(t, q.Close(soon(t)))
	// What a killed server could not remove is removed, and numbers are not used again.
	touch(t, filepath.Join(dir, "output", "3.log"))
	q = open(t, Options{Dir: dir, KeepEnded: 1})
	check(5)
	assert.Equal(t, submit(t, q, request("x")).ID, 6, "job")
}

// Close lets running jobs drain, kills those that do not end, and leaves queued ones for the next server.
func TestClose(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	q := open(t, Options{Dir: dir, Parallel: 3, Drain: 300 * time.Millisecond})
	gate := filepath.Join(t.TempDir(), "gate")
	drains := submit(t, q, request("a", "drains", "out:up", "until:"+gate))
	deaf := submit(t, q, request("b", "deaf", "out:up", "until:"+gate))
	ends := submit(t, q, request("c", "late:1", "out:up", "until:"+gate, "exit:1"))
	queued := submit(t, q, request("a", "out:later"))
	for _, id := range []int64{drains.ID, deaf.ID, ends.ID} {
		printed(t, q, id, "up")
	}
	ended := make(chan Job, 1)
	go func() {
		j, err := q.Wait(soon(t), deaf.ID)
		assert.True(t, err == nil, "%v", err)
		ended <- j
	}()
	followed := make(chan error, 1)
	go func() { followed <- q.Output(soon(t), queued.ID, true, io.Discard) }()
	var work sync.WaitGroup
	for range 2 {
		work.Go(func() { err := q.Close(soon(t)); assert.True(t, err == nil, "%v", err) })
	}
	work.Wait()
	j := <-ended
	assert.True(t, j.State == Interrupted && strings.Contains(j.Reason, "killed"), "state of %+v", j)
	err := <-followed
	assert.True(t, errors.Is(err, ErrClosed), "got %v for a follower of a queued job, want %v", err, ErrClosed)
	for name, err := range map[string]error{
		"Submit": func() error { _, _, err := q.Submit(t.Context(), request("a")); return err }(),
		"Jobs":   func() error { _, err := q.Jobs(t.Context(), Filter{}); return err }(),
		"Job":    func() error { _, err := q.Job(t.Context(), 1); return err }(),
		"Wait":   func() error { _, err := q.Wait(t.Context(), queued.ID); return err }(),
		"Cancel": q.Cancel(t.Context(), queued.ID),
		"Output": q.Output(t.Context(), drains.ID, true, io.Discard),
	} {
		assert.True(t, errors.Is(err, ErrClosed), "%s: got %v, want %v", name, err, ErrClosed)
	}
	touch(t, gate)
	q = open(t, Options{Dir: dir})
	j = wait(t, q, queued.ID)
	assert.True(t, j.State == Done, "state of %+v", j)
	j = wait(t, q, drains.ID)
	assert.True(t, j.State == Interrupted && j.Exit == 130 && j.Reason == "the server was stopped while it ran", "state of %+v", j)
	assert.Equal(t, outputOf(t, q, drains.ID, false), "up\ndraining\n", "output of a drain")
}

// A job that was cancelled before Close is not interrupted again: it would end without its report.
func TestCloseAfterCancel(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	q := open(t, Options{Dir: dir})
	j := submit(t, q, request("a", "late:300", "out:up", "until:never"))
	printed(t, q, j.ID, "up")
	assert.OK(t, q.Cancel(t.Context(), j.ID))
	printed(t, q, j.ID, "draining")
	assert.OK(t, q.Close(soon(t)))
	q = open(t, Options{Dir: dir})
	j = wait(t, q, j.ID)
	assert.True(t, j.State == Cancelled && j.Exit == 130, "state of %+v", j)
}

// Close without patience kills at once.
func TestCloseAtOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	q := open(t, Options{Dir: dir})
	j := submit(t, q, request("a", "deaf", "out:up", "until:never"))
	printed(t, q, j.ID, "up")
	ctx, stop := context.WithCancel(t.Context())
	stop()
	assert.OK(t, q.Close(ctx))
	q = open(t, Options{Dir: dir})
	j = wait(t, q, j.ID)
	assert.True(t, j.State == Interrupted && strings.Contains(j.Reason, "had to end at once"), "state of %+v", j)
}

// Frames gets what a job writes to its third file, before the job has ended.
func TestFrames(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no such files")
	}
	var mu sync.Mutex
	got := make(map[int64]string)
	q := open(t, Options{Frames: func(id int64, r io.Reader) {
		b, err := io.ReadAll(r)
		assert.True(t, err == nil, "%v", err)
		mu.Lock()
		got[id] = string(b)
		mu.Unlock()
	}})
	r := request("x", "frames:one", "out:text", "frames: two")
	r.Env = append(r.Env, FramesVariable+"=99")
	wait(t, q, submit(t, q, r).ID)
	wait(t, q, submit(t, q, request("x")).ID)
	mu.Lock()
	defer mu.Unlock()
	assert.Same(t, got, map[int64]string{1: "one two", 2: ""})
	q = open(t, Options{})
	j := submit(t, q, request("x", "env:"+FramesVariable))
	wait(t, q, j.ID)
	assert.Equal(t, outputOf(t, q, j.ID, false), "\n")
}
