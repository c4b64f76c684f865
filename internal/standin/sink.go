package standin

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync/atomic"
)

// SinkOptions say what a Sink answers.
type SinkOptions struct {
	Answer   []byte                             // to each request of HTTP/1.1 but GET
	Counters func() (media string, text []byte) // to each GET, whatever its path
	GRPC     string                             // the Server header of answers to calls of gRPC; "": HTTP/2 is refused
	Log      io.Writer                          // gets the errors that end connections; nil: nothing does
}

// A Sink is a server that reads nothing of a request but its length. It has its own implementation of HTTP/1.1
// and of HTTP/2 as gRPC uses it, because net/http takes several times as long for a request as reading it takes.
type Sink struct {
	opts    SinkOptions
	calls   *callAnswer // nil: HTTP/2 is refused
	conns   Conns[*sinkTally]
	closed  SinkCounts // of closed connections; conns locks it
	threads *Threads   // nil: each connection has a goroutine
}

// SinkCounts are what a Sink received.
type SinkCounts struct{ Connections, Requests, Bytes uint64 }

// Each connection has its own sinkTally, so that connections do not share a cache line.
type sinkTally struct {
	requests, bytes atomic.Uint64

	_ [64]byte
}

func (n *sinkTally) addTo(c *SinkCounts) {
	c.Connections++
	c.Requests += n.requests.Load()
	c.Bytes += n.bytes.Load()
}

// sinkBuffer is how many bytes are read at once.
const sinkBuffer = 64 << 10

// makeThreads makes the threads; some tests run without any.
var makeThreads = NewThreads

// NewSink makes a sink, which serves until Close.
func NewSink(o SinkOptions) *Sink {
	d := &Sink{opts: o, threads: makeThreads()}
	if o.GRPC != "" {
		d.calls = newCallAnswer(o.GRPC)
	}
	d.conns.Log, d.conns.Ended = o.Log, func(n *sinkTally) { n.addTo(&d.closed) }
	return d
}

// Counts are those so far. It is safe to call at any time, also after Close.
func (d *Sink) Counts() SinkCounts {
	d.conns.Lock()
	defer d.conns.Unlock()
	c := d.closed
	for _, n := range d.conns.Open {
		n.addTo(&c)
	}
	return c
}

// Serve serves the connections to a listener until it is closed, and returns when all are over.
func (d *Sink) Serve(ln net.Listener) {
	Accept(ln, d.serve)
	d.conns.Serving.Wait()
}

// Close ends the connections. The listeners are closed before.
func (d *Sink) Close() {
	d.conns.Close()
	d.threads.Close()
}

func (d *Sink) serve(nc net.Conn) {
	k := &sinkSkimmer{d: d, counts: new(sinkTally), rec: RecordedConnOf(nc)}
	if ended := d.conns.Enter(nc, k.counts); ended != nil {
		d.threads.Serve(nc, k, sinkBuffer, ended)
	}
}

// counters is the answer to a GET.
func (d *Sink) counters() []byte {
	media, text := d.opts.Counters()
	return fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", media, len(text), text)
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
