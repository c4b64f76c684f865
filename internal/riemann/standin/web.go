package standin

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/coder/websocket"

	"carronade/internal/riemann/wire"
	"carronade/internal/standin"
)

// A web serves events and the index over WebSocket, HTTP and server-sent events on
// one address, as websockets.clj and sse.clj do. Browsers may connect only from a
// page of this address, so that pages of other sites cannot reach a server on
// loopback.
type web struct {
	*Server
	meter *meter
}

func (s *Server) web(m *meter) http.Handler {
	w := web{s, m}
	mux := http.NewServeMux()
	for path, serve := range map[string]http.HandlerFunc{"/events": w.events, "/index": w.find, "/pubsub/index": w.subscribe} {
		mux.HandleFunc(path, serve)
		mux.HandleFunc(path+"/{$}", serve)
	}
	return mux
}

// webState counts connections, except those that became WebSockets: socket counts
// them.
func (s *Server) webState(m *meter) func(net.Conn, http.ConnState) {
	return func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			s.core.tally.connections.Add(1)
			m.conns.Add(1)
		case http.StateClosed, http.StateHijacked:
			m.conns.Add(-1)
		}
	}
}

// socket upgrades a request to a WebSocket and calls serve with it. The context
// ends with the server. The error of serve is sent to the client as the reason for
// closing.
func (w web) socket(rw http.ResponseWriter, r *http.Request, serve func(ctx context.Context, c *websocket.Conn) error) {
	if !w.begin() {
		return
	}
	defer w.conns.Serving.Done()
	c, err := websocket.Accept(rw, r, nil)
	if err != nil {
		return // it has answered
	}
	defer c.CloseNow() //nolint:errcheck // already closed, unless there was an error
	c.SetReadLimit(w.core.opts.MaxMessage)
	w.meter.conns.Add(1)
	defer w.meter.conns.Add(-1)
	err = serve(w.ctx, c)
	switch {
	case err == nil:
		c.Close(websocket.StatusNormalClosure, "")
	case w.ctx.Err() != nil:
		c.Close(websocket.StatusGoingAway, "")
	case websocket.CloseStatus(err) >= 0: // the client closed it
	default:
		reason := err.Error()
		c.Close(websocket.StatusPolicyViolation, reason[:min(len(reason), 120)]) // the limit of a close frame
	}
}

// begin makes Close wait for an HTTP handler; false after Close.
func (s *Server) begin() bool {
	s.conns.Lock()
	defer s.conns.Unlock()
	if s.ctx.Err() != nil {
		return false
	}
	s.conns.Serving.Add(1)
	return true
}

func isSocket(r *http.Request) bool { return r.Header.Get("Upgrade") != "" }

// events accepts events: one in each message of a WebSocket, or one on each line of
// a body. Each is answered with {} or {"error": TEXT}, in order.
func (w web) events(rw http.ResponseWriter, r *http.Request) {
	switch {
	case isSocket(r):
		w.socket(rw, r, func(ctx context.Context, c *websocket.Conn) error { return w.eventSocket(ctx, c, standin.ConnOf(r)) })
	case r.Method == http.MethodPut || r.Method == http.MethodPost:
		w.eventLines(rw, r)
	default:
		rw.Header().Set("Allow", "PUT, POST")
		http.Error(rw, "send events by PUT, one JSON object per line, or by WebSocket", http.StatusMethodNotAllowed)
	}
}

func (w web) eventSocket(ctx context.Context, c *websocket.Conn, nc net.Conn) error {
	t := jsonHandler{handler: w.core.newHandler(nc)}
	rec := standin.RecordedConnOf(nc)
	for {
		_, data, err := c.Read(ctx)
		if err != nil {
			return err
		}
		now := time.Now()
		answer, _ := t.handle(data, now)
		rec.Received(standin.RecordedRequest{Kind: "message", Partition: standin.NoRecord, Offset: standin.NoRecord, Events: 1})
		if err := c.Write(ctx, websocket.MessageText, answer); err != nil {
			return err
		}
		rec.Answered()
		w.meter.record(1, time.Since(now))
	}
}

// eventLines answers while the body still arrives. It answers a line that is not an
// event with an error and ends, as the real server does; it does not read further
// lines.
func (w web) eventLines(rw http.ResponseWriter, r *http.Request) {
	control := http.NewResponseController(rw)
	_ = control.EnableFullDuplex() // for HTTP/1; HTTP/2 always is
	rw.Header().Set("Content-Type", "application/json")
	in := bufio.NewReaderSize(r.Body, windowSize)
	t := jsonHandler{handler: w.core.newHandler(standin.ConnOf(r))}
	// The server may close the connection after the last answer, so that waits until
	// it may leave.
	defer t.departures.Wait(r.Context())
	for more := true; more; {
		line, err := readLine(in, int(w.core.opts.MaxMessage))
		if more = err == nil; !more && !errors.Is(err, io.EOF) {
			return // the client is gone, or the line is too long
		}
		line = bytes.TrimSpace(line)
		if len(line) > 0 {
			now := time.Now()
			answer, ok := t.handle(line, now)
			if _, err := rw.Write(append(answer, '\n')); err != nil || !ok {
				return
			}
			w.meter.record(1, time.Since(now))
		}
		// With a server, each answer leaves at its own time.
		if in.Buffered() == 0 || t.departures != nil {
			if control.Flush() != nil {
				return
			}
		}
	}
}

