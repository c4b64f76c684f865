package web

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"

	"carronade/internal/conn"
	"carronade/protocol"
)

// InspectEach looks at each server at the same time. as names what it should be: "an APM server". An error of look is a
// *protocol.Error, and becomes a finding; if no server answers, InspectEach returns the first of them.
func InspectEach(bases []string, as string, look func(i int, base string) ([]protocol.Finding, error)) (all []protocol.Finding, err error) {
	findings := make([][]protocol.Finding, len(bases))
	errs := make([]error, len(bases))
	var wg sync.WaitGroup
	for i, base := range bases {
		wg.Go(func() { findings[i], errs[i] = look(i, base) })
	}
	wg.Wait()
	failed := 0
	for i, err := range errs {
		e, ok := errors.AsType[*protocol.Error](err)
		if !ok {
			all = append(all, findings[i]...)
			continue
		}
		failed++
		all = append(all, protocol.Finding{
			Check: "address " + bases[i], Level: protocol.LevelError, Found: fmt.Sprintf("%s does not answer as %s: %v", bases[i], as, e.Err),
			Effect: "a run fails when it starts: connections are spread over all addresses", Fix: e.Hint,
		})
	}
	if failed == len(bases) {
		return nil, errs[0]
	}
	return all, nil
}

// NewTransport makes a transport of net/http whose connections are a dialer's. wrap is called with each before TLS;
// nil: with none.
func NewTransport(d conn.Dialer, wrap func(net.Conn) net.Conn) *http.Transport {
	plain := d
	plain.TLS = nil
	t := &http.Transport{
		DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) {
			nc, err := plain.Dial(ctx, addr)
			if err != nil || wrap == nil {
				return nc, err
			}
			return wrap(nc), nil
		},
		TLSHandshakeTimeout: d.Timeout,
		DisableCompression:  true,
	}
	if d.TLS != nil {
		t.TLSClientConfig = d.TLS.Clone()
	}
	return t
}
