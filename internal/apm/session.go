package apm

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"carronade/internal/conn/web"
	"carronade/load"
	"carronade/measure"
	"carronade/protocol"
)

// A session is one run's use of a server, or of several. As a target it
// implements load.Target.
type session struct {
	web.Lanes
	cfg     *config
	servers []server
	client  *http.Client // for requests other than batches
	indexed *index       // nil: documents are not counted
	errors  web.Tally    // errors in servers' answers
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
	s.Init(s.options())
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
	cycles, err := c.bodyPool.cycles(ctx, c.clients, c.depth, func(lane, size int) []byte { return c.head(s.Base(lane), size) })
	if err != nil {
		return err
	}
	sources := make([]web.Source, len(cycles))
	for i := range cycles {
		sources[i] = cycles[i]
	}
	if c.raw() {
		err = s.Connect(ctx, sources, func(lane int, err error) error {
			return c.explain(fmt.Sprintf("make connection %d of %d to %s", lane+1, len(cycles), s.Base(lane)), err)
		})
	} else {
		for _, i := range s.Own() {
			s.All = append(s.All, newHTTPLane(s, i, sources))
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

// options are those of the lanes.
func (s *session) options() web.Options {
	c := s.cfg
	return web.Options{
		Dialer: c.dialer, Bases: c.bases, Clients: c.clients, Portion: c.portion, Depth: c.depth, Pollable: c.raw() && !c.tls, Counted: c.raw(),
		Scheduled: c.scheduled, Sticky: c.sticky, RetryAfter: c.retryAfter, Timeout: c.requestTimeout, Redactor: c.redactor, Happened: c.happened,
		Evaluate: s.evaluate,
	}
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
	return t.TargetCapabilities(t)
}

// Source implements protocol.Session: events cannot be read back from APM servers.
func (s *session) Source() load.Source { return nil }

// Warnings implements protocol.Session.
func (s *session) Warnings() []string {
	return slices.Concat(s.cfg.warnings, s.logWarnings(), s.Lanes.Warnings())
}

// Close implements protocol.Session.
func (s *session) Close() error {
	s.Lanes.Close()
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

// largeRequest is the size before compression, in bytes, from which a request is
// large: stamping it then costs the sending thread the most.
const largeRequest = 64 << 10

// Threads implements load.Poller. A small request costs mostly time of the kernel
// and the server: one thread sends about a hundred thousand per second and is
// idle half of the time. Two threads on two processors would compete with a
// server there, and find fewer answers per wait.
func (s *session) Threads(processors int) int {
	if m := s.cfg.bodyPool; s.Polls() && m.bytes < m.count*largeRequest {
		return (processors + 1) / 2
	}
	return processors
}

// Brokers counts what each server got.
func (s *session) Brokers() []measure.Client {
	return s.Servers(func(base string) string { return s.cfg.scheme() + "://" + base + s.cfg.prefix })
}
