package otlp

import (
	"context"
	"slices"
	"time"

	"carronade/internal/conn"
	"carronade/protocol"
)

// Inspects implements protocol.Inspector.
func (Kind) Inspects(o *protocol.Option) bool {
	return o.Group == groupSecurity || o.Group == groupConn && o.Name != "sticky" && o.Name != "max-in-flight" || slices.Contains([]string{"header", "signal"}, o.Name)
}

// Inspect implements protocol.Inspector. It sends each server a request without events of each signal, as a run
// does first.
func (Kind) Inspect(ctx context.Context, spec protocol.Spec) (protocol.Inspection, error) {
	c, err := parseConfig(spec, false)
	if err != nil {
		return protocol.Inspection{}, err
	}
	in := protocol.Inspection{Addresses: c.bases, Connections: c.clients}
	client := c.newClient()
	defer client.CloseIdleConnections()
	in.Findings, err = conn.InspectAll(ctx, c.bases, "an OTLP receiver", "connections",
		func(ctx context.Context, i int) ([]protocol.Finding, error) {
			v, err := c.probeOne(ctx, client, c.bases[i])
			if err != nil {
				return nil, err
			}
			contact := c.dialer.Contact(ctx, c.bases[i])
			return append(contact.Findings(time.Now()), c.findings(&v)...), nil
		},
		func(i int, err error) error { return c.explain("connect to "+c.url(c.bases[i], ""), err) })
	return in, err
}

// findings are about a server that answers.
func (c *config) findings(v *server) []protocol.Finding {
	f := protocol.Finding{Check: "receiver", Found: v.base + " accepts requests without a login"}
	switch {
	case v.standin:
		f.Found = v.base + " is a stand-in of carronade"
	case c.login:
		f.Found = v.base + " accepts the Authorization header"
	}
	if c.tls && c.dialer.TLS.InsecureSkipVerify {
		f.Level, f.Found = protocol.LevelNote, f.Found+", and any certificate of it is accepted"
		f.Effect = "another server could answer instead; times are not affected"
		f.Fix = "give --tls-ca FILE instead of --tls-insecure-skip-verify"
	}
	return []protocol.Finding{f}
}
