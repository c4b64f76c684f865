package cluster

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl"

	"carronade/internal/conn"
)

// MaxControlAnswer bounds the answer to a request that is not a fetch. A larger length
// means another protocol: "HTTP" read as a length is 1.2 GB.
const MaxControlAnswer = 64 << 20

// An authError is a refused login.
type authError struct {
	mechanism string
	err       error
	offered   []string // mechanisms that the broker accepts, if it listed them
}

func (e *authError) Error() string { return "log in by " + e.mechanism + ": " + e.err.Error() }
func (e *authError) Unwrap() error { return e.err }

// An Exchange writes one request on a connection and waits for its answer.
type Exchange func(kmsg.Request) (kmsg.Response, error)

// A FirstMessage returns the first message of a mechanism; it may have to be fetched.
type FirstMessage func() (sasl.Session, []byte, error)

// FirstMessage asks the mechanism for its first message to the broker at an address.
func (s *Security) FirstMessage(ctx context.Context, addr string) FirstMessage {
	return func() (sasl.Session, []byte, error) {
		session, out, err := s.Mechanism.Authenticate(ctx, addr)
		if err == nil && len(out) == 0 {
			err = errors.New("the mechanism has no first message")
		}
		if err != nil {
			return nil, nil, s.loginRefused(err)
		}
		return session, out, nil
	}
}

func (s *Security) loginRefused(err error) error {
	return &authError{mechanism: s.Mechanism.Name(), err: err}
}

// Login authenticates by SaslHandshake v1 and SaslAuthenticate v1 (KIP-152). It returns
// how long the login is valid (KIP-368); 0: without limit.
func (s *Security) Login(open FirstMessage, send Exchange) (lifetime time.Duration, err error) {
	hs := kmsg.NewPtrSASLHandshakeRequest()
	hs.Version = 1
	hs.Mechanism = s.Mechanism.Name()
	answer, err := send(hs)
	if err != nil {
		return 0, fmt.Errorf("ask for a login: %w", err)
	}
	handshake := answer.(*kmsg.SASLHandshakeResponse)
	if err := kerr.ErrorForCode(handshake.ErrorCode); err != nil {
		return 0, &authError{mechanism: s.Mechanism.Name(), err: err, offered: handshake.SupportedMechanisms}
	}
	session, out, err := open()
	if err != nil {
		return 0, err
	}
	for done := false; !done; {
		req := kmsg.NewPtrSASLAuthenticateRequest()
		req.Version = 1
		req.SASLAuthBytes = out
		answer, err := send(req)
		if err != nil && conn.IsConnectionClosed(err) {
			// Some brokers close the connection instead of refusing the login.
			return 0, s.loginRefused(fmt.Errorf("the broker closed the connection: %w", err))
		} else if err != nil {
			return 0, fmt.Errorf("log in by %s: %w", s.Mechanism.Name(), err)
		}
		auth := answer.(*kmsg.SASLAuthenticateResponse)
		if err := AnswerError(auth.ErrorCode, auth.ErrorMessage); err != nil {
			return 0, s.loginRefused(err)
		}
		lifetime = time.Duration(max(0, auth.SessionLifetimeMillis)) * time.Millisecond
		if done, out, err = session.Challenge(auth.SASLAuthBytes); err != nil {
			return 0, s.loginRefused(err)
		}
		if done && len(out) > 0 {
			return 0, s.loginRefused(errors.New("the mechanism has finished, but has another message to send"))
		}
	}
	return lifetime, nil
}

// ExchangeOn returns the exchange for a connection without other requests in flight.
func ExchangeOn(nc net.Conn, clientID string) Exchange {
	return func(req kmsg.Request) (kmsg.Response, error) { return RoundTrip(nc, clientID, req) }
}

// RoundTrip writes one request, in the version set in it, and waits for its answer. It is
// for the rare requests on a connection without others in flight.
func RoundTrip(nc net.Conn, clientID string, req kmsg.Request) (kmsg.Response, error) {
	const correlation = 1
	f := kmsg.NewRequestFormatter(kmsg.FormatterClientID(clientID))
	if _, err := nc.Write(f.AppendRequest(nil, req, correlation)); err != nil {
		return nil, err
	}
	var head [4]byte
	if _, err := io.ReadFull(nc, head[:]); err != nil {
		return nil, err
	}
	size := int64(binary.BigEndian.Uint32(head[:]))
	if size < 4 || size > MaxControlAnswer {
		return nil, &NotKafkaError{Head: head}
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(nc, body); err != nil {
		return nil, err
	}
	if got := binary.BigEndian.Uint32(body); got != correlation {
		return nil, fmt.Errorf("the answer is to request %d, not to %d", got, correlation)
	}
	return ReadAnswer(req, body[4:])
}

// ReadAnswer decodes the answer to a request; body begins after the correlation id.
func ReadAnswer(req kmsg.Request, body []byte) (kmsg.Response, error) {
	resp := req.ResponseKind()
	resp.SetVersion(req.GetVersion())
	// A broker that does not know the version of this request answers in version 0 (KIP-511).
	if resp.Key() == int16(kmsg.ApiVersions) && len(body) >= 2 && int16(binary.BigEndian.Uint16(body)) == kerr.UnsupportedVersion.Code {
		resp.SetVersion(0)
	}
	// The response header of ApiVersions never has tags (KIP-511).
	if resp.IsFlexible() && resp.Key() != int16(kmsg.ApiVersions) {
		var err error
		if body, err = SkipTags(body); err != nil {
			return nil, err
		}
	}
	if err := resp.ReadFrom(body); err != nil {
		return nil, fmt.Errorf("decode the answer to %s: %w", kmsg.NameForKey(req.Key()), err)
	}
	return resp, nil
}

// SkipTags skips the tagged fields of a flexible response header.
func SkipTags(b []byte) ([]byte, error) {
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

// A NotKafkaError is an answer that is not Kafka's.
type NotKafkaError struct{ Head [4]byte }

func (e *NotKafkaError) Error() string {
	switch {
	case string(e.Head[:]) == "HTTP":
		return "the answer is HTTP, not Kafka"
	case e.Head[0] == 0x15 && e.Head[1] == 3:
		return "the answer is a TLS alert: the listener speaks TLS"
	}
	return fmt.Sprintf("the answer is not Kafka's: it begins with %q", e.Head[:])
}

// tls reports whether the other side speaks TLS.
func (e *NotKafkaError) tls() bool { return e.Head[0] == 0x15 && e.Head[1] == 3 }
