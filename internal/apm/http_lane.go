package apm

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"carronade/internal/conn"
	"carronade/internal/conn/web"
	"carronade/load"
)

// An httpLane is a lane that sends with net/http: HTTP/2, through a proxy, or with
// a connection per request. It has a separate connection pool, and a goroutine
// for each request that may be in flight.
type httpLane struct {
	web.State
	s       *session
	url     string
	sources []web.Source // by stream; Fire uses those of its thread's streams
	http    *http.Transport
	header  http.Header

	work      chan job
	unflushed []job // of the sending thread, not flushed
	ctx       context.Context
	cancel    context.CancelFunc
	done      sync.WaitGroup

	inFlight int
	depth    int
}

// A job is a batch to be sent.
type job struct {
	batch          load.Batch
	encodedRequest *encodedRequest
}

func newHTTPLane(s *session, id int, sources []web.Source) *httpLane {
	c := s.cfg
	t := c.newTransport(&s.Written, &s.Read)
	t.MaxIdleConnsPerHost = c.depth
	t.DisableKeepAlives = !c.keepAlive
	if c.http2 {
		t.MaxConnsPerHost = 1
	}
	l := &httpLane{
		State: web.State{S: &s.Lanes, Num: id, Server: s.Base(id)}, s: s, sources: sources, http: t, depth: c.depth,
		work: make(chan job, c.depth), header: c.header(),
	}
	l.Accepts = func(now time.Duration) bool { return l.inFlight < l.depth && now >= l.PausedUntil }
	l.url = c.url(l.Server, c.bodyPool.source.Path()) + c.query
	return l
}

// header makes the same headers as head, for net/http.
func (c *config) header() http.Header {
	h := http.Header{"User-Agent": {userAgent}, "Content-Type": {c.bodyPool.source.ContentType()}}
	if c.bodyPool.level > 0 {
		h.Set("Content-Encoding", "gzip")
	}
	for _, f := range c.fields {
		if f.Name == "User-Agent" {
			h.Del(f.Name)
		}
		h.Add(f.Name, f.Value)
	}
	return h
}

// newTransport makes a transport that counts its bytes, including TLS.
func (c *config) newTransport(written, read *atomic.Uint64) *http.Transport {
	t := web.NewTransport(c.dialer, func(nc net.Conn) net.Conn { return &countingConn{nc, written, read} })
	t.ForceAttemptHTTP2 = c.http2
	if !c.http2 {
		t.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	}
	if c.proxy != nil {
		t.Proxy = http.ProxyURL(c.proxy)
	}
	return t
}

// A countingConn is a connection that counts its bytes.
type countingConn struct {
	net.Conn
	written, read *atomic.Uint64
}

func (c *countingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.read.Add(uint64(n))
	return n, err
}

func (c *countingConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.written.Add(uint64(n))
	return n, err
}

// Room implements load.Lane.
func (l *httpLane) Room(stream int32, first uint64) int {
	return l.sources[stream].Room(first)
}

// Fire implements load.Lane.
func (l *httpLane) Fire(batches []load.Batch) (taken int) {
	now := l.s.Sink.Now()
	l.Mu.Lock()
	defer l.Mu.Unlock()
	for i := range batches {
		if l.Closed || !l.Accepts(now) {
			l.ReadyDue = true
			break
		}
		b := &batches[i]
		taken++
		if r := l.Take(b, l.sources[b.Stream], true, now); r != nil {
			l.inFlight++
			l.unflushed = append(l.unflushed, job{*b, r.(*encodedRequest)})
		}
	}
	l.Deliver()
	return taken
}

// Flush implements load.Lane.
func (l *httpLane) Flush() {
	for _, e := range l.unflushed {
		l.work <- e // does not block: it has room for all that may be in flight
	}
	l.unflushed = l.unflushed[:0]
}

// Run implements web.Runner.
func (l *httpLane) Run(ctx context.Context) {
	l.ctx, l.cancel = context.WithCancel(ctx)
	for range l.depth {
		l.done.Go(l.run)
	}
}

func (l *httpLane) run() {
	buf := make([]byte, web.KeptBody)
	for {
		select {
		case <-l.ctx.Done():
			for { // requests that were flushed and not begun
				select {
				case e := <-l.work:
					now := l.s.Sink.Now()
					l.finish(e, unseen, now, web.Verdict{Failed: e.batch.Events, Class: load.Canceled, Text: load.TextUnwritten}, 0)
				default:
					return
				}
			}
		case e := <-l.work:
			l.send(e, buf)
		}
	}
}

// A requestTrace records what happened to a request. net/http may call the
// callbacks from several goroutines, and after the request has ended.
type requestTrace struct {
	mu sync.Mutex
	seen
}

type seen struct {
	asked  time.Duration // when it asked for a connection; -1: not yet
	sent   time.Duration // when connecting began, or an open connection was chosen; -1: not yet
	dialed bool          // a connection was made for it
	got    bool          // it got a connection
	wrote  bool          // its headers were written
}

// unseen is of a request to which nothing has happened.
var unseen = seen{asked: -1, sent: -1}

