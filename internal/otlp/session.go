package otlp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"carronade/internal/conn/web"
	"carronade/load"
	"carronade/measure"
	"carronade/protocol"
)

// A session is one run's use of a server, or of several. As a target it implements load.Target.
type session struct {
	web.Lanes
	cfg     *config
	client  *http.Client // for requests other than batches
	servers []server
}

// openTimeout bounds the check of the servers, so that a wrong address is reported soon.
const openTimeout = 15 * time.Second

func open(ctx context.Context, spec protocol.Spec) (protocol.Session, error) {
	c, err := parseConfig(spec, true)
	if err != nil {
		return nil, err
	}
	s := &session{cfg: c, client: c.newClient()}
	s.Init(web.Options{
		Dialer: c.dialer, Bases: c.bases, Clients: c.clients, Portion: c.portion, Depth: c.depth, Pollable: !c.tls, Counted: true,
		Scheduled: c.scheduled, Sticky: c.sticky, RetryAfter: c.retryAfter, Timeout: c.requestTimeout, Redactor: c.redactor, Happened: c.happened,
		Evaluate: s.evaluate,
	})
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *session) open(ctx context.Context) error {
	c := s.cfg
	probing, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	var err error
	if s.servers, err = c.probe(probing, s.client); err != nil {
		return err
	}
	c.pool.make()
	sources := c.sources()
	explain := func(lane int, err error) error {
		return c.explain(fmt.Sprintf("make connection %d of %d to %s", lane+1, c.clients, s.Base(lane)), err)
	}
	if !c.grpc {
		return s.Connect(ctx, sources, explain)
	}
	own := s.Own()
	conns, err := s.Dial(ctx, own, explain)
	for k, i := range own { // also after an error: Close closes those that were made
		s.All = append(s.All, newGRPCLane(s, i, sources, conns[k]))
	}
	return err
}

// Target implements protocol.Session.
func (s *session) Target() load.Target { return target{s} }

// Capabilities implements protocol.Session.
func (s *session) Capabilities() protocol.SessionCapabilities {
	return protocol.SessionCapabilities{Encoding: s.Encoding, Brokers: s.Brokers}
}

// A target is the session as a load.Target.
type target struct{ *session }

// Capabilities implements load.Target.
func (t target) Capabilities() load.TargetCapabilities { return t.TargetCapabilities(t) }

// Source implements protocol.Session: events cannot be read back.
func (s *session) Source() load.Source { return nil }

// Close implements protocol.Session.
func (s *session) Close() error {
	s.Lanes.Close()
	s.client.CloseIdleConnections()
	return nil
}

// Partitioner implements load.Target: each connection gets a request's events in turn.
func (s *session) Partitioner() load.Partitioner {
	p := s.cfg.pool
	return load.Blocks(s.cfg.clients, max(1, p.ends[len(p.ends)-1]/uint64(len(p.ends))))
}

// Threads implements load.Poller. A small request costs mostly time of the kernel and the server: one thread
// sends tens of thousands a second.
func (s *session) Threads(processors int) int {
	if p := s.cfg.pool; s.Polls() && p.compression == "none" && p.plain < int64(len(p.bodies))*largeRequest {
		return (processors + 1) / 2
	}
	return processors
}

// largeRequest is the size, in bytes, from which writing fresh values costs the sending thread the most.
const largeRequest = 64 << 10

// Brokers counts what each server got.
func (s *session) Brokers() []measure.Client {
	return s.Servers(func(base string) string { return s.cfg.url(base, "") })
}

// Encoding says when the bytes of events are made.
func (s *session) Encoding() *measure.Encoding {
	p := s.cfg.pool
	e := &measure.Encoding{Events: measure.Pooled, Distinct: p.ends[len(p.ends)-1], Except: "ids and times"}
	if p.compression != "none" {
		e.Compressed(p.compression, 0)
	}
	return e
}

// Facts implements protocol.Session.
func (s *session) Facts() map[string]any {
	c, p := s.cfg, s.cfg.pool
	servers := make([]map[string]any, 0, len(s.servers))
	standins := 0
	for _, v := range s.servers {
		f := map[string]any{"address": v.base}
		if v.name != "" {
			f["server"] = v.name
		}
		if v.standin {
			standins++
		}
		servers = append(servers, f)
	}
	kinds := map[string]any{}
	for _, b := range p.bodies {
		n, _ := kinds[b.Signal.String()].(float64)
		kinds[b.Signal.String()] = n + 1/float64(len(p.bodies))
	}
	request := map[string]any{"signals": kinds, "events": float64(p.ends[len(p.ends)-1]) / float64(len(p.ends)), "bytes": float64(p.plain) / float64(len(p.bodies)), "distinct": len(p.bodies)}
	if p.compression != "none" {
		request["compression"] = p.compression
		if n := p.uncompressed.Load(); n > 0 {
			request["compressed_to"] = float64(p.compressed.Load()) / float64(n)
		}
	}
	f := map[string]any{"servers": servers, "request": request, "connections": len(s.All), "transport": map[bool]string{false: "http", true: "grpc"}[c.grpc]}
	if standins == len(s.servers) && standins > 0 {
		f["standin"] = true
		if s.servers[0].discards {
			f["discards"] = true
		}
	}
	if s.Sink != nil {
		f["io"] = s.Method()
	}
	if c.tls && c.dialer.TLS.InsecureSkipVerify {
		f["tls_verified"] = false
	}
	if p.corpus {
		replay := map[string]any{"requests": len(p.bodies), "requests_without_times": p.unstamped}
		if p.cut {
			replay["cut_at_bytes"] = mostCorpus
		}
		f["corpus"] = replay
	}
	return f
}
