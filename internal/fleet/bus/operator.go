package bus

import (
	"context"
	"errors"
	"time"
)

// DefaultValid is for how long a token is valid if nothing is said.
const DefaultValid = 15 * time.Minute

// A Registered is an agent that the server knows.
type Registered struct {
	Name      string    `json:"name"`
	Key       string    `json:"key"` // public
	Since     time.Time `json:"since"`
	Connected bool      `json:"connected"`         // now
	Address   string    `json:"address,omitempty"` // that it is connected from
}

// An Operator commands the agents. It reconnects by itself. Its methods may be called concurrently.
type Operator struct{}

// ConnectOperator connects with the credentials of an operator file, which a server writes into its
// data folder. It tries once; from then on the operator reconnects by itself. Errors are of type
// *Error.
func ConnectOperator(ctx context.Context, operatorFile string) (*Operator, error) {
	return nil, errors.New("skeleton")
}

// ConnectOperatorNATS connects to an existing NATS server instead. Token, Revoke and Agents then
// return ErrExternal.
func ConnectOperatorNATS(ctx context.Context, server NATS) (*Operator, error) {
	return nil, errors.New("skeleton")
}

// Token makes a token with which one agent can register, and returns what its join file has. The
// token is valid once, and for the given time (0 is DefaultValid). A token for a name also lets the
// agent of that name register again with another key, which replaces the old one; "" is any name
// that is not taken.
func (o *Operator) Token(ctx context.Context, name string, valid time.Duration) (Join, error) {
	return Join{}, errors.New("skeleton")
}

// Revoke removes an agent: it is disconnected, and its key is refused from then on. ErrNoAgent if
// none has this name.
func (o *Operator) Revoke(ctx context.Context, agent string) error { return errors.New("skeleton") }

// Agents returns the registered agents, by name.
func (o *Operator) Agents(ctx context.Context) ([]Registered, error) {
	return nil, errors.New("skeleton")
}

// Send sends a message of at most MaxMessage bytes to an agent, at once; it keeps no reference to
// the message. ErrDown while there is no connection to the server. No error does not say that the
// agent has got it.
func (o *Operator) Send(agent string, message []byte) error { return errors.New("skeleton") }

// Receive begins to receive what agents send and calls f with each message, one call at a time, in
// the order in which the server got them. at has a monotonic clock reading: it is when the message
// arrived, before it was queued for f. f owns the message. Messages that were sent before the first
// call of Receive are lost; a later call replaces f.
func (o *Operator) Receive(f func(agent string, message []byte, at time.Time)) {}

// Seal encrypts a secret so that only this agent can open it. It asks the server for the agent's
// key the first time, and again after the agent has registered again. ErrNoAgent if none has this
// name.
func (o *Operator) Seal(agent string, secret []byte) ([]byte, error) {
	return nil, errors.New("skeleton")
}

// Connected reports whether there is a connection to the server now.
func (o *Operator) Connected() bool { return false }

// Close sends what was not sent yet and ends the connection. No function given to Receive runs when
// it has returned, unless that function itself called Close.
func (o *Operator) Close() error { return nil }
