package shell

import (
	"context"
	"errors"
	"io"
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
