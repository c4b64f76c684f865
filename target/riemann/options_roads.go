package riemann

import "carronade/target"

// roadOptions are the rows that only some roads have a use for.
var roadOptions = []target.Option{
	{
		Name: "max-datagram", Type: target.Size, Default: "16KiB", Group: groupConn, Independent: true,
		Help: "the most bytes of a datagram that the server takes; more is lost without a word",
	},
	{
		Name: "tell", Word: "HOST:PORT", Group: groupConn,
		Help: "where the server answers queries, over TCP or riemann+tls://; the target's own host and port 5555 where its road answers none",
	},
}
