package fleet

import (
	"fmt"
	"sync/atomic"
	"time"
)

// A Route leads to one agent: through a transport on which it has this name.
type Route struct {
	Through Transport
	Agent   string
}

// Routes is a Transport for agents that are reached in different ways, by the names that they have
// for the operator. No two of them may go through one transport.
type Routes map[string]Route

// Send implements Transport.
func (r Routes) Send(agent string, message []byte) error {
	to, ok := r[agent]
	if !ok {
		return fmt.Errorf("no connection leads to agent %s", agent)
	}
	return to.Through.Send(to.Agent, message)
}

// Receive implements Transport. Calls of f with messages of different agents may be concurrent.
func (r Routes) Receive(f func(agent string, message []byte, at time.Time)) {
	for name, from := range r {
		from.Through.Receive(func(agent string, message []byte, at time.Time) {
			if agent == from.Agent {
				f(name, message, at)
			}
		})
	}
}

// Within returns the two ends of a connection between an operator and an agent of this name in one
// process. A message is passed on at once. The connection never ends.
func Within(name string) (Transport, AgentTransport) {
	w := &within{name: name, over: make(chan struct{})}
	return (*operatorEnd)(w), (*agentEnd)(w)
}

// within is a connection in one process.
type within struct {
	name     string
	over     chan struct{} // never closed
	operator atomic.Pointer[func(agent string, message []byte, at time.Time)]
	agent    atomic.Pointer[func(message []byte, at time.Time)]
}

type operatorEnd within

// Send implements Transport.
func (o *operatorEnd) Send(_ string, message []byte) error {
	if f := o.agent.Load(); f != nil {
		(*f)(message, time.Now())
	}
	return nil
}

// Receive implements Transport.
func (o *operatorEnd) Receive(f func(agent string, message []byte, at time.Time)) {
	o.operator.Store(&f)
}

type agentEnd within

// Send implements AgentTransport.
func (a *agentEnd) Send(message []byte) error {
	if f := a.operator.Load(); f != nil {
		(*f)(a.name, message, time.Now())
	}
	return nil
}

// Receive implements AgentTransport.
func (a *agentEnd) Receive(f func(message []byte, at time.Time)) { a.agent.Store(&f) }

// Done implements AgentTransport.
func (a *agentEnd) Done() <-chan struct{} { return a.over }

// Err implements AgentTransport.
func (*agentEnd) Err() error { return nil }
