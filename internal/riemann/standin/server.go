package standin

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"carronade/internal/standin"
)

// Counts says what a stand-in received and what became of it.
type Counts struct {
	Connections uint64 `json:"connections"` // accepted, of all transports
	Messages    uint64 `json:"messages"`    // accepted, queries and datagrams included
	Events      uint64 `json:"events"`      // accepted; 0 for a discarding server, which does not decode them
	Bytes       uint64 `json:"bytes"`       // of messages, lengths included
	Queries     uint64 `json:"queries"`     // answered
	Refused     uint64 `json:"refused"`     // events answered with an error; messages, for a discarding server
	Dropped     uint64 `json:"dropped"`     // events that were acknowledged and not kept; included in Events
	Lost        uint64 `json:"lost"`        // datagrams that were too long, or not Riemann's
}

// An endpoint is one address that a server listens on.
type endpoint struct {
	name    string // in the line that the server prints
	service string // in the server's events about itself, in which TLS is tcp too
	addr    string
	meter   *meter
	close   func() error
	run     func() error // returns after close
}

// A Server is a running stand-in.
type Server struct {
	core      *core
	start     time.Time
	endpoints []*endpoint
	rec       *standin.Recorder // nil: none
	threads   *standin.Threads  // serve plain connections of a discarding server; nil: each has a goroutine

	ctx       context.Context
	cancel    context.CancelFunc
	conns     standin.Conns[*meter]
	closeOnce func() error
}

// Start starts a stand-in. The server runs until Close.
func Start(opts Options) (*Server, error) {
	opts = opts.withDefaults()
	if err := opts.Check(); err != nil {
		return nil, err
	}
	tlsConfig, err := opts.TLS.Config()
	if err != nil {
		return nil, err
	}
	if tlsConfig != nil {
		hideAuthorities(tlsConfig)
	}
	s := &Server{core: newCore(opts), start: time.Now()}
	s.conns.Log, s.conns.Ended = opts.Log, func(m *meter) { m.conns.Add(-1) }
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.closeOnce = sync.OnceValue(s.end)
	if s.rec, err = standin.OpenRecord(opts.Record); err != nil {
		return nil, err
	}
	for _, a := range opts.addresses() {
		if a.addr == "" {
			continue
		}
		d, err := s.open(a.name, a.addr, tlsConfig)
		if err != nil {
			for _, d := range s.endpoints {
				_ = d.close()
			}
			_ = s.rec.Close()
			return nil, fmt.Errorf("listening on %s for %s: %w", a.addr, a.name, err)
		}
		s.endpoints = append(s.endpoints, d)
	}
	if opts.Discard {
		s.threads = makeThreads()
	}
	for _, d := range s.endpoints {
		s.conns.Serving.Go(func() {
			if err := d.run(); err != nil && s.ctx.Err() == nil && !standin.Disconnected(err) {
				standin.Logf(opts.Log, "%s: %v", d.name, err)
			}
		})
	}
	s.conns.Serving.Go(s.maintain)
	return s, nil
}

