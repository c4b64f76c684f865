package shell

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"carronade/internal/serve/jobs"
	"carronade/test/testkit/assert"
)

// TestCtrlC: it ends a command that waits and leaves the jobs running. At the prompt it cancels them.
func TestCtrlC(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // it fails if a goroutine is left
		q := newFakeQueue()
		d := talkOnTerminal(t, Options{Queue: q, Run: func(ctx context.Context, _ []string, _ io.Writer) int {
			<-ctx.Done()
			return 130
		}})
		state := func() jobs.State {
			q.mu.Lock()
			defer q.mu.Unlock()
			return q.find(1).State
		}
		typeKeys := func(keys string) {
			t.Helper()
			d.send(keys)
			synctest.Wait()
		}
		typeKeys("run null://\r")
		d.until(promptText)
		typeKeys("wait ; nonsense\r")
		typeKeys("typed ahead\r\x03")
		d.until("interrupted (hint: the jobs go on; cancel stops them)")
		d.until(promptText)
		typeKeys("version ; status\r")
		typeKeys("\x03")
		d.until(promptText)
		if s := d.transcript(); state() != jobs.Running || strings.Contains(s, "queued") || strings.Contains(s, "nothing done") {
			t.Errorf("the job is %s, and the session wrote %q", state(), s)
		}
		q.print(1, "more\n") // it is still attached
		d.until("more")
		typeKeys("not finished\x03")
		d.until("job 1 cancelled")
		assert.Equal(t, state(), jobs.Cancelled, "the job")
		typeKeys("wait\r") // for nothing
		typeKeys("quit\r")
		d.until("bye!")
		err := d.end()
		assert.True(t, err == nil, "%v", err)
	})
}

func TestKeys(t *testing.T) {
	k := newKeys(strings.NewReader(""))
	typed := func(text string) {
		for _, b := range []byte(text) {
			k.put(b)
		}
	}
	read := func(want string) {
		t.Helper()
		buf := make([]byte, 100)
		n, err := k.Read(buf)
		assert.True(t, string(buf[:n]) == want && err == nil, "got %q and %v, want %q", buf[:n], err, want)
	}
	typed("one\rtwo\r\nthree")
	read("one\r")
	read("two\r\n")
	read("three")
	typed("four")
	k.cancel() // the editor may have got a part of the line
	read("\x15cancel\r")

	ended := 0
	k.cancel() // before the command has begun
	k.during(func() { ended++ })
	k.cancel()
	assert.Equal(t, ended, 2, "how often the command was ended")
	k.ask(true)
	typed("yes")
	read("yes")
	k.cancel()
	if read("\x15\r"); ended != 3 {
		t.Errorf("the question did not end the command")
	}
	k.ask(false)
	k.during(nil)
	typed("last")
	k.end(io.EOF)
	read("last")
	_, err := k.Read(make([]byte, 1))
	assert.True(t, errors.Is(err, io.EOF), "got %v", err)
}

// A session over a network runs no programs of its choice and sees no files but in its folders.
func TestPermit(t *testing.T) {
	dir, _ := repository(t)
	q := newFakeQueue()
	d := talk(t, Options{Queue: q, Allow: &Permit{Folders: []string{filepath.Dir(dir)}}})
	assert.Has(t, d.do("apm use /etc"), "this session may use only folders in ")
	assert.Has(t, d.do("apm use /missing"), "this session may use only folders in ")
	assert.Has(t, d.do("apm use "+dir+" --cmd 'rm -rf /'"), "this session may not choose commands of this machine")
	assert.Has(t, d.do("apm use "+dir+" --url http://"+closedPort(t)), "using "+dir)
	for _, line := range []string{"run null:// --system-cmd x", "find null://", "report list --store /etc/passwd", "report export last", "scenario x.js"} {
		assert.Has(t, d.do(line), "this session may not run ")
	}
	assert.Has(t, d.do("verify branch=x --confirm 'rm -rf /'"), "--confirm is not allowed here")
	assert.Has(t, d.do("collate branch --pictures /tmp"), "--pictures is not allowed here")
	assert.Has(t, d.do("dump /etc/x 1 2 3"), "this session may use only folders in ")
	assert.Has(t, d.do("report list branch=x"), "ran report list branch=x")
	assert.Has(t, d.do("apm switch master"), "using "+dir+": master, ")
	assert.Has(t, d.do("test 30s 1 2 3 4 -E x=file:/etc/passwd"), "this session may not read files")
	assert.OK(t, os.Symlink("/etc", filepath.Join(filepath.Dir(dir), "link")))
	assert.Has(t, d.do("apm use "+filepath.Join(filepath.Dir(dir), "link")), "this session may use only folders in ")
	assert.True(t, len(q.args()) == 0, "jobs %q", q.args())
}

