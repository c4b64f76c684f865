package riemann

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"

	"carronade/internal/conn"
	"carronade/internal/riemann/wire"
	"carronade/protocol"
)

// mostAnswer bounds an answer to a query, in bytes: a full index of a million
// events takes about 200 MB.
const mostAnswer = 512 << 20

// An asker sends queries to one server, one at a time, on a separate connection.
// It connects when needed, and again after an error. It is not safe for
// concurrent use.
type asker struct {
	addr string
	dial func(ctx context.Context) (net.Conn, error)
	// explain turns an error of the connection into one with a hint. It may
	// connect again for that. It is nil where only the error itself is used.
	explain func(ctx context.Context, err error) error

	nc  net.Conn
	in  *bufio.Reader
	buf []byte
}

// An answerError is an answer that reports an error, with the server's text.
type answerError struct{ text string }

func (e *answerError) Error() string { return "the server says: " + e.text }

// noIndex reports whether the server has no index to query (transport.clj,
// handle).
func (e *answerError) noIndex() bool { return e.text == "no index" }

// ask sends a query and returns the events of the answer, which the caller may
// keep and change. An error that the server reports is an *answerError, after
// which the connection stays usable. After any other error the next query
// connects again.
func (a *asker) ask(ctx context.Context, text string) ([]wire.Event, error) {
	return a.askAll(ctx, []string{text})
}

// askAll sends several queries at once and returns the events of all answers.
// If the server reports errors, it returns the first as an *answerError.
func (a *asker) askAll(ctx context.Context, texts []string) ([]wire.Event, error) {
	if a.nc == nil {
		nc, err := a.dial(ctx)
		if err != nil {
			return nil, err
		}
		a.nc, a.in = nc, bufio.NewReaderSize(nc, 64<<10)
	}
	events, answerErr, err := a.exchange(ctx, texts)
	if err != nil {
		a.close()
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, err
	}
	if answerErr != nil {
		return nil, answerErr
	}
	return events, nil
}

func (a *asker) exchange(ctx context.Context, texts []string) (events []wire.Event, answerErr *answerError, err error) {
	stop := conn.Interrupt(ctx, a.nc)
	defer stop()
	var out []byte
	for _, text := range texts {
		out = wire.AppendFramed(out, &wire.Msg{Query: text, HasQuery: true})
	}
	if _, err := a.nc.Write(out); err != nil {
		return nil, nil, err
	}
	for range texts {
		msg, err := a.frame()
		if err != nil {
			return nil, nil, err
		}
		m, err := wire.DecodeMsg(msg)
		if err != nil {
			return nil, nil, err
		}
		switch {
		case !m.OK && answerErr == nil:
			answerErr = &answerError{m.Error}
		case events == nil:
			events = m.Events
		default:
			events = append(events, m.Events...)
		}
	}
	return events, answerErr, nil
}

// frame reads the next message, which is valid until the next call. It allocates
// memory as bytes arrive, not by the length that a header claims.
func (a *asker) frame() ([]byte, error) {
	var head [wire.FrameHead]byte
	if _, err := io.ReadFull(a.in, head[:]); err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("the server closed the connection without an answer")
		}
		return nil, err
	}
	size := int64(binary.BigEndian.Uint32(head[:]))
	if size > mostAnswer {
		return nil, fmt.Errorf("an answer of %d bytes, more than %d (bytes % x): %w", size, mostAnswer, head, wire.ErrFrame)
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

// close closes the connection, if there is one.
func (a *asker) close() {
	if a.nc != nil {
		_ = a.nc.Close()
		a.nc = nil
	}
}

// queryAddress is where the server behind a target's URL answers queries, the first
// one of several.
func queryAddress(u *url.URL, v protocol.Values) (r *transport, addr string, err error) {
	r, hosts, _, err := parseTarget(u)
	if err != nil {
		return nil, "", err
	}
	return (&config{transport: r, values: v}).queryPlace(hosts[0])
}

// queryPlace is where the server at an address of the target answers queries: at the
// address of the option query-address, or else there over TCP and TLS, there over
// TCP for UDP, since a Riemann serves both on one port, and otherwise over TCP at
// the usual port of the host.
func (c *config) queryPlace(addr string) (*transport, string, error) {
	if text := c.values.String("query-address"); text != "" {
		return parseQueryAddress(text)
	}
	r := c.transport
	if r.scheme == plainScheme || r.scheme == tlsScheme {
		return r, addr, nil
	}
	plain := transportOf(plainScheme)
	if r.scheme == udpScheme {
		return plain, addr, nil
	}
	host, _, err := net.SplitHostPort(addr)
	return plain, net.JoinHostPort(host, plain.port), err
}

// newAsker makes an asker for an address.
func newAsker(r *transport, addr string, v protocol.Values) (*asker, error) {
	d, err := queryDialer(r, v)
	if err != nil {
		return nil, err
	}
	c := &config{transport: r, dialer: d}
	a := &asker{addr: addr, explain: func(ctx context.Context, err error) error {
		return c.explain("ask "+addr, c.diagnose(ctx, addr, err))
	}}
	a.dial = func(ctx context.Context) (net.Conn, error) { return d.Dial(ctx, addr) }
	return a, nil
}

// The transports that answer queries.
const (
	plainScheme = "riemann"
	tlsScheme   = "riemann+tls"
)

// udpScheme is the scheme of the transport that shares its port with TCP.
const udpScheme = "riemann+udp"

func transportOf(scheme string) *transport {
	for i := range transports {
		if transports[i].scheme == scheme {
			return &transports[i]
		}
	}
	return nil
}

// parseQueryAddress reads HOST:PORT or a URL of TCP or TLS.
func parseQueryAddress(text string) (*transport, string, error) {
	scheme, host := plainScheme, text
	if s, rest, ok := strings.Cut(text, "://"); ok {
		scheme, host = s, strings.TrimSuffix(rest, "/")
	}
	r := transportOf(scheme)
	if scheme != plainScheme && scheme != tlsScheme {
		r = nil
	}
	err := fmt.Errorf("the scheme %s does not answer queries", scheme)
	if r != nil {
		var addr string
		if addr, err = conn.Host(host, r.port); err == nil {
			return r, addr, nil
		}
	}
	return nil, "", &protocol.Error{
		Doing: "read --query-address " + text, Err: err,
		Hint: "queries go over TCP: --query-address HOST:5555, or --query-address riemann+tls://HOST:5554",
	}
}

// queryDialer makes the connections for queries. For TLS they are like the
// transport's. On a plaintext connection the TLS options, which belong to the
// target's transport, and the options for buffers are ignored, so that there is
// room for the events that a query finds.
func queryDialer(r *transport, v protocol.Values) (conn.Dialer, error) {
	if r.tls {
		return r.dialer(v)
	}
	return conn.Dialer{Timeout: cmp.Or(v.Duration("connect-timeout"), defaultConnectTimeout)}, nil
}
