package serve

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"time"
)

// The limits of text connections.
const (
	mostSessions = 64
	mostLogins   = mostSessions / 10 // connections that have not logged in; the oldest makes room for a new one
	idleLimit    = 30 * time.Minute  // without a line from the client or an answer
	loginLimit   = 30 * time.Second  // until a valid token came
	mostWrong    = 3                 // wrong tokens, then the connection ends
	longestToken = 256               // bytes of the line with a token
)

// A TextPort accepts sessions of the shell over plain lines.
type TextPort struct {
	Tokens *Tokens // nil: no token is needed
	// User is whose sessions they are if no token is needed.
	User string
	// Session runs one session until the client leaves or ctx is done.
	Session func(ctx context.Context, conn io.ReadWriter, user string) error

	limits limiter
	mu     sync.Mutex
	open   int // sessions
	given  int // of those that end, whose place another has taken
	// waiting are the connections that have not logged in, or without tokens those that have sent
	// nothing, the oldest first.
	waiting []net.Conn
}

// Serve accepts connections until ctx is done, and returns when all sessions have ended. It
// closes the listener.
func (p *TextPort) Serve(ctx context.Context, l net.Listener) error {
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
		if p.Tokens != nil {
			p.await(conn)
		} else if !p.enter(conn) {
			go refuse(conn)
			continue
		}
		sessions.Go(func() { p.session(ctx, conn) })
	}
}

// refuse answers a connection that there are too many sessions, and closes it without waiting for the
// client.
func refuse(conn net.Conn) {
	conn.SetDeadline(time.Now().Add(time.Second))
	fmt.Fprintf(conn, "error: %d sessions are open, and no more are accepted\r\n", mostSessions)
	conn.Close()
}

// await notes a connection that has to log in. If there are too many, the oldest of the address that has
// most is closed: a client that logs in takes less time.
func (p *TextPort) await(conn net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiting) >= mostLogins {
		from := map[string]int{}
		for _, c := range p.waiting {
			from[addressOf(c.RemoteAddr())]++
		}
		leaves := slices.MaxFunc(p.waiting, func(a, b net.Conn) int {
			return cmp.Compare(from[addressOf(a.RemoteAddr())], from[addressOf(b.RemoteAddr())])
		})
		leaves.Close()
		p.forget(leaves)
	}
	p.waiting = append(p.waiting, conn)
}

// forget removes a connection from those that wait. p.mu is locked.
func (p *TextPort) forget(conn net.Conn) {
	p.waiting = slices.DeleteFunc(p.waiting, func(c net.Conn) bool { return c == conn })
}

// awaited notes that a connection waits no longer: it has logged in, sent something or ended.
func (p *TextPort) awaited(conn net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forget(conn)
}

// enter takes a place for a session. Without tokens, the oldest session that has sent nothing makes room.
func (p *TextPort) enter(conn net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.open < mostSessions:
		p.open++
	case p.Tokens != nil || len(p.waiting) == 0:
		return false
	default:
		p.waiting[0].Close()
		p.waiting = p.waiting[1:]
		p.given++
	}
	if p.Tokens == nil {
		p.waiting = append(p.waiting, conn)
	}
	return true
}

func (p *TextPort) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.given > 0 {
		p.given--
		return
	}
	p.open--
}

// session runs one connection. Without tokens it has been counted; otherwise it is when it has logged in.
func (p *TextPort) session(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	// A read or write that waits ends with the server.
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	c := &client{Conn: conn, ctx: ctx, heard: sync.OnceFunc(func() { p.awaited(conn) })}
	user := p.User
	if p.Tokens != nil {
		var ok bool
		user, ok = p.login(ctx, c)
		p.awaited(conn)
		switch {
		case !ok:
			return
		case !p.enter(conn):
			refuse(conn)
			return
		}
	}
	defer p.leave()
	defer c.heard()
	p.Session(ctx, c, user) //nolint:errcheck // the client is gone
}

// login reads "auth TOKEN" lines until one has a valid token.
func (p *TextPort) login(ctx context.Context, c *client) (user string, ok bool) {
	address := addressOf(c.RemoteAddr())
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
		for !p.limits.allowed(address, time.Now()) {
			select {
			case <-ctx.Done():
				return "", false
			case <-time.After(tryEvery / 10):
			}
		}
		if user, ok := p.Tokens.User(strings.TrimSpace(secret)); ok {
			return user, true
		}
		p.limits.failed(address, time.Now())
		fmt.Fprint(c, "error: this is not a valid token\r\n")
	}
	return "", false
}

// addressOf is the address of a client without its port.
func addressOf(a net.Addr) string {
	host, _, err := net.SplitHostPort(a.String())
	if err != nil {
		return a.String()
	}
	return host
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
