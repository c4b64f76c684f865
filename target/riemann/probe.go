package riemann

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"

	"carronade/internal/dial"
)

// defaultConnectTimeout is the default of connect-timeout.
const defaultConnectTimeout = 5 * time.Second

// What a look around asks for. A server says how fast its streams run, every
// ten seconds, with its own name (riemann, core.clj); a stand-in that keeps
// nothing says so.
const (
	askedService   = "riemann streams rate"
	discardService = "carronade discard"
	lookAround     = `service = "` + askedService + `" or service = "` + discardService + `"`
)

// probeTCP asks the server at an address for something small, to see that it is
// a Riemann, and tells precisely what is wrong when it is none.
func probeTCP(ctx context.Context, c *config, addr string) (map[string]any, error) {
	found := map[string]any{}
	err := greet(ctx, &c.dialer, addr, found)
	if answerErr := (*answerError)(nil); errors.As(err, &answerErr) {
		// It spoke: events are what it is wanted for, and an index only for
		// what is read back.
		found["index"] = answerErr.text
		return found, nil
	}
	if err != nil {
		return nil, c.diagnose(ctx, addr, err)
	}
	return found, nil
}

// greet connects, asks, and notes in found, which may be nil, what there is to
// know.
func greet(ctx context.Context, d *dial.Dialer, addr string, found map[string]any) error {
	// Time is left for a second look at what answers so strangely.
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
	events, err := a.ask(ctx, lookAround)
	if err != nil {
		return err
	}
	note("index", "answers queries")
	for i := range events {
		switch e := &events[i]; e.Service {
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
