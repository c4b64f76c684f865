package web

import (
	"context"
	"net"
	"net/http"

	"carronade/internal/conn"
)

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
