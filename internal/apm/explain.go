package apm

import (
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"carronade/internal/apm/wire"
	"carronade/internal/conn"
	"carronade/protocol"
)

var errUnrequestedData = errors.New("the server sent data before a request: it is not an HTTP server")

var errSpeaksTLS = errors.New("the server speaks TLS, but plain HTTP was tried")

// explain adds a hint to a connection error. doing names what was tried, with
// the address.
func (c *config) explain(doing string, err error) error {
	return conn.Explain(doing, bare(err), c.hint)
}

// bare is the cause of an error of net/http, in words that users understand.
func bare(err error) error {
	if _, ok := errors.AsType[*protocol.Error](err); ok {
		return err
	}
	// The wrapping by net/http repeats the address.
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	// net/http checks a new connection before it uses it, and has texts for that
	// which users would not understand.
	switch text := err.Error(); {
	case strings.Contains(text, "readLoopPeekFail"), strings.Contains(text, "nsolicited response"):
		return errUnrequestedData
	case strings.Contains(text, "server closed idle connection"):
		return io.EOF
	}
	return err
}

// hint says what to check.
func (c *config) hint(err error) string {
	var (
		refused *refusal
		record  tls.RecordHeaderError
		alien   = strings.Contains(err.Error(), "malformed HTTP")
	)
	switch {
	case errors.As(err, &refused):
		return c.refusedHint(refused.status)
	case errors.Is(err, errNoHTTP2):
		return "leave out --http-version 2, or give an address that speaks it (a gateway before the server may not)"
	case errors.Is(err, errIndex):
		return "give the APM server's address (often port 8200), and this one as --index"
	case errors.Is(err, errSpeaksTLS), !c.tls && alien && strings.Contains(err.Error(), `\x15\x03`):
		return "write the target as apm+https://..., with --tls-ca FILE unless its certificate is signed by an authority of the system"
	case errors.As(err, &record), strings.Contains(err.Error(), "HTTP response to HTTPS client"):
		return "write the target as apm+http://..., or take the port that speaks TLS"
	case alien, errors.Is(err, errUnrequestedData):
		return "another protocol answers there: check the port (an APM server's is often 8200)"
	case conn.IsRefused(err):
		return "nothing listens there: is the server running, and is this its address? (carronade standin apm starts a small one)"
	}
	if h := conn.Hint(err, len(c.material.Cert.Data) > 0); h != "" {
		return h
	}
	switch {
	case conn.IsTimeout(err):
		return "check the address, the firewall between, and whether the server is stuck"
	case conn.IsConnectionClosed(err):
		return "another protocol may be listening there, or the server speaks TLS (apm+https): check the port and the server's log"
	}
	return "check the address and the server's log"
}

// refusedHint says what to check after a server refused the request without
// events.
func (c *config) refusedHint(status int) string {
	rum := strings.Contains(c.bodyPool.source.Path(), "/rum/")
	switch {
	case status == http.StatusUnauthorized && c.login == "none":
		return "add --secret-token env:NAME or --api-key env:NAME"
	case status == http.StatusUnauthorized:
		return "check the " + c.login + ": is it the server's?"
	case status == http.StatusForbidden && rum:
		return "is RUM enabled (apm-server.rum.enabled), and are anonymous agents allowed?"
	case status == http.StatusForbidden:
		return "the login lacks a permission, or the server requires another one: see --secret-token and --api-key"
	case status == http.StatusNotFound && c.bodyPool.source.ContentType() != wire.IntakeV2.ContentType():
		return "only servers before version 7 accept v1: leave out --intake v1"
	case status == http.StatusNotFound && rum:
		return "is RUM enabled (apm-server.rum.enabled)?"
	case status == http.StatusNotFound, status == http.StatusMethodNotAllowed:
		return "no APM server answers there: check the port (often 8200) and the path"
	case status/100 == 3:
		return "give the address that it redirects to"
	case status == http.StatusUnsupportedMediaType:
		return "is this an APM server, and does its version accept this --intake?"
	}
	return "look at the server's log"
}
