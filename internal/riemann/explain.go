package riemann

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"carronade/internal/conn"
)

// What answered instead of the expected server.
var (
	errSpeaksTLS   = errors.New("the port speaks TLS, but plaintext was tried")
	errSpeaksPlain = errors.New("the port speaks plaintext, but TLS was tried")
	errWantsCert   = errors.New("the server requires a client certificate")
	errRefusesCert = errors.New("the server does not accept the client's certificate")
	errNoRiemann   = errors.New("the server is not Riemann")
	errIsTCP       = errors.New("the port speaks Riemann's TCP, but a WebSocket or HTTP was tried")
	errIsWeb       = errors.New("the port is Riemann's for WebSockets and HTTP, but TCP was tried")
	errNoPath      = errors.New("the server accepts no events at that path")
	errNoAnswer    = errors.New("connected, but no answer came in time")
)

// explain adds a hint to a connection error. doing names what was tried, with
// the address.
func (c *config) explain(doing string, err error) error {
	return conn.Explain(doing, err, c.hint)
}

// hint says what to check.
func (c *config) hint(err error) string {
	hasCert := c.dialer.TLS != nil && len(c.dialer.TLS.Certificates) > 0
	switch {
	case errors.Is(err, context.Canceled):
		return "it was interrupted"
	case errors.Is(err, errSpeaksTLS) && c.transport.web():
		return c.transport.scheme + " has no TLS: take the plaintext port (often 5556), or make the target riemann+tls://"
	case errors.Is(err, errSpeaksTLS):
		return "make the target riemann+tls://, with --tls-cert and --tls-key (Riemann's TLS is mutual) and --tls-ca FILE"
	case errors.Is(err, errSpeaksPlain):
		return "make the target riemann://, or take the port of TLS (often 5554)"
	case errors.Is(err, errIsTCP):
		return "make the target riemann://, or take the port of WebSockets and HTTP (often 5556)"
	case errors.Is(err, errIsWeb):
		return "make the target " + webSocketScheme + ":// or " + httpScheme + "://, or take the port of TCP (often 5555)"
	case errors.Is(err, errRefusesCert):
		return "--tls-cert must be signed by the authority that the server trusts, and be valid today"
	case errors.Is(err, errWantsCert):
		return "Riemann's TLS is mutual: add --tls-cert FILE --tls-key FILE"
	case errors.Is(err, errNoPath):
		return "Riemann accepts them at " + eventsPath + ", the default path; behind a proxy the path may differ"
	case errors.Is(err, errNoRiemann):
		return "check the port: Riemann's is often 5555 (TCP), 5554 (TLS) or 5556 (WebSocket)"
	case conn.IsRefused(err) && c.transport.web():
		return "nothing listens there: does the server have a (ws-server), and is this its address? (carronade standin riemann --ws ADDR starts a small one)"
	case conn.IsRefused(err):
		return "nothing listens there: is the server running, and is this its address? (carronade standin riemann starts a small one)"
	case errors.Is(err, errNoAnswer):
		return "another protocol may be listening there, or the server may be stuck: check the port and the server's log"
	}
	if h := conn.Hint(err, hasCert); h != "" {
		return h
	}
	if conn.IsTimeout(err) {
		return "check the address, the firewall between, and whether the server is stuck"
	}
	return "check the address and the server's log"
}

// diagnose finds the cause of a failed query to a server. It may connect a
// second time.
func (c *config) diagnose(ctx context.Context, addr string, err error) error {
	var (
		failed    *conn.TLSError
		answerErr *answerError
		secure    = c.dialer.TLS != nil
	)
	switch {
	case ctx.Err() != nil, conn.IsRefused(err), errors.As(err, &answerErr):
		return err
	case secure && isCertAlert(err):
		what := errWantsCert
		if len(c.dialer.TLS.Certificates) > 0 {
			what = errRefusesCert
		}
		return fmt.Errorf("%w (%w)", what, err)
	case secure && errors.As(err, &failed):
		if conn.Hint(err, true) == "" { // no problem with a certificate
			plainly := c.dialer
			plainly.TLS = nil
			if again := identify(ctx, &plainly, addr, nil); again == nil || errors.As(again, &answerErr) {
				return fmt.Errorf("%w (%w)", errSpeaksPlain, err)
			}
		}
		return err
	case strings.Contains(err.Error(), "dial "):
		return err
	case !secure && conn.SpeaksTLS(ctx, addr):
		return fmt.Errorf("%w (%w)", errSpeaksTLS, err)
	case conn.IsTimeout(err):
		return fmt.Errorf("%w (%w)", errNoAnswer, err)
	case !secure && c.speaksWeb(ctx, addr):
		return fmt.Errorf("%w (%w)", errIsWeb, err)
	}
	return fmt.Errorf("%w (%w)", errNoRiemann, err)
}

// speaksTCP reports whether a Riemann server answers frames at an address that
// did not accept WebSocket or HTTP.
func (c *config) speaksTCP(ctx context.Context, addr string) bool {
	plainly := c.dialer
	plainly.TLS = nil
	return identify(ctx, &plainly, addr, nil) == nil
}

// speaksWeb reports whether a Riemann server accepts a WebSocket at an address
// that did not answer over TCP.
func (c *config) speaksWeb(ctx context.Context, addr string) bool {
	nc, err := c.dialer.Dial(ctx, addr)
	if err != nil {
		return false
	}
	defer nc.Close()
	return (&webSocketFraming{path: eventsPath, timeout: c.connectTimeout()}).handshake(ctx, nc, addr) == nil
}

// isCertAlert reports whether the server ended the connection because it got no
// certificate that it trusts. With TLS 1.3 that comes after the handshake.
func isCertAlert(err error) bool {
	text := err.Error()
	return strings.Contains(text, "remote error: tls:") &&
		(strings.Contains(text, "certificate required") || strings.Contains(text, "bad certificate") ||
			strings.Contains(text, "unknown certificate") || strings.Contains(text, "handshake failure"))
}
