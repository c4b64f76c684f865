package jobs

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"carronade/internal/advice"
	"carronade/internal/host"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// kills is the number of killed servers by default; CARRONADE_TEST_KILLS overrides it.
const kills = 20

// mostPerServer is how many jobs a server of TestKillsAtRandomMoments submits.
const mostPerServer = 6

// serve is a server that submits jobs of two systems and prints each after it was accepted. It runs until it is killed.
func serve(role string) error {
	words := strings.Split(role, "|")
	dir, round := words[0], words[1]
	q, err := Open(context.Background(), Options{Dir: filepath.Join(dir, "data"), Program: []string{os.Args[0]}, Parallel: 2, KeepEnded: 1 << 20, QueuedPerUser: 1 << 20, Queued: 1 << 20})
	if err != nil {
		return err
	}
	if round == "deaf" {
		ready := words[2]
		_, _, err := q.Submit(context.Background(), request("x", "deaf", "alone:"+filepath.Join(dir, "x"), "note:"+ready+"|", "until:never"))
		if err != nil {
			return err
		}
		<-time.After(time.Hour)
	}
	for i := range mostPerServer {
		name := fmt.Sprintf("%s.%d", round, i)
		j, _, err := q.Submit(context.Background(), killable(dir, name, i))
		if err != nil {
			return err
		}
		if _, err := fmt.Println("accepted", name, j.ID); err != nil {
			return err
		}
	}
	<-time.After(time.Hour) // it is killed
	return nil
}

// killable is a job that notes when it starts and when it ends, and that it is
// the only one of its system. Every third takes its time to end.
func killable(dir, name string, i int) Request {
	system := fmt.Sprint("system ", i%2)
	steps := []string{"alone:" + filepath.Join(dir, system), "note:" + filepath.Join(dir, "ran") + "|start " + name, "pause:10", "note:" + filepath.Join(dir, "ran") + "|end " + name}
	if i%3 == 0 {
		steps = append([]string{"late:40"}, steps...)
	}
	r := request(system, steps...)
	r.Typed = name
	return r
}

// Servers are killed at random moments. No accepted job is lost, none runs
// twice, no two of one system run at once, and each has the right state.
func TestKillsAtRandomMoments(t *testing.T) {
	testkit.Need(t, "some seconds")
	rounds := kills
	if text := os.Getenv("CARRONADE_TEST_KILLS"); text != "" {
		rounds = assert.Value(strconv.Atoi(text))(t)
	}
	dir := t.TempDir()
	r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0)) //nolint:gosec // only a delay
	accepted := make(map[string]int64)
	for round := range rounds {
		maps.Copy(accepted, killServer(t, dir, round, round%4 > 0, time.Duration(r.Int64N(int64(120*time.Millisecond)))))
	}
	q := open(t, Options{Dir: filepath.Join(dir, "data"), Parallel: 2, KeepEnded: 1 << 20})
	list := assert.Value(q.Jobs(t.Context(), Filter{}))(t)
	starts, ends := make(map[string]int), make(map[string]int)
	for i := range list {
		list[i] = wait(t, q, list[i].ID)
	}
	var order []string
	for _, l := range lines(t, filepath.Join(dir, "ran")) {
		what, name, _ := strings.Cut(l, " ")
		if what == "end" {
			ends[name]++
			continue
		}
		starts[name]++
		order = append(order, name)
	}
	counts := make(map[State]int)
	place := make(map[string]int) // of the last start, by system
	for _, j := range list {
		counts[j.State]++
		id, ok := accepted[j.Typed]
		assert.True(t, !ok || id == j.ID, "%s was accepted as job %d and is %d", j.Typed, id, j.ID)
		delete(accepted, j.Typed)
		n, m := starts[j.Typed], ends[j.Typed]
		ok = j.State == Done && n == 1 && m == 1 || j.State == Interrupted && n <= 1 && m <= n
		assert.True(t, ok, "job %d (%s) is %s (%s): it started %d times and ended %d times", j.ID, j.Typed, j.State, j.Reason, n, m)
		if n > 0 {
			at := slices.Index(order, j.Typed)
			last, ok := place[j.System]
			assert.True(t, !ok || at >= last, "job %d started before an older one of its system", j.ID)
			place[j.System] = at
		}
	}
	assert.True(t, len(accepted) == 0, "jobs are lost: %v", accepted)
	for k := range 2 {
		l := lines(t, filepath.Join(dir, fmt.Sprintf("system %d.overlap", k)))
		assert.True(t, len(l) == 0, "two jobs of system %d ran at once: %q", k, l)
	}
	left, _ := os.ReadDir(q.folder.path("running"))
	assert.True(t, len(left) == 0, "files of processes are left: %v", left)
	t.Logf("%d kills: %d jobs, %v", rounds, len(list), counts)
	least := rounds / 2
	assert.True(t, len(list) >= least && counts[Done] != 0 && (rounds < kills || counts[Interrupted] != 0), "the kills tested too little: %d jobs, %v", len(list), counts)
}

