package conn

import (
	"context"
	"net"
	"net/http"
)

// HTTPClient returns a client for requests in addition to the load, such as those for metrics. It connects only to
// addresses that Restrict allows, and follows no redirects: the answer would have it connect elsewhere, and
// send headers with secrets there. It owns the transport.
func HTTPClient(t *http.Transport) *http.Client {
	t.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if err := Allowed(addr); err != nil {
			return nil, err
		}
		return plain.DialContext(ctx, network, addr)
	}
	return &http.Client{
		Transport:     t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