func (l *httpLane) trace(t *requestTrace) *httptrace.ClientTrace {
	begin := func() {
		if t.sent < 0 {
			t.sent = l.s.Sink.Now()
		}
	}
	return &httptrace.ClientTrace{
		GetConn: func(string) {
			t.mu.Lock()
			defer t.mu.Unlock()
			if t.asked < 0 {
				t.asked = l.s.Sink.Now()
			}
		},
		ConnectStart: func(string, string) {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.dialed = true
			begin()
		},
		GotConn: func(httptrace.GotConnInfo) {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.got = true
			begin()
		},
		WroteHeaders: func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.wrote = true
		},
	}
}

// send sends one request and completes it.
func (l *httpLane) send(e job, buf []byte) {
	ctx, cancel := context.WithTimeout(l.ctx, l.s.Timeout)
	defer cancel()
	t := &requestTrace{seen: unseen}
	req, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, l.trace(t)), http.MethodPost, l.url, http.NoBody)
	if err != nil {
		l.finish(e, unseen, l.s.Sink.Now(), web.Verdict{Failed: e.batch.Events, Class: load.Rejected, Text: l.s.cfg.redactor.Line(err.Error())}, 0)
		return
	}
	req.Header = l.header
	req.ContentLength = int64(len(e.encodedRequest.body.Bytes))
	body := &requestBody{bytes.NewReader(e.encodedRequest.body.Bytes), make(chan struct{}), sync.Once{}}
	req.Body = body // without GetBody: net/http must not send it twice
	res, err := l.http.RoundTrip(req)
	var kept []byte
	if err == nil {
		kept, err = read(res, buf)
	}
	now := l.s.Sink.Now()
	cancel()        // the answer is read
	<-body.released // net/http uses its bytes until it closes it
	t.mu.Lock()
	saw := t.seen
	t.mu.Unlock()
	if err != nil {
		l.finish(e, saw, now, l.errorVerdict(e, saw, err), 0)
		return
	}
	v := l.s.Evaluate(res.StatusCode, kept, len(kept) < web.KeptBody, e.batch.Events)
	if v.Class == load.Throttled && l.s.RetryAfter {
		if n, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil && n > 0 {
			l.Mu.Lock()
			l.Pause(now, time.Duration(n)*time.Second)
			l.Mu.Unlock()
		}
	}
	l.finish(e, saw, now, v, res.StatusCode)
}

// A requestBody is a body that signals when net/http no longer reads it.
type requestBody struct {
	*bytes.Reader
	released chan struct{}
	once     sync.Once
}

// Close implements io.Closer.
func (p *requestBody) Close() error {
	p.once.Do(func() { close(p.released) })
	return nil
}

// read reads an answer's body, and returns its beginning, in buf.
func read(res *http.Response, buf []byte) ([]byte, error) {
	defer res.Body.Close()
	n := 0
	for n < len(buf) { // not io.ReadFull, whose error for a short answer is also net/http's for a truncated one
		k, err := res.Body.Read(buf[n:])
		n += k
		if errors.Is(err, io.EOF) {
			return buf[:n], nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the answer: %w", err)
		}
	}
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	return buf[:n], nil
}

// errorVerdict is the verdict on a request without an answer.
func (l *httpLane) errorVerdict(e job, saw seen, err error) web.Verdict {
	v := web.Verdict{Unknown: e.batch.Events, Class: load.Refused, Text: "connection lost: " + l.s.cfg.redactor.Line(err.Error())}
	switch {
	case l.ctx.Err() != nil:
		v.Class, v.Text = load.Canceled, load.TextUnanswered
	case conn.IsTimeout(err):
		v.Class, v.Text = load.Timeout, conn.ErrTimeout.Error()
	case conn.IsConnectionClosed(err):
		v.Text = "connection lost: " + web.ErrServerClosed.Error()
	case saw.got && !errors.As(err, new(*net.OpError)):
		v.Class, v.Text = load.Protocol, l.s.cfg.redactor.Line(err.Error())
	}
	if !saw.got || !saw.wrote {
		v.Unknown, v.Failed = 0, e.batch.Events
		if v.Class == load.Refused || v.Class == load.Protocol {
			v.Class, v.Text = load.Refused, l.s.cfg.redactor.Line(err.Error())
		}
		v.Text = "never written: " + v.Text
	}
	return v
}

// finish completes a batch.
func (l *httpLane) finish(e job, saw seen, now time.Duration, v web.Verdict, status int) {
	if !saw.wrote {
		saw.sent = -1
	}
	if saw.asked >= 0 && saw.sent > saw.asked { // it waited for a connection, which is the system's delay
		e.batch.Free += saw.sent - saw.asked
	}
	l.Mu.Lock()
	defer l.Mu.Unlock()
	if saw.dialed {
		l.Metrics.Reconnects++
	}
	l.Complete(&e.batch, saw.sent, now, v, status, int64(len(e.encodedRequest.body.Bytes)))
	e.encodedRequest.Release()
	l.inFlight--
	l.Deliver()
	l.Ready(now)
}

// Close implements load.Lane: it gives up unanswered requests.
func (l *httpLane) Close() error {
	l.Mu.Lock()
	was := l.Closed
	l.Closed = true
	l.Mu.Unlock()
	if was || l.cancel == nil {
		return nil
	}
	l.Flush()
	l.cancel()
	l.done.Wait()
	l.http.CloseIdleConnections()
	return nil
}
