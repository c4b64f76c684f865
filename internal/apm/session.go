package apm

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"carronade/internal/conn"
	"carronade/internal/conn/socket"
	"carronade/load"
	"carronade/measure"
	"carronade/protocol"
)

// A runner is a lane of either kind, as the session uses it.
type runner interface {
	load.Lane
	// start starts the lane, until the context ends.
	start(ctx context.Context)
	// count returns what the lane did so far.
	count() (base string, m metrics)
}

// A session is one run's use of a server, or of several. As a target it
// implements load.Target.
type session struct {
	cfg     *config
	servers []server
	lanes   []runner
	client  *http.Client         // for requests other than batches
	indexed *index               // nil: documents are not counted
	errors  tally                // errors in servers' answers
	absent  conn.ConnectFailures // of servers, during the run

	ctx       context.Context // of the lanes' goroutines
	cancel    context.CancelFunc
	tasks     sync.WaitGroup
	pollers   socket.Pollers // of plaintext connections
	connected atomic.Int32   // lanes that have a connection
	sink      load.Sink
	wall      time.Time // when the run started
	written   atomic.Uint64
	read      atomic.Uint64
	withheld  atomic.Uint64 // events of a corpus that were not sent
}

// openTimeout bounds each of the two checks of Open, that of the APM servers and
// that of Elasticsearch, so that a wrong address is reported soon.
const openTimeout = 15 * time.Second

// Check finds what is wrong with a spec by itself.
func (Kind) Check(spec protocol.Spec) error {
	_, err := parseConfig(spec, false)
	return err
}

// Open implements protocol.Kind. It asks each server for its version, and whether
// it accepts such requests (with one without events). Then it makes the requests
// and the connections, and counts the documents in Elasticsearch if there is an
// --index.
func (Kind) Open(ctx context.Context, spec protocol.Spec) (protocol.Session, error) {
	c, err := parseConfig(spec, true)
	if err != nil {
		return nil, err
	}
	s := &session{cfg: c}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.client = c.newClient()
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *session) open(ctx context.Context) error {
	c := s.cfg
	probing, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	if c.v1Pool != nil {
		if err := c.chooseIntake(probing, s.client); err != nil {
			return err
		}
	}
	if err := s.probe(probing); err != nil {
		return err
	}
	cycles, err := c.bodyPool.cycles(ctx, c.clients, c.depth, func(lane, size int) []byte { return c.head(c.base(lane), size) })
	if err != nil {
		return err
	}
	if c.raw() {
		err = s.connect(ctx, cycles)
	} else {
		for i := range cycles {
			if c.portion.Has(i) {
				s.lanes = append(s.lanes, newHTTPLane(s, i, cycles))
			}
		}
	}
	if err != nil {
		return err
	}
	if c.index != nil {
		if s.indexed, err = openIndex(ctx, c.index, c.logf); err != nil {
			return err
		}
	}
	return nil
}

// base is the server of a lane: lanes use them round robin.
func (c *config) base(lane int) string { return c.bases[lane%len(c.bases)] }

// connect makes the lanes and their first connections.
func (s *session) connect(ctx context.Context, cycles []*cycle) error {
	c := s.cfg
	var own []int
	for i := range cycles {
		if c.portion.Has(i) {
			own = append(own, i)
		}
	}
	conns := make([]net.Conn, len(own))
	err := conn.DialMany(ctx, len(own), func(ctx context.Context, k int) error {
		nc, err := c.dialer.Dial(ctx, c.base(own[k]))
		if err != nil {
			return c.explain(fmt.Sprintf("make connection %d of %d to %s", own[k]+1, len(cycles), c.base(own[k])), err)
		}
		conns[k] = nc
		return nil
	})
	for k, i := range own { // also after an error: Close closes those that were made
		s.lanes = append(s.lanes, &lane{s: s, id: i, base: c.base(i), cycles: cycles, first: conns[k]})
	}
	return err
}

// Target implements protocol.Session.
func (s *session) Target() load.Target { return target{s} }

// Capabilities implements protocol.Session.
func (s *session) Capabilities() protocol.SessionCapabilities {
	c := protocol.SessionCapabilities{Encoding: s.Encoding, Brokers: s.Brokers, Figures: s.Figures}
	if s.indexed != nil {
		c.Confirm = s.Confirm
	}
	return c
}

// A target is the session as a load.Target.
type target struct{ *session }

// Capabilities implements load.Target.
func (t target) Capabilities() load.TargetCapabilities {
	return load.TargetCapabilities{Shares: t.Shares(), Connections: t.Connections, Connected: t.Connected, Poller: t}
}

// Source implements protocol.Session: events cannot be read back from APM servers.
func (s *session) Source() load.Source { return nil }

