package fault

import (
	"cmp"
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"time"
)

// A command is one line of the relay's standard input.
type command struct {
	Number int64  `json:"number"`
	Token  string `json:"token,omitempty"`    // only in the first
	Delay  int64  `json:"delay_ns,omitempty"` // of a round trip, from now on
}

// An answer is one line of the relay's standard output, one for each command.
type answer struct {
	Number int64  `json:"number"` // of the command
	Addr   string `json:"addr,omitempty"`
	Late   int64  `json:"late_ns,omitempty"` // the most so far
	Error  string `json:"error,omitempty"`
}

// Bounds of the exchange before the bytes.
const (
	mostLine = 1 << 10
	within   = 10 * time.Second // of the first line
	connect  = 5 * time.Minute  // of connecting to the target; the run's own timeout ends it earlier
)

// RelayMain is the process of a relay: it reads commands until the end of in. It returns an exit code.
func RelayMain(in io.Reader, out, log io.Writer) int {
	if err := serve(in, out); err != nil {
		fmt.Fprintln(log, "error:", err)
		return 2
	}
	return 0
}

func serve(in io.Reader, out io.Writer) error {
	lines := json.NewDecoder(in)
	var first command
	if err := lines.Decode(&first); err != nil || first.Token == "" {
		return fmt.Errorf("read the token of the relay: %w", cmp.Or(err, errors.New("there is none")))
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen for the relay: %w", err)
	}
	defer ln.Close()
	s := &server{token: first.Token}
	go s.accept(ln)
	answers := json.NewEncoder(out)
	_ = answers.Encode(answer{Number: first.Number, Addr: ln.Addr().String()})
	for {
		var c command
		if err := lines.Decode(&c); err != nil {
			return nil // the run has ended
		}
		s.delay.Store(c.Delay)
		_ = answers.Encode(answer{Number: c.Number, Late: s.late.Load()})
	}
}

type server struct {
	token string
	paths
}

func (s *server) accept(ln net.Listener) {
	for {
		c, err := ln.Accept()
		switch {
		case err == nil:
			go s.connect(c.(*net.TCPConn))
		case errors.Is(err, net.ErrClosed):
			return
		default:
			time.Sleep(10 * time.Millisecond) // no more files: try again
		}
	}
}

// connect reads where a connection goes, connects there, and passes bytes on.
func (s *server) connect(c *net.TCPConn) {
	_ = c.SetDeadline(time.Now().Add(within))
	line, err := readLine(c)
	token, addr, ok := strings.Cut(line, " ")
	if err != nil || !ok || subtle.ConstantTimeCompare([]byte(token), []byte(s.token)) != 1 {
		c.Close()
		return
	}
	_ = c.SetDeadline(time.Time{})
	ctx, cancel := context.WithTimeout(context.Background(), connect)
	defer cancel()
	stop := watch(c, cancel)
	select {
	case <-time.After(time.Duration(s.delay.Load())): // TCP needs a round trip, too
	case <-ctx.Done():
	}
	up, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	stop()
	if errors.Is(ctx.Err(), context.Canceled) { // the run gave up
		if err == nil {
			up.Close()
		}
		c.Close()
		return
	}
	if err != nil {
		fmt.Fprintf(c, "%s %s\n", classOf(err), strings.ReplaceAll(err.Error(), "\n", " "))
		c.Close()
		return
	}
	if _, err := io.WriteString(c, "ok\n"); err != nil {
		up.Close()
		c.Close()
		return
	}
	s.join(c, up.(*net.TCPConn))
}

// watch calls gone if the other side of a connection ends it, until stop is called. The other side sends
// nothing meanwhile: it waits for an answer.
func watch(c *net.TCPConn, gone func()) (stop func()) {
	over := make(chan struct{})
	go func() {
		defer close(over)
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			gone()
		}
	}()
	return func() {
		_ = c.SetReadDeadline(time.Unix(1, 0))
		<-over
		_ = c.SetReadDeadline(time.Time{})
	}
}

// The classes of errors that keep what they are on the way to the run.
var classes = []struct {
	name string
	err  error
}{
	{"refused", syscall.ECONNREFUSED},
	{"reset", syscall.ECONNRESET},
	{"host", syscall.EHOSTUNREACH},
	{"net", syscall.ENETUNREACH},
	{"timeout", os.ErrDeadlineExceeded},
}

const otherClass = "other"

func classOf(err error) string {
	for _, c := range classes {
		if errors.Is(err, c.err) {
			return c.name
		}
	}
	if t, ok := errors.AsType[net.Error](err); ok && t.Timeout() {
		return "timeout"
	}
	return otherClass
}

// dialError is the error of a connection that the relay could not make, as if this process had tried.
func dialError(addr, answer string) error {
	class, text, _ := strings.Cut(answer, " ")
	for _, c := range classes {
		if c.name == class {
			err := c.err
			if n, ok := err.(syscall.Errno); ok { //nolint:errorlint // a value of the table
				err = os.NewSyscallError("connect", n)
			}
			return &net.OpError{Op: "dial", Net: "tcp", Addr: address(addr), Err: err}
		}
	}
	_, cause, found := strings.Cut(text, ": ") // without "dial tcp ADDR", which comes again
	if !found {
		cause = text
	}
	return &net.OpError{Op: "dial", Net: "tcp", Addr: address(addr), Err: errors.New(cause)}
}

// An address is a HOST:PORT in an error.
type address string

func (address) Network() string  { return "tcp" }
func (a address) String() string { return string(a) }

// readLine reads one line, byte by byte, since what follows it belongs to the connection.
func readLine(r io.Reader) (string, error) {
	var line strings.Builder
	b := make([]byte, 1)
	for line.Len() < mostLine {
		if _, err := io.ReadFull(r, b); err != nil {
			return "", err
		}
		if b[0] == '\n' {
			return line.String(), nil
		}
		line.WriteByte(b[0])
	}
	return "", errors.New("the line is too long")
}
