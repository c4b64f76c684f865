package otlp

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"carronade/internal/conn"
	"carronade/internal/conn/framing"
	"carronade/internal/conn/web"
	"carronade/internal/otlp/wire"
	"carronade/load"
	"carronade/protocol"
)

// A server is what a server said about itself.
type server struct {
	base     string
	name     string // of its Server header; "" if it has none
	standin  bool   // it is a stand-in of ours
	discards bool   // it is one that discards events
	date     string // of its answer
}

// Names of the stand-in's Server header.
const (
	standinName  = "carronade-standin"
	discardsName = "carronade-standin discards"
)

// mostInfo bounds the bytes that are read of an answer.
const mostInfo = 1 << 20

// newClient makes the client for requests other than batches.
func (c *config) newClient() *http.Client {
	t := web.NewTransport(c.dialer, nil)
	t.MaxIdleConnsPerHost, t.IdleConnTimeout = 1, time.Minute
	if c.grpc {
		t.Protocols = new(http.Protocols)
		t.Protocols.SetHTTP2(c.tls)
		t.Protocols.SetUnencryptedHTTP2(!c.tls)
	}
	return &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// probe sends each server a request without events of each signal, which is answered like any other and passes
// on nothing.
func (c *config) probe(ctx context.Context, client *http.Client) ([]server, error) {
	servers := make([]server, len(c.bases))
	for i, base := range c.bases {
		var err error
		if servers[i], err = c.probeOne(ctx, client, base); err != nil {
			return nil, c.explain("connect to "+c.url(base, ""), err)
		}
	}
	return servers, nil
}

// A refusal is an error answer to a request without events.
type refusal struct {
	status int
	text   string
}

func (e *refusal) Error() string { return e.text }

func (c *config) probeOne(ctx context.Context, client *http.Client, base string) (server, error) {
	v := server{base: base}
	for _, s := range c.pool.signals() {
		if err := c.ask(ctx, client, &v, s); err != nil {
			return v, err
		}
	}
	return v, nil
}

// ask sends a server a request without events of a signal.
func (c *config) ask(ctx context.Context, client *http.Client, v *server, s wire.Signal) error {
	path, body, media := s.Path(), []byte(nil), "application/x-protobuf"
	if c.grpc {
		path, body, media = s.Method(), make([]byte, framing.MessageHead), "application/grpc"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url(v.base, path), bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", media)
	req.Header.Set("User-Agent", userAgent)
	if c.grpc {
		req.Header.Set("Te", "trailers")
	}
	for i := range c.headers {
		req.Header.Set(c.headers[i].Name, c.headers[i].value(0))
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if body, err = io.ReadAll(io.LimitReader(res.Body, mostInfo)); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	v.read(res.Header)
	if c.grpc {
		return c.readGRPC(res, s)
	}
	if res.StatusCode/100 == 2 || web.ClassOf(res.StatusCode) == load.Throttled {
		return nil
	}
	text := ""
	if r, err := wire.ReadStatus(body); err == nil {
		text = r.Message
	}
	if bytes.Contains(body, []byte("HTTPS server")) {
		return errSpeaksTLS
	}
	return &refusal{res.StatusCode, fmt.Sprintf("POST %s: %s", s.Path(), c.redactor.StatusText(res.StatusCode, body, text))}
}

// statuses are those of HTTP by code of gRPC, for hints.
var statuses = map[int]int{codeUnauthorized: http.StatusUnauthorized, codeForbidden: http.StatusForbidden, codeUnimplemented: http.StatusNotFound}

// readGRPC reads an answer of gRPC to a request without events.
func (c *config) readGRPC(res *http.Response, s wire.Signal) error {
	code := cmp.Or(res.Header.Get("Grpc-Status"), res.Trailer.Get("Grpc-Status"))
	a := answer{message: cmp.Or(res.Header.Get("Grpc-Message"), res.Trailer.Get("Grpc-Message"))}
	var err error
	if a.code, err = strconv.Atoi(code); err != nil {
		if web.ClassOf(res.StatusCode) == load.Throttled {
			return nil
		}
		return &refusal{res.StatusCode, fmt.Sprintf("the answer has no grpc-status: %s", c.redactor.StatusText(res.StatusCode, nil, ""))}
	}
	if a.code == codeOK || a.code == codeUnavailable || a.code == codeExhausted {
		return nil
	}
	return &refusal{statuses[a.code], fmt.Sprintf("%s: %s", s.Method(), a.text(c.redactor))}
}

// read reads the headers of an answer.
func (v *server) read(h http.Header) {
	v.name, v.date = web.Line(h.Get("Server")), h.Get("Date")
	v.standin = v.name == standinName || v.name == discardsName
	v.discards = v.name == discardsName
}

var errSpeaksTLS = errors.New("the server speaks TLS, but plain HTTP was tried")

// explain adds a hint to an error. doing names what was tried, with the address.
func (c *config) explain(doing string, err error) error {
	if _, ok := errors.AsType[*protocol.Error](err); ok {
		return err
	}
	if u, ok := errors.AsType[*url.Error](err); ok { // it repeats the address
		err = u.Err
	}
	return &protocol.Error{Doing: doing, Err: err, Hint: c.hint(err)}
}

// hint says what to check.
func (c *config) hint(err error) string {
	var refused *refusal
	text := err.Error()
	names := map[bool][2]string{false: {schemeHTTP, schemeHTTPS}, true: {schemeGRPC, schemeGRPCS}}[c.grpc]
	another := "another protocol may be listening there: OTLP over HTTP is often at port " + portHTTP + ", over gRPC at " + portGRPC
	switch {
	case errors.As(err, &refused):
		return c.refusedHint(refused.status)
	case errors.Is(err, errSpeaksTLS), !c.tls && strings.Contains(text, `\x15\x03`):
		return "write the target as " + names[1] + "://..., with --tls-ca FILE unless its certificate is signed by an authority of the system"
	case strings.Contains(text, "HTTP response to HTTPS client"), strings.Contains(text, "first record does not look like a TLS handshake"):
		return "write the target as " + names[0] + "://..., or take the port that speaks TLS"
	case strings.Contains(text, "malformed HTTP"), strings.Contains(text, "http2: "), strings.Contains(text, "HTTP/2"):
		return another
	case conn.IsRefused(err):
		return "nothing listens there: is the server running, and is this its address? (carronade standin otlp starts a small one)"
	}
	if h := conn.Hint(err, len(c.material.Cert.Data) > 0); h != "" {
		return h
	}
	if conn.IsConnectionClosed(err) {
		if c.tls && len(c.material.Cert.Data) == 0 {
			return "the server may want a client certificate: give --tls-cert and --tls-key; or " + another
		}
		return another
	}
	return "check the address, the firewall between, and the server's log"
}

// refusedHint says what to check after a server refused the request without events.
func (c *config) refusedHint(status int) string {
	switch {
	case (status == http.StatusUnauthorized || status == http.StatusForbidden) && !c.login:
		return "add --header 'Authorization: env:NAME'"
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return "check the value of the header Authorization"
	case status == http.StatusNotFound, status == http.StatusMethodNotAllowed:
		return "no OTLP receiver answers there: check the port (often 4318 for HTTP, 4317 for gRPC), the path, and whether the server has a pipeline for this --signal"
	case status/100 == 3:
		return "give the address that it redirects to"
	}
	return "look at the server's log"
}
