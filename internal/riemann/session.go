package riemann

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"carronade/internal/conn"
	"carronade/internal/conn/socket"
	"carronade/load"
	"carronade/measure"
	"carronade/protocol"
)

// A session is one run's use of a server, or of several. It implements
// load.Target, with one stream and one lane per client.
type session struct {
	cfg         *config
	partitioner load.Partitioner
	lanes       []sender
	found       map[string]any // by the probe
	src         *source        // nil unless verifying

	sink          load.Sink // since Start
	pollers       socket.Pollers
	connected     atomic.Int32    // clients that have a connection, if they send each other's events
	figureSources []*figureSource // made by the first call of Figures
	started       atomic.Bool     // since Start
}

// Check finds what is wrong with a spec by itself.
func (Kind) Check(spec protocol.Spec) error {
	_, err := parseConfig(spec)
	return err
}

// Open implements protocol.Kind. It connects and sends a query, so that it reports
// a wrong address, port or certificate. That takes at most the connect timeout,
// or twice that where it connects again to find the cause.
func (Kind) Open(ctx context.Context, spec protocol.Spec) (protocol.Session, error) {
	c, err := parseConfig(spec)
	if err != nil {
		return nil, err
	}
	s := &session{cfg: c, partitioner: load.RoundRobin(c.clients)}
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *session) open(ctx context.Context) error {
	c := s.cfg
	for _, addr := range c.hosts {
		found, err := c.transport.probe(ctx, c, addr)
		if err != nil {
			return c.explain("connect to "+addr, err)
		}
		if s.found == nil {
			s.found = found
		}
	}
	if c.verify {
		src, err := newSource(c)
		if err != nil {
			return err
		}
		if err := src.checkIndex(ctx); err != nil {
			return err
		}
		s.src = src
	}
	encoders := make([]*encoder, c.clients)
	for i := range encoders {
		if err := ctx.Err(); err != nil {
			return err
		}
		p := newEncoder(c.shape, int32(i), c.perMessage())
		encoders[i] = p
		c.widest = max(c.widest, p.size())
		if p.size() > mostMessage {
			return contradiction(fmt.Sprintf("a message of %d events may have %d bytes, more than %d", c.perMessage(), p.size(), mostMessage),
				"give a smaller --batch-events")
		}
	}
	if c.transport.web() {
		c.widestJSON = widestJSON(encoders)
	}
	return s.connect(ctx, encoders)
}

// connect makes the lanes with their connections.
func (s *session) connect(ctx context.Context, encoders []*encoder) error {
	c := s.cfg
	var own []int
	for i := range c.clients {
		if c.portion.Has(i) {
			own = append(own, i)
		}
	}
	lanes := make([]sender, len(own))
	err := conn.DialMany(ctx, len(own), func(ctx context.Context, k int) error {
		addr := c.hosts[own[k]%len(c.hosts)]
		l, err := c.transport.lane(ctx, c, own[k], addr, encoders)
		if err != nil {
			return c.explain("connect to "+addr, err)
		}
		lanes[k] = l
		return nil
	})
	for _, l := range lanes { // also after an error: Close closes those that were made
		if l != nil {
			s.lanes = append(s.lanes, l)
		}
	}
	return err
}

// Target implements protocol.Session.
func (s *session) Target() load.Target { return target{s} }

// Capabilities implements protocol.Session.
func (s *session) Capabilities() protocol.SessionCapabilities {
	return protocol.SessionCapabilities{
		Unanswered: s.cfg.transport.unanswered, Encoding: s.Encoding, Brokers: s.Brokers, Figures: s.Figures, Survey: s.Survey,
	}
}

// A target is the session as a load.Target.
type target struct{ *session }

// Capabilities implements load.Target. Each client's events are a separate log, and the service of
// a verified event identifies it.
func (t target) Capabilities() load.TargetCapabilities {
	return load.TargetCapabilities{
		Shares: t.Shares(), Connections: t.Connections, Connected: t.Connected, Poller: t,
		LogOf: func(stream int32) int32 { return stream }, Stamped: t.cfg.verify,
	}
}

// Source implements protocol.Session.
func (s *session) Source() load.Source {
	if s.src == nil {
		return nil
	}
	return s.src
}

// Facts implements protocol.Session.
func (s *session) Facts() map[string]any {
	c := s.cfg
	f := map[string]any{
		"address":     strings.Join(c.hosts, ","),
		"transport":   c.transport.scheme,
		"connections": c.portion.Clients(c.clients),
		"events":      c.shape.describe(),
	}
	if c.skipVerify {
		f["tls_verified"] = false
	}
	maps.Copy(f, s.found)
	return f
}

