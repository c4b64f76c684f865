package standin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"strconv"
	"sync/atomic"

	"carronade/internal/standin"
)

// The discard server reads nothing of a request but its length. It has its own
// implementation of HTTP/1.1, because net/http takes several times as long for a
// request as reading it takes.
type discard struct {
	s       *Server
	conns   standin.Conns[*sinkCounts]
	closed  Counts           // of closed connections; conns locks it
	threads *standin.Threads // nil: each connection has a goroutine
}

// Each connection has its own sinkCounts, so that connections do not share a cache line.
type sinkCounts struct {
	requests, bytes atomic.Uint64

	_ [64]byte
}

func (n *sinkCounts) addTo(c *Counts) {
	c.Connections++
	c.Requests += n.requests.Load()
	c.Bytes += n.bytes.Load()
}

// discardBuffer is how many bytes are read at once.
const discardBuffer = 64 << 10

// makeThreads makes the threads; some tests run without any.
var makeThreads = standin.NewThreads

func newDiscard(s *Server) *discard {
	d := &discard{s: s, threads: makeThreads()}
	d.conns.Log, d.conns.Ended = s.opts.Log, func(n *sinkCounts) { n.addTo(&d.closed) }
	return d
}

func (d *discard) counts() Counts {
	d.conns.Lock()
	defer d.conns.Unlock()
	c := d.closed
	for _, n := range d.conns.Open {
		n.addTo(&c)
	}
	return c
}

func (d *discard) serve(nc net.Conn) {
	k := &skimmer{d: d, counts: new(sinkCounts), rec: standin.RecordedConnOf(nc)}
	if ended := d.conns.Enter(nc, k.counts); ended != nil {
		d.threads.Serve(nc, k, discardBuffer, ended)
	}
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
