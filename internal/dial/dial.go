// Package dial makes connections for targets: the options that say how, the
// hosts of a URL, TCP with the buffers that were asked for, TLS with the
// certificates that were given, and words about what went wrong and what to do
// about it. It refuses to know any protocol that is then spoken, logins, and
// retries.
//
// Its invariant: without being told otherwise, a certificate is verified, chain
// and name.
package dial

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"
)

// A Dialer says how connections are made. The zero value makes plain ones as
// the system likes. It is not changed by use, and safe for concurrent use.
type Dialer struct {
	TLS        *tls.Config   // nil: plain; a ServerName of "" is the host dialed
	SendBuffer int           // bytes (SO_SNDBUF); 0: as the system likes
	RecvBuffer int           // bytes (SO_RCVBUF); 0: likewise
	Timeout    time.Duration // of connecting, handshake included; 0: the context's alone
}

// Dial connects to host:port. A plain connection is a *net.TCPConn, another a
// *tls.Conn with its handshake done. An error of the handshake is a *TLSError.
func (d *Dialer) Dial(ctx context.Context, addr string) (net.Conn, error) {
	if d.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d.Timeout)
		defer cancel()
	}
	var nd net.Dialer
	conn, err := nd.DialContext(ctx, "tcp", addr)
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

// Interrupt ends all reading and writing of a connection when the context
// ends, until stop is called. Stop reports whether it came in time; then the
// connection's deadline is as it was.
func Interrupt(ctx context.Context, conn net.Conn) (stop func() bool) {
	end := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	return func() bool {
		if !end() {
			return false
		}
		return conn.SetDeadline(time.Time{}) == nil
	}
}

// SpeaksTLS tries a handshake that believes any certificate, to learn whether
// TLS is spoken at an address; nothing is sent after it. It takes two seconds
// at most.
func SpeaksTLS(ctx context.Context, addr string) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	d := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} // only to learn whether TLS is spoken
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err == nil {
		conn.Close()
		return true
	}
	return isAlert(err)
}
