package apm

import (
	"slices"

	"carronade/internal/apm/wire"
	"carronade/internal/conn"
	"carronade/internal/conn/web"
	"carronade/protocol"
)

// Headings of the options in help.
const (
	groupEvents   = "events"
	groupHTTP     = "requests"
	groupConn     = "connections"
	groupSecurity = "security"
	groupIndex    = "what was indexed"
)

// optEventLabel is the option for labels of events; label names the report's.
const optEventLabel = "event-label"

// intakeAuto is the intake that depends on the server's version.
const intakeAuto = "auto"

// options are the kind's options.
func options() []protocol.Option {
	table := []protocol.Option{
		{
			Name: "intake", Default: wire.IntakeV2.String(), Choices: append(wire.Protocols(), intakeAuto), Group: groupEvents, Independent: true,
			Help: "protocol: v2 for backend agents, rum-v2 and rum-v3 for browsers, v1 for servers before 7; auto: v1 for servers before 6.5, otherwise v2",
		},
		{
			Name: "events", Word: "N|N-N", Default: "10", Group: groupEvents, Independent: true,
			Help: "events per request, without the spans of its transactions: 10, or 1-20",
		},
		{
			Name: "spans", Word: "N|N-N", Default: "3", Group: groupEvents, Independent: true,
			Help: "spans per transaction; with 0, events are errors",
		},
		{
			Name: "frames", Word: "N|N-N", Default: "3", Group: groupEvents, Independent: true,
			Help: "stack frames per span or error",
		},
		{
			Name: "frame-size", Type: protocol.Size, Group: groupEvents, Independent: true,
			Help: "size to which each stack frame is padded",
		},
		{
			Name: "event-size", Type: protocol.Size, Group: groupEvents, Independent: true,
			Help: "size to which each transaction and error is padded, without its spans and frames",
		},
		{
			Name: "mix", Word: "KIND=N,...", Group: groupEvents, Independent: true,
			Help: "weights of the event kinds: transaction=8,error=1,metricset=1,log=4; default: transactions, or errors with --spans 0",
		},
		{Name: "services", Type: protocol.Int, Default: "4", Group: groupEvents, Independent: true, Help: "services that events come from"},
		{Name: "hosts", Type: protocol.Int, Default: "4", Group: groupEvents, Independent: true, Help: "hosts that each service runs on"},
		{Name: "agents", Word: "NAME,...", Group: groupEvents, Independent: true, Help: "agents that services run, such as java,python; default: all"},
		{
			Name: "outcomes", Word: "WORD=N,...", Default: "success=97,failure=3", Group: groupEvents, Independent: true,
			Help: "weights of the transactions' outcomes: success, failure, unknown",
		},
		{
			Name: optEventLabel, Word: "K=TEXT", Type: protocol.List, Group: groupEvents, Independent: true,
			Help: "label of transactions, errors, metricsets and logs: text with expressions, such as order=${rnd.nextInt(1000)}; repeatable",
		},
		{
			Name: "durations", Word: "SHAPE", Default: "lognormal(5ms,250ms)", Group: groupEvents, Independent: true,
			Help: "of transactions: " + durationForms,
		},
		{
			Name: "trace-hops", Type: protocol.Int, Default: "1", Group: groupEvents, Independent: true,
			Help: "number of consecutive requests that share traces",
		},
		{
			Name: "corpus", Word: "FILE", Group: groupEvents, Independent: true,
			Help: "recorded requests to replay instead (NDJSON, each begins with its metadata line), with fresh ids and times",
		},
		{
			Name: "repeat-body", Type: protocol.Bool, Default: "false", Group: groupEvents, Independent: true,
			Help: "send the same body each time, without fresh ids and times",
		},
		{
			Name: "pool", Type: protocol.Size, Default: "2MiB", Group: groupEvents, Independent: true,
			Help: "size of the pool of encoded bodies, for all connections together; at least one body each",
		},

		{
			Name: "gzip", Default: "none", Choices: []string{"none", "1", "2", "3", "4", "5", "6", "7", "8", "9"}, Group: groupHTTP, Independent: true,
			Help: "compression of the bodies: its level, 1 is the fastest",
		},
		{
			Name: "verbose", Type: protocol.Bool, Default: "false", Group: groupHTTP, Independent: true,
			Help: "request the number of accepted events with each answer, instead of relying on a 202",
		},
		{Name: "http-version", Default: "1.1", Choices: []string{"1.1", "2"}, Group: groupHTTP, Independent: true, Help: "2 needs apm+https"},
		{
			Name: "keep-alive", Type: protocol.Bool, Default: "true", Group: groupHTTP, Independent: true,
			Help: "false: a connection for each request, which counts into its service time",
		},
		{
			Name: "header", Word: "K: V", Type: protocol.List, Group: groupHTTP, Show: web.ShowField,
			Help: "additional header; a secret one as 'K: env:NAME' or 'K: file:PATH'; repeatable",
		},
		{
			Name: "retry-after", Type: protocol.Bool, Default: "false", Group: groupHTTP, Independent: true,
			Help: "pause a connection for as long as a 429 or 503 asks, 1m at most",
		},

		web.ClientsOption(groupConn),
		{
			Name: "max-in-flight", Type: protocol.Int, Default: "1", Group: groupConn, Independent: true,
			Help: "requests in flight per connection; more than 1 are pipelined (HTTP/1.1) or streams (HTTP/2)",
		},
		{
			Name: "sticky", Type: protocol.Bool, Group: groupConn, Independent: true,
			Help: "each connection sends only its own requests, as an agent does; false: a due request goes to the first free connection",
		},
		{Name: "proxy", Word: "URL", Group: groupConn, Independent: true, Help: "HTTP proxy to use"},

		{Name: "secret-token", Word: "REF", Secret: true, Group: groupSecurity, Help: "env:NAME or file:PATH of the server's secret token"},
		{Name: "api-key", Word: "REF", Secret: true, Group: groupSecurity, Help: "env:NAME or file:PATH of an API key (the encoded form)"},
	}
	index := []protocol.Option{
		{Name: "index", Word: "URL", Group: groupIndex, Help: "Elasticsearch or OpenSearch behind the server: its documents are counted before and after"},
		{Name: "index-pattern", Word: "P,P", Default: defaultPattern, Group: groupIndex, Help: "indices and data streams to count in"},
		{Name: "index-user", Word: "NAME", Group: groupIndex, Help: "user name for it"},
		{Name: "index-password", Word: "REF", Secret: true, Group: groupIndex, Help: "env:NAME or file:PATH of its password"},
		{Name: "index-api-key", Word: "REF", Secret: true, Group: groupIndex, Help: "env:NAME or file:PATH of an API key for it (the encoded form)"},
		{Name: "index-tls-ca", Word: "FILE", Group: groupIndex, Help: "PEM file of the certificate authorities to trust for it"},
		{Name: "index-tls-insecure-skip-verify", Type: protocol.Bool, Default: "false", Group: groupIndex, Help: "accept any certificate from it; the report says so"},
		{Name: "index-wait", Type: protocol.Duration, Default: "1m", Group: groupIndex, Help: "maximum wait after the last request until the count is stable"},
		{Name: "index-still", Type: protocol.Duration, Default: "5s", Group: groupIndex, Help: "how long the count must not change to be stable"},
	}
	return slices.Concat(table, conn.Options(groupConn, conn.ConnectTimeout{Default: "10s"}), conn.TLSOptions(groupSecurity, "the server's"), index)
}
