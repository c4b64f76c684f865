package serve

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"carronade/internal/door"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
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
	l := assert.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- p.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		err := <-ended
		assert.True(t, err == nil, "%v", err)
	})
	return l.Addr().String()
}

func dialText(t *testing.T, address string) *bufio.ReadWriter {
	t.Helper()
	conn := assert.Value(net.Dial("tcp", address))(t)
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(time.Minute))
	return bufio.NewReadWriter(bufio.NewReader(conn), bufio.NewWriter(conn))
}

func say(t *testing.T, c *bufio.ReadWriter, text string) {
	t.Helper()
	assert.Value(c.WriteString(text))(t)
	assert.OK(t, c.Flush())
}

func expect(t *testing.T, c *bufio.ReadWriter, want string) {
	t.Helper()
	got, err := c.ReadString('\n')
	assert.Must(t, strings.TrimSpace(got) == want && err == nil, "%q, %v; want %q", got, err, want)
}

// expectEnd expects the end of the connection.
func expectEnd(t *testing.T, c *bufio.ReadWriter) {
	t.Helper()
	rest, err := io.ReadAll(c)
	assert.Must(t, len(rest) == 0 && !errors.Is(err, context.DeadlineExceeded), "%q, %v", rest, err)
	e := net.Error(nil)
	assert.Must(t, !errors.As(err, &e) || !e.Timeout(), "the connection stays open")
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
	secret := assert.Value(tokens.Add("ann"))(t)
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

// TestTextPortFull: those beyond the limit get an answer, and a place later.
func TestTextPortFull(t *testing.T) {
	address := startText(t, &TextPort{User: "ann", Session: echo})
	users := make([]net.Conn, mostSessions)
	hello := func(conn net.Conn) string {
		conn.SetDeadline(time.Now().Add(time.Minute))
		io.WriteString(conn, "hello\n")
		text, _ := bufio.NewReader(conn).ReadString('\n')
		return strings.TrimSpace(text)
	}
	dial := func() net.Conn {
		conn := assert.Value(net.Dial("tcp", address))(t)
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	for i := range users {
		users[i] = dial()
		got := hello(users[i])
		assert.Must(t, got == "ann: hello", "%v", got)
	}
	for range 1000 {
		c := dial()
		c.SetDeadline(time.Now().Add(time.Minute))
		text, err := io.ReadAll(c)
		assert.Must(t, strings.HasPrefix(string(text), "error: 64 sessions are open"), "%q, %v", text, err)
		c.Close()
	}
	for _, c := range users {
		c.Close()
	}
	testkit.Until(t, "a place is free", func() bool { return hello(dial()) == "ann: hello" })
}

// TestTextPortLogins: connections that do not log in keep no user out, however many there are.
func TestTextPortLogins(t *testing.T) {
	tokens := OpenTokens(t.TempDir())
	secret := assert.Value(tokens.Add("ann"))(t)
	address := startText(t, &TextPort{Tokens: tokens, Session: echo})
	silent := make([]*bufio.ReadWriter, 0, mostSessions/10+100)
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

// TestTextPortSilent: without tokens, sessions that send nothing keep no user out, and make no user leave who has sent something.
func TestTextPortSilent(t *testing.T) {
	address := startText(t, &TextPort{User: "ann", Session: echo})
	users := make([]*bufio.ReadWriter, mostSessions-1)
	for i := range users {
		users[i] = dialText(t, address)
		say(t, users[i], "hello\n")
		expect(t, users[i], "ann: hello")
	}
	silent := dialText(t, address)
	for range 100 {
		next := dialText(t, address)
		expectEnd(t, silent) // it made room
		silent = next
	}
	late := dialText(t, address)
	for _, c := range append(users, late) {
		say(t, c, "again\n")
		expect(t, c, "ann: again")
	}
	expect(t, dialText(t, address), "error: 64 sessions are open, and no more are accepted")
}

// TestTextPortLoginLimit: a client that sends nothing, or no whole line, is cut off.
func TestTextPortLoginLimit(t *testing.T) {
	for _, text := range []string{"", "auth x", "auth x\nauth y\n"} {
		synctest.Test(t, func(t *testing.T) {
			tokens := OpenTokens(t.TempDir())
			p := &TextPort{Tokens: tokens, Session: echo}
			mine, theirs := net.Pipe()
			go p.session(t.Context(), door.New(mostSessions).Enter(theirs))
			began := time.Now()
			go io.WriteString(mine, text)
			io.Copy(io.Discard, mine)
			took := time.Since(began)
			assert.True(t, took == loginLimit, "%q: it ended after %s, want %s", text, took, loginLimit)
		})
	}
}

// waitForInterrupt returns when the process is to end.
func waitForInterrupt() {
	c := make(chan os.Signal, 1)
	signal.Notify(c, os.Interrupt, syscall.SIGTERM)
	<-c
}