var errLongLine = errors.New("a line longer than the largest message")

// readLine reads a line of at most limit bytes; it returns the last one with
// io.EOF.
func readLine(in *bufio.Reader, limit int) (line []byte, err error) {
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > limit:
			return nil, errLongLine
		case errors.Is(err, bufio.ErrBufferFull):
		default:
			return line, err
		}
	}
}

// A jsonHandler processes single events in JSON.
type jsonHandler struct {
	handler
	one    [1]wire.Event
	answer []byte
}

// handle processes one event. It returns the answer, which is valid until the next
// call, and whether the text was an event.
func (t *jsonHandler) handle(text []byte, now time.Time) (answer []byte, ok bool) {
	t.tally.messages.Add(1)
	t.tally.bytes.Add(uint64(len(text)))
	t.answer = append(t.answer[:0], "{}"...)
	if t.opts.Discard {
		return t.answer, true
	}
	var failure string
	e, err := wire.DecodeJSON(text)
	if err == nil {
		t.one[0] = e
		failure = t.handler.addEvents(t.one[:], now)
	} else {
		failure = err.Error()
	}
	if failure != "" {
		quoted, _ := json.Marshal(failure) // never fails for a string
		t.answer = append(append(append(t.answer[:0], `{"error":`...), quoted...), '}')
	}
	return t.answer, err == nil
}

// find sends the events of the index that match a query, and those that enter it
// afterwards: over a WebSocket only with subscribe=true, as server-sent events
// always.
func (w web) find(rw http.ResponseWriter, r *http.Request) {
	q, err := parseQuery(r.URL.Query().Get("query"))
	switch {
	case isSocket(r) && err != nil:
		w.socket(rw, r, func(context.Context, *websocket.Conn) error { return fmt.Errorf("parse error: %w", err) })
	case isSocket(r):
		w.socket(rw, r, func(ctx context.Context, c *websocket.Conn) error {
			return w.stream(c.CloseRead(ctx), q, true, r.URL.Query().Get("subscribe") == "true", func(event []byte) error {
				return c.Write(ctx, websocket.MessageText, event)
			})
		})
	case r.Method != http.MethodGet:
		rw.Header().Set("Allow", "GET")
		http.Error(rw, "query the index by GET, for server-sent events, or by WebSocket", http.StatusMethodNotAllowed)
	case err != nil:
		http.Error(rw, "parse error: "+err.Error(), http.StatusBadRequest)
	default:
		w.sentEvents(rw, r, q)
	}
}

// subscribe sends events that enter the index, but not those already in it.
func (w web) subscribe(rw http.ResponseWriter, r *http.Request) {
	q, err := parseQuery(r.URL.Query().Get("query"))
	if !isSocket(r) {
		http.Error(rw, "this is for WebSocket; server-sent events are at /index", http.StatusUpgradeRequired)
		return
	}
	w.socket(rw, r, func(ctx context.Context, c *websocket.Conn) error {
		if err != nil {
			return fmt.Errorf("parse error: %w", err)
		}
		return w.stream(c.CloseRead(ctx), q, false, true, func(event []byte) error {
			return c.Write(ctx, websocket.MessageText, event)
		})
	})
}

func (w web) sentEvents(rw http.ResponseWriter, r *http.Request, q query) {
	if !w.begin() {
		return
	}
	defer w.conns.Serving.Done()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(w.ctx, cancel)()
	control := http.NewResponseController(rw)
	rw.Header().Set("Content-Type", "text/event-stream")
	rw.Header().Set("Cache-Control", "no-cache")
	rw.WriteHeader(http.StatusOK)
	_ = control.Flush() // send the header now: the first event may be far away
	_ = w.stream(ctx, q, true, true, func(event []byte) error {
		_, err := fmt.Fprintf(rw, "data: %s\n\n", event)
		if err == nil {
			err = control.Flush()
		}
		return err
	})
}

var errSlow = errors.New("the subscriber is too slow and was dropped")

// stream sends events as JSON: the existing ones, the new ones, or both, until ctx
// ends. An event that enters while it begins may be sent twice, but none is left out.
func (w web) stream(ctx context.Context, q query, existing, added bool, send func(event []byte) error) error {
	w.core.tally.queries.Add(1)
	var sub *subscription
	if added {
		sub = w.core.hub.subscribe(q)
		defer w.core.hub.unsubscribe(sub)
	}
	var text []byte
	if existing {
		var found []string
		w.core.index.search(q, time.Now(), func(s *subject) bool {
			found = append(found, s.raw)
			return true
		})
		for _, raw := range found {
			text = wire.AppendJSON(text[:0], (&subject{raw: raw}).read())
			if err := send(text); err != nil {
				return err
			}
		}
	}
	if !added {
		return nil
	}
	for {
		select {
		case e, ok := <-sub.events:
			if !ok {
				return errSlow
			}
			text = wire.AppendJSON(text[:0], &e)
			if err := send(text); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
