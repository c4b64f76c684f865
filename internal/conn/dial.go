package conn

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"carronade/protocol"
)

// A Dialer describes how connections are made. The zero value makes plain ones with the
// system's defaults. Use does not change it, and it is safe for concurrent use.
type Dialer struct {
	TLS        *tls.Config   // nil: plain; an empty ServerName means the dialed host
	SendBuffer int           // bytes (SO_SNDBUF); 0: the system's default
	RecvBuffer int           // bytes (SO_RCVBUF); 0: the system's default
	Timeout    time.Duration // of connecting, handshake included; 0: only the context's
}

// restriction checks each address before a connection is made to it; nil: none.
var restriction atomic.Pointer[func(addr string) error]

// Restrict makes check decide which addresses, host:port, this process may connect to. It holds for
// all dialers, also for addresses that a system announces. nil allows all.
func Restrict(check func(addr string) error) {
	if check == nil {
		restriction.Store(nil)
		return
	}
	restriction.Store(&check)
}

// forbidden checks each address, with an IP, when its name has been resolved; nil: nothing.
var forbidden atomic.Pointer[func(at netip.AddrPort) error]

// Forbid makes check decide to which addresses this process may not connect, whatever names they have. It
// holds for all dialers.
func Forbid(check func(at netip.AddrPort) error) { forbidden.Store(&check) }

// plain is the dialer of all TCP connections.
var plain = net.Dialer{Control: func(_, address string, _ syscall.RawConn) error {
	check := forbidden.Load()
	if check == nil || *check == nil {
		return nil
	}
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	return (*check)(at)
}}

// NotAllowed is the error of an address that this process may not connect to; see Restrict.
func NotAllowed(err error, hint string) error {
	return &protocol.Error{Err: notAllowed{err}, Hint: hint}
}

// IsNotAllowed reports whether an error is one of NotAllowed.
func IsNotAllowed(err error) bool { return errors.As(err, new(notAllowed)) }

type notAllowed struct{ error }

func (e notAllowed) Unwrap() error { return e.error }

// own are the addresses of servers that this process started, with the number of them.
var own struct {
	mu sync.Mutex
	at map[string]int
}

// Own lets this process connect to a server that it started itself, host:port, whatever Restrict
// says, until end is called.
func Own(addr string) (end func()) {
	own.mu.Lock()
	defer own.mu.Unlock()
	if own.at == nil {
		own.at = map[string]int{}
	}
	own.at[addr]++
	return sync.OnceFunc(func() {
		own.mu.Lock()
		defer own.mu.Unlock()
		if own.at[addr]--; own.at[addr] == 0 {
			delete(own.at, addr)
		}
	})
}

// isOwn reports whether an address is that of a server that this process started.
func isOwn(addr string) bool {
	own.mu.Lock()
	defer own.mu.Unlock()
	return own.at[addr] > 0
}

// Allowed returns an error, see IsNotAllowed, for an address that this process may not connect to.
func Allowed(addr string) error {
	if check := restriction.Load(); check != nil && !isOwn(addr) {
		return (*check)(addr)
	}
	return nil
}

// Dial connects to host:port. It returns a *net.TCPConn for a plain connection,
// otherwise a *tls.Conn after its handshake. An error of the handshake is a *TLSError. An address
// outside those of Restrict is one of NotAllowed.
func (d *Dialer) Dial(ctx context.Context, addr string) (net.Conn, error) {
	if err := Allowed(addr); err != nil {
		return nil, err
	}
	if d.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d.Timeout)
		defer cancel()
	}
	conn, err := plain.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	tcp := conn.(*net.TCPConn)
	if d.SendBuffer > 0 {
		err = tcp.SetWriteBuffer(d.SendBuffer)
	}
	if err == nil && d.RecvBuffer > 0 {
		err = tcp.SetReadBuffer(d.RecvBuffer)
	}
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("set the connection's buffers: %w", err)
	}
	if d.TLS == nil {
		return conn, nil
	}
	cfg := d.TLS.Clone()
	if cfg.ServerName == "" {
		if cfg.ServerName, _, err = net.SplitHostPort(addr); err != nil {
			cfg.ServerName = addr
		}
	}
	secured := tls.Client(conn, cfg)
	if err := secured.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, &TLSError{err}
	}
	return secured, nil
}

// A TLSError is a handshake that failed.
type TLSError struct{ err error }

func (e *TLSError) Error() string { return "TLS handshake: " + e.err.Error() }

// Unwrap returns the cause.
func (e *TLSError) Unwrap() error { return e.err }

// Interrupt ends all reads and writes of a connection when the context ends, until stop
// is called. stop reports whether it was called in time; the connection's deadline is
// then reset.
func Interrupt(ctx context.Context, conn net.Conn) (stop func() bool) {
	end := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	return func() bool {
		if !end() {
			return false
		}
		return conn.SetDeadline(time.Time{}) == nil
	}
}

// SpeaksTLS tries a handshake that accepts any certificate, to find out whether a
// server speaks TLS at an address; it sends nothing after that. It takes at most two
// seconds.
func SpeaksTLS(ctx context.Context, addr string) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if Allowed(addr) != nil {
		return false
	}
	d := tls.Dialer{NetDialer: &plain, Config: &tls.Config{InsecureSkipVerify: true}} // only to find out whether TLS is spoken
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err == nil {
		conn.Close()
		return true
	}
	return isAlert(err)
}
