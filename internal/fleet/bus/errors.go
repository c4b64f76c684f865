package bus

import "errors"

// Errors of connections and messages, for errors.Is.
var (
	ErrPin          = errors.New("the server has another certificate than expected")
	ErrNotTLS       = errors.New("the peer does not speak TLS")
	ErrNotBus       = errors.New("the peer is not the server of a fleet")
	ErrWrongToken   = errors.New("the server does not know this token")
	ErrUsedToken    = errors.New("the token was used already")
	ErrExpiredToken = errors.New("the token has expired")
	ErrNoToken      = errors.New("the server does not know this machine's key") // never registered, or revoked
	ErrSlow         = errors.New("too many wrong tokens came from this address")
	ErrNameTaken    = errors.New("another machine is registered under this name")
	ErrWrongName    = errors.New("the token is for another name")
	ErrSecond       = errors.New("an agent with this key is connected already")
	ErrFull         = errors.New("the fleet is full")
	ErrRevoked      = errors.New("the agent was revoked")
	ErrNoAgent      = errors.New("no agent of this name is registered")
	ErrName         = errors.New("an agent's name has 1 to 63 letters, digits, '_' or '-', and begins with a letter or digit")
	ErrTooLarge     = errors.New("a message has at most 1 MiB")
	ErrNotJoined    = errors.New("this machine has not joined a fleet")
	ErrDown         = errors.New("not connected to the server")
	ErrClosed       = errors.New("the connection was closed")
	ErrExternal     = errors.New("agents of an existing NATS server are managed by its administrator")
)
