package riemann

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"carronade/internal/conn"
	"carronade/protocol"
	"carronade/units"
)

// Inspects implements protocol.Inspector.
func (Kind) Inspects(o *protocol.Option) bool {
	switch o.Group {
	case groupSecurity:
		return true
	case groupConn:
		return !slices.Contains([]string{"sticky", "reconnect-backoff", "max-datagram"}, o.Name)
	}
	return false
}

// Inspect implements protocol.Inspector. It makes the connections that a run makes first, asks
// the index for the server's own events, and tries the ports of the other transports.
func (Kind) Inspect(ctx context.Context, s protocol.Spec) (protocol.Inspection, error) {
	c, err := parseConfig(s)
	if err != nil {
		return protocol.Inspection{}, err
	}
	in := protocol.Inspection{Addresses: c.hosts, Connections: c.clients}
	var (
		wg    sync.WaitGroup
		ports protocol.Finding
	)
	wg.Go(func() { ports = c.otherPorts(ctx, c.hosts[0]) })
	in.Findings, err = conn.InspectAll(ctx, c.hosts, "a Riemann server", "clients",
		func(ctx context.Context, i int) ([]protocol.Finding, error) { return c.inspectHost(ctx, c.hosts[i]) },
		func(i int, err error) error { return c.explain("connect to "+c.hosts[i], err) })
	wg.Wait()
	if err != nil {
		return in, err
	}
	in.Findings = append(in.Findings, ports, protocol.Finding{
		Check: "version of the server", Level: protocol.LevelUnknown, Found: "Riemann's protocol has no field for the server's version",
	})
	return in, nil
}

// inspectHost checks one address: the connection, the protocol, and the index.
func (c *config) inspectHost(ctx context.Context, addr string) ([]protocol.Finding, error) {
	found, err := c.transport.probe(ctx, c, addr)
	if err != nil {
		return nil, err
	}
	var out []protocol.Finding
	if c.transport.scheme == udpScheme {
		out = append(out, udpFinding(addr, conn.IsLocal(addr)))
	} else {
		contact := c.dialer.Contact(ctx, addr)
		out = append(out, contact.Findings(time.Now())...)
	}
	if c.skipVerify {
		out = append(out, protocol.Finding{
			Check: "login", Level: protocol.LevelNote, Found: "any certificate of " + addr + " is accepted",
			Effect: "another server could answer instead; times are not affected",
			Fix:    "give --tls-ca FILE instead of --tls-insecure-skip-verify",
		})
	}
	if found["standin"] == true {
		out = append(out, protocol.Finding{Check: "server", Found: addr + " is a stand-in of carronade"})
	}
	return append(out, c.inspectIndex(ctx, addr)...), nil
}

// whyUDP is why nothing is known about a UDP port that does not refuse.
const whyUDP = "a server does not answer datagrams, and a firewall that drops them looks the same"

// udpFinding is about an address that did not refuse a datagram. Only this machine's own kernel is
// certain to refuse them if nothing listens.
func udpFinding(addr string, local bool) protocol.Finding {
	f := protocol.Finding{Check: "address " + addr, Found: "nothing refuses datagrams to " + addr}
	if !local {
		f.Level = protocol.LevelUnknown
		f.Found += "; whether a server receives them is not known: " + whyUDP
	}
	return f
}

// inspectIndex asks the server of an address for its own events.
func (c *config) inspectIndex(ctx context.Context, addr string) []protocol.Finding {
	r, at, err := c.queryPlace(addr)
	var a *asker
	if err == nil {
		a, err = newAsker(r, at, c.values)
	}
	f := protocol.Finding{Check: "index", Found: "the index at " + at + " answers queries"}
	if err == nil {
		defer a.close()
		began := time.Now()
		events, asking := a.ask(ctx, probeQuery)
		if err = asking; err == nil {
			var newest time.Time
			for i := range events {
				if at, ok := events[i].When(); ok && events[i].Service == askedService && at.After(newest) {
					newest = at
				}
			}
			return []protocol.Finding{f, clockFinding(addr, newest, began, time.Now())}
		}
		f.Effect = "--verify cannot read back what was sent, and reports lack the server's own numbers"
		f.Fix = "say with --query-address HOST:5555 where the server answers queries over TCP"
		if answer := (*answerError)(nil); errors.As(err, &answer) {
			f.Fix = "add (streams (index)) to the server's configuration"
		}
	}
	f.Level, f.Found = protocol.LevelNote, fmt.Sprintf("the server does not answer queries at %s: %v", at, err)
	return []protocol.Finding{f, clockFinding(addr, time.Time{}, time.Now(), time.Now())}
}

// ownInterval is how often a server emits events about itself, unless it is configured
// otherwise; a second more for the resolution of their times, and one for the index.
const ownInterval = 12 * time.Second

