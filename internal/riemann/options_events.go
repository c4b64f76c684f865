package riemann

import "carronade/protocol"

// Names of the options that make events.
const (
	optService     = "service"
	optHost        = "host"
	optState       = "state"
	optDescription = "description"
	optTag         = "tag"
	optAttribute   = "attribute"
	optTTL         = "ttl"
	optTime        = "time"
	optMetric      = "metric"
	optMetricType  = "metric-type"
	optPool        = "pool"
)

// valueNone is the value of an option that leaves its field out.
const valueNone = "none"

// The accepted forms of values, for help and for errors.
const (
	textForms = "text in which {uniform(20)} and {zipf(1000,1.1)} stand for numbers from 0 on, {pick(a,b)}, {weighted(a:9,b:1)} and {cycle(a,b)} for one of a list, " +
		"{service} for one of 50 usual names, {seq} for the event's number and {client} for its client's, and {{ and }} for braces; ${...} and %{...} are expressions; none leaves the field out"
	metricForms = "a number, cycle(1,2,3), pick(1,2,3), uniform(0,100), zipf(1000,1.1), seq, or walk(50,1), which starts at 50 and changes by at most 1 per event"
	ttlForms    = "a duration such as 60s, cycle(30s,1m), pick(30s,1m), uniform(30s,2m), or none"
)

// eventOptions describe the content of events. They have the names of Riemann's
// fields.
var eventOptions = []protocol.Option{
	{
		Name: optService, Word: "TEXT", Default: "{service}", Group: "events", Independent: true,
		Help: "service of an event: text with {service}, {uniform(1000)}, {zipf(1000,1.1)}, {pick(a,b)}, {weighted(a:9,b:1)}, {cycle(a,b)}, {seq}, {client}, and expressions: ${...}",
	},
	{
		Name: optHost, Word: "TEXT", Default: "web-{uniform(20)}", Group: "events", Independent: true,
		Help: "host of an event: text as for --service",
	},
	{
		Name: optState, Word: "TEXT", Default: "{weighted(ok:97,warning:2,critical:1)}", Group: "events", Independent: true,
		Help: "state of an event: text as for --service",
	},
	{
		Name: optDescription, Word: "TEXT", Default: "sampled by carronade", Group: "events", Independent: true,
		Help: "description of an event: text as for --service, or none",
	},
	{
		Name: optTag, Type: protocol.List, Word: "TEXT,...", Default: "carronade,{pick(eu,us)}", Group: "events", Independent: true,
		Help: "tags, text as for --service, separated by commas or repeated; or none",
	},
	{
		Name: optAttribute, Type: protocol.List, Word: "K=TEXT", Group: "events", Independent: true,
		Help: "custom field, text as for --service; repeatable",
	},
	{
		Name: optTTL, Word: "DURATION", Default: "60s", Group: "events", Independent: true,
		Help: "how long the index keeps an event: 60s, cycle(30s,1m), uniform(30s,2m), or none",
	},
	{
		Name: optTime, Default: "s", Choices: []string{"s", "us", valueNone}, Group: "events", Independent: true,
		Help: "time of an event: in seconds, in microseconds, or set by the server",
	},
	{
		Name: optMetric, Word: "NUMBER", Default: "walk(50,1)", Group: "events", Independent: true,
		Help: "metric of an event: 42, cycle(1,2,3), pick(1,2,3), uniform(0,100), zipf(1000,1.1), seq, walk(50,1)",
	},
	{
		Name: optMetricType, Default: "double", Choices: []string{"sint64", "double", "float", valueNone}, Group: "events", Independent: true,
		Help: "protocol field that holds the metric",
	},
	{
		Name: optPool, Type: protocol.Size, Default: "256KiB", Group: "events", Independent: true,
		Help: "size of each client's pool of encoded events (default: 64 MiB for all clients at most, 16 MiB for more than 1,000); only time, metric and {seq} change, and only hosts and services in the pool occur",
	},
}
