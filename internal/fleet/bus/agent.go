package bus

import (
	"context"
	"errors"
	"time"
)

// An AgentConfig is what an Agent needs.
type AgentConfig struct {
	Join string               // path of the join file; may be "" after the first contact
	NATS *NATS                // an existing NATS server instead of a join file
	Dir  string               // folder of the agent's key and of what it knows of the server, made if missing
	Name string               // "" is the join file's, or else the name of this host
	Logf func(string, ...any) // when the connection is lost, refused and made again; nil for none; called concurrently
}

// An Agent is a generator's connection. It reconnects by itself. Its methods may be called
// concurrently.
type Agent struct{}

// ConnectAgent connects an agent. The first time it makes a key in the folder and registers it with
// the token of the join file; from then on it needs only the folder. If both are given, and the join
// file is for another server than the folder's, the agent registers there with its key and replaces
// what it knew. It tries once; from then on the agent reconnects by itself. Errors are of type
// *Error.
func ConnectAgent(ctx context.Context, cfg AgentConfig) (*Agent, error) {
	return nil, errors.New("skeleton")
}

// Name is the name under which the agent is registered.
func (a *Agent) Name() string { return "" }

// Send sends a message of at most MaxMessage bytes to the operator, at once; it keeps no reference
// to the message. ErrDown while there is no connection to the server: nothing is kept for later. No
// error does not say that an operator has got it.
func (a *Agent) Send(message []byte) error { return errors.New("skeleton") }

// Receive calls f with each message of the operator, one call at a time, in order; those that came
// since ConnectAgent too. at has a monotonic clock reading: it is when the message arrived, before
// it was queued for f. f owns the message. A later call replaces f.
func (a *Agent) Receive(f func(message []byte, at time.Time)) {}

// Open decrypts what Operator.Seal sealed for this agent.
func (a *Agent) Open(sealed []byte) ([]byte, error) { return nil, errors.New("skeleton") }

// Connected reports whether there is a connection to the server now.
func (a *Agent) Connected() bool { return false }

// Done is closed when the agent will not reconnect any more: after Close, or when the server has
// revoked it. Err then says why.
func (a *Agent) Done() <-chan struct{} { return nil }

// Err is nil until Done is closed; then ErrClosed or why the agent gave up, such as ErrRevoked.
func (a *Agent) Err() error { return nil }

// Close sends what was not sent yet and ends the connection. No function given to Receive runs when
// it has returned, unless that function itself called Close.
func (a *Agent) Close() error { return nil }
