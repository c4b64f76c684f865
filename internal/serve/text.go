package serve

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"carronade/internal/door"
)

// The limits of text connections.
const (
	mostSessions = 64
	idleLimit    = 30 * time.Minute // without a line from the client or an answer
	loginLimit   = 30 * time.Second // until a valid token came
	mostWrong    = 3                // wrong tokens, then the connection ends
	longestToken = 256              // bytes of the line with a token
)

// A TextPort accepts sessions of the shell over plain lines.
type TextPort struct {
	Tokens *Tokens // nil: no token is needed
	// User is whose sessions they are if no token is needed.
	User string
	// Session runs one session until the client leaves or ctx is done.
	Session func(ctx context.Context, conn io.ReadWriter, user string) error

	limits limiter
	door   *door.Door // of Serve
}

// Serve accepts connections until ctx is done, and returns when all sessions have ended. It
// closes the listener.
func (p *TextPort) Serve(ctx context.Context, l net.Listener) error {
	p.door = door.New(mostSessions)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	var sessions sync.WaitGroup
	defer sessions.Wait()
	for pause := time.Duration(0); ; {
		conn, err := l.Accept()
		switch {
		case ctx.Err() != nil:
			if conn != nil {
				conn.Close()
			}
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		case err != nil: // such as too many open files: others may close theirs
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			select {
			case <-time.After(pause):
			case <-ctx.Done():
			}
			continue
		}
		pause = 0
		guest := p.door.Enter(conn)
		if p.Tokens == nil {
			guest.Rest(true) // until it sends something
			if !guest.Known() {
				go refuse(guest)
				continue
			}
		}
		sessions.Go(func() { p.session(ctx, guest) })
	}
}

// refuse answers a connection that there are too many sessions, and closes it without waiting for the
// client.
func refuse(conn net.Conn) {
	conn.SetDeadline(time.Now().Add(time.Second))
	fmt.Fprintf(conn, "error: %d sessions are open, and no more are accepted\r\n", mostSessions)
	conn.Close()
}

// session runs one connection. Without tokens it has a place; otherwise it gets one when it has logged in.
func (p *TextPort) session(ctx context.Context, conn *door.Guest) {
	defer conn.Close()
	// A read or write that waits ends with the server.
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	c := &client{Conn: conn, ctx: ctx, heard: sync.OnceFunc(func() { conn.Rest(false) })}
	user := p.User
	if p.Tokens != nil {
		var ok bool
		user, ok = p.login(ctx, c, conn.Host())
		switch {
		case !ok:
			return
		case !conn.Known():
			refuse(conn)
			return
		}
	}
	p.Session(ctx, c, user) //nolint:errcheck // the client is gone
}

// login reads "auth TOKEN" lines until one has a valid token.
func (p *TextPort) login(ctx context.Context, c *client, host string) (user string, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, loginLimit)
	defer cancel()
	c.until, _ = ctx.Deadline()
	defer func() { c.until = time.Time{} }()
	for range mostWrong {
		line, err := c.line(longestToken)
		if err != nil {
			return "", false
		}
		word, secret, _ := strings.Cut(strings.TrimSpace(line), " ")
		if word != "auth" {
			fmt.Fprint(c, "error: this server needs a token: type auth TOKEN\r\n")
			return "", false // perhaps a browser's request
		}
		for !p.limits.allowed(host, time.Now()) {
			select {
			case <-ctx.Done():
				return "", false
			case <-time.After(tryEvery / 10):
			}
		}
		if user, ok := p.Tokens.User(strings.TrimSpace(secret)); ok {
			return user, true
		}
		p.limits.failed(host, time.Now())
		fmt.Fprint(c, "error: this is not a valid token\r\n")
	}
	return "", false
}

// A client is a connection that ends when nothing was read or written for a long time.
type client struct {
	net.Conn
	ctx   context.Context
	until time.Time // of the login; zero: none
	heard func()    // called when it has sent something

	input *bufio.Reader // what was read beyond a line of the login
}

func (c *client) extend() {
	if c.ctx.Err() != nil {
		return
	}
	until := c.until
	if until.IsZero() {
		until = time.Now().Add(idleLimit)
	}
	c.SetDeadline(until)
	if c.ctx.Err() != nil { // the deadline of the end was overwritten
		c.SetDeadline(time.Unix(1, 0))
	}
}

// line reads a line of at most this many bytes.
func (c *client) line(most int) (string, error) {
	if c.input == nil {
		c.input = bufio.NewReaderSize(readerFunc(c.read), max(most, 16))
	}
	text, err := c.input.ReadSlice('\n')
	return string(text), err
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func (c *client) Read(p []byte) (int, error) {
	if c.input != nil && c.input.Buffered() > 0 {
		return c.input.Read(p)
	}
	return c.read(p)
}

func (c *client) read(p []byte) (int, error) {
	c.extend()
	n, err := c.Conn.Read(p)
	if n > 0 && c.until.IsZero() { // not of the login
		c.heard()
	}
	return n, err
}

func (c *client) Write(p []byte) (int, error) {
	c.extend()
	return c.Conn.Write(p)
}
