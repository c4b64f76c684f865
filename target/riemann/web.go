package riemann

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"carronade/internal/dial"
)

// A framing is how a lane's messages and their answers look on a transport that does
// not speak frames of protocol buffers. Each lane has its own; what reads
// answers is called with the lane's lock held, what writes by its thread.
type framing interface {
	// size is the bytes that no message of the lane exceeds.
	size() int
	// alone reports that a message waits until the one before it is answered.
	alone() bool
	// append appends messages of so many events each, and returns the bytes of
	// the events themselves.
	append(dst []byte, p *encoder, first uint64, messages, events int, now time.Time) ([]byte, int64)
	// walk returns the size of the first message of b, which is whole.
	walk(b []byte) int
	// greet does what comes before messages on a new connection.
	greet(ctx context.Context, nc net.Conn, addr string) error
	// answers takes answers from b: to at most so many messages, of so many
	// events each, that all went well, or one that is to be judged. Neither
	// means that the rest waits for more bytes.
	answers(b []byte, messages, events int) (acks int, msg, rest []byte, err error)
	// verdict reads how many events of its message an answer refuses, and why.
	verdict(msg []byte, events int32) (refused int32, text string, err error)
	// over reports that the server takes no more on the connection, by the
	// answer that was taken last.
	over() bool
}

// The server takes one event a message of a WebSocket, and answers each with
// {} or {"error": TEXT}; and events line by line in the body of a request, with
// lines that say the same (riemann, transport/websockets.clj, put-events-handler).
const eventsPath = "/events"

func newSocketLane(ctx context.Context, c *config, id int, addr string, presses []*encoder) (sender, error) {
	return newWebLane(ctx, c, id, addr, presses, newWebSocketFraming(c, presses))
}

func newHTTPLane(ctx context.Context, c *config, id int, addr string, presses []*encoder) (sender, error) {
	return newWebLane(ctx, c, id, addr, presses, newHTTPFraming(c, addr, presses))
}

func newWebLane(ctx context.Context, c *config, id int, addr string, presses []*encoder, web framing) (sender, error) {
	l := newLane(c, id, addr, presses)
	l.web = web
	n := l.most()
	l.fill, l.out, l.waiting = make([]byte, 0, n), make([]byte, 0, n), make([]byte, 0, n)
	k, err := l.dial(ctx)
	if err != nil {
		l.cancel()
		return nil, err
	}
	l.link = k
	return l, nil
}

// probeWeb looks whether a Riemann takes events at the address: it offers a
// WebSocket there, which is the same for both transports.
func probeWeb(ctx context.Context, c *config, addr string) (map[string]any, error) {
	nc, err := c.dialer.Dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	defer nc.Close()
	err = (&webSocketFraming{path: c.path, patience: c.patience()}).greet(ctx, nc, addr)
	switch status := (*statusError)(nil); {
	case err == nil:
	case errors.As(err, &status) && c.transport.scheme == httpScheme && status.code != http.StatusNotFound:
		// Something takes requests there, though not for WebSockets.
	case errors.As(err, &status) && status.code == http.StatusNotFound:
		return nil, fmt.Errorf("%w: %s: %w", errNoPath, c.path, err)
	case errors.As(err, &status):
		return nil, fmt.Errorf("%w: %w", errNoRiemann, err)
	case dial.SpeaksTLS(ctx, addr):
		return nil, fmt.Errorf("%w (%w)", errSpeaksTLS, err)
	case dial.IsTimeout(err):
		return nil, fmt.Errorf("%w (%w)", errNoAnswer, err)
	case c.speaksTCP(ctx, addr):
		return nil, fmt.Errorf("%w (%w)", errIsTCP, err)
	default:
		return nil, fmt.Errorf("%w (%w)", errNoRiemann, err)
	}
	return map[string]any{"path": c.path}, nil
}

// The transports of websockets.clj.
const (
	webSocketScheme = "riemann+ws"
	httpScheme      = "riemann+http"
)

// web reports that the transport is one of those.
func (r *transport) web() bool { return r.scheme == webSocketScheme || r.scheme == httpScheme }

// widestJSON is the bytes that no event exceeds as JSON: of those of the pools,
// with room for a longer metric and time.
func widestJSON(presses []*encoder) int {
	most := 0
	for _, p := range presses {
		if p.widest == 0 {
			var b []byte
			for k := range p.shape.period {
				b, _ = p.json(b[:0], k, 1, time.Unix(0, 0))
				p.widest = max(p.widest, len(b))
			}
		}
		most = max(most, p.widest)
	}
	return most + 64
}

// plainReply is what nearly every event is answered with.
const plainReply = "{}"

// errReply is an answer that is no JSON object.
var errReply = errors.New("an answer that is neither {} nor an error")

// reply reads the answer to one event: why it was refused, "" when it was not.
func reply(b []byte) (refused bool, text string, err error) {
	b = bytes.TrimSpace(b)
	if string(b) == plainReply {
		return false, "", nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(b, &fields); err != nil || fields == nil {
		return false, "", fmt.Errorf("%w: %.60q", errReply, b)
	}
	why, refused := fields["error"]
	if !refused {
		return false, "", nil
	}
	if json.Unmarshal(why, &text) != nil {
		text = string(why)
	}
	return true, text, nil // an exception without a message has no text
}
