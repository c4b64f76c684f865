package web

import (
	"cmp"
	"strconv"

	"carronade/protocol"
)

// defaultClients is the number of connections without --clients and --concurrency.
const defaultClients = 8

// clientBytes is resident memory of a connection on Linux (amd64): 9,000 take 66 MiB more than one.
const clientBytes = 6 << 10

// ClientsOption is the option for the number of connections.
func ClientsOption(group string) protocol.Option {
	return protocol.Option{
		Name: "clients", Type: protocol.Int, Group: group, Independent: true,
		Help: "connections; default: one for each caller with --concurrency, otherwise " + strconv.Itoa(defaultClients),
	}
}

// Clients is the number of connections of a run. Requests that share a few connections wait for each
// other, so without --clients there is one for each caller.
func Clients(s protocol.Spec) int {
	return cmp.Or(s.Options.Int("clients"), s.Concurrency, defaultClients)
}

// ConnectionNeed is what the connections of a run take of the machine, without requests in flight.
func ConnectionNeed(s protocol.Spec) protocol.Need {
	need := protocol.Need{Setting: "clients", Number: int64(s.Portion.Clients(Clients(s))), Bytes: clientBytes, Files: 1}
	if !s.Options.Has("clients") && s.Concurrency > 0 {
		need.Setting = "concurrency"
	}
	return need
}
