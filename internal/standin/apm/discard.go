package apm

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"carronade/internal/standin/drop"
	"carronade/internal/standin/fault"
	wire "carronade/internal/wire/apm"
)

// The discard server reads no more of a request than how long it is. It speaks
// HTTP/1.1 alone, by itself: net/http takes several times as long for a request
// as it takes to read one.
type discard struct {
	s      *Server
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu    sync.Mutex
	conns map[*discardConn]struct{}
	past  sinkCounts
}

type sinkCounts struct{ connections, requests, bytes uint64 }

// A discardConn counts for itself, so that additions never meet on one cache
// line.
type discardConn struct {
	net.Conn
	requests, bytes atomic.Uint64

	_ [64]byte
}

const (
	discardBuffer = 64 << 10
	worthDropping = 16 << 10 // bytes: fewer cost less to read with the next head
	maxRequest    = 32 << 10 // bytes of a request's head
)

var (
	answer202 = []byte("HTTP/1.1 202 Accepted\r\nX-Content-Type-Options: nosniff\r\nContent-Length: 0\r\n\r\n")
	answer100 = []byte("HTTP/1.1 100 Continue\r\n\r\n")
	headEnd   = []byte("\r\n\r\n")
)

func newDiscard(s *Server) *discard {
	d := &discard{s: s, conns: map[*discardConn]struct{}{}}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	return d
}

func (d *discard) add(c *Counts) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c.Connections += d.past.connections
	c.Requests += d.past.requests
	c.Bytes += d.past.bytes
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
			// Out of descriptors, most likely.
			select {
			case <-time.After(10 * time.Millisecond):
			case <-d.ctx.Done():
				return
			}
			continue
		}
		c := &discardConn{Conn: nc}
		d.mu.Lock()
		if d.ctx.Err() != nil {
			d.mu.Unlock()
			nc.Close()
			return
		}
		d.conns[c] = struct{}{}
		d.past.connections++
		d.wg.Add(1)
		d.mu.Unlock()
		go func() {
			defer d.wg.Done()
			err := d.serve(c)
			c.Close()
			d.mu.Lock()
			delete(d.conns, c)
			d.past.requests += c.requests.Load()
			d.past.bytes += c.bytes.Load()
			d.mu.Unlock()
			if err != nil && d.ctx.Err() == nil && !fault.Gone(err) {
				d.s.opts.logf("connection from %s: %v", nc.RemoteAddr(), err)
			}
		}()
	}
}

// serve answers one connection's requests. What was answered is written when
// nothing more can be read at once: pipelined requests share a write.
func (d *discard) serve(c *discardConn) error {
	in := bufio.NewReaderSize(c, discardBuffer)
	if tc, ok := c.Conn.(*net.TCPConn); ok {
		// One big receive buffer: fewer wake-ups per body.
		_ = tc.SetReadBuffer(4 << 20)
	}
	dropper := drop.New(c.Conn)
	out := bufio.NewWriterSize(c, 16<<10)
	defer func() { _ = out.Flush() }() // the connection ends: nobody is left to tell
	for {
		head, err := readHead(in)
		if err != nil {
			return err
		}
		q, err := parseHead(head)
		if err != nil {
			fmt.Fprintf(out, "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
			return err
		}
		if _, err := in.Discard(len(head)); err != nil {
			return err
		}
		if q.expects {
			if _, err := out.Write(answer100); err != nil {
				return err
			}
		}
		if in.Buffered() == 0 || q.expects {
			if err := out.Flush(); err != nil {
				return err
			}
		}
		n, err := skipBody(in, dropper, q)
		if err != nil {
			return err
		}
		if q.get {
			d.tell(out)
		} else {
			c.requests.Add(1)
			c.bytes.Add(uint64(n))
			if _, err := out.Write(answer202); err != nil {
				return err
			}
		}
		if q.close {
			return io.EOF
		}
		if in.Buffered() == 0 {
			if err := out.Flush(); err != nil {
				return err
			}
		}
	}
}

// tell answers a GET, whatever it asks for, by the counters.
func (d *discard) tell(out *bufio.Writer) {
	f := figures(d.s.Counts())
	f["discards"] = true       // so that nobody takes its limit for a server's
	text, _ := json.Marshal(f) // of numbers alone
	fmt.Fprintf(out, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
}

// readHead waits for a request's head and returns it; it stays in the buffer.
func readHead(in *bufio.Reader) ([]byte, error) {
	want := 1
	for {
		if _, err := in.Peek(want); err != nil {
			return nil, err
		}
		have, err := in.Peek(min(in.Buffered(), maxRequest))
		if err != nil {
			return nil, err
		}
		if i := bytes.Index(have, headEnd); i >= 0 {
			return have[:i+len(headEnd)], nil
		}
		if len(have) == maxRequest {
			return nil, errors.New("a request's head without end")
		}
		want = len(have) + 1
	}
}

// A request is what the discard server wants to know of one.
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
		// By length first: most fields are none of these.
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

// skipBody reads over a body and returns its size.
func skipBody(in *bufio.Reader, dropper *drop.Dropper, q request) (n int64, err error) {
	if !q.chunked {
		return q.length, skip(in, dropper, q.length)
	}
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return n, fmt.Errorf("reading a chunk's size: %w", err)
		}
		size, err := wire.ChunkSize(bytes.TrimRight(line, "\r\n"))
		if err != nil {
			return n, err
		}
		if size == 0 {
			for {
				line, err := in.ReadSlice('\n')
				if err != nil {
					return n, fmt.Errorf("reading a trailer: %w", err)
				}
				if len(bytes.TrimRight(line, "\r\n")) == 0 {
					return n, nil
				}
			}
		}
		n += size
		if err := skip(in, dropper, size+2); err != nil {
			return n, err
		}
	}
}

// skip reads over n bytes: what the buffer has, and the rest in the kernel where
// it is long and the kernel can.
func skip(in *bufio.Reader, dropper *drop.Dropper, n int64) error {
	if rest := n - int64(in.Buffered()); dropper != nil && rest >= worthDropping {
		if _, err := in.Discard(in.Buffered()); err != nil {
			return err
		}
		if err := dropper.Drop(rest); err != nil {
			return fmt.Errorf("dropping a body: %w", err)
		}
		return nil
	}
	for n > 0 {
		k, err := in.Discard(int(min(n, 1<<30)))
		if err != nil {
			return fmt.Errorf("reading a body: %w", err)
		}
		n -= int64(k)
	}
	return nil
}
