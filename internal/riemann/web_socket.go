package riemann

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // required by the protocol, and not used for secrecy
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"strings"
	"time"

	"carronade/internal/conn"
)

// A webSocketFraming speaks WebSocket (RFC 6455): each event is a text message in
// a separate frame, masked as a client's must be. It uses no library: that would
// write each frame separately, and a write costs more than a frame.
//
// A lane's message is the frames of a batch's events. The last bit of a frame's
// mask marks the last of them. The other bits are random, as the protocol wants.
type webSocketFraming struct {
	path    string
	timeout time.Duration // for the handshake
	most    int           // bytes of a message
	rnd     *mathrand.ChaCha8
	frame   []byte
}

// Frames of RFC 6455, section 5.2.
const (
	finalText   = 0x81
	opClose     = 0x8
	opPing      = 0x9
	opPong      = 0xa
	maskBit     = 0x80
	most16      = 0xffff
	longestHead = 14
)

// mostHandshake bounds the answer to a handshake, in bytes.
const mostHandshake = 64 << 10

// plainFrame is plainReply in a server's frame.
const plainFrame = "\x81\x02" + plainReply

func newWebSocketFraming(c *config) *webSocketFraming {
	var seed [32]byte
	_, _ = rand.Read(seed[:]) // never fails
	return &webSocketFraming{path: c.path, timeout: c.connectTimeout(), most: c.perMessage() * (c.widestJSON + longestHead), rnd: mathrand.NewChaCha8(seed)}
}

func (t *webSocketFraming) size() int         { return t.most }
func (t *webSocketFraming) oneInFlight() bool { return false }
func (t *webSocketFraming) closing() bool     { return false } // a close frame is an error of answers

func (t *webSocketFraming) append(dst []byte, p *encoder, first uint64, messages, events int, now time.Time) ([]byte, int64) {
	var bytes int64
	for range messages {
		for i := range events {
			var n int64
			t.frame, n = p.json(t.frame[:0], first, 1, now)
			dst = t.put(dst, t.frame[:len(t.frame)-1], i == events-1)
			bytes += n
			first++
		}
	}
	return dst, bytes
}

// put appends a masked frame.
func (t *webSocketFraming) put(dst, payload []byte, last bool) []byte {
	mask := uint32(t.rnd.Uint64()) &^ (1 << 24)
	if last {
		mask |= 1 << 24
	}
	dst = append(dst, finalText)
	switch n := len(payload); {
	case n < 126:
		dst = append(dst, maskBit|byte(n))
	case n <= most16:
		dst = binary.BigEndian.AppendUint16(append(dst, maskBit|126), uint16(n))
	default:
		dst = binary.BigEndian.AppendUint64(append(dst, maskBit|127), uint64(n))
	}
	dst = binary.LittleEndian.AppendUint32(dst, mask)
	at := len(dst)
	dst = append(dst, payload...)
	xor(dst[at:], mask)
	return dst
}

// xor masks or unmasks b.
func xor(b []byte, mask uint32) {
	wide := uint64(mask)<<32 | uint64(mask)
	for len(b) >= 8 {
		binary.LittleEndian.PutUint64(b, binary.LittleEndian.Uint64(b)^wide)
		b = b[8:]
	}
	for i := range b {
		b[i] ^= byte(mask >> (8 * (i & 3)))
	}
}

// messageSize skips from frame to frame to the one whose mask marks it as the
// last.
func (t *webSocketFraming) messageSize(b []byte) int {
	at := 0
	for {
		n, head := int(b[at+1]&^maskBit), 6
		switch n {
		case 126:
			n, head = int(binary.BigEndian.Uint16(b[at+2:])), 8
		case 127:
			n, head = int(binary.BigEndian.Uint64(b[at+2:])), 14
		}
		last := b[at+head-1]&1 == 1
		at += head + n
		if last {
			return at
		}
	}
}

// A statusError is an HTTP response with an unexpected status.
type statusError struct {
	code   int
	status string
}

func (e *statusError) Error() string { return "HTTP " + e.status }

