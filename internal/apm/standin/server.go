package standin

import (
	"context"
	"crypto/subtle"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"carronade/internal/standin"
)

// Version is the version that the stand-in reports at "/".
const Version = "9.6.0"

// A Server is a running stand-in.
type Server struct {
	opts     Options
	ln       net.Listener
	http     *http.Server
	sink     *standin.Sink
	queue    *queue
	capacity *standin.SharedQueue // nil: answers wait for nothing
	tally    tally
	requests *standin.Dice // side i is rules[i]
	events   *standin.Dice
	rules    []ErrorRule
	ended    chan struct{}
	close    func() error
	record   *standin.Recorder // nil: none

	closing  sync.Mutex     // for closed and for adding to inFlight
	closed   bool           // no more requests are admitted
	inFlight sync.WaitGroup // requests with events
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
	s := &Server{opts: o, ended: make(chan struct{})}
	if s.record, err = standin.OpenRecord(o.Record); err != nil {
		return nil, err
	}
	s.capacity = standin.NewSharedQueue(o.Capacity)
	var events []ErrorRule
	s.rules, events = o.rules()
	s.requests, s.events = standin.NewRuleDice(o.Seed, s.rules), standin.NewRuleDice(o.Seed+1, events)
	if s.queue, err = newQueue(o); err != nil {
		_ = s.record.Close()
		return nil, err
	}
	var lc net.ListenConfig
	ln, err := lc.Listen(context.Background(), "tcp", o.Listen)
	if err != nil {
		s.queue.close(func() {})
		_ = s.record.Close()
		return nil, fmt.Errorf("listening on %s: %w", o.Listen, err)
	}
	s.ln = s.record.WrapOuter(standin.WithFaults(s.record.WrapInner(ln), o.Delay, o.Stall, o.Capacity.On(), time.Now()))
	s.close = sync.OnceValue(s.end)
	if o.Discard {
		if config != nil {
			s.ln = tls.NewListener(s.ln, config)
		}
		s.sink = standin.NewSink(standin.SinkOptions{Answer: []byte(answer202), Counters: s.sinkVars, Log: o.Log})
		go func() {
			defer close(s.ended)
			s.sink.Serve(s.ln)
		}()
		return s, nil
	}
	s.http = standin.NewHTTPServer(s.handler(), o.Log, o.Stall.Length, s.record != nil, func() { s.tally.connections.Add(1) })
	s.ln = standin.SecureHTTP(s.ln, config)
	go func() {
		defer close(s.ended)
		if err := s.http.Serve(s.ln); !errors.Is(err, http.ErrServerClosed) {
			standin.Logf(o.Log, "serving: %v", err)
		}
	}()
	return s, nil
}

// answer202 is the answer of a server that discards.
const answer202 = "HTTP/1.1 202 Accepted\r\nX-Content-Type-Options: nosniff\r\nContent-Length: 0\r\n\r\n"

// recordRequest records a request with this number of events, after it was read.
func recordRequest(r *http.Request, events int) {
	standin.RecordedConnOf(standin.ConnOf(r)).Received(standin.RecordedRequest{Kind: "request", Partition: standin.NoRecord, Offset: standin.NoRecord, Events: int64(events)})
}

// Addr is the address that the stand-in listens on, host:port.
func (s *Server) Addr() string { return s.ln.Addr().String() }

// Counts returns the counts so far. It is safe to call at any time, also after
// Close.
func (s *Server) Counts() Counts {
	c := s.tally.counts()
	if s.sink != nil {
		n := s.sink.Counts()
		c = Counts{Connections: n.Connections, Requests: n.Requests, Bytes: n.Bytes}
	}
	s.queue.add(&c)
	return c
}

// Close ends the connections, waits some seconds until the accepted events are
// indexed, and ends the stand-in. Its counts are final then.
func (s *Server) Close() error { return s.close() }

func (s *Server) end() error {
	var err error
	if s.sink != nil {
		err = s.ln.Close()
		s.sink.Close()
	} else {
		err = s.http.Close()
	}
	<-s.ended
	s.closing.Lock()
	s.closed = true
	s.closing.Unlock()
	// After this, the events of the requests in flight are counted.
	s.queue.close(s.inFlight.Wait)
	if e := s.record.Close(); err == nil {
		err = e
	}
	return err
}

// authorize answers requests without the required credentials; ok: continue. The
// real server admits browsers without credentials. While it does, it answers
// agents without credentials by 403, not 401.
func (s *Server) authorize(w http.ResponseWriter, r *http.Request, rum bool) (ok bool) {
	if rum && s.opts.NoRUM {
		s.tally.unauthorized.Add(1)
		answerError(w, http.StatusForbidden, "forbidden request: RUM endpoint is disabled")
		return false
	}
	if !s.wantsCredentials() || rum || s.authenticated(r) {
		return true
	}
	s.tally.unauthorized.Add(1)
	if r.Header.Get("Authorization") == "" {
		if !s.opts.NoRUM {
			answerError(w, http.StatusForbidden, "unauthorized: anonymous access not permitted for agents")
			return false
		}
		answerError(w, http.StatusUnauthorized, "authentication failed: missing or improperly formatted Authorization header: expected 'Authorization: Bearer secret_token' or 'Authorization: ApiKey base64(API key ID:API key)'")
		return false
	}
	answerError(w, http.StatusUnauthorized, "authentication failed: invalid token or API key")
	return false
}

func (s *Server) wantsCredentials() bool { return s.opts.SecretToken != "" || len(s.opts.APIKeys) > 0 }

// authenticated reports whether a request has one of the required credentials.
func (s *Server) authenticated(r *http.Request) bool {
	kind, value, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if strings.EqualFold(kind, "Bearer") {
		return s.opts.SecretToken != "" && equalSecrets(value, string(s.opts.SecretToken))
	}
	key, err := base64.StdEncoding.DecodeString(value)
	if err != nil || !strings.EqualFold(kind, "ApiKey") {
		return false
	}
	return slices.ContainsFunc(s.opts.APIKeys, func(k Secret) bool { return equalSecrets(string(key), string(k)) })
}

func equalSecrets(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
