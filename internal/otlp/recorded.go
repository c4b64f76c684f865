package otlp

import (
	"fmt"
	"strings"

	"carronade/internal/otlp/wire"
	"carronade/protocol"
)

// recorded is what the Collector's file exporter writes.
var recorded = &protocol.Recorded{
	About: "requests in OTLP's JSON, one a line, as the Collector's file exporter writes them", Begins: wire.IsJSON,
	Target: schemeHTTP + "://127.0.0.1:" + portHTTP, Corpus: "corpus", New: func() protocol.Recording { return &recording{} },
}

type recording struct{ wire.Recorded }

// Fit implements protocol.Recording: settings are means and weights.
func (r *recording) Fit() (fit []protocol.Fitted) {
	set := func(name, value, about string) {
		fit = append(fit, protocol.Fitted{Name: name, Value: value, About: about})
	}
	mean := func(name string, sum, of uint64, about string) {
		m := float64(sum) / float64(max(1, of))
		set(name, fmt.Sprintf("%.0f", m), fmt.Sprintf("%s: %.4g in the mean.", about, m))
	}
	var requests, events uint64
	var signals []string
	for s := range wire.Signals {
		requests, events, signals = requests+r.Requests[s], events+r.Events[s], append(signals, s.String())
	}
	set("signal", weights(signals, r.Requests[:]), "Requests of each signal.")
	set("events", fmt.Sprint(min(mostEvents, max(1, (events+requests/2)/max(1, requests)))), "Events a request, in the mean.")
	set("services", fmt.Sprint(max(1, len(r.Services))), "Different names of services.")
	mean("resource-attributes", r.Resource, requests, "Attributes of a request's resources")
	mean("scope-attributes", r.Scope, requests, "Attributes of its scopes")
	mean("attributes", r.Attributes, events, "Attributes of an event")
	mean("attribute-size", r.ValueBytes, r.Values, "Bytes of a value that is a text")
	if n := r.Events[wire.Traces]; n > 0 {
		set("trace-spans", fmt.Sprint(max(1, n/max(1, r.Traces))), "Spans of a trace in one request, in the mean.")
		mean("span-events", r.SpanEvents, n, "Events of a span")
		mean("span-links", r.SpanLinks, n, "Links of a span")
		set("statuses", weights(wire.StatusNames, r.Statuses[:]), "Spans of each status.")
	}
	if r.Events[wire.Metrics] > 0 {
		set("metric", weights(wire.MetricNames, r.Metrics[:]), "Data points of each kind; summaries are made as sums.")
		set("series", fmt.Sprint(max(1, len(r.Series))), "Different series.")
	}
	if n := r.Events[wire.Logs]; n > 0 {
		mean("body-size", r.BodyBytes, n, "Bytes of a log's body")
		set("severities", weights(wire.SeverityNames, r.Severities[:]), "Log records of each severity.")
	}
	return fit
}

// weights are counts as weights of at most 10,000 together.
func weights(names []string, counts []uint64) string {
	sum := uint64(0)
	for _, n := range counts {
		sum += n
	}
	var parts []string
	for i, n := range counts {
		if n > 0 {
			if sum > 10000 {
				n = max(1, n*10000/sum)
			}
			parts = append(parts, fmt.Sprintf("%s=%d", names[i], n))
		}
	}
	return strings.Join(parts, ",")
}
