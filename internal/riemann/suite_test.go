package riemann

import (
	"testing"

	"carronade/load"
	"carronade/protocol/protocoltest"
)

func TestSuite(t *testing.T) {
	t.Parallel()
	certs := newCertificates(t)
	for _, tt := range []struct {
		name, scheme string
		secure       bool
		opts         map[string]string
	}{
		{name: "TCP", scheme: "riemann"},
		{name: "TLS", scheme: "riemann+tls", secure: true, opts: map[string]string{"tls-ca": certs.ca, "tls-cert": certs.cert, "tls-key": certs.key}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			conf := certs.server
			if !tt.secure {
				conf = nil
			}
			f := serve(t, conf)
			protocoltest.Run(t, protocoltest.System{
				Kind: Kind{}, URL: tt.scheme + "://" + f.addr, Options: tt.opts,
				Events: f.taken,
				Slow:   f.slow,
				Refuse: func(on bool) {
					f.refuse(map[bool]string{true: "no room for such events"}[on])
				},
				RefuseWant: load.Rejected,
			})
		})
	}
}
