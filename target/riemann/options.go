package riemann

import (
	"slices"

	"carronade/internal/dial"
	"carronade/target"
)

// Headings of the options in help.
const (
	groupConn     = "connections"
	groupSecurity = "security"
)

// options is the kind's table. Defaults that are empty mean "as the system
// likes", or off.
func options() []target.Option {
	return slices.Concat(connOptions, roadOptions, eventOptions, dial.Options(groupSecurity, "the server's"))
}

var connOptions = []target.Option{
	{
		Name: "clients", Type: target.Int, Default: "1", Group: groupConn, Independent: true,
		Help: "independent clients, each with a connection of its own",
	},
	{
		Name: "connect-timeout", Type: target.Duration, Default: "5s", Group: groupConn, Independent: true,
		Help: "how long making a connection may take, TLS included",
	},
	{
		Name: "request-timeout", Type: target.Duration, Default: "30s", Group: groupConn, Independent: true,
		Help: "how long an answer may take; then it is unknown, and the connection is made anew",
	},
	{
		Name: "reconnect-backoff", Type: target.Duration, Default: "50ms", Group: groupConn, Independent: true,
		Help: "pause before a lost connection is made anew; doubled, up to a second, while that fails",
	},
	{Name: "send-buffer", Type: target.Size, Group: groupConn, Independent: true, Help: "the connections' send buffer (SO_SNDBUF)"},
	{Name: "recv-buffer", Type: target.Size, Group: groupConn, Independent: true, Help: "the connections' receive buffer (SO_RCVBUF)"},
}
