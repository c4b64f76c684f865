package bus

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"syscall"
	"time"

	"carronade/internal/advice"
)

// dialFor bounds the making of a connection, with the first exchange.
const dialFor = 10 * time.Second

// A stamped connection records when bytes came from the socket, below TLS.
type stamped struct {
	net.Conn
	at *stamp
}

func (c *stamped) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.at.set()
	return n, err
}

// mostDials is how often a connection is tried that the server closes without an answer: if many come at once,
// it closes some of those that have not shown a key yet.
const mostDials = 5

// errNoAnswer is the error of such a connection.
var errNoAnswer = errors.New("it closed the connection without an answer")

// connect makes a connection to a server of this package and does the first exchange. Errors are of
// type *advice.Error.
func connect(ctx context.Context, address, pin string, h hello, own keys, at *stamp) (*tls.Conn, answer, error) {
	ctx, cancel := context.WithTimeout(ctx, dialFor)
	defer cancel()
	for n := 1; ; n++ {
		conn, a, err := connectOnce(ctx, address, pin, h, own, at)
		if n == mostDials || !errors.Is(err, errNoAnswer) {
			return conn, a, err
		}
		select {
		case <-time.After(retry(n)):
		case <-ctx.Done():
			return nil, answer{}, err
		}
	}
}

func connectOnce(ctx context.Context, address, pin string, h hello, own keys, at *stamp) (*tls.Conn, answer, error) {
	doing := "connect to the fleet's server at " + address
	raw, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, answer{}, &advice.Error{Doing: doing, Err: dialReason(err), Hint: "is it running, and may this machine connect to it? `carronade fleet start` runs it"}
	}
	conn := tls.Client(&stamped{raw, at}, clientTLS(pin))
	if err := conn.HandshakeContext(ctx); err != nil {
		raw.Close()
		return nil, answer{}, tlsError(doing, err)
	}
	if conn.ConnectionState().NegotiatedProtocol != protocol {
		raw.Close()
		return nil, answer{}, &advice.Error{Doing: doing, Err: ErrNotBus, Hint: "use the same version of carronade on all machines"}
	}
	h.Key, h.Seal = own.publicSign, own.publicSeal
	a, err := sayHello(ctx, conn, h, own.sign)
	if err != nil {
		raw.Close()
		if ctx.Err() != nil {
			err = dialReason(ctx.Err())
		}
		return nil, answer{}, tlsError(doing, err)
	}
	if err := a.err(); err != nil {
		raw.Close()
		return nil, answer{}, &advice.Error{Doing: doing, Err: err, Hint: refusedHint(h.Role, err)}
	}
	return conn, a, nil
}

// tlsError says why a server's end of a connection is not what was expected.
func tlsError(doing string, err error) error {
	head, isHead := errors.AsType[tls.RecordHeaderError](err)
	remote, isRemote := errors.AsType[*net.OpError](err)
	switch {
	case errors.Is(err, ErrPin):
		return &advice.Error{Doing: doing, Err: ErrPin, Hint: "the server was set up again, or this is another machine: get a new join file from the right one"}
	case isHead && head.Conn != nil:
		return &advice.Error{Doing: doing, Err: ErrNotTLS, Hint: "check the address: another program listens there"}
	case isRemote && remote.Op == "remote error": // an alert of TLS
		return &advice.Error{Doing: doing, Err: ErrNotBus, Hint: "check the address, and use the same version of carronade on all machines"}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return &advice.Error{Doing: doing, Err: errNoAnswer, Hint: "its log says why; is it the server of a fleet?"}
	}
	return &advice.Error{Doing: doing, Err: dialReason(err)}
}

func dialReason(err error) error {
	var timeout net.Error
	if errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout() {
		return errors.New("no answer in time")
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return errors.New(dns.Err + ": " + dns.Name)
	}
	return reason(err)
}

// refusedHint is the way out of a refusal.
func refusedHint(role string, err error) string {
	again := "make a new join file with `carronade fleet token`"
	switch {
	case errors.Is(err, ErrNoToken) && role != roleAgent:
		return "the operator file is not the one in the data folder of this server"
	case errors.Is(err, ErrNoToken):
		return "it was revoked or never joined: " + again
	case errors.Is(err, ErrUsedToken), errors.Is(err, ErrExpiredToken), errors.Is(err, ErrWrongToken):
		return again
	case errors.Is(err, ErrSlow):
		return "wait, then " + again
	case errors.Is(err, ErrNameTaken):
		return "choose another name, or revoke that agent, or make a token for this name, which replaces that machine"
	case errors.Is(err, ErrWrongName):
		return "leave out the name, or make a join file for the wanted one"
	case errors.Is(err, ErrSecond):
		return "a second agent on one machine needs --data FOLDER of its own; else end that process first, or if its machine was lost, try again in 10 seconds"
	case errors.Is(err, ErrFull):
		return "disconnect others first"
	case errors.Is(err, ErrNoAgent):
		return "`carronade fleet status` lists the names"
	case errors.Is(err, ErrName):
		return "choose another name"
	}
	return ""
}

// retry is the time before the next try to connect again: soon first, so that a restarted server has
// its fleet back quickly, and never all at one moment.
func retry(attempt int) time.Duration {
	wait := min(2*time.Second, 50*time.Millisecond<<min(max(attempt-1, 0), 10))
	return wait/2 + randomBelow(wait/2)
}