// killServer starts a server and kills it after a delay, which with first
// begins when a job was accepted. It returns the accepted jobs.
func killServer(t *testing.T, dir string, round int, first bool, delay time.Duration) map[string]int64 {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s|%d", roleVariable, dir, round))
	var words bytes.Buffer
	cmd.Stderr = &words
	out := assert.Value(cmd.StdoutPipe())(t)
	assert.OK(t, cmd.Start())
	begun, read := make(chan struct{}, mostPerServer), make(chan struct{})
	accepted := make(map[string]int64)
	go func() {
		defer close(read)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var name string
			var id int64
			if _, err := fmt.Sscanf(lines.Text(), "accepted %s %d", &name, &id); err != nil {
				t.Errorf("got %q", lines.Text())
				continue
			}
			accepted[name] = id
			begun <- struct{}{}
		}
	}()
	if first {
		select {
		case <-begun:
		case <-read:
			_ = cmd.Wait()
			t.Fatalf("round %d: the server ended: %s", round, words.String())
		}
	}
	select {
	case <-time.After(delay):
	case <-read:
	}
	_ = cmd.Process.Kill()
	<-read
	_ = cmd.Wait()
	assert.True(t, words.Len() <= 0, "round %d: %s", round, words.String())
	return accepted
}

// A job waits for the process of an earlier server on its system, and that process is killed if it does not end.
func TestLeftover(t *testing.T) {
	dir := t.TempDir()
	ready := filepath.Join(dir, "ready")
	cmd := exec.Command(os.Args[0])
	// Its only job ignores the death of its server.
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s|deaf|%s", roleVariable, dir, ready))
	assert.OK(t, cmd.Start())
	defer func() { _ = cmd.Process.Kill() }()
	appears(t, ready)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	q := open(t, Options{Dir: filepath.Join(dir, "data"), Drain: 100 * time.Millisecond})
	if j, err := q.Job(t.Context(), 1); err != nil || j.State != Interrupted || j.Exit != -1 || j.Reason != "the server ended while it ran" {
		t.Errorf("got %+v and %v", j, err)
	}
	j, ahead, err := q.Submit(t.Context(), request("x", "alone:"+filepath.Join(dir, "x")))
	assert.True(t, err == nil && ahead == 1, "got %d jobs ahead and %v, want the leftover", ahead, err)
	j = wait(t, q, j.ID)
	assert.True(t, j.State == Done, "got %+v", j)
	l := lines(t, filepath.Join(dir, "x.overlap"))
	assert.True(t, len(l) == 0, "it ran at the same time as the leftover: %q", l)
}

// Without its identity, a process of an earlier server is there as long as its lock is held.
func TestUnknownLeftover(t *testing.T) {
	for _, content := range []string{"", "{", `{"host":"elsewhere","pid":7,"start":"1"}`, `{"pid":-1}`} {
		path := filepath.Join(t.TempDir(), "1")
		assert.OK(t, os.WriteFile(path, []byte(content), 0o600))
		lock := assert.Value(os.Open(path))(t)
		defer lock.Close()
		if ok, err := host.TryLock(lock, false); !ok || err != nil {
			t.Skip("this system has no locks")
		}
		l := assert.Value(openLeftover(path))(t)
		defer l.file.Close()
		closing := make(chan struct{})
		ended, err := l.await(time.Millisecond, closing)
		assert.True(t, !ended && errors.Is(err, errRemains), "%q: got %v and %v, want %v", content, ended, err, errRemains)
		waits := make(chan error, 1)
		go func() {
			ended, err := l.await(time.Hour, closing)
			if !ended {
				err = errors.Join(err, errRemains)
			}
			waits <- err
		}()
		lock.Close()
		assert.OK(t, <-waits, "%q: after the lock was released", content)
	}
	// When the queue is closed, the next server has to wait.
	l := assert.Value(openLeftover(alive(t)))(t)
	defer l.file.Close()
	closing := make(chan struct{})
	close(closing)
	ended, err := l.await(time.Hour, closing)
	assert.True(t, !ended && err == nil, "got %v and %v", ended, err)
}