// A session over a network does not use what another session of its user was allowed.
func TestPermitOfSettings(t *testing.T) {
	dir, _ := repository(t)
	home := t.TempDir()
	local := talk(t, Options{Queue: newFakeQueue(), Home: home})
	assert.Has(t, local.do("apm use "+dir+" --cmd 'rm -rf /'"), "using "+dir)
	remote := talk(t, Options{Queue: newFakeQueue(), Home: home, Allow: &Permit{Folders: []string{dir}}})
	assert.Has(t, remote.do("status"), "ApmServer not configured")
	assert.Has(t, remote.do("apm use last"), "this session may not choose commands of this machine")
	assert.Has(t, remote.do("apm use docker"), "this session may not choose commands of this machine")
	local.do("apm use " + t.TempDir())
	remote = talk(t, Options{Queue: newFakeQueue(), Home: home, Allow: &Permit{Folders: []string{dir}}})
	assert.Has(t, remote.do("status"), "ApmServer not configured")
	assert.Has(t, remote.do("apm use last"), "this session may use only folders in ")
}

// With docker the image of the repository is built and run, with a memory limit.
func TestDocker(t *testing.T) {
	dir, revision := repository(t)
	bin := t.TempDir()
	t.Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	q := newFakeQueue()
	d := talk(t, Options{Queue: q})
	write(t, filepath.Join(bin, "docker"), "#!/bin/sh\necho Cannot connect to the daemon >&2\nexit 1\n")
	assert.OK(t, os.Chmod(filepath.Join(bin, "docker"), 0o755))
	assert.Has(t, d.do("apm use docker "+dir), "apm use docker: the daemon does not answer: Cannot connect to the daemon (hint: start docker, or apm use <dir>)")
	write(t, filepath.Join(bin, "docker"), "#!/bin/sh\necho 27\n")
	wants(t, d.do("apm use docker "+dir), "using docker\n")
	assert.Has(t, d.do("status"), "Using docker: unknown branch (hint: apm switch <branch>)\n")
	d.do("apm switch -v axw/trace-apm-server " + revision)
	d.do("test 30s 1 2 3 4 -E a.b=c")
	d.do("test 30s 1 2 3 4 --mem 2g")
	got := q.args()
	wants(t, got[0], "system build "+dir+" --branch trace-apm-server --fetch axw --make 'docker build -t {image} .' --checkout "+revision+" -v")
	assert.Has(t, got[1], " -system-git "+dir+" -system-branch trace-apm-server -system-checkout "+revision+" -system-build 'docker build -t {image} .'"+
		" -system-image {image} -system-publish 127.0.0.1:8200:8200 -system-arg ./apm-server -system-arg -e -system-arg -E -system-arg apm-server.host=0.0.0.0:8200 -system-log ",
		" test 30s 1 2 3 4 -E a.b=c --mem 4g")
	assert.True(t, strings.HasSuffix(got[2], " test 30s 1 2 3 4 --mem 2g"), "job %s", got[2])
}

// A terminal edits lines, asks for a password without showing it, and does not remember it.
func TestTerminal(t *testing.T) {
	es := elasticsearch(t, "pw1")
	d := talkOnTerminal(t, Options{Queue: newFakeQueue(), Commands: []string{"run"}})
	d.send("elasticsearch use " + es.url + " elastic\r")
	d.until("password: ")
	d.send("pw1\r")
	d.until("using " + es.url)
	d.until(promptText)
	d.send("elasticsearch use " + es.url + " elastic pw1\r")
	d.until("using ")
	d.until(promptText)
	d.send("stat\t\r")
	d.until("ElasticSearch [" + es.url + "]: yellow")
	d.until(promptText)
	d.send("\x1b[A\x1b[A") // the line before the last is the first one, without a password
	d.until("status")
	d.until("elasticsearch use " + es.url + " elastic")
	d.send("\x04\x15quit\r")
	d.until("bye!")
	assert.OK(t, d.end())
	if n := strings.Count(d.transcript(), "pw1"); n != 1 { // only as it was typed
		t.Errorf("the password was shown %d times: %q", n, d.transcript())
	}
}
