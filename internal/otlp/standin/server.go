package standin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"carronade/internal/standin"
)

// A Server is a running stand-in.
type Server struct {
	opts     Options
	lns      [2]net.Listener // for HTTP and gRPC
	http     *http.Server
	sink     *standin.Sink        // instead of http; nil: requests are read
	capacity *standin.SharedQueue // nil: answers wait for nothing
	tally    tally
	requests *standin.Dice // side i is opts.Errors[i]
	serving  sync.WaitGroup
	close    func() error
	record   *standin.Recorder // nil: none
}

// Start starts a stand-in. It runs until Close.
func Start(o Options) (*Server, error) {
	o = o.withDefaults()
	if err := o.Check(); err != nil {
		return nil, err
	}
	if o.Log != nil {
		o.Log = standin.LockedWriter(o.Log)
	}
	config, err := o.TLS.Config()
	if err != nil {
		return nil, err
	}
	s := &Server{opts: o, capacity: standin.NewSharedQueue(o.Capacity), requests: standin.NewRuleDice(o.Seed, o.Errors)}
	if s.record, err = standin.OpenRecord(o.Record); err != nil {
		return nil, err
	}
	began := time.Now()
	for i, addr := range []string{o.Listen, o.GRPCListen} {
		var lc net.ListenConfig
		ln, err := lc.Listen(context.Background(), "tcp", addr)
		if err != nil {
			if i > 0 {
				_ = s.lns[0].Close()
			}
			_ = s.record.Close()
			return nil, fmt.Errorf("listening on %s: %w", addr, err)
		}
		s.lns[i] = standin.SecureHTTP(s.record.WrapOuter(standin.WithFaults(s.record.WrapInner(ln), o.Delay, o.Stall, o.Capacity.On(), began)), config)
	}
	s.close = sync.OnceValue(s.end)
	if o.Discard {
		s.sink = standin.NewSink(standin.SinkOptions{Answer: []byte(sinkAnswer), GRPC: discardsName, Counters: s.metrics, Log: o.Log})
		for _, ln := range s.lns {
			s.serving.Go(func() { s.sink.Serve(ln) })
		}
		return s, nil
	}
	s.http = standin.NewHTTPServer(http.HandlerFunc(s.serve), o.Log, o.Stall.Length, s.record != nil, func() { s.tally.connections.Add(1) })
	s.http.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: 1 << 16, MaxReceiveBufferPerConnection: 16 << 20, MaxReceiveBufferPerStream: 4 << 20}
	for _, ln := range s.lns {
		s.serving.Go(func() {
			if err := s.http.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
				standin.Logf(o.Log, "serving: %v", err)
			}
		})
	}
	return s, nil
}

// Addr is the address for HTTP, host:port.
func (s *Server) Addr() string { return s.lns[0].Addr().String() }

// GRPCAddr is the address for gRPC, host:port.
func (s *Server) GRPCAddr() string { return s.lns[1].Addr().String() }

// Listening are the addresses, as the command prints them.
func (s *Server) Listening() string { return s.Addr() + ", grpc " + s.GRPCAddr() }

// Counts returns the counts so far. It is safe to call at any time, also after Close.
func (s *Server) Counts() Counts {
	if s.sink != nil {
		n := s.sink.Counts()
		return Counts{Connections: n.Connections, Requests: n.Requests, Bytes: n.Bytes}
	}
	return s.tally.counts()
}

// Close ends the connections and the stand-in. Its counts are final then.
func (s *Server) Close() error { return s.close() }

func (s *Server) end() error {
	var err error
	if s.sink != nil {
		err = errors.Join(s.lns[0].Close(), s.lns[1].Close())
		s.sink.Close()
	} else {
		err = s.http.Close()
	}
	s.serving.Wait()
	return errors.Join(err, s.record.Close())
}

// ServeHTTP implements http.Handler: it answers a request that another server took.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.serve(w, r) }
