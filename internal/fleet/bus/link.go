package bus

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

func randomBelow(d time.Duration) time.Duration { return rand.N(max(d, 1)) }

// A link is a connection of NATS which comes back by itself, with an inbox. Agents and operators are
// made of it.
type link struct {
	conn *nats.Conn
	in   *inbox
	at   *stamp
	logf func(string, ...any)
	what string // for messages

	unknown error  // why it ended, if the server does not know the key any more
	key     string // public curve key, sent with messages where no server of ours knows it; else ""

	quit chan struct{} // closed when the connection is over
	mu   sync.Mutex
	why  error
	over bool
	last string // the last failure to connect again, said once
}

// keyHeader has the sender's public curve key.
const keyHeader = "Seal"

// A dialer makes the connections of a link to a server of this package. NATS asks for one at a time.
type dialer struct {
	link   *link
	agent  bool
	dial   func() (net.Conn, answer, error)
	first  net.Conn // that was made already
	ticket string
}

// Dial implements nats.CustomDialer. The address is known.
func (d *dialer) Dial(string, string) (net.Conn, error) {
	if conn := d.first; conn != nil {
		d.first = nil
		return conn, nil
	}
	conn, a, err := d.dial()
	if err != nil {
		d.link.refused(err)
		return nil, err
	}
	d.ticket = a.Ticket
	return conn, nil
}

// newLink starts a link. Without a dialer NATS makes the connections itself, with the options.
func newLink(ctx context.Context, what, url, key string, at *stamp, d *dialer, logf func(string, ...any), options ...nats.Option) (*link, error) {
	if logf == nil {
		logf = func(string, ...any) {}
	}
	l := &link{in: newInbox(), at: at, logf: logf, what: what, key: key, unknown: ErrNoToken, quit: make(chan struct{})}
	options = append([]nats.Option{
		nats.Name("carronade"),
		nats.Timeout(5 * time.Second),
		nats.PingInterval(pingEvery),
		nats.MaxPingsOutstanding(mostPings),
		nats.MaxReconnects(-1),
		nats.CustomReconnectDelay(retry),
		nats.ReconnectBufSize(-1), // what cannot be sent now is an error
		nats.IgnoreAuthErrorAbort(),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				l.logf("%s: connection lost: %v", what, natsReason(err))
			}
		}),
		nats.ReconnectHandler(func(*nats.Conn) {
			l.mu.Lock()
			l.last = ""
			l.mu.Unlock()
			l.logf("%s: connected again", what)
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { l.logf("%s: %v", what, natsReason(err)) }),
		nats.ClosedHandler(func(*nats.Conn) { l.end(ErrClosed) }),
	}, options...)
	if d != nil {
		d.link = l
		if d.agent {
			l.unknown = ErrRevoked
		}
		options = append(options, nats.SetCustomDialer(d), nats.SkipHostLookup(), nats.IgnoreDiscoveredServers(),
			nats.TokenHandler(func() string { return d.ticket }))
	}
	type result struct {
		conn *nats.Conn
		err  error
	}
	made := make(chan result, 1)
	go func() {
		conn, err := nats.Connect(url, options...)
		made <- result{conn, err}
	}()
	select {
	case r := <-made:
		if r.err != nil {
			l.in.close()
			return nil, r.err
		}
		l.mu.Lock()
		l.conn = r.conn
		over, why := l.over, l.why
		l.mu.Unlock()
		if over { // lost and refused already
			r.conn.Close()
			return nil, why
		}
		return l, nil
	case <-ctx.Done():
		l.in.close()
		go func() {
			if r := <-made; r.err == nil {
				r.conn.Close()
			}
		}()
		return nil, context.Cause(ctx)
	}
}

// refused notes why a connection was not made again. A key that is no longer known ends the link:
// trying again cannot help.
func (l *link) refused(err error) {
	l.mu.Lock()
	again := l.last == err.Error()
	l.last = err.Error()
	l.mu.Unlock()
	if errors.Is(err, ErrNoToken) {
		l.logf("%s: %v", l.what, l.unknown)
		go l.end(l.unknown) // not in a call of the connection
		return
	}
	if !again {
		l.logf("%v; trying again", err)
	}
}

// end ends the link for a reason; the first one counts.
func (l *link) end(why error) {
	l.mu.Lock()
	if l.over {
		l.mu.Unlock()
		return
	}
	l.over, l.why = true, why
	conn := l.conn // nil until it was made
	l.mu.Unlock()
	if conn != nil {
		conn.Close()
	}
	l.in.close()
	close(l.quit)
}

func (l *link) err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.why
}

func (l *link) connected() bool { return l.conn.IsConnected() }

// closeFor bounds the sending of what is left.
const closeFor = 2 * time.Second

// close sends what is left and ends the link.
func (l *link) close() {
	if l.conn.IsConnected() {
		l.conn.FlushTimeout(closeFor) //nolint:errcheck // who needs to know has it acknowledged
	}
	l.end(ErrClosed)
}

// send sends a message. NATS writes it to the socket at once, in another goroutine.
func (l *link) send(subject string, data []byte) error {
	if len(data) > MaxMessage {
		return ErrTooLarge
	}
	if !l.conn.IsConnected() {
		if why := l.err(); why != nil {
			return why
		}
		return ErrDown
	}
	m := &nats.Msg{Subject: subject, Data: data}
	if l.key != "" && len(data) < MaxMessage/2 { // headers count as payload
		m.Header = nats.Header{keyHeader: []string{l.key}}
	}
	switch err := l.conn.PublishMsg(m); {
	case err == nil:
		return nil
	case errors.Is(err, nats.ErrMaxPayload):
		return ErrTooLarge
	case errors.Is(err, nats.ErrConnectionClosed):
		return ErrClosed
	default:
		return ErrDown
	}
}

// subscribe puts what arrives on a subject into the inbox, and returns when the server knows of it.
// The inbox bounds what waits, not NATS, which has messages only until they are stamped.
func (l *link) subscribe(subject string, seen func(*nats.Msg)) error {
	sub, err := l.conn.Subscribe(subject, func(m *nats.Msg) {
		at := l.at.last()
		if seen != nil {
			seen(m)
		}
		if !l.in.put(letter{agentOf(m.Subject), m.Data, at}) {
			l.logf("%s: messages are lost: more than %d MiB wait to be received", l.what, mostWaiting>>20)
		}
	})
	if err != nil {
		return err
	}
	if err := sub.SetPendingLimits(-1, mostWaiting); err != nil {
		return err
	}
	return l.conn.FlushTimeout(5 * time.Second)
}

// natsReason is an error of NATS without its prefix.
func natsReason(err error) error {
	switch {
	case errors.Is(err, nats.ErrStaleConnection):
		return errors.New("the server does not answer")
	case errors.Is(err, nats.ErrMaxPayload):
		return ErrTooLarge
	}
	return reason(err)
}
