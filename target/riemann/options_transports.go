package riemann

import "carronade/target"

// transportOptions are the rows that only some transports have a use for.
var transportOptions = []target.Option{
	{
		Name: "max-datagram", Type: target.Size, Default: "16KiB", Group: groupConn, Independent: true,
		Help: "the most bytes of a datagram that the server takes; more is lost without a word",
	},
	{
		Name: "query-address", Word: "HOST:PORT", Group: groupConn,
		Help: "where the server answers queries, over TCP or riemann+tls://; the target's own host and port 5555 where its transport answers none",
	},
}
