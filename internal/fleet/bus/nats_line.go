package bus

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"carronade/internal/advice"
)

// keyHeader has the sender's public curve key.
const keyHeader = "Seal"

// mostPings is how many pings an existing NATS server may leave without an answer.
const mostPings = int(silentFor/pingEvery) - 1

// The subjects of an agent.
func upSubject(agent string) string   { return "f." + agent + ".up" }
func downSubject(agent string) string { return "f." + agent + ".down" }

// agentOf returns the agent of a subject.
func agentOf(subject string) string {
	agent, _, _ := strings.Cut(strings.TrimPrefix(subject, "f."), ".")
	return agent
}

// A natsLine is a line to an existing NATS server.
type natsLine struct {
	link  *link
	conn  *nats.Conn
	agent string // "" of an operator
	key   string // public curve key, sent with messages: the server does not know it

	mu    sync.Mutex
	seals map[string]string // operator: public curve keys of agents
}

// A stampDialer makes the connections to an existing NATS server.
type stampDialer struct{ at *stamp }

// Dial implements nats.CustomDialer.
func (d stampDialer) Dial(network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{Timeout: dialFor / 2}).Dial(network, address)
	if err != nil {
		return nil, err
	}
	return &stamped{conn, d.at}, nil
}

// openNATS starts the line of a link, with options for the connection.
func (l *link) openNATS(ctx context.Context, url, agent, key string, options ...nats.Option) (*natsLine, error) {
	n := &natsLine{link: l, agent: agent, key: key, seals: map[string]string{}}
	options = append([]nats.Option{
		nats.Name("carronade"),
		nats.Timeout(5 * time.Second),
		nats.PingInterval(pingEvery),
		nats.MaxPingsOutstanding(mostPings),
		nats.MaxReconnects(-1),
		nats.CustomReconnectDelay(retry),
		nats.ReconnectBufSize(-1), // what cannot be sent now is an error
		nats.IgnoreAuthErrorAbort(),
		nats.SetCustomDialer(stampDialer{l.at}),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				l.logf("%s: connection lost: %v", l.what, natsReason(err))
			}
		}),
		nats.ReconnectHandler(func(*nats.Conn) { l.logf("%s: connected again", l.what) }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { l.logf("%s: %v", l.what, natsReason(err)) }),
		nats.ClosedHandler(func(*nats.Conn) { l.end(ErrClosed) }),
	}, options...)
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
		n.conn = r.conn
		l.mu.Lock()
		l.line = n
		over, why := l.over, l.why
		l.mu.Unlock()
		if over { // closed already
			r.conn.Close()
			return nil, why
		}
		return n, nil
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

// subscribe puts what the other side sends into the inbox, and returns when the server knows of it. The inbox
// bounds what waits, not NATS, which has messages only until they are stamped.
func (n *natsLine) subscribe() error {
	subject := upSubject("*")
	if n.agent != "" {
		subject = downSubject(n.agent)
	}
	sub, err := n.conn.Subscribe(subject, func(m *nats.Msg) {
		agent := agentOf(m.Subject)
		if key := m.Header.Get(keyHeader); key != "" {
			n.mu.Lock()
			n.seals[agent] = key
			n.mu.Unlock()
		}
		n.link.got(agent, m.Data)
	})
	if err != nil {
		return err
	}
	if err := sub.SetPendingLimits(-1, mostWaiting); err != nil {
		return err
	}
	return n.conn.FlushTimeout(5 * time.Second)
}

// sealOf is the public curve key that came with an agent's messages.
func (n *natsLine) sealOf(agent string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.seals[agent]
}

// listen subscribes on a new connection; hint is for one whose permissions do not allow it. Errors are of
// type *advice.Error.
func (n *natsLine) listen(doing, hint string) error {
	if err := n.subscribe(); err != nil {
		return &advice.Error{Doing: doing, Err: natsReason(err)}
	}
	if errors.Is(n.conn.LastError(), nats.ErrPermissionViolation) {
		return &advice.Error{Doing: doing, Err: errors.New("its permissions do not allow it to receive"), Hint: hint}
	}
	return nil
}

func (n *natsLine) connected() bool { return n.conn.IsConnected() }

// send sends a message. NATS writes it to the socket at once, in another goroutine.
func (n *natsLine) send(agent string, message []byte) error {
	m := &nats.Msg{Subject: downSubject(agent), Data: message}
	if n.agent != "" {
		m.Subject = upSubject(n.agent)
	}
	if len(message) < MaxMessage/2 { // headers count as payload
		m.Header = nats.Header{keyHeader: []string{n.key}}
	}
	switch err := n.conn.PublishMsg(m); {
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

func (n *natsLine) flush() {
	n.conn.FlushTimeout(closeFor) //nolint:errcheck // who needs to know has it acknowledged
}

func (n *natsLine) shut() { n.conn.Close() }

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
