//go:build conformance

package standin

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"net/url"
	"testing"

	"go.elastic.co/apm/v2"
	"go.elastic.co/apm/v2/transport"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// Everything that Elastic's agent sends is accepted.
func TestElasticAgent(t *testing.T) {
	t.Parallel()
	files, _ := certificate(t)
	for _, tt := range []struct {
		name   string
		o      Options
		scheme string
	}{
		{"plain", Options{}, "http"},
		{"token over TLS", Options{SecretToken: "canary", NoRUM: true, TLS: files}, "https"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := start(t, tt.o)
			base, _ := url.Parse(tt.scheme + "://" + s.Addr())
			tr, err := transport.NewHTTPTransport(transport.HTTPTransportOptions{
				ServerURLs: []*url.URL{base}, SecretToken: string(tt.o.SecretToken),
				TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // the test's certificate
			})
			assert.OK(t, err)
			tracer, err := apm.NewTracerOptions(apm.TracerOptions{ServiceName: "shop", ServiceVersion: "1", ServiceEnvironment: "test", Transport: tr})
			assert.OK(t, err)
			defer tracer.Close()
			tracer.SetSpanCompressionEnabled(false)
			tracer.SetExitSpanMinDuration(0)
			tracer.SetSpanStackTraceMinDuration(0)
			const transactions, spans = 20, 5
			for range transactions {
				tx := tracer.StartTransaction("GET /orders/{id}", "request")
				ctx := apm.ContextWithTransaction(context.Background(), tx)
				req, _ := http.NewRequestWithContext(ctx, http.MethodPost, "http://shop.example.com/orders/7?x=y", nil)
				tx.Context.SetHTTPRequest(req)
				tx.Context.SetHTTPStatusCode(201)
				tx.Context.SetLabel("tier", "gold")
				tx.Context.SetCustom("cart", map[string]any{"lines": 3})
				tx.Context.SetUsername("ada")
				for range spans {
					span, _ := apm.StartSpan(ctx, "SELECT FROM orders", "db.postgresql.query")
					span.Context.SetDatabase(apm.DatabaseSpanContext{Instance: "shop", Statement: "SELECT 1", Type: "sql"})
					span.Context.SetDestinationAddress("db.example.internal", 5432)
					span.End()
				}
				apm.CaptureError(ctx, errors.New("no such order")).Send()
				tx.End()
			}
			tracer.SendMetrics(nil)
			tracer.Flush(nil)
			testkit.Until(t, "all have arrived", func() bool {
				c := s.Counts()
				return c.Transactions == transactions && c.Spans == transactions*spans && c.Errors == transactions && c.Metricsets > 0
			})
			c := s.Counts()
			assert.True(t, c.Invalid+c.TooLarge+c.Unauthorized == 0, "it refused some: %v", c)
		})
	}
}
