package standin

import (
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"carronade/internal/riemann/wire"
	"carronade/internal/standin"
)

// A core is what all transports of a server share: the processing of messages.
type core struct {
	opts  Options
	index *index
	hub   hub
	dice  *standin.Dice // side i is the rule i
	drop  *standin.Dice

	server *standin.SharedQueue // nil: answers wait for nothing

	streams    meter
	tally      tally
	fullLogged atomic.Bool // a full index was logged
}

// A tally is the server's counts.
type tally struct {
	connections, messages, events, bytes, queries, refused, dropped, lost atomic.Uint64
}

func newCore(opts Options) *core {
	c := &core{opts: opts, index: newIndex(opts.MaxIndex), server: standin.NewSharedQueue(opts.Capacity)}
	c.dice = standin.NewRuleDice(opts.Seed, opts.Errors)
	if opts.Drop > 0 {
		c.drop = standin.NewDice(opts.Seed+1, opts.Drop)
	}
	if opts.Discard {
		// So that a query can find out that nothing is kept.
		_, _ = c.index.put(&wire.Event{
			Service: DiscardService, State: "ok", Time: time.Now().Unix(), HasTime: true, TTL: 1e9, HasTTL: true,
		}, nil)
	}
	return c
}

const (
	// StandinService is the service of an event by which a stand-in says that it
	// is one. Only a query that names the service finds it.
	StandinService = "carronade standin"
	// DiscardService is the service of the only event that a discarding stand-in
	// keeps besides those about itself.
	DiscardService = "carronade discard"
)

// A handler processes the messages of one connection. It is not safe for
// concurrent use.
type handler struct {
	*core
	departures *standin.Departures // nil: answers leave at once, or there are none
	scratch    []byte
}

// errFull is the answer to a message that finds the server's queue full.
const errFull = "queue is full"

// newHandler returns the handler of a connection; nil: it is not known.
func (c *core) newHandler(nc net.Conn) handler {
	h := handler{core: c}
	if c.server != nil && nc != nil {
		h.departures = standin.DeparturesOf(nc)
	}
	return h
}

// answer adds a message's events to the index, answers its query, and appends the
// framed answer to out, like handle in transport.clj.
func (t *handler) answer(out []byte, m *wire.Msg, now time.Time) []byte {
	if len(m.Events) > 0 {
		if text := t.addEvents(m.Events, now); text != "" {
			return appendError(out, text)
		}
	}
	if !m.HasQuery {
		return append(out, wire.Ack...)
	}
	return t.find(out, m.Query, now)
}

func appendError(out []byte, text string) []byte {
	return wire.AppendFramed(out, &wire.Msg{HasOK: true, Error: text})
}

// addEvents puts events into the index. It returns an error text, or "" for
// success.
func (t *handler) addEvents(events []wire.Event, now time.Time) string {
	if i := t.dice.Draw(); i >= 0 {
		t.tally.refused.Add(uint64(len(events)))
		return t.opts.Errors[i].Name
	}
	done, ok := t.server.Arrive(len(events))
	if !ok {
		t.tally.refused.Add(uint64(len(events)))
		return errFull
	}
	t.departures.NotBefore(done)
	for i := range events {
		if err := t.addEvent(&events[i], now); err != nil {
			if !t.fullLogged.Swap(true) {
				standin.Logf(t.opts.Log, "%v", err)
			}
			t.tally.events.Add(uint64(i))
			t.tally.refused.Add(uint64(len(events) - i))
			return err.Error()
		}
	}
	t.tally.events.Add(uint64(len(events)))
	each := time.Since(now) / time.Duration(len(events))
	t.streams.record(len(events), each)
	return ""
}

// addEvent adds one event. An event without a time gets the server's.
func (t *handler) addEvent(e *wire.Event, now time.Time) error {
	if t.drop != nil && t.drop.Draw() >= 0 {
		t.tally.dropped.Add(1)
		return nil
	}
	if !e.HasTime && !e.HasTimeMicros {
		e.Time, e.HasTime = now.Unix(), true
	}
	var err error
	if t.scratch, err = t.index.put(e, t.scratch); err != nil {
		return err
	}
	t.hub.publish(e)
	return nil
}

// find answers a query. It copies the encoded events of the index.
func (c *core) find(out []byte, text string, now time.Time) []byte {
	c.tally.queries.Add(1)
	q, err := parseQuery(text)
	if err != nil {
		return appendError(out, fmt.Sprintf("parse error: %v", err))
	}
	at := len(out)
	out = append(out, wire.Ack...)
	c.index.search(q, now, func(s *subject) bool {
		out = appendRaw(out, s.raw)
		return true
	})
	if strings.Contains(text, `"`+StandinService+`"`) {
		out = appendRaw(out, string(wire.AppendEvent(nil, &wire.Event{Service: StandinService, State: "ok"})))
	}
	wire.PutFrame(out[at:])
	return out
}

// appendRaw appends an encoded event to a message.
func appendRaw(out []byte, raw string) []byte {
	out = append(out, wire.TagEvents)
	n := uint64(len(raw))
	for n >= 0x80 {
		out = append(out, byte(n)|0x80)
		n >>= 7
	}
	return append(append(out, byte(n)), raw...)
}

// publishExpired sends subscribers an event that left the index. Like the one
// that core.clj's reaper streams, it has only a host and a service.
func (c *core) publishExpired(host, service string, now time.Time) {
	c.hub.publish(&wire.Event{Host: host, Service: service, State: "expired", Time: now.Unix(), HasTime: true})
}