// hideAuthorities makes TLS work with riemann-client (1.10, with GnuTLS 3.7). Under
// TLS 1.3, that client sends no certificate to a server that names the authorities
// it trusts. So they are not named, and the client's certificate is verified here,
// with the same strictness.
func hideAuthorities(c *tls.Config) {
	if c.ClientAuth != tls.RequireAndVerifyClientCert {
		return
	}
	trusted := c.ClientCAs
	c.ClientCAs, c.ClientAuth = nil, tls.RequireAnyClientCert
	c.VerifyConnection = func(state tls.ConnectionState) error {
		opts := x509.VerifyOptions{Roots: trusted, Intermediates: x509.NewCertPool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
		for _, cert := range state.PeerCertificates[1:] {
			opts.Intermediates.AddCert(cert)
		}
		if _, err := state.PeerCertificates[0].Verify(opts); err != nil {
			return &tls.CertificateVerificationError{UnverifiedCertificates: state.PeerCertificates, Err: err}
		}
		return nil
	}
}

// open listens on one address.
func (s *Server) open(name, addr string, tlsConfig *tls.Config) (*endpoint, error) {
	d := &endpoint{name: name, service: name, meter: new(meter)}
	opts := s.core.opts
	if name == "udp" {
		at, err := net.ResolveUDPAddr("udp", addr)
		if err != nil {
			return nil, err
		}
		pc, err := net.ListenUDP("udp", at)
		if err != nil {
			return nil, err
		}
		// As much as the system allows, so that datagrams are lost because of
		// their rate and not because of a burst.
		_ = pc.SetReadBuffer(8 << 20)
		d.addr, d.close = pc.LocalAddr().String(), pc.Close
		d.run = func() error { return s.core.serveUDP(s.ctx, pc, d.meter, s.start) }
		return d, nil
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	d.addr, d.close = ln.Addr().String(), ln.Close
	wrapped := s.rec.WrapOuter(standin.WithFaults(s.rec.WrapInner(ln), opts.Delay, opts.Stall, opts.Capacity.On(), s.start))
	switch name {
	case "ws":
		srv := &http.Server{Handler: s.web(d.meter), ReadHeaderTimeout: 10 * time.Second, ConnState: s.webState(d.meter), ConnContext: standin.WithConn}
		d.run = func() error { return srv.Serve(wrapped) }
		d.close = func() error { return errors.Join(srv.Close(), closeListener(ln)) }
		return d, nil
	case "tls":
		d.service = "tcp"
		wrapped = tls.NewListener(wrapped, tlsConfig)
	}
	d.run = func() error {
		standin.Accept(wrapped, func(nc net.Conn) { s.serve(nc, d.meter) })
		return nil
	}
	return d, nil
}

// closeListener closes a listener that may be closed already: http.Server.Close does
// not close the listener if Serve was never called.
func closeListener(ln net.Listener) error {
	if err := ln.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// Addr is the address that the server listens on for TCP, host:port.
func (s *Server) Addr() string { return s.AddrOf("tcp") }

// AddrOf is the address that the server listens on for tcp, tls, udp or ws; empty
// if it does not.
func (s *Server) AddrOf(name string) string {
	for _, d := range s.endpoints {
		if d.name == name {
			return d.addr
		}
	}
	return ""
}

// Listening lists the addresses that the server listens on: TCP's, and after
// commas the others as "NAME ADDR".
func (s *Server) Listening() string {
	line := []string{s.Addr()}
	for _, d := range s.endpoints[1:] {
		line = append(line, d.name+" "+d.addr)
	}
	return strings.Join(line, ", ")
}

// Counts returns the counts so far. It is safe to call at any time, also after
// Close.
func (s *Server) Counts() Counts {
	t := &s.core.tally
	return Counts{
		Connections: t.connections.Load(), Messages: t.messages.Load(), Events: t.events.Load(), Bytes: t.bytes.Load(),
		Queries: t.queries.Load(), Refused: t.refused.Load(), Dropped: t.dropped.Load(), Lost: t.lost.Load(),
	}
}

// Close ends the server with its connections and its index.
func (s *Server) Close() error { return s.closeOnce() }

func (s *Server) end() (err error) {
	s.cancel()
	for _, d := range s.endpoints {
		if e := d.close(); err == nil {
			err = e
		}
	}
	s.conns.Close()
	s.threads.Close()
	s.conns.Serving.Wait()
	if e := s.rec.Close(); err == nil {
		err = e
	}
	return err
}

func (s *Server) serve(nc net.Conn, m *meter) {
	ended := s.conns.Enter(nc, m)
	if ended == nil {
		return
	}
	s.core.tally.connections.Add(1)
	open := m.conns.Add(1)
	if !s.core.opts.Discard {
		go func() { ended(newConn(s.core, nc, m, windowSize).serve()) }()
		return
	}
	threads := s.threads
	if open <= fewConns {
		threads = nil
	}
	threads.Serve(nc, newSkimmer(s.core, nc, m), sinkWindowSize, ended)
}

// maintain removes expired events, one part of the index at a time and all parts
// every five seconds, as in the real server's default configuration. Each interval
// it emits the events about the server.
func (s *Server) maintain() {
	expire := time.NewTicker(5 * time.Second / (shards + 1))
	defer expire.Stop()
	emitOwn := time.NewTicker(s.core.opts.Interval)
	defer emitOwn.Stop()
	last := s.start
	for part := 0; ; {
		select {
		case now := <-expire.C:
			s.core.index.expire(part, now, func(host, service string) { s.core.publishExpired(host, service, now) })
			part++
		case now := <-emitOwn.C:
			s.emitOwn(now, now.Sub(last))
			last = now
		case <-s.ctx.Done():
			return
		}
	}
}
