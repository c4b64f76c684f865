package bus

import (
	"errors"
	"time"
)

// Bounds of a bus.
const (
	MaxMessage   = 1 << 20 // bytes of one message
	MaxAgents    = 64      // connected at once
	MaxOperators = 8       // connected at once
)

// DefaultListen is where a server listens if nothing is said.
const DefaultListen = "127.0.0.1:8236"

// OperatorFile is the name of the operator file in a server's data folder.
const OperatorFile = "operator.json"

// A ServerConfig is what a Server needs.
type ServerConfig struct {
	Listen    string               // HOST:PORT; "" is DefaultListen; port 0 is any free one
	Advertise string               // HOST or HOST:PORT in join files; "" is Listen, which then must name a host
	Dir       string               // data folder, made if missing: key, certificate, registered agents, operator file
	Logf      func(string, ...any) // who connects, registers, is refused, one line each; nil for none; called concurrently

	now func() time.Time // of tests
}

// A Server is the bus of a fleet. Its methods may be called concurrently.
type Server struct{}

// Serve starts a server, which runs until Close. It writes the operator file OperatorFile into the
// data folder. Errors are of type *Error: the port is taken, the data folder cannot be written, is
// damaged, or is in use by another server.
func Serve(cfg ServerConfig) (*Server, error) { return nil, errors.New("skeleton") }

// Addr is the address that the server listens on.
func (s *Server) Addr() string { return "" }

// Close ends the server and all connections. Agents and operators go on trying to reconnect.
func (s *Server) Close() error { return nil }
