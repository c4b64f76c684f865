package riemann

import (
	"slices"

	"carronade/internal/conn"
	"carronade/protocol"
)

// Headings of the options in help.
const (
	groupConn     = "connections"
	groupSecurity = "security"
)

// options are the kind's options. An empty default means the operating system's
// default, or off.
func options() []protocol.Option {
	return slices.Concat(connOptions, conn.Options(groupConn, conn.ConnectTimeout{Default: "5s", Independent: true}), transportOptions, eventOptions, conn.TLSOptions(groupSecurity, "the server's"))
}

var connOptions = []protocol.Option{
	{
		Name: "clients", Type: protocol.Int, Default: "1", Group: groupConn, Independent: true,
		Help: "independent clients, each with its own connection",
	},
	{
		Name: "sticky", Type: protocol.Bool, Group: groupConn, Independent: true,
		Help: "each client sends only its own events, in their order; false: a due message goes to the first free client",
	},
	{
		Name: "reconnect-backoff", Type: protocol.Duration, Default: "50ms", Group: groupConn, Independent: true,
		Help: "pause before reconnecting; doubled after each failure, up to 1s",
	},
}