// clockFinding is what the newest event of the server itself says about its clock: it was
// made at most ownInterval before it was asked for, between began and ended.
func clockFinding(addr string, newest, began, ended time.Time) protocol.Finding {
	f := protocol.Finding{
		Check:  "clock of the server",
		Effect: "events expire in the index by their times: too early or too late",
		Fix:    "synchronize both clocks (chrony or systemd-timesyncd)",
	}
	host, _, _ := net.SplitHostPort(addr)
	age := began.Sub(newest)
	switch {
	case conn.IsLocal(addr):
		return protocol.Finding{Check: f.Check, Found: "the server at " + host + " runs on this machine, by its clock"}
	case newest.IsZero():
		f.Level, f.Found, f.Fix = protocol.LevelUnknown, "the server at "+host+" has no event of its own with a time", ""
	case newest.Sub(ended) > time.Second:
		f.Level = protocol.LevelWarning
		f.Found = fmt.Sprintf("the clock of %s is at least %s ahead of this machine's", host, units.FormatDuration(newest.Sub(ended).Round(time.Second)))
	case age > ownInterval:
		f.Level, f.Fix = protocol.LevelUnknown, ""
		f.Found = fmt.Sprintf("the newest event of the server at %s about itself is %s old: its clock may be behind, or it reports less often", host, units.FormatDuration(age.Round(time.Second)))
	default:
		return protocol.Finding{Check: f.Check, Found: fmt.Sprintf("the clock of %s differs from this machine's by less than %s: its newest event about itself is %s old", host, units.FormatDuration(ownInterval), units.FormatDuration(max(0, age).Round(time.Second)))}
	}
	return f
}

// A portState is what is known about a port.
type portState int

const (
	portOpen portState = iota
	portClosed
	portSilent  // no answer: it is of no use from here
	portUnknown // over UDP
)

// otherPorts tries the usual ports of the other transports on a host: which of them a run
// could use instead.
func (c *config) otherPorts(ctx context.Context, addr string) protocol.Finding {
	host, port, _ := net.SplitHostPort(addr)
	type place struct{ scheme, addr string }
	var places []place
	for i := range transports {
		r := &transports[i]
		p := r.port
		if r.scheme == udpScheme && !c.transport.web() { // next to TCP
			p = port
		}
		if r.scheme != c.transport.scheme && r.scheme != httpScheme {
			places = append(places, place{r.scheme, net.JoinHostPort(host, p)})
		}
	}
	states := make([]portState, len(places))
	var wg sync.WaitGroup
	for i, p := range places {
		wg.Go(func() {
			if p.scheme == udpScheme {
				_, err := probeUDP(ctx, c, p.addr)
				states[i] = udpState(err, conn.IsLocal(p.addr))
				return
			}
			plain := conn.Dialer{Timeout: portWait}
			nc, err := plain.Dial(ctx, p.addr)
			if err == nil {
				nc.Close()
			}
			states[i] = tcpState(err)
		})
	}
	wg.Wait()
	var of [portUnknown + 1][]string
	for i, p := range places {
		_, port, _ := net.SplitHostPort(p.addr)
		of[states[i]] = append(of[states[i]], fmt.Sprintf("%s (%s)", p.scheme, port))
	}
	return portsFinding(host, of)
}

// tcpState is the state of a port by the error of connecting.
func tcpState(err error) portState {
	switch {
	case err == nil:
		return portOpen
	case conn.IsRefused(err):
		return portClosed
	}
	return portSilent
}

// udpState is the state of a port by the error of sending a datagram without events. Silence
// means that it is open only on this machine.
func udpState(err error, local bool) portState {
	_, explained := errors.AsType[*protocol.Error](err)
	switch {
	case explained && !conn.IsNotAllowed(err): // port unreachable
		return portClosed
	case err == nil && local:
		return portOpen
	}
	return portUnknown
}

// portsFinding is the finding about the ports of each state.
func portsFinding(host string, of [portUnknown + 1][]string) protocol.Finding {
	f := protocol.Finding{Check: "other ports", Found: "no other port of Riemann is open on " + host}
	if len(of[portOpen]) > 0 {
		f.Found = "open on " + host + ": " + strings.Join(of[portOpen], ", ")
	}
	for _, l := range []struct {
		state portState
		label string
	}{{portClosed, "closed"}, {portSilent, "no answer"}} {
		if list := of[l.state]; len(list) > 0 && (len(of[portOpen]) > 0 || l.state == portSilent) {
			f.Found += "; " + l.label + ": " + strings.Join(list, ", ")
		}
	}
	if list := of[portUnknown]; len(list) > 0 {
		if len(of[portOpen]) == 0 {
			f.Level = protocol.LevelUnknown
			f.Found = "no other port of Riemann is known to be open on " + host + strings.TrimPrefix(f.Found, "no other port of Riemann is open on "+host)
		}
		f.Found += "; cannot tell: " + strings.Join(list, ", ") + ", since " + whyUDP
	}
	return f
}

// portWait is how long a port may take that a run does not use.
const portWait = 500 * time.Millisecond
