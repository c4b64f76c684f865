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

	"carronade/internal/dial"
	"carronade/load"
	"carronade/measure"
	"carronade/target"
)

// A runner is a lane of either kind, as the session sees it.
type runner interface {
	load.Lane
	// start begins to work, until the context ends.
	start(ctx context.Context)
	// expire gives up what has waited for an answer since before a time.
	expire(now, before time.Duration)
	// count is what it did so far.
	count() (base string, m metrics)
}

// A session is a server, or several, opened for one run. It is the target of
// the run, too.
type session struct {
	cfg     *config
	servers []server
	lanes   []runner
	client  *http.Client // for questions; not for batches
	indexed *index       // nil: nothing is counted
	errors  tally        // what servers said was wrong
	absent  dial.Absence // of servers, during the run

	ctx       context.Context // of the lanes' goroutines
	cancel    context.CancelFunc
	tasks     sync.WaitGroup
	pollers   []*poller    // of plain connections; none where the system has none
	polled    bool         // sending threads wait in them
	connected atomic.Int32 // plain connections that are there
	noRing    bool         // and do so by epoll
	sink      load.Sink
	wall      time.Time    // when the run started
	ioMethod  atomic.Value // a string: how answers are read, once that is known
	written   atomic.Uint64
	read      atomic.Uint64
}

// openTimeout bounds all of Open, so that a wrong address is told soon.
const openTimeout = 15 * time.Second

