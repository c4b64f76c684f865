package riemann

import "carronade/protocol"

// transportOptions are options that only some transports use.
var transportOptions = []protocol.Option{
	{
		Name: "max-datagram", Type: protocol.Size, Default: "16KiB", Group: groupConn, Independent: true,
		Help: "maximum datagram size that the server accepts; it drops larger ones silently",
	},
	{
		Name: "query-address", Word: "HOST:PORT", Group: groupConn,
		Help: "where the server answers queries, over TCP or riemann+tls://; default: the target's own address, or port 5555 of its host for riemann+ws and riemann+http",
	},
}
