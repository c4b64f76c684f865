package otlp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

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
	findings := make([][]protocol.Finding, len(c.bases))
	errs := make([]error, len(c.bases))
	var wg sync.WaitGroup
	for i, base := range c.bases {
		wg.Go(func() {
			v, err := c.probeOne(ctx, client, base)
			if err != nil {
				errs[i] = c.explain("connect to "+c.url(base, ""), err)
				return
			}
			contact := c.dialer.Contact(ctx, base)
			findings[i] = append(contact.Findings(time.Now()), c.findings(&v)...)
		})
	}
	wg.Wait()
	failed := 0
	for i, err := range errs {
		in.Findings = append(in.Findings, findings[i]...)
		if e, ok := errors.AsType[*protocol.Error](err); ok {
			failed++
			in.Findings = append(in.Findings, protocol.Finding{
				Check: "address " + c.bases[i], Level: protocol.LevelError, Found: fmt.Sprintf("%s does not answer as an OTLP receiver: %v", c.bases[i], e.Err),
				Effect: "a run fails when it starts: connections are spread over all addresses", Fix: e.Hint,
			})
		}
	}
	if failed == len(c.bases) {
		in.Findings = nil
		return in, errs[0]
	}
	return in, nil
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
