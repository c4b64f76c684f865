package riemann

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"carronade/internal/riemann/wire"
	"carronade/protocol"
)

// An Event is one entry of a server's index, as a query returns it.
type Event struct {
	Host        string            `json:"host,omitempty"`
	Service     string            `json:"service,omitempty"`
	State       string            `json:"state,omitempty"`
	Description string            `json:"description,omitempty"`
	Metric      any               `json:"metric,omitempty"` // int64, float64 or float32; nil: none
	Time        time.Time         `json:"time,omitzero"`    // UTC; zero: none
	TTL         float32           `json:"ttl,omitempty"`    // seconds; 0: none
	Tags        []string          `json:"tags,omitempty"`
	Attributes  map[string]string `json:"attributes,omitempty"`
}

// Query asks the server behind a target's URL for the events of its index that
// match text, in the server's query language. v are the kind's options; those of
// the connection and its security are used. The query goes to the address of the
// option query-address, else to the URL's own address (over TCP if the URL is of
// UDP), else, if the URL is of WebSocket or HTTP, to port 5555 of its host. The
// events come in the server's order; there may be none. An error is a
// *protocol.Error where there is a hint to give; for a query that the server cannot
// parse it contains the server's message. ctx bounds all of it.
func Query(ctx context.Context, u *url.URL, v protocol.Values, text string) ([]Event, error) {
	found, err := query(ctx, u, v, text)
	if err != nil {
		return nil, err
	}
	all := make([]Event, len(found))
	for i := range found {
		all[i] = publicEvent(&found[i])
	}
	return all, nil
}

// Index asks like Query for all events of the index, as they were on the wire.
func Index(ctx context.Context, u *url.URL, v protocol.Values) ([]wire.Event, error) {
	return query(ctx, u, v, "true")
}

func query(ctx context.Context, u *url.URL, v protocol.Values, text string) ([]wire.Event, error) {
	r, addr, err := queryAddress(u, v)
	if err != nil {
		return nil, err
	}
	a, err := newAsker(r, addr, v)
	if err != nil {
		return nil, err
	}
	defer a.close()
	found, err := a.ask(ctx, text)
	if err != nil {
		return nil, a.queryError(ctx, text, err)
	}
	return found, nil
}

// queryError adds a hint to a query's error.
func (a *asker) queryError(ctx context.Context, text string, err error) error {
	answerErr := (*answerError)(nil)
	if !errors.As(err, &answerErr) {
		return a.explain(ctx, err)
	}
	hint := `put strings in double quotes: service = "www" and (state = "ok" or metric > 0.9); all events: true`
	if answerErr.noIndex() {
		hint = "the server has no index: add (streams (index)) to its configuration"
	}
	return &protocol.Error{Doing: fmt.Sprintf("query %q at %s", text, a.addr), Err: answerErr, Hint: hint}
}

// publicEvent converts an event of the wire to the exported type.
func publicEvent(e *wire.Event) Event {
	p := Event{Host: e.Host, Service: e.Service, State: e.State, Description: e.Description, TTL: e.TTL, Tags: e.Tags}
	p.Time, _ = e.When()
	switch e.Metric.Kind {
	case wire.Sint64:
		p.Metric = e.Metric.Int
	case wire.Double:
		p.Metric = e.Metric.Real
	case wire.Float:
		p.Metric = float32(e.Metric.Real)
	}
	if len(e.Attributes) > 0 {
		p.Attributes = make(map[string]string, len(e.Attributes))
		for _, a := range e.Attributes {
			p.Attributes[a.Key] = a.Value
		}
	}
	return p
}
