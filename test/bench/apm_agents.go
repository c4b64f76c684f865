package bench

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"

	"go.elastic.co/apm/v2"
	"go.elastic.co/apm/v2/transport"
)

// agentSettings switch off what an agent does besides sending events.
var agentSettings = map[string]string{
	"ELASTIC_APM_CENTRAL_CONFIG":    "false",
	"ELASTIC_APM_CLOUD_PROVIDER":    "none",
	"ELASTIC_APM_METRICS_INTERVAL":  "0s",
	"ELASTIC_APM_BREAKDOWN_METRICS": "false",
}

// agentsLoop makes transactions with several of Elastic's Go agents, each in its own
// loop, with the same data as the program's. All else is the agents' default:
// requests of 750 KiB, deflated at level 1. An agent drops transactions that it
// cannot send in time, and they do not count; with -flush the loop waits for the
// agent every that many transactions, and none is dropped.
func agentsLoop(args []string) error {
	fs := flag.NewFlagSet("apm-agents", flag.ContinueOnError)
	to := fs.String("to", "", "")
	n := fs.Int("agents", 4, "")
	flush := fs.Int("flush", 0, "")
	lasts := fs.Duration("for", 5*time.Second, "")
	if err := fs.Parse(args); err != nil {
		return err
	}
	for name, value := range agentSettings {
		if err := os.Setenv(name, value); err != nil {
			return fmt.Errorf("set up the agents: %w", err)
		}
	}
	base, err := url.Parse(*to)
	if err != nil {
		return fmt.Errorf("read the address: %w", err)
	}
	agents := make([]*apm.Tracer, *n)
	for i := range agents {
		t, err := transport.NewHTTPTransport(transport.HTTPTransportOptions{ServerURLs: []*url.URL{base}})
		if err != nil {
			return fmt.Errorf("make a transport: %w", err)
		}
		o := apm.TracerOptions{ServiceName: "checkout", ServiceVersion: "2026.4.1", ServiceEnvironment: "production", Transport: t}
		if agents[i], err = apm.NewTracerOptions(o); err != nil {
			return fmt.Errorf("make an agent: %w", err)
		}
		defer agents[i].Close()
	}
	var wg sync.WaitGroup
	began := time.Now()
	for _, t := range agents {
		wg.Go(func() { transact(t, *flush, began.Add(*lasts)) })
	}
	wg.Wait()
	took := time.Since(began)
	var sent, dropped, failed uint64
	for _, t := range agents {
		s := t.Stats()
		sent, dropped, failed = sent+s.TransactionsSent, dropped+s.TransactionsDropped, failed+s.Errors.SendStream
	}
	if failed > 0 {
		return fmt.Errorf("%d of the agents' requests failed", failed)
	}
	fmt.Fprintln(os.Stderr, "dropped", dropped)
	return json.NewEncoder(os.Stdout).Encode(loopResult{Events: sent, Nanos: int64(took)})
}

// transact makes transactions until a time, and waits until they are sent.
func transact(t *apm.Tracer, flush int, until time.Time) {
	req, _ := http.NewRequestWithContext(context.Background(), http.MethodGet, "https://checkout.example.com/api/products?page=3&sort=price", http.NoBody)
	req.Header = http.Header{"User-Agent": {"okhttp/4.12.0"}, "Accept": {"application/json"}, "Content-Type": {"application/json"}}
	req.RemoteAddr = "10.239.4.17:40404"
	answer := http.Header{"Content-Type": {"application/json; charset=utf-8"}}
	for i := 1; i&63 != 0 || time.Now().Before(until); i++ {
		tx := t.StartTransaction("GET /api/products", "request")
		tx.Result, tx.Outcome = "HTTP 2xx", "success"
		tx.Context.SetHTTPRequest(req)
		tx.Context.SetHTTPStatusCode(http.StatusOK)
		tx.Context.SetHTTPResponseHeaders(answer)
		tx.Context.SetUserID("84033")
		tx.Context.SetUsername("ada")
		tx.Context.SetLabel("tier", "gold")
		tx.Context.SetLabel("experiment", "b")
		tx.End()
		if flush > 0 && i%flush == 0 {
			t.Flush(nil)
		}
	}
	t.Flush(nil)
}