func (t *webSocketFraming) handshake(ctx context.Context, nc net.Conn, addr string) error {
	stop := conn.Interrupt(ctx, nc)
	defer stop()
	if err := nc.SetDeadline(time.Now().Add(t.timeout)); err != nil {
		return err
	}
	var nonce [16]byte
	_, _ = rand.Read(nonce[:]) // never fails
	key := base64.StdEncoding.EncodeToString(nonce[:])
	path := t.path
	if path == "" {
		path = eventsPath
	}
	_, err := fmt.Fprintf(nc, "GET %s HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n\r\n", path, addr, key)
	if err != nil {
		return err
	}
	in := bufio.NewReaderSize(io.LimitReader(nc, mostHandshake), 4<<10)
	r, err := http.ReadResponse(in, nil)
	if err != nil {
		return fmt.Errorf("read the answer to the WebSocket handshake: %w", err)
	}
	_ = r.Body.Close()
	if r.StatusCode != http.StatusSwitchingProtocols {
		return &statusError{r.StatusCode, r.Status}
	}
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11")) //nolint:gosec // section 4.2.2
	switch {
	case !strings.EqualFold(r.Header.Get("Upgrade"), "websocket"), r.Header.Get("Sec-WebSocket-Accept") != base64.StdEncoding.EncodeToString(sum[:]):
		return errors.New("the answer to the WebSocket handshake is invalid")
	case r.Header.Get("Sec-WebSocket-Extensions") != "":
		return errors.New("the server requires a WebSocket extension that was not offered")
	case in.Buffered() > 0:
		return errors.New("the server sent data before a request")
	}
	return nc.SetDeadline(time.Time{})
}

// nextFrame reads the first complete frame of b. A nil rest without an error
// means that b has none yet.
func nextFrame(b []byte) (op byte, payload, rest []byte, err error) {
	if len(b) < 2 {
		return 0, nil, nil, nil
	}
	head, n := 2, uint64(b[1])
	switch n {
	case 126:
		if head = 4; len(b) < head {
			return 0, nil, nil, nil
		}
		n = uint64(binary.BigEndian.Uint16(b[2:]))
	case 127:
		if head = 10; len(b) < head {
			return 0, nil, nil, nil
		}
		n = binary.BigEndian.Uint64(b[2:])
	}
	switch {
	case b[1]&maskBit != 0:
		return 0, nil, nil, errors.New("a masked frame from a server")
	case b[0]&0x80 == 0 || b[0]&0x0f == 0:
		return 0, nil, nil, errors.New("an answer in several frames")
	case b[0]&0x70 != 0:
		return 0, nil, nil, errors.New("a frame of an extension that was not offered")
	case n > mostRefusal:
		return 0, nil, nil, fmt.Errorf("a frame of %d bytes, more than %d", n, mostRefusal)
	case uint64(len(b)-head) < n:
		return 0, nil, nil, nil
	}
	end := head + int(n)
	return b[0] & 0x0f, b[head:end:end], b[end:len(b):len(b)], nil
}

func (t *webSocketFraming) answers(b []byte, messages, events int) (acks int, msg, rest []byte, err error) {
	all := b
	if events == 1 {
		for acks < messages && len(b) >= len(plainFrame) && string(b[:len(plainFrame)]) == plainFrame {
			b = b[len(plainFrame):]
			acks++
		}
		if acks > 0 {
			return acks, nil, b, nil
		}
	}
	for replies := 0; replies < events; {
		op, payload, next, err := nextFrame(b)
		switch {
		case err != nil:
			return 0, nil, all, err
		case next == nil:
			if len(b) > mostRefusal*2 {
				return 0, nil, all, errors.New("too long an answer")
			}
			return 0, nil, all, nil
		case op == opClose:
			return 0, nil, all, closedBy(payload)
		case op != opPing && op != opPong:
			replies++
		}
		b = next
	}
	return 0, all[: len(all)-len(b) : len(all)-len(b)], b, nil
}

// closedBy returns why a server closed the connection (section 5.5.1).
func closedBy(payload []byte) error {
	if len(payload) < 2 {
		return errServerClosed
	}
	return fmt.Errorf("%w: %d %.100s", errServerClosed, binary.BigEndian.Uint16(payload), payload[2:])
}

// refusals reads the frames of one message's answer. It ignores pings: Riemann
// sends none, and a pong would have to be sent between two of a lane's messages.
func (t *webSocketFraming) refusals(msg []byte, _ int32) (refused int32, text string, err error) {
	for len(msg) > 0 {
		op, payload, next, err := nextFrame(msg)
		if err != nil || next == nil {
			return 0, "", errors.Join(err, errReply)
		}
		msg = next
		if op == opPing || op == opPong {
			continue
		}
		no, why, err := reply(payload)
		if err != nil {
			return 0, "", err
		}
		if no {
			refused++
			if text == "" {
				text = why
			}
		}
	}
	return refused, text, nil
}
