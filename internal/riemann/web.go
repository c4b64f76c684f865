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

	"carronade/internal/conn"
)

// A framing encodes a lane's messages and reads their answers, on a transport
// other than frames of protocol buffers. Each lane has its own. The methods that
// read answers are called with the lane's lock held, append by the sending
// thread.
type framing interface {
	// size is the largest size of a message, in bytes.
	size() int
	// oneInFlight reports that a message must wait until the one before it is
	// answered.
	oneInFlight() bool
	// append appends messages of the given number of events each, and returns
	// the bytes of the events themselves.
	append(dst []byte, p *encoder, first uint64, messages, events int, now time.Time) ([]byte, int64)
	// messageSize returns the size of the first message of b, which is complete.
	messageSize(b []byte) int
	// handshake prepares a new connection for messages.
	handshake(ctx context.Context, nc net.Conn, addr string) error
	// answers removes answers from the beginning of b. It returns either acks,
	// the number of answers that accept all events of a message, or msg, one
	// answer for refusals to read. At most messages answers are due, each for a
	// message of the given number of events. Neither means that rest is an
	// incomplete answer.
	answers(b []byte, messages, events int) (acks int, msg, rest []byte, err error)
	// refusals reads how many events of its message an answer refuses, and why.
	refusals(msg []byte, events int32) (refused int32, text string, err error)
	// closing reports that, by the last answer read, the server accepts nothing
	// more on the connection.
	closing() bool
}

// The server accepts one event per WebSocket message, and answers each with {}
// or {"error": TEXT}. Over HTTP it accepts events line by line in the body of a
// request, and answers each with such a line (riemann, transport/websockets.clj,
// put-events-handler).
const eventsPath = "/events"

func newSocketLane(ctx context.Context, c *config, id int, addr string, encoders []*encoder) (sender, error) {
	return newWebLane(ctx, c, id, addr, encoders, newWebSocketFraming(c))
}

func newHTTPLane(ctx context.Context, c *config, id int, addr string, encoders []*encoder) (sender, error) {
	return newWebLane(ctx, c, id, addr, encoders, newHTTPFraming(c, addr))
}

func newWebLane(ctx context.Context, c *config, id int, addr string, encoders []*encoder, web framing) (sender, error) {
	l := newLane(c, id, addr, encoders)
	l.web = web
	k, err := l.dial(ctx)
	if err != nil {
		l.cancel()
		return nil, err
	}
	l.link = k
	return l, nil
}

// probeWeb checks that a Riemann server accepts events at the address: it tries
// to open a WebSocket, for both transports.
func probeWeb(ctx context.Context, c *config, addr string) (map[string]any, error) {
	nc, err := c.dialer.Dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	defer nc.Close()
	err = (&webSocketFraming{path: c.path, timeout: c.connectTimeout()}).handshake(ctx, nc, addr)
	switch status := (*statusError)(nil); {
	case err == nil:
	case errors.As(err, &status) && c.transport.scheme == httpScheme && status.code != http.StatusNotFound:
		// A server accepts requests there, though not for WebSockets.
	case errors.As(err, &status) && status.code == http.StatusNotFound:
		return nil, fmt.Errorf("%w: %s: %w", errNoPath, c.path, err)
	case errors.As(err, &status):
		return nil, fmt.Errorf("%w: %w", errNoRiemann, err)
	case conn.SpeaksTLS(ctx, addr):
		return nil, fmt.Errorf("%w (%w)", errSpeaksTLS, err)
	case conn.IsTimeout(err):
		return nil, fmt.Errorf("%w (%w)", errNoAnswer, err)
	case c.speaksTCP(ctx, addr):
		return nil, fmt.Errorf("%w (%w)", errIsTCP, err)
	default:
		return nil, fmt.Errorf("%w (%w)", errNoRiemann, err)
	}
	return map[string]any{"path": c.path}, nil
}

// The schemes of the transports of websockets.clj.
const (
	webSocketScheme = "riemann+ws"
	httpScheme      = "riemann+http"
)

// web reports whether the transport is WebSocket or HTTP.
func (r *transport) web() bool { return r.scheme == webSocketScheme || r.scheme == httpScheme }

// widestJSON bounds the size of an event as JSON, in bytes: the largest of the
// pools, with room for a longer metric and time.
func widestJSON(encoders []*encoder) int {
	most := 0
	for _, p := range encoders {
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

// plainReply is the answer to an event that was accepted.
const plainReply = "{}"

// errReply is an answer that is not a JSON object.
var errReply = errors.New("an answer that is neither {} nor an error")

// reply reads the answer to one event: whether it was refused, and why.
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
