//go:build unix

package live_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"carronade/internal/live"
	"carronade/test/testkit/assert"
)

// home makes a folder for sockets with a short name, which sockets need.
func home(t *testing.T) string {
	t.Helper()
	dir := assert.Value(os.MkdirTemp("", "c"))(t)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	t.Setenv("XDG_RUNTIME_DIR", dir)
	return dir
}

// marked takes every mark.
func marked(string, string, time.Time, time.Time) (atS, boundS float64, err error) { return 1, 0, nil }

func TestSend(t *testing.T) {
	dir := home(t)
	var got string
	var waited time.Duration
	s := assert.Value(live.ListenForMarks("", "run1", func(kind, name string, from, to time.Time) (atS, boundS float64, err error) {
		got, waited = kind+" "+name, to.Sub(from)
		assert.True(t, time.Since(to) <= time.Minute, "it arrived at %v", to)
		return 12, 0.5, nil
	}))(t)
	defer s.Close()
	socket := filepath.Join(dir, "carronade", "run1.sock")
	info, err := os.Stat(socket)
	assert.True(t, err == nil && info.Mode().Perm() == 0o600, "the socket is %v, %v", info, err)
	info, err = os.Stat(filepath.Dir(socket))
	assert.True(t, err == nil && info.Mode().Perm() == 0o700, "its folder is %v, %v", info, err)
	atS, boundS, err := live.SendMark("", "run1", "fault", "a name", time.Now().Add(-time.Second))
	assert.True(t, err == nil && atS == 12 && boundS == 0.5, "got %v, %v, %v", atS, boundS, err)
	assert.True(t, got == "fault a name" && waited >= time.Second, "the run got %q, %v after the start of the program", got, waited)
	alive := live.Alive("")
	assert.True(t, len(alive) == 1 && alive[0] == "run1", "alive: %v", alive)
	_, _, err = live.SendMark("", "run1", "fault", strings.Repeat("x", live.MostMarkName+1), time.Now())
	assert.True(t, err != nil && !errors.Is(err, live.ErrNoRun), "a long name: %v", err)
	s.Close()
	_, err = os.Stat(socket)
	assert.True(t, os.IsNotExist(err), "the socket is left: %v", err)
	for _, id := range []string{"run1", "", "../run1", "none"} {
		_, _, err := live.SendMark("", id, "fault", "x", time.Now())
		assert.True(t, errors.Is(err, live.ErrNoRun), "%q: %v", id, err)
	}
}

// TestBadRequests: what is not a request gets an error or nothing, and the run goes on taking marks.
func TestBadRequests(t *testing.T) {
	dir := home(t)
	s := assert.Value(live.ListenForMarks("", "run2", marked))(t)
	defer s.Close()
	for _, text := range []string{"{}\n", "no json\n", strings.Repeat("x", 8<<10) + "\n", `{"name":"x","waited_ns":-5}` + "\n"} {
		c := assert.Value(net.Dial("unix", filepath.Join(dir, "carronade", "run2.sock")))(t)
		_, _ = c.Write([]byte(text))
		answer := make([]byte, 1<<10)
		n, _ := c.Read(answer)
		if n > 0 && !strings.Contains(string(answer[:n]), "error") {
			t.Errorf("%.20q was answered %s", text, answer[:n])
		}
		c.Close()
	}
	_, _, err := live.SendMark("", "run2", "heal", "x", time.Now())
	assert.OK(t, err)
}

// TestKilled: another run replaces the socket that a killed run left behind.
func TestKilled(t *testing.T) {
	dir := filepath.Join(home(t), "carronade")
	assert.OK(t, os.Mkdir(dir, 0o700))
	l := assert.Value(net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "run3.sock"), Net: "unix"}))(t)
	l.SetUnlinkOnClose(false)
	l.Close()
	all, alive := live.MarkedRuns(""), live.Alive("")
	assert.True(t, len(all) == 1 && len(alive) == 0, "runs %v, alive %v", all, alive)
	s := assert.Value(live.ListenForMarks("", "run3", marked))(t)
	s.Close()
}

// TestSweep: the socket of a run that was killed goes away with the next run, others do not.
func TestSweep(t *testing.T) {
	dir := filepath.Join(home(t), "carronade")
	assert.OK(t, os.Mkdir(dir, 0o700))
	socket := func(id string, age time.Duration, listens bool) string {
		path := filepath.Join(dir, id+".sock")
		l := assert.Value(net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"}))(t)
		l.SetUnlinkOnClose(false)
		if !listens {
			l.Close()
		} else {
			t.Cleanup(func() { l.Close() })
		}
		at := time.Now().Add(-age)
		assert.OK(t, os.Chtimes(path, at, at))
		return path
	}
	killed, fresh, alive := socket("killed", time.Hour, false), socket("fresh", 0, false), socket("alive", time.Hour, true)
	s := assert.Value(live.ListenForMarks("", "run2", marked))(t)
	defer s.Close()
	for path, want := range map[string]bool{killed: false, fresh: true, alive: true} {
		_, err := os.Lstat(path)
		assert.True(t, (err == nil) == want, "%s: %v, want it there: %v", filepath.Base(path), err, want)
	}
}

// TestOwner: an owner finds the runs of that name and no others; without one, all are found.
func TestOwner(t *testing.T) {
	home(t)
	for _, r := range []struct{ owner, id string }{{"ann", "runa"}, {"bob", "runb"}, {"", "run0"}} {
		s := assert.Value(live.ListenForMarks(r.owner, r.id, marked))(t)
		defer s.Close()
	}
	for owner, want := range map[string]string{"ann": "runa", "bob": "runb", "carl": "", "": "run0 runa runb"} {
		assert.Equal(t, strings.Join(live.Alive(owner), " "), want, "%q finds", owner)
		for _, id := range []string{"runa", "runb", "run0"} {
			_, _, err := live.SendMark(owner, id, "fault", "x", time.Now())
			own := strings.Contains(want, id)
			assert.True(t, own == (err == nil) && (own || errors.Is(err, live.ErrNoRun)), "%q marks %s: %v", owner, id, err)
		}
	}
}
