package apm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"carronade/internal/standin"
)

// The discard server reads nothing of a request but its length. It has its own
// implementation of HTTP/1.1, because net/http takes several times as long for a
// request as reading it takes.
type discard struct {
	s      *Server
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu     sync.Mutex
	conns  map[*discardConn]struct{}
	closed sinkCounts

	rings *standin.RingServers // nil: each connection has a goroutine
}

type sinkCounts struct{ connections, requests, bytes uint64 }

// A discardConn has its own counters, so that connections do not share a cache
// line.
type discardConn struct {
	net.Conn
	requests, bytes atomic.Uint64

	_ [64]byte
}

// discardBuffer is how many bytes are read at once.
const discardBuffer = 64 << 10

// makeRingServers makes the ring servers; some tests run without any.
var makeRingServers = standin.NewRingServers

func newDiscard(s *Server) *discard {
	d := &discard{s: s, conns: map[*discardConn]struct{}{}}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	d.rings = makeRingServers(discardBuffer)
	return d
}

func (d *discard) add(c *Counts) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c.Connections += d.closed.connections
	c.Requests += d.closed.requests
	c.Bytes += d.closed.bytes
	for conn := range d.conns {
		c.Requests += conn.requests.Load()
		c.Bytes += conn.bytes.Load()
	}
}

func (d *discard) close(ln net.Listener) error {
	d.cancel()
	err := ln.Close()
	d.mu.Lock()
	for c := range d.conns {
		c.Close()
	}
	d.mu.Unlock()
	d.rings.Close()
	return err
}

func (d *discard) accept(ln net.Listener) {
	defer d.wg.Wait()
	for {
		nc, err := ln.Accept()
		if err != nil {
			if d.ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return
			}
			// Most likely the process has no descriptors left.
			select {
			case <-time.After(10 * time.Millisecond):
			case <-d.ctx.Done():
				return
			}
			continue
		}
		c := &discardConn{Conn: nc}
		if tc, ok := nc.(*net.TCPConn); ok {
			// A large receive buffer means fewer wake-ups per body.
			_ = tc.SetReadBuffer(4 << 20)
		}
		d.mu.Lock()
		if d.ctx.Err() != nil {
			d.mu.Unlock()
			nc.Close()
			return
		}
		d.conns[c] = struct{}{}
		d.closed.connections++
		d.wg.Add(1)
		d.mu.Unlock()
		if d.rings.Adopt(nc, &skimmer{d: d, c: c}, func(err error) { d.ended(c, err) }) {
			continue
		}
		go func() {
			err := standin.Skim(nc, &skimmer{d: d, c: c, rec: standin.RecordedConnOf(nc)}, make([]byte, discardBuffer))
			c.Close()
			d.ended(c, err)
		}()
	}
}

// ended removes a connection and keeps its counts.
func (d *discard) ended(c *discardConn, err error) {
	d.mu.Lock()
	delete(d.conns, c)
	d.closed.requests += c.requests.Load()
	d.closed.bytes += c.bytes.Load()
	d.mu.Unlock()
	if err != nil && d.ctx.Err() == nil && !standin.Disconnected(err) {
		standin.Logf(d.s.opts.Log, "connection from %s: %v", c.RemoteAddr(), err)
	}
	d.wg.Done()
}

// counters is the answer to every GET, whatever its path: the counters.
func (d *discard) counters() []byte {
	f := serverVars(d.s.Counts())
	f["standin"] = "carronade"
	f["discards"] = true       // so that its limit is not mistaken for a real server's
	text, _ := json.Marshal(f) // cannot fail
	return fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
}

// A request is what the discard server needs to know about a request.
type request struct {
	get, close, chunked, expects bool
	length                       int64
}

// parseHead reads a head that ends with an empty line.
func parseHead(h []byte) (q request, err error) {
	i := bytes.Index(h, []byte("\r\n"))
	line := h[:i]
	switch {
	case bytes.HasPrefix(line, []byte("POST ")):
	case bytes.HasPrefix(line, []byte("GET ")):
		q.get = true
	default:
		return q, fmt.Errorf("a request that begins %.40q", line)
	}
	switch {
	case bytes.HasSuffix(line, []byte(" HTTP/1.1")):
	case bytes.HasSuffix(line, []byte(" HTTP/1.0")):
		q.close = true
	default:
		return q, fmt.Errorf("a request that begins %.40q", line)
	}
	for h = h[i+2:]; len(h) > 2; h = h[i+2:] {
		i = bytes.Index(h, []byte("\r\n"))
		name, value, ok := bytes.Cut(h[:i], []byte(":"))
		if !ok {
			return q, fmt.Errorf("a field %.40q", h[:i])
		}
		// Compare lengths first: most fields are none of these.
		switch value = bytes.TrimSpace(value); len(name) {
		case len("content-length"):
			if bytes.EqualFold(name, []byte("content-length")) {
				if q.length, err = strconv.ParseInt(string(value), 10, 64); err != nil || q.length < 0 {
					return q, fmt.Errorf("a length of %.40q", value)
				}
			}
		case len("transfer-encoding"):
			if bytes.EqualFold(name, []byte("transfer-encoding")) {
				if q.chunked = bytes.EqualFold(value, []byte("chunked")); !q.chunked {
					return q, fmt.Errorf("a transfer encoding %.40q", value)
				}
			}
		case len("connection"):
			if bytes.EqualFold(name, []byte("connection")) {
				if bytes.EqualFold(value, []byte("close")) {
					q.close = true
				} else if bytes.EqualFold(value, []byte("keep-alive")) {
					q.close = false
				}
			}
		case len("expect"):
			q.expects = q.expects || bytes.EqualFold(name, []byte("expect")) && bytes.EqualFold(value, []byte("100-continue"))
		}
	}
	return q, nil
}