// Warnings implements protocol.Session.
func (s *session) Warnings() []string {
	return slices.Concat(s.cfg.warnings, s.logWarnings(), s.corpusWarnings(), s.absent.Warnings())
}

// Close implements protocol.Session.
func (s *session) Close() error {
	s.cancel()
	for _, l := range s.lanes {
		l.Close()
		if r, ok := l.(*lane); ok && r.first != nil {
			r.first.Close()
		}
	}
	s.tasks.Wait()
	s.client.CloseIdleConnections()
	if s.indexed != nil {
		s.indexed.client.CloseIdleConnections()
	}
	return nil
}

// Partitioner implements load.Target: each connection gets a request's events in
// turn.
func (s *session) Partitioner() load.Partitioner {
	return load.Blocks(s.cfg.clients, s.cfg.bodyPool.block())
}

// Client implements load.Target.
func (s *session) Client(stream int32) int { return int(stream) }

// Clients implements load.Target.
func (s *session) Clients() int { return s.cfg.clients }

// Connected counts the connections at the moment. net/http does not say which connections it has.
func (s *session) Connected() (n int, known bool) {
	return int(s.connected.Load()), s.cfg.raw()
}

// Connections counts those of a start.
func (s *session) Connections() int { return len(s.lanes) }

// Route implements load.Target.
func (s *session) Route(stream int32) load.Lane { return s.lanes[int(stream)-s.cfg.portion.From] }

// Wire implements load.Target: bytes of HTTP, before TLS.
func (s *session) Wire() (written, read uint64) { return s.written.Load(), s.read.Load() }

// Start implements load.Target.
func (s *session) Start(sink load.Sink) {
	s.sink = sink
	s.wall = time.Now().Add(-sink.Now())
	for _, l := range s.lanes {
		l.start(s.ctx)
	}
}

// Shares reports whether events need no order. It is false with several servers, since the head
// of a request names its server, and over TLS or without pollers, where a body
// may still be in use by a write when its answer comes.
func (s *session) Shares() bool {
	c := s.cfg
	return c.scheduled && !c.sticky && len(c.bases) == 1 && (!c.raw() || s.polls())
}

// Poll implements load.Poller: with plaintext connections, the sending threads
// wait for the answers themselves.
func (s *session) Poll(t, of int) load.PollWaiter {
	if !s.polls() {
		return nil
	}
	if w := s.pollers.Make(t, of, func() time.Duration { return s.sink.Now() }, !s.cfg.scheduled); w != nil {
		return w
	}
	return nil
}

// largeRequest is the size before compression, in bytes, from which a request is
// large: stamping it then costs the sending thread the most.
const largeRequest = 64 << 10

// Threads implements load.Poller. A small request costs mostly time of the kernel
// and the server: one thread sends about a hundred thousand per second and is
// idle half of the time. Two threads on two processors would compete with a
// server there, and find fewer answers per wait.
func (s *session) Threads(processors int) int {
	if m := s.cfg.bodyPool; s.polls() && m.bytes < m.count*largeRequest {
		return (processors + 1) / 2
	}
	return processors
}

// polls reports whether sending threads may wait in pollers.
func (s *session) polls() bool { return s.cfg.raw() && !s.cfg.tls && socket.Polls }

// mostAtOnce bounds the connections that are used before Start returns, at about ten
// microseconds each. The others follow, in the lead that a run with many connections has.
const mostAtOnce = 256

// start implements runner. It uses the first connection at once: events may be due
// before a busy machine runs another goroutine.
func (l *lane) start(ctx context.Context) {
	first := l.first
	l.first = nil
	var k *link
	if first != nil && l.id-l.s.cfg.portion.From < mostAtOnce {
		k, first = l.use(first), nil
	}
	l.s.tasks.Go(func() {
		if first != nil {
			k = l.use(first)
		}
		l.keepConnected(ctx, k)
	})
}

// count implements runner.
func (l *lane) count() (string, metrics) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.base, l.metrics
}

// Brokers counts what each server got.
func (s *session) Brokers() []measure.Client {
	var all []measure.Client
	for _, base := range s.cfg.bases {
		c := measure.Client{Broker: s.cfg.scheme() + "://" + base + s.cfg.prefix}
		for _, l := range s.lanes {
			of, m := l.count()
			if of != base {
				continue
			}
			c.Requests += m.requests
			c.Batches += m.requests
			c.Events += m.events
			c.Bytes += m.bytes
			c.WireBytes += m.wire
			c.Reconnects += m.reconnects
			c.ThrottleSeconds += m.paused.Seconds()
		}
		if c.Batches > 0 {
			c.EventsPerBatch = float64(c.Events) / float64(c.Batches)
		}
		if c.Bytes > 0 {
			c.CompressionRatio = float64(c.WireBytes) / float64(c.Bytes)
		}
		all = append(all, c)
	}
	return all
}
