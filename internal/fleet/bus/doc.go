// Package bus is the transport of a fleet: it moves messages, which are bytes to it, between one
// operator and named agents, through a server that all of them connect to. It knows nothing of load.
// Nor does package fleet know the bus: its tests simulate the network.
//
// A Server listens on one TLS port. An Agent makes itself a key when it first connects, and registers
// it with a token that is valid once and for a short time; from then on it proves that it has the key.
// An Operator has a key in the server's data folder. Agents and operators know the server by the hash
// of its certificate. After the first exchange (wire.go), which checks the key, a connection has
// messages (peer.go), and the server passes them on (session.go): an agent's to all operators, an
// operator's to the agent that it names.
//
// An existing NATS server (type NATS) can be used instead of a Server. An agent A then publishes to
// f.A.up and receives from f.A.down, the operator the other way round, and its administrator gives
// these permissions. This package has only NATS's client.
//
// Delivery is at most once and, from one sender to one receiver, in order. A message that is sent
// while its receiver is not connected is lost without an error: a protocol that needs more
// acknowledges messages and sends them again. The queue for a receiver is bounded: one that does not
// read is disconnected.
//
// Its invariants: a client without a registered key or a valid token does not get past the first
// exchange; an agent neither reads nor writes what belongs to another; a key is registered on disk
// before its registration is confirmed; an agent is connected once at a time; secrets are in no error
// and in no log.
package bus
