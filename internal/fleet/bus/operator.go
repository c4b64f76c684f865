package bus

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync"
	"time"

	"carronade/internal/advice"
)

// DefaultValid is for how long a token is valid if nothing is said.
const DefaultValid = 15 * time.Minute

// longestValid bounds what can be said.
const longestValid = 30 * 24 * time.Hour

// A Registered is an agent that the server knows.
type Registered struct {
	Name      string    `json:"name"`
	Key       string    `json:"key"` // public
	Since     time.Time `json:"since"`
	Connected bool      `json:"connected"`         // now
	Address   string    `json:"address,omitempty"` // that it is connected from
}

// An Operator commands the agents. It reconnects by itself. Its methods may be called concurrently.
type Operator struct {
	link *link
	keys keys
	file operatorFile // empty if the existing NATS server is not from a file

	nats      *natsLine // nil with a server of this package
	subscribe sync.Once
}

// ConnectOperator connects with the credentials of an operator file, which a server writes into its
// data folder. It tries once; from then on the operator reconnects by itself. Errors are of type
// *advice.Error.
func ConnectOperator(ctx context.Context, operatorFile string) (*Operator, error) {
	f, err := readFile(operatorFile, parseOperatorFile)
	if err != nil {
		return nil, &advice.Error{Doing: "read the operator file " + operatorFile, Err: err, Hint: "it is in the data folder of the server; `carronade fleet start` makes it"}
	}
	if f.NATS != nil {
		o, err := ConnectOperatorNATS(ctx, f.NATS.server())
		if err == nil {
			o.file = f
		}
		return o, err
	}
	return connectOperator(ctx, f, operatorFile)
}

// connectOperator connects to a server of this package with what the file at a path has.
func connectOperator(ctx context.Context, f operatorFile, path string) (*Operator, error) {
	own, err := f.keys()
	if err != nil {
		return nil, &advice.Error{Doing: "use the keys in " + path, Err: err}
	}
	at := &stamp{}
	dial := func(ctx context.Context) (*tls.Conn, answer, error) {
		return connect(ctx, f.Address, f.Pin, hello{Role: roleOperator}, own, at)
	}
	conn, _, err := dial(ctx)
	if err != nil {
		return nil, err
	}
	l := newLink("operator", at, false, nil)
	l.openLine(conn, ErrNoToken, dial)
	return &Operator{link: l, keys: own, file: f}, nil
}

// control asks the server, on a connection of its own.
func (o *Operator) control(ctx context.Context, r request) (answer, error) {
	if o.External() {
		return answer{}, ErrExternal
	}
	conn, a, err := connect(ctx, o.file.Address, o.file.Pin, hello{Role: roleControl, Request: &r}, o.keys, &stamp{})
	if err != nil {
		return answer{}, err
	}
	conn.Close()
	return a, nil
}

// Token makes a token with which one agent can register, and returns what its join file has. The
// token is valid once, and for the given time (0 is DefaultValid). A token for a name also lets the
// agent of that name register again with another key, which replaces the old one; "" is any name
// that is not taken.
func (o *Operator) Token(ctx context.Context, name string, valid time.Duration) (Join, error) {
	valid = cmp.Or(valid, DefaultValid)
	if valid < time.Second || valid > longestValid {
		return Join{}, &advice.Error{Doing: "make a token", Err: fmt.Errorf("it cannot be valid for %v", valid), Hint: "say a time from 1s to 720h"}
	}
	a, err := o.control(ctx, request{Do: "token", Agent: name, Seconds: int64(valid / time.Second)})
	if err == nil && a.Token == nil {
		err = &advice.Error{Doing: "make a token", Err: errBroken}
	}
	if err != nil {
		return Join{}, err
	}
	return *a.Token, nil
}

// Revoke removes an agent: it is disconnected, and its key is refused from then on, and so are tokens
// for its name that were not used. ErrNoAgent if none has this name.
func (o *Operator) Revoke(ctx context.Context, agent string) error {
	_, err := o.control(ctx, request{Do: "revoke", Agent: agent})
	return err
}

// External reports whether the server is an existing NATS server, which does not list who is
// connected.
func (o *Operator) External() bool { return o.nats != nil }

// Agents returns the registered agents, by name. With an existing NATS server they are those
// that the operator file names, and all of them may be connected.
func (o *Operator) Agents(ctx context.Context) ([]Registered, error) {
	if n := o.file.NATS; n != nil {
		var all []Registered
		for _, name := range n.Agents {
			all = append(all, Registered{Name: name, Connected: true})
		}
		return all, nil
	}
	a, err := o.control(ctx, request{Do: "agents"})
	return a.Agents, err
}

// Send sends a message of at most MaxMessage bytes to an agent, at once; it keeps no reference to
// the message. ErrDown without a connection to the server. No error does not say that the
// agent has got it.
func (o *Operator) Send(agent string, message []byte) error {
	if !ValidName(agent) {
		return ErrName
	}
	return o.link.send(agent, message)
}

// Receive begins to receive what agents send and calls f with each message, one call at a time, in
// the order in which the server got them. at has a monotonic clock reading: it is when the message
// arrived, before it was queued for f. f owns the message. Messages that were sent before the first
// call of Receive are lost, and those that come while 64 MiB wait for f; a later call replaces f.
func (o *Operator) Receive(f func(agent string, message []byte, at time.Time)) {
	o.link.in.receive(func(l letter) { f(l.agent, l.data, l.at) })
	if o.nats != nil {
		// An error is that of a lost connection: NATS subscribes when it is back.
		o.subscribe.Do(func() { o.nats.subscribe() }) //nolint:errcheck // said above
	}
}

// sealFor bounds the question for an agent's key.
const sealFor = 10 * time.Second

// Seal encrypts a secret so that only this agent can open it. It asks the server for the agent's
// key; with an existing NATS server the agent must have sent a message since Receive. ErrNoAgent if
// none has this name.
func (o *Operator) Seal(agent string, secret []byte) ([]byte, error) {
	if o.External() {
		key := o.nats.sealOf(agent)
		if key == "" {
			return nil, &advice.Error{Doing: "seal a secret for agent " + clean(agent), Err: ErrNoAgent, Hint: "it has sent nothing until now"}
		}
		return o.keys.sealFor(secret, key)
	}
	ctx, cancel := context.WithTimeout(context.Background(), sealFor)
	defer cancel()
	a, err := o.control(ctx, request{Do: "key", Agent: agent})
	if err != nil {
		return nil, err
	}
	return o.keys.sealFor(secret, a.Key)
}

// Connected reports whether there is a connection to the server now.
func (o *Operator) Connected() bool { return o.link.connected() }

// Done is closed when the operator will not reconnect any more: after Close, or when the server has
// another operator file. Err then says why.
func (o *Operator) Done() <-chan struct{} { return o.link.quit }

// Err is nil until Done is closed; then ErrClosed or why the operator gave up, such as ErrNoToken.
func (o *Operator) Err() error { return o.link.err() }

// Close sends what was not sent yet and ends the connection. No call of the function given to
// Receive begins after it has returned; one may still run.
func (o *Operator) Close() error {
	o.link.close()
	if err := o.link.err(); !errors.Is(err, ErrClosed) {
		return err
	}
	return nil
}
