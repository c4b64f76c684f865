package riemann

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"

	"carronade/internal/conn"
)

// defaultConnectTimeout is the default of connect-timeout.
const defaultConnectTimeout = 5 * time.Second

// The events that a probe queries. A server emits the rate of its streams every
// ten seconds, with its own name as host (riemann, core.clj). A stand-in answers
// with an event that says so, and whether it discards events.
const (
	askedService   = "riemann streams rate"
	standinService = "carronade standin"
	discardService = "carronade discard"
	probeQuery     = `service = "` + askedService + `" or service = "` + standinService + `" or service = "` + discardService + `"`
)

// answersQueries is the fact "index" of a server that has one.
const answersQueries = "answers queries"

// probeTCP sends a small query to an address, to check that a Riemann server
// answers there. Its error says precisely what is wrong.
func probeTCP(ctx context.Context, c *config, addr string) (map[string]any, error) {
	found := map[string]any{}
	err := identify(ctx, &c.dialer, addr, found)
	if answerErr := (*answerError)(nil); errors.As(err, &answerErr) {
		// It is a Riemann server, and accepts events. Only verification needs
		// an index.
		found["index"] = answerErr.text
		return found, nil
	}
	if err != nil {
		return nil, c.diagnose(ctx, addr, err)
	}
	return found, nil
}

// identify connects, sends a query, and notes in found, which may be nil, what
// it learns about the server.
func identify(ctx context.Context, d *conn.Dialer, addr string, found map[string]any) error {
	// This leaves time for diagnose.
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(d.Timeout, defaultConnectTimeout))
	defer cancel()
	note := func(name string, v any) {
		if found != nil {
			found[name] = v
		}
	}
	a := &asker{addr: addr}
	a.dial = func(ctx context.Context) (net.Conn, error) {
		nc, err := d.Dial(ctx, addr)
		if t, ok := nc.(*tls.Conn); ok && err == nil {
			state := t.ConnectionState()
			note("tls", tls.VersionName(state.Version)+", "+tls.CipherSuiteName(state.CipherSuite))
		}
		return nc, err
	}
	defer a.close()
	events, err := a.ask(ctx, probeQuery)
	if err != nil {
		return err
	}
	note("index", answersQueries)
	for i := range events {
		switch e := &events[i]; e.Service {
		case standinService:
			note("standin", true)
		case discardService:
			note("discards", true)
		case askedService:
			if e.Host != "" {
				note("server", e.Host)
			}
		}
	}
	return nil
}