// Encoding says when the bytes of events are made.
func (s *session) Encoding() *measure.Encoding {
	return &measure.Encoding{Events: measure.Pooled, Distinct: s.cfg.shape.period, Except: "times, metrics and sequence numbers"}
}

// Survey asks for the server's name again: a server that had just started when the run
// began had not said its name yet, which is how runs of one server are recognized. If
// it does not answer now, its name stays unknown.
func (s *session) Survey(ctx context.Context) error {
	c := s.cfg
	if s.found["index"] != answersQueries || s.found["server"] != nil {
		return nil
	}
	found := map[string]any{}
	if err := identify(ctx, &c.dialer, c.hosts[0], found); err == nil && found["server"] != nil {
		s.found["server"] = found["server"]
	}
	return nil
}

// Warnings implements protocol.Session.
func (s *session) Warnings() []string {
	w := slices.Clone(s.cfg.warnings)
	if s.src != nil {
		w = append(w, s.src.warnings()...)
	}
	for _, t := range s.figureSources {
		if s.cfg.transport.unanswered && t.refused && !t.mustAnswer {
			w = append(w, "nothing is acknowledged, and the server's count is unknown: no server answers queries over TCP at "+t.a.addr+"; set --query-address HOST:PORT")
		}
	}
	for _, l := range s.lanes {
		for _, word := range l.warnings() {
			if !slices.Contains(w, word) {
				w = append(w, word)
			}
		}
	}
	return append(w, s.cfg.absent.Warnings()...)
}

// Brokers counts what each connection carried.
func (s *session) Brokers() []measure.Client {
	var all []measure.Client
	for _, l := range s.lanes {
		all = append(all, l.metrics())
	}
	return all
}

// Close implements protocol.Session.
func (s *session) Close() error {
	var errs []error
	for _, t := range s.figureSources {
		t.a.close()
	}
	for _, l := range s.lanes {
		errs = append(errs, l.disconnect())
	}
	return errors.Join(errs...)
}

// Partitioner implements load.Target: the events go to the clients round robin.
func (s *session) Partitioner() load.Partitioner { return s.partitioner }

// Client implements load.Target.
func (s *session) Client(stream int32) int { return int(stream) }

// Clients implements load.Target.
func (s *session) Clients() int { return s.cfg.clients }

// Connections counts those of a start.
func (s *session) Connections() int { return len(s.lanes) }

// Start implements load.Target.
func (s *session) Start(sink load.Sink) {
	s.started.Store(true)
	if s.src != nil {
		sink = s.src.watch(sink)
	}
	s.sink = sink
	for _, l := range s.lanes {
		if l, ok := l.(*lane); ok {
			if s.Shares() {
				l.connected = &s.connected
			}
			l.poller = s.pollers.Of
		}
		l.start(sink)
	}
}

// Shares reports whether events need no order. It is false for verified events, which are
// identified by their client and order; over UDP, where a client always has room;
// and with several servers, since one server's events must not go to another.
func (s *session) Shares() bool {
	c := s.cfg
	return c.scheduled && !c.sticky && !c.verify && !c.transport.unanswered && len(c.hosts) == 1
}

// Poll implements load.Poller: with plaintext connections, the sending threads
// wait for the answers themselves.
func (s *session) Poll(t, of int) load.PollWaiter {
	if s.cfg.transport.tls || s.cfg.transport.unanswered {
		return nil
	}
	if w := s.pollers.Make(t, of, func() time.Duration { return s.sink.Now() }, !s.cfg.scheduled); w != nil {
		return w
	}
	return nil
}

// manyClients is from how many clients on most messages of a schedule have one event.
const manyClients = 256

// Threads implements load.Poller: one thread per processor. Messages of one event cost mostly
// time of the kernel and the server. With many clients, one thread for two processors does not
// compete with a server there.
func (s *session) Threads(processors int) int {
	if s.cfg.scheduled && s.cfg.clients >= manyClients {
		return (processors + 1) / 2
	}
	return processors
}

// Route implements load.Target.
func (s *session) Route(stream int32) load.Lane { return s.lanes[int(stream)-s.cfg.portion.From] }

// Wire implements load.Target.
func (s *session) Wire() (written, read uint64) {
	for _, l := range s.lanes {
		w, r := l.wire()
		written, read = written+w, read+r
	}
	return written, read
}
