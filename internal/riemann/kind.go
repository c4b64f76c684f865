package riemann

import (
	"context"
	"net/url"
	"slices"

	"carronade/load"
	"carronade/measure"
	"carronade/protocol"
)

// Kind implements protocol.Kind for Riemann. It has no state.
type Kind struct{}

// opProduce is the one operation.
const opProduce = "produce"

// Name implements protocol.Kind.
func (Kind) Name() string { return "riemann" }

// Schemes implements protocol.Kind.
func (Kind) Schemes() []string {
	var all []string
	for i := range transports {
		all = append(all, transports[i].scheme)
	}
	return all
}

func (Kind) defaultPort(scheme string) string {
	for i := range transports {
		if transports[i].scheme == scheme {
			return transports[i].port
		}
	}
	return ""
}

// Ops implements protocol.Kind.
func (Kind) Ops() []string { return []string{opProduce} }

// Options implements protocol.Kind.
func (Kind) Options() []protocol.Option { return options() }

func (Kind) unacknowledged(u *url.URL, _ protocol.Values) bool {
	return slices.ContainsFunc(transports, func(t transport) bool { return t.unanswered && t.scheme == u.Scheme })
}

// A message is small and its answer smaller, so one at a time, or five, would
// measure the network round trip. A thousand in flight on a connection keep a
// server busy, and an idle server answers them within milliseconds.
const (
	defaultBatchEvents = "1"
	defaultInFlight    = "1000"
)

// Presets are the defaults of a small message.
func (Kind) Presets(*url.URL, protocol.Values, map[string]bool) (map[string]string, []string, error) {
	return map[string]string{"batch-events": defaultBatchEvents, "max-in-flight": defaultInFlight}, nil, nil
}

// Capabilities implements protocol.Kind. The index is queried for what was sent.
func (k Kind) Capabilities() protocol.KindCapabilities {
	return protocol.KindCapabilities{
		Presets: k.Presets, Unacknowledged: k.unacknowledged, Verifies: true,
		Check: k.Check, DefaultPort: k.defaultPort, Needs: k.Needs, Inspector: k,
	}
}

// A transport is one of Riemann's protocols, named by its URL scheme.
type transport struct {
	scheme     string
	port       string // where none is given
	path       string // likewise
	tls        bool
	unanswered bool // nothing is acknowledged

	// probe checks that a Riemann server answers at an address, and returns
	// what it says about itself.
	probe func(ctx context.Context, c *config, addr string) (map[string]any, error)
	// lane makes a lane and its connection. encoders has one for each stream,
	// by number; the lane's own stream has its id.
	lane func(ctx context.Context, c *config, id int, addr string, encoders []*encoder) (sender, error)
}

// transports are all of them, the usual one first.
var transports = []transport{
	{scheme: "riemann", port: "5555", probe: probeTCP, lane: newTCPLane},
	{scheme: "riemann+tls", port: "5554", tls: true, probe: probeTCP, lane: newTCPLane},
	{scheme: "riemann+udp", port: "5555", unanswered: true, probe: probeUDP, lane: newUDPLane},
	{scheme: webSocketScheme, port: "5556", path: eventsPath, probe: probeWeb, lane: newSocketLane},
	{scheme: httpScheme, port: "5556", path: eventsPath, probe: probeWeb, lane: newHTTPLane},
}

// A sender is a lane of any transport, as the session uses it.
type sender interface {
	load.Lane
	// start is called once, before the first batch.
	start(sink load.Sink)
	// wire returns bytes written and read so far.
	wire() (written, read uint64)
	// metrics counts what its connections carried so far.
	metrics() measure.Client
	// warnings are for the user.
	warnings() []string
	// disconnect ends its connections and makes no new ones. The lane is closed
	// before, if it was started.
	disconnect() error
}
