package kafka

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"carronade/internal/dial"
)

// maxControlAnswer bounds the answer to a request that is not a fetch. What
// is larger is another protocol: "HTTP" read as a length is 1.2 GB.
const maxControlAnswer = 64 << 20

// An authError is a refused login.
type authError struct {
	mechanism string
	err       error
	offered   []string // what the broker would take, where it said so
}

func (e *authError) Error() string { return "log in by " + e.mechanism + ": " + e.err.Error() }
func (e *authError) Unwrap() error { return e.err }

// login authenticates by SaslHandshake v1 and SaslAuthenticate (KIP-152).
func (s *security) login(ctx context.Context, conn net.Conn, addr string) error {
	refused := func(err error) error { return &authError{mechanism: s.mechanism.Name(), err: err} }

	hs := kmsg.NewPtrSASLHandshakeRequest()
	hs.Version = 1
	hs.Mechanism = s.mechanism.Name()
	answer, err := roundTrip(conn, s.clientID, hs)
	if err != nil {
		return fmt.Errorf("ask for a login: %w", err)
	}
	shake := answer.(*kmsg.SASLHandshakeResponse)
	if err := kerr.ErrorForCode(shake.ErrorCode); err != nil {
		return &authError{mechanism: s.mechanism.Name(), err: err, offered: shake.SupportedMechanisms}
	}

	session, out, err := s.mechanism.Authenticate(ctx, addr)
	if err != nil {
		return refused(err)
	}
	if len(out) == 0 {
		return refused(errors.New("the mechanism has nothing to say"))
	}
	for done := false; !done; {
		req := kmsg.NewPtrSASLAuthenticateRequest()
		req.Version = 1
		req.SASLAuthBytes = out
		answer, err := roundTrip(conn, s.clientID, req)
		if err != nil && dial.IsHangUp(err) {
			// Some brokers hang up instead of saying no.
			return refused(fmt.Errorf("the broker hung up: %w", err))
		} else if err != nil {
			return fmt.Errorf("log in by %s: %w", s.mechanism.Name(), err)
		}
		auth := answer.(*kmsg.SASLAuthenticateResponse)
		if err := kerr.ErrorForCode(auth.ErrorCode); err != nil {
			if auth.ErrorMessage != nil && *auth.ErrorMessage != "" {
				err = fmt.Errorf("%w (%s)", err, *auth.ErrorMessage)
			}
			return refused(err)
		}
		if done, out, err = session.Challenge(auth.SASLAuthBytes); err != nil {
			return refused(err)
		}
		if done && len(out) > 0 {
			return refused(errors.New("the mechanism is done and has more to say"))
		}
	}
	return nil
}

// roundTrip writes one request of its version and waits for its answer. It is
// for the rare requests on a connection without others in flight.
func roundTrip(conn net.Conn, clientID string, req kmsg.Request) (kmsg.Response, error) {
	const correlation = 1
	f := kmsg.NewRequestFormatter(kmsg.FormatterClientID(clientID))
	if _, err := conn.Write(f.AppendRequest(nil, req, correlation)); err != nil {
		return nil, err
	}
	var head [4]byte
	if _, err := io.ReadFull(conn, head[:]); err != nil {
		return nil, err
	}
	size := int64(binary.BigEndian.Uint32(head[:]))
	if size < 4 || size > maxControlAnswer {
		return nil, &alienError{head}
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(conn, body); err != nil {
		return nil, err
	}
	if got := binary.BigEndian.Uint32(body); got != correlation {
		return nil, fmt.Errorf("the answer is to request %d, not to %d", got, correlation)
	}
	body = body[4:]
	resp := req.ResponseKind()
	resp.SetVersion(req.GetVersion())
	// The header of ApiVersions' answer never has tags (KIP-511).
	if resp.IsFlexible() && resp.Key() != int16(kmsg.ApiVersions) {
		var err error
		if body, err = skipTags(body); err != nil {
			return nil, err
		}
	}
	if err := resp.ReadFrom(body); err != nil {
		return nil, fmt.Errorf("decode the answer to %s: %w", kmsg.NameForKey(req.Key()), err)
	}
	return resp, nil
}

// skipTags skips the tagged fields of a flexible response header.
func skipTags(b []byte) ([]byte, error) {
	short := errors.New("the answer's header is cut short")
	n, w := binary.Uvarint(b)
	if w <= 0 {
		return nil, short
	}
	b = b[w:]
	for range n {
		if _, w = binary.Uvarint(b); w <= 0 { // tag
			return nil, short
		}
		b = b[w:]
		size, w := binary.Uvarint(b)
		if w <= 0 || size > uint64(len(b)-w) {
			return nil, short
		}
		b = b[w+int(size):]
	}
	return b, nil
}

// An alienError is an answer that is not Kafka's.
type alienError struct{ head [4]byte }

func (e *alienError) Error() string {
	switch {
	case string(e.head[:]) == "HTTP":
		return "the answer is HTTP, not Kafka"
	case e.head[0] == 0x15 && e.head[1] == 3:
		return "the answer is a TLS alert: the listener speaks TLS"
	}
	return fmt.Sprintf("the answer is not Kafka's: it begins with %q", e.head[:])
}

// tls reports whether the other side speaks TLS.
func (e *alienError) tls() bool { return e.head[0] == 0x15 && e.head[1] == 3 }
