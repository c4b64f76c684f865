package serve

import (
	"bufio"
	"carronade/internal/testkit/assert"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// echo is a session that answers each line with the user's name and the line.
func echo(_ context.Context, conn io.ReadWriter, user string) error {
	in := bufio.NewReader(conn)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return err
		}
		fmt.Fprintf(conn, "%s: %s", user, line)
	}
}

// startText serves a port until the test ends, and returns its address.
func startText(t *testing.T, p *TextPort) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	assert.OK(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- p.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

func dialText(t *testing.T, address string) *bufio.ReadWriter {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	assert.OK(t, err)
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(time.Minute))
	return bufio.NewReadWriter(bufio.NewReader(conn), bufio.NewWriter(conn))
}

func say(t *testing.T, c *bufio.ReadWriter, text string) {
	t.Helper()
	if _, err := c.WriteString(text); err != nil {
		t.Fatal(err)
	}
	assert.OK(t, c.Flush())
}

func expect(t *testing.T, c *bufio.ReadWriter, want string) {
	t.Helper()
	if got, err := c.ReadString('\n'); strings.TrimSpace(got) != want || err != nil {
		t.Fatalf("%q, %v; want %q", got, err, want)
	}
}

// expectEnd expects the end of the connection.
func expectEnd(t *testing.T, c *bufio.ReadWriter) {
	t.Helper()
	rest, err := io.ReadAll(c)
	assert.Must(t, len(rest) <= 0 && !errors.Is(err, context.DeadlineExceeded), "%q, %v", rest, err)
	if e := net.Error(nil); errors.As(err, &e) && e.Timeout() {
		t.Fatal("the connection stays open")
	}
}

func TestTextPort(t *testing.T) {
	address := startText(t, &TextPort{User: "local", Session: echo})
	a, b := dialText(t, address), dialText(t, address)
	say(t, a, "one\n")
	expect(t, a, "local: one")
	say(t, b, "two\n")
	expect(t, b, "local: two")
}

func TestTextPortLogin(t *testing.T) {
	if testing.Short() {
		t.Skip("wrong tokens are answered after three seconds")
	}
	t.Parallel() // wrong tokens are answered late
	tokens := OpenTokens(t.TempDir())
	secret, err := tokens.Add("ann")
	assert.OK(t, err)
	address := startText(t, &TextPort{Tokens: tokens, Session: echo})

	c := dialText(t, address)
	say(t, c, "auth "+secret+"\r\nhello\n") // in one packet: nothing is lost
	expect(t, c, "ann: hello")

	c = dialText(t, address)
	say(t, c, "auth wrong\nauth "+secret+"\nhello\n")
	expect(t, c, "error: this is not a valid token")
	expect(t, c, "ann: hello")

	c = dialText(t, address)
	say(t, c, "auth a\nauth b\nauth c\nauth "+secret+"\n")
	for range mostWrong {
		expect(t, c, "error: this is not a valid token")
	}
	expectEnd(t, c)

	c = dialText(t, address)
	say(t, c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	expect(t, c, "error: this server needs a token: type auth TOKEN")
	expectEnd(t, c)

	c = dialText(t, address)
	say(t, c, "auth "+strings.Repeat("x", 10*longestToken))
	expectEnd(t, c)
}

// TestTextPortFull: a thousand connections do not keep others out for ever, and those beyond the
// limit get an answer.
func TestTextPortFull(t *testing.T) {
	var sessions atomic.Int32
	var ended sync.WaitGroup
	ended.Add(mostSessions)
	address := startText(t, &TextPort{Session: func(_ context.Context, conn io.ReadWriter, _ string) error {
		if sessions.Add(1) > mostSessions {
			t.Error("more sessions than the limit")
		} else {
			defer ended.Done()
		}
		_, err := io.Copy(io.Discard, conn)
		return err
	}})
	conns := make([]net.Conn, 0, 1000)
	defer func() {
		for _, c := range conns {
			c.Close()
		}
	}()
	for range cap(conns) {
		c, err := net.Dial("tcp", address)
		assert.OK(t, err)
		conns = append(conns, c)
	}
	last := conns[len(conns)-1]
	last.SetDeadline(time.Now().Add(time.Minute))
	text, err := io.ReadAll(last)
	assert.True(t, strings.HasPrefix(string(text), "error: 64 sessions are open"), "%q, %v", text, err)
	for _, c := range conns[:mostSessions] {
		c.Close()
	}
	ended.Wait()
}

// TestTextPortLogins: connections that do not log in keep no user out, however many there are.
func TestTextPortLogins(t *testing.T) {
	tokens := OpenTokens(t.TempDir())
	secret, err := tokens.Add("ann")
	assert.OK(t, err)
	address := startText(t, &TextPort{Tokens: tokens, Session: echo})
	silent := make([]*bufio.ReadWriter, 0, mostLogins+100)
	for range cap(silent) {
		silent = append(silent, dialText(t, address))
	}
	expectEnd(t, silent[0]) // the oldest made room
	last := silent[len(silent)-1]
	say(t, last, "auth "+secret+"\nhello\n") // it still may log in
	expect(t, last, "ann: hello")
	for range mostSessions - 1 {
		c := dialText(t, address)
		say(t, c, "auth "+secret+"\nhello\n")
		expect(t, c, "ann: hello")
	}
	c := dialText(t, address)
	say(t, c, "auth "+secret+"\nhello\n")
	expect(t, c, "error: 64 sessions are open, and no more are accepted")
	expectEnd(t, c)
}

// TestTextPortLoginLimit: a client that sends nothing, or no whole line, is cut off.
func TestTextPortLoginLimit(t *testing.T) {
	for _, text := range []string{"", "auth x", "auth x\nauth y\n"} {
		synctest.Test(t, func(t *testing.T) {
			tokens := OpenTokens(t.TempDir())
			p := &TextPort{Tokens: tokens, Session: echo}
			mine, theirs := net.Pipe()
			p.await(theirs)
			go p.session(t.Context(), theirs)
			began := time.Now()
			go io.WriteString(mine, text)
			io.Copy(io.Discard, mine)
			assert.Equal(t, time.Since(began), loginLimit, "%q: it ended after", text)
			synctest.Wait()
			assert.True(t, len(p.logins) <= 0 && p.open <= 0, "%q: it is still counted", text)
		})
	}
}
