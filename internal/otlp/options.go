package otlp

import (
	"slices"
	"strings"

	"carronade/internal/conn"
	"carronade/internal/conn/web"
	"carronade/internal/otlp/wire"
	"carronade/protocol"
)

// Headings of the options in help.
const (
	groupEvents   = "events"
	groupTraces   = "traces"
	groupMetrics  = "metrics"
	groupLogs     = "logs"
	groupRequests = "requests"
	groupConn     = "connections"
	groupSecurity = "security"
)

// options are the kind's options.
func options() []protocol.Option {
	table := []protocol.Option{
		{Name: "signal", Word: "WORD=N,...", Default: "traces", Group: groupEvents, Independent: true, Help: "traces, metrics or logs; several by weights: traces=1,logs=3"},
		{Name: "events", Type: protocol.Int, Default: "100", Group: groupEvents, Independent: true, Help: "spans, data points or log records per request"},
		{Name: "services", Type: protocol.Int, Default: "4", Group: groupEvents, Independent: true, Help: "services that requests come from, one each"},
		{Name: "resource-attributes", Type: protocol.Int, Default: "4", Group: groupEvents, Independent: true, Help: "attributes of a request's resource, service.name included"},
		{Name: "scope-attributes", Type: protocol.Int, Default: "0", Group: groupEvents, Independent: true, Help: "attributes of a request's scope"},
		{Name: "attributes", Type: protocol.Int, Default: "5", Group: groupEvents, Independent: true, Help: "attributes of each event"},
		{Name: "attribute-size", Type: protocol.Size, Default: "16", Group: groupEvents, Independent: true, Help: "size of an attribute's value"},
		{
			Name: "corpus", Word: "FILE", Group: groupEvents, Independent: true,
			Help: "recorded requests to replay instead, as the Collector's file exporter writes them (JSON, or proto with --signal), with fresh ids and times",
		},
		{Name: "pool", Type: protocol.Size, Default: "512KiB", Group: groupEvents, Independent: true, Help: "size of the pool of encoded requests; at least one of each signal"},

		{Name: "trace-spans", Type: protocol.Int, Default: "10", Group: groupTraces, Independent: true, Help: "spans of a trace, a tree in one request"},
		{Name: "span-events", Type: protocol.Int, Default: "0", Group: groupTraces, Independent: true, Help: "events within each span"},
		{Name: "span-links", Type: protocol.Int, Default: "0", Group: groupTraces, Independent: true, Help: "links of each span"},
		{
			Name: "statuses", Word: "WORD=N,...", Default: "unset=97,error=3", Group: groupTraces, Independent: true,
			Help: "weights of the spans' statuses: " + strings.Join(wire.StatusNames, ", "),
		},

		{
			Name: "metric", Word: "KIND=N,...", Default: "gauge", Group: groupMetrics, Independent: true,
			Help: "weights of the kinds of metrics: " + strings.Join(wire.MetricNames, ", "),
		},
		{Name: "series", Type: protocol.Int, Default: "1k", Group: groupMetrics, Independent: true, Help: "different series at a time, by the attribute series"},
		{Name: "series-per-second", Type: protocol.Rate, Default: "0", Group: groupMetrics, Independent: true, Help: "series that end and are replaced by new ones each second"},

		{Name: "body-size", Type: protocol.Size, Default: "200", Group: groupLogs, Independent: true, Help: "size of a log record's body"},
		{
			Name: "severities", Word: "WORD=N,...", Default: "info=90,warn=7,error=3", Group: groupLogs, Independent: true,
			Help: "weights of the log records' severities: " + strings.Join(wire.SeverityNames, ", "),
		},

		{
			Name: "compression", Default: "none", Choices: compressions, Group: groupRequests, Independent: true,
			Help: "compression of requests, when they are sent",
		},
		{
			Name: "header", Word: "K: V", Type: protocol.List, Group: groupRequests, Show: web.ShowField,
			Help: "additional header, with expressions for many tenants: 'X-Scope-OrgID: t-${rnd.nextInt(9)}'; a secret one as 'K: env:NAME' or 'K: file:PATH'; repeatable",
		},
		{
			Name: "retry-after", Type: protocol.Bool, Default: "false", Group: groupRequests, Independent: true,
			Help: "pause a connection for as long as the server asks (Retry-After, RetryInfo), 1m at most",
		},

		web.ClientsOption(groupConn),
		{
			Name: "max-in-flight", Type: protocol.Int, Default: "1", Group: groupConn, Independent: true,
			Help: "requests in flight per connection; more than 1 are pipelined (HTTP), or streams (gRPC)",
		},
		{
			Name: "sticky", Type: protocol.Bool, Group: groupConn, Independent: true,
			Help: "each connection sends only its own requests; false: a due request goes to the first free connection",
		},
	}
	return slices.Concat(table, conn.Options(groupConn, conn.ConnectTimeout{Default: "10s", Independent: true}), conn.TLSOptions(groupSecurity, "the server's"))
}