// alive makes the file of a running process: that of this one.
func alive(t *testing.T) string {
	t.Helper()
	b := assert.Value(json.Marshal(host.Self()))(t)
	path := filepath.Join(t.TempDir(), "1")
	assert.OK(t, os.WriteFile(path, b, 0o600))
	return path
}

// A second server is refused, and the error says who has the folder.
func TestInUse(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	q := open(t, Options{Dir: dir})
	_, err := Open(t.Context(), Options{Dir: dir})
	assert.True(t, errors.Is(err, ErrInUse) && strings.Contains(err.Error(), fmt.Sprintf("process %d on ", os.Getpid())) && advice.Hint(err) != "",
		"got %v (%s), want %v", err, advice.Hint(err), ErrInUse)
	assert.OK(t, q.Close(soon(t)))
	open(t, Options{Dir: dir})
	// Without locks, the holder counts.
	dir = t.TempDir()
	id, ok := host.Identify(os.Getppid())
	b, err := json.Marshal(holder{Identity: id, Machine: "here"})
	assert.Must(t, err == nil && ok, "%v", err)
	assert.OK(t, os.WriteFile(filepath.Join(dir, "lock"), b, 0o600))
	_, err = Open(t.Context(), Options{Dir: dir})
	assert.True(t, errors.Is(err, ErrInUse) && strings.Contains(err.Error(), "on here"), "got %v, want %v", err, ErrInUse)
	// One that was killed does not.
	assert.OK(t, os.WriteFile(filepath.Join(dir, "lock"), []byte(strings.Replace(string(b), `"start":"`, `"start":"9`, 1)+"rest of an older one"), 0o600))
	open(t, Options{Dir: dir})
}

// What a crash for lack of memory prints is replaced, in whatever pieces it comes, and all other texts are kept.
func TestCrash(t *testing.T) {
	for _, tt := range []struct{ name, before, crash, want string }{
		{"Go's runtime", "one\n", "runtime: out of memory: cannot allocate 4194304-byte block (4 in use)\nfatal error: out of memory\n\ngoroutine 1 [running]:\n", "one\nsaid\n"},
		{"the runtime of C", "one\n", "runtime/cgo: pthread_create failed: Resource temporarily unavailable\nSIGABRT: abort\n", "one\nsaid\n"},
		{"at the beginning", "", "fatal error: runtime: cannot allocate memory\n", "said\n"},
		{"many stacks", "one\n", "fatal error: out of memory\n" + strings.Repeat("goroutine\n", mostHeld/8), "one\nsaid\n"},
		{"another reason", "one\n", "fatal error: all goroutines are asleep\n\ngoroutine 1:\n", ""},
		{"another reason, with many stacks", "one\n", "runtime: cannot do it\nfatal error: no\n" + strings.Repeat("goroutine\n", mostHeld/8), ""},
		{"not at the beginning of a line", "one\nerror: ", "fatal error: out of memory\ntwo\n", ""},
		{"no whole line", "one\n", "fatal error: ", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, size := range []int{1, 5, 1000, 1 << 20} { // of pieces
				var got strings.Builder
				c := NewCrash(func(p []byte) { got.Write(p) })
				c.Write([]byte(tt.before))
				for text := tt.crash; text != ""; {
					n := min(size, len(text))
					c.Write([]byte(text[:n]))
					text = text[n:]
				}
				said, want := "", tt.want
				if c.TookAll() {
					said = "said\n"
				}
				if c.End(said); want == "" {
					want = tt.before + tt.crash
				}
				assert.Equal(t, got.String() == want, true, "pieces of %d: %.99q", size, got.String())
			}
		})
	}
	c := NewCrash(func(p []byte) {})
	c.Write([]byte("fatal error: out of memory\n" + strings.Repeat("x", 2*mostHeld)))
	assert.Equal(t, len(c.held), mostHeld, "kept bytes")
}
