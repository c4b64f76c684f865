package standin

import (
	"io"

	"carronade/internal/standin"
)

// Kind is this stand-in as a command.
var Kind = standin.Kind{
	Name:  "riemann",
	Short: "a Riemann server, or with --discard a sink that only acknowledges",
	Long: `A Riemann server in this process: a small one with an index and the whole query
language, over TCP, TLS, UDP, WebSocket and HTTP; or with --discard one that
counts and acknowledges messages as fast as possible, so that the limits of
clients can be measured against the same server.

Addresses other than TCP's follow on the same line, as in ", udp ADDR".`,
	Example: `  carronade standin riemann
  carronade standin riemann --udp 127.0.0.1:5555 --ws 127.0.0.1:5556
  carronade standin riemann --discard --listen 127.0.0.1:0
  carronade standin riemann --delay 5ms --error overloaded@1% --drop 0.1%
  carronade standin riemann --server rate=1000/s --warm 10s`,
	New: standin.NewServer((*Options).Bind, func(o *Options) *io.Writer { return &o.Log }, Start, (*Server).Listening, func(o *Options) bool { return o.Discard }),
}
