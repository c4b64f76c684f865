package riemann

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"time"

	"carronade/internal/wire/riemann"
	"carronade/target"
)

// mostAnswer bounds an answer to a query, in bytes: a whole index of a million
// events is some 200 MB.
const mostAnswer = 512 << 20

// An asker asks one server questions, one at a time, on a connection of its own
// that is made when it is needed and made again after an error. Not safe for
// concurrent use.
type asker struct {
	addr string
	dial func(ctx context.Context) (net.Conn, error)
	nc   net.Conn
	in   *bufio.Reader
	buf  []byte
}

// An answerError is an answer that says no, in the server's own words.
type answerError struct{ text string }

func (e *answerError) Error() string { return "the server says: " + e.text }

// noIndex reports whether the server has nothing to query (transport.clj,
// handle).
func (e *answerError) noIndex() bool { return e.text == "no index" }

// ask sends a query and returns the events of the answer, which are the
// caller's. What the server says against it is an *answerError, after which the
// connection is good; after any other error it is made anew.
func (a *asker) ask(ctx context.Context, text string) ([]riemann.Event, error) {
	if a.nc == nil {
		nc, err := a.dial(ctx)
		if err != nil {
			return nil, err
		}
		a.nc, a.in = nc, bufio.NewReaderSize(nc, 64<<10)
	}
	m, err := a.exchange(ctx, text)
	if err != nil {
		a.close()
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, fmt.Errorf("query %s: %w", a.addr, err)
	}
	if !m.OK {
		return nil, &answerError{m.Error}
	}
	return m.Events, nil
}

func (a *asker) exchange(ctx context.Context, text string) (riemann.Msg, error) {
	deadline, _ := ctx.Deadline()
	if err := a.nc.SetDeadline(deadline); err != nil {
		return riemann.Msg{}, err
	}
	nc := a.nc
	stop := context.AfterFunc(ctx, func() { _ = nc.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := nc.Write(riemann.AppendFramed(nil, &riemann.Msg{Query: text, HasQuery: true})); err != nil {
		return riemann.Msg{}, err
	}
	msg, err := a.frame()
	if err != nil {
		return riemann.Msg{}, err
	}
	return riemann.DecodeMsg(msg)
}

// frame reads the next message; it is valid until the next call. Memory grows
// with the bytes that came, not with what a length promises.
func (a *asker) frame() ([]byte, error) {
	var head [riemann.FrameHead]byte
	if _, err := io.ReadFull(a.in, head[:]); err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("the server closed the connection instead of an answer")
		}
		return nil, err
	}
	size := int64(binary.BigEndian.Uint32(head[:]))
	if size > mostAnswer {
		return nil, fmt.Errorf("an answer of %d bytes, where at most %d are taken (bytes % x): %w", size, mostAnswer, head, riemann.ErrFrame)
	}
	a.buf = a.buf[:0]
	for left := int(size); left > 0; {
		n := min(left, max(64<<10, len(a.buf)))
		at := len(a.buf)
		a.buf = append(a.buf, make([]byte, n)...)
		if _, err := io.ReadFull(a.in, a.buf[at:]); err != nil {
			return nil, fmt.Errorf("in the middle of an answer: %w", err)
		}
		left -= n
	}
	return a.buf, nil
}

// close ends the connection, if there is one.
func (a *asker) close() {
	if a.nc != nil {
		_ = a.nc.Close()
		a.nc = nil
	}
}

// askerOf is an asker of the server behind a target's URL.
func askerOf(u *url.URL, v target.Values) (*asker, error) {
	scheme, host, err := askable(u, v)
	if err != nil {
		return nil, err
	}
	return newAsker(scheme, host, v)
}

// askable is where the server behind a target's URL answers queries: the scheme
// to ask with, and host and port.
func askable(u *url.URL, v target.Values) (scheme, addr string, err error) {
	if text := v.String("tell"); text != "" {
		scheme, addr = "riemann", text
		if s, rest, ok := strings.Cut(text, "://"); ok {
			scheme, addr = s, strings.TrimSuffix(rest, "/")
		}
		if scheme != "riemann" && scheme != "riemann+tls" {
			return "", "", &target.Error{
				Doing: "read --tell " + text, Err: fmt.Errorf("the scheme %s does not answer queries", scheme),
				Hint: "queries go over TCP: --tell HOST:5555, or --tell riemann+tls://HOST:5554",
			}
		}
		return scheme, withPort(addr, scheme), nil
	}
	host, _, _ := strings.Cut(u.Host, ",")
	switch u.Scheme {
	case "riemann", "riemann+tls":
		return u.Scheme, withPort(host, u.Scheme), nil
	}
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	return "riemann", withPort(strings.Trim(host, "[]"), "riemann"), nil
}

// withPort adds a scheme's own port where none is given.
func withPort(addr, scheme string) string {
	if _, _, err := net.SplitHostPort(addr); err == nil {
		return addr
	}
	port := "5555"
	if scheme == "riemann+tls" {
		port = "5554"
	}
	return net.JoinHostPort(strings.Trim(addr, "[]"), port)
}

// newAsker asks at an address, over TLS where the scheme says so.
func newAsker(_, addr string, _ target.Values) (*asker, error) {
	a := &asker{addr: addr}
	a.dial = func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		nc, err := d.DialContext(ctx, "tcp", addr)
		if err != nil {
			return nil, &target.Error{Doing: "connect to " + addr, Err: err, Hint: "check that a Riemann listens there"}
		}
		return nc, nil
	}
	return a, nil
}