// Open implements target.Kind. It asks each server who it is and whether it
// takes requests like ours (by one without events), makes the requests and the
// connections, and counts what Elasticsearch holds, where that was asked for.
func (Kind) Open(ctx context.Context, spec target.Spec) (target.Session, error) {
	c, err := parseConfig(spec)
	if err != nil {
		return nil, err
	}
	s := &session{cfg: c, noRing: spec.Scheduled}
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
	if err := s.probe(probing); err != nil {
		return err
	}
	cycles, err := c.bodyPool.cycles(c.clients, c.depth, func(lane, size int) []byte { return c.head(c.base(lane), size) })
	if err != nil {
		return err
	}
	if c.raw() {
		err = s.connect(ctx, cycles)
	} else {
		for i := range cycles {
			s.lanes = append(s.lanes, newHTTPLane(s, i, cycles))
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

// base is the server of a lane: they take them in turn.
func (c *config) base(lane int) string { return c.bases[lane%len(c.bases)] }

// connect makes the lanes and their first connections, some at a time.
func (s *session) connect(ctx context.Context, cycles []*cycle) error {
	c := s.cfg
	var (
		wg     sync.WaitGroup
		places = make(chan struct{}, 32)
		conns  = make([]net.Conn, len(cycles))
		faults = make([]error, len(cycles))
	)
	for i := range cycles {
		wg.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			conns[i], faults[i] = c.dialer.Dial(ctx, c.base(i))
		})
	}
	wg.Wait()
	for i := range cycles {
		l := &lane{s: s, id: i, base: c.base(i), cycles: cycles, ring: make([]request, c.depth), first: conns[i]}
		s.lanes = append(s.lanes, l)
	}
	for i, err := range faults {
		if err != nil {
			return c.explain(fmt.Sprintf("make connection %d of %d to %s", i+1, len(cycles), c.base(i)), err)
		}
	}
	return nil
}

// Target implements target.Session.
func (s *session) Target() load.Target { return s }

// Source implements target.Session: APM servers give nothing back.
func (s *session) Source() load.Source { return nil }

// Warnings implements target.Session.
func (s *session) Warnings() []string {
	return append(slices.Clone(s.cfg.warnings), s.absent.Warnings()...)
}

// Close implements target.Session.
func (s *session) Close() error {
	s.cancel()
	for _, l := range s.lanes {
		l.Close()
		if r, ok := l.(*lane); ok && r.first != nil {
			r.first.Close()
		}
	}
	for _, p := range s.pollers {
		p.end()
	}
	s.tasks.Wait()
	s.client.CloseIdleConnections()
	if s.indexed != nil {
		s.indexed.client.CloseIdleConnections()
	}
	return nil
}

// Partitioner implements load.Target: a request's events in a row to each connection.
func (s *session) Partitioner() load.Partitioner {
	return load.Blocks(len(s.lanes), s.cfg.bodyPool.block())
}

// Client implements load.Target.
func (s *session) Client(stream int32) int { return int(stream) }

// Clients implements load.Target.
func (s *session) Clients() int { return len(s.lanes) }

// Route implements load.Target.
func (s *session) Route(stream int32) load.Lane { return s.lanes[stream] }

// Wire implements load.Target: bytes of HTTP, before TLS.
func (s *session) Wire() (written, read uint64) { return s.written.Load(), s.read.Load() }

// Start implements load.Target.
func (s *session) Start(sink load.Sink) {
	s.sink = sink
	s.wall = time.Now().Add(-sink.Now())
	if !s.polled {
		s.makePollers(min(load.Processors(), len(s.lanes)))
		for _, p := range s.pollers {
			s.tasks.Go(p.run)
		}
	}
	ioMethod := "runtime"
	if len(s.pollers) > 0 {
		ioMethod = "epoll"
	}
	s.ioMethod.Store(ioMethod)
	for _, l := range s.lanes {
		l.start(s.ctx)
	}
	s.tasks.Go(s.watch)
}

// Shares implements load.Sharer. The head of a request names its server; and over TLS,
// or where there are no pollers, a body may still be written when its answer is there.
func (s *session) Shares() bool {
	c := s.cfg
	return c.scheduled && !c.sticky && len(c.bases) == 1 && (!c.raw() || s.polls())
}

// Poll implements load.Poller: where connections are plain, sending threads
// wait for their answers themselves.
func (s *session) Poll(t, of int) load.Waiting {
	if t == 0 { // the first is asked for first
		s.makePollers(of)
	}
	if len(s.pollers) != of {
		return nil
	}
	s.polled = true
	return s.pollers[t]
}

// largeRequest is how many bytes before compression make a request large: what
// it costs is ours by then, to write it anew.
const largeRequest = 64 << 10

// Threads implements load.Poller. What a small request costs is mostly the
// kernel's and the server's: a thread hands over some hundred thousand a second
// and is idle half of the time, while two on two processors are in the way of a
// server there, and find fewer answers at a time.
func (s *session) Threads(processors int) int {
	if m := s.cfg.bodyPool; s.polls() && m.bytes < m.count*largeRequest {
		return (processors + 1) / 2
	}
	return processors
}

// polls reports whether sending threads may wait here.
func (s *session) polls() bool { return s.cfg.raw() && !s.cfg.tls && newPollers }

// makePollers makes as many as there are sending threads, or none.
func (s *session) makePollers(n int) {
	if !s.polls() {
		return
	}
	for len(s.pollers) < n {
		p := newPoller(s)
		if p == nil {
			return // those there are serve
		}
		s.pollers = append(s.pollers, p)
	}
}

// poller is that of a lane's connections, nil where there is none.
func (s *session) poller(lane int) *poller {
	if len(s.pollers) == 0 {
		return nil
	}
	return s.pollers[lane%len(s.pollers)]
}

// watch gives up requests that were not answered in time. One look at all
// lanes now and then is cheaper than a timer for each request, and late by a
// fortieth of the timeout at most.
func (s *session) watch() {
	timeout := s.cfg.requestTimeout
	tick := time.NewTicker(min(max(timeout/40, time.Millisecond), 250*time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-tick.C:
		}
		now := s.sink.Now()
		for _, l := range s.lanes {
			l.expire(now, now-timeout)
		}
	}
}

// start implements runner. The first connection is used at once: events are due before
// a busy machine runs another goroutine.
func (l *lane) start(ctx context.Context) {
	var k *link
	if l.first != nil {
		k, l.first = l.use(l.first), nil
	}
	l.s.tasks.Go(func() { l.keep(ctx, k) })
}

// expire implements runner.
func (l *lane) expire(_, before time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.link
	if k == nil || k.dead || l.head == l.tail {
		return
	}
	sent := l.at(l.head).sent
	if sent < 0 && k.writing && l.head < k.upto {
		sent = k.began()
	}
	if sent >= 0 && sent < before {
		k.kill(errTimeout)
	}
}

// count implements runner.
func (l *lane) count() (string, metrics) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.base, l.metrics
}

// Brokers implements target.Metered: what each server got.
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
			c.ThrottleSeconds += m.quiet.Seconds()
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
