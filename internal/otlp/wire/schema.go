package wire

// A Signal is one of the three kinds of telemetry.
type Signal uint8

// The signals.
const (
	Traces Signal = iota
	Metrics
	Logs
	Signals
)

var signals = [Signals]struct {
	name, event, path, method, list, rejected string
	request                                   *message
}{
	{"traces", "spans", "/v1/traces", "/opentelemetry.proto.collector.trace.v1.TraceService/Export", "resourceSpans", "rejectedSpans", &traceRequest},
	{"metrics", "metric_points", "/v1/metrics", "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export", "resourceMetrics", "rejectedDataPoints", &metricsRequest},
	{"logs", "log_records", "/v1/logs", "/opentelemetry.proto.collector.logs.v1.LogsService/Export", "resourceLogs", "rejectedLogRecords", &logsRequest},
}

// String returns the signal's name.
func (s Signal) String() string { return signals[s].name }

// Events is the word for its events in the Collector's metrics: spans, metric_points, log_records.
func (s Signal) Events() string { return signals[s].event }

// Path is the path of its requests over HTTP.
func (s Signal) Path() string { return signals[s].path }

// Method is the path of its requests over gRPC.
func (s Signal) Method() string { return signals[s].method }

// Rejected is the name of the number of rejected events in an answer in JSON.
func (s Signal) Rejected() string { return signals[s].rejected }

// A kind is the type of a field.
type kind uint8

const (
	isUint kind = iota // uint32, uint64
	isInt              // int32, int64
	isSint             // sint32, zigzag
	isBool
	isEnum
	isFixed64
	isSfixed64
	isDouble
	isFixed32
	isString
	isBytes
	isTraceID // 16 bytes, hex digits in JSON
	isSpanID  // 8 bytes, hex digits in JSON
	isMessage
)

// wireTypes are the wire types of the kinds.
var wireTypes = [...]int{
	isFixed64: typeFixed64, isSfixed64: typeFixed64, isDouble: typeFixed64, isFixed32: typeFixed32,
	isString: typeBytes, isBytes: typeBytes, isTraceID: typeBytes, isSpanID: typeBytes, isMessage: typeBytes,
}

// A field is a field of a message. Without a name it is deprecated or not in use, and only checked.
type field struct {
	num    int
	name   string // in JSON
	kind   kind
	of     *message // of isMessage
	list   bool
	packed bool // numbers, which may come in one piece
	time   bool // a time, which is fresh in each request
}

// A message is a type of message.
type message struct {
	fields  []field
	event   bool // it is counted
	oneOf   bool // the last of its single messages replaces the others
	nesting bool // it may contain itself
}

// field returns the field with a number; nil if the message has none.
func (m *message) field(num int) *field {
	for i := range m.fields {
		if m.fields[i].num == num {
			return &m.fields[i]
		}
	}
	return nil
}

func text(num int, name string) field    { return field{num: num, name: name, kind: isString} }
func number(num int, name string) field  { return field{num: num, name: name, kind: isUint} }
func double(num int, name string) field  { return field{num: num, name: name, kind: isDouble} }
func enum(num int, name string) field    { return field{num: num, name: name, kind: isEnum} }
func fixed64(num int, name string) field { return field{num: num, name: name, kind: isFixed64} }
func fixed32(num int, name string) field { return field{num: num, name: name, kind: isFixed32} }
func timeAt(num int, name string) field {
	return field{num: num, name: name, kind: isFixed64, time: true}
}
func traceID(num int) field             { return field{num: num, name: "traceId", kind: isTraceID} }
func spanID(num int, name string) field { return field{num: num, name: name, kind: isSpanID} }
func one(num int, n string, m *message) field {
	return field{num: num, name: n, kind: isMessage, of: m}
}

func many(num int, n string, m *message) field {
	return field{num: num, name: n, kind: isMessage, of: m, list: true}
}

// The messages. Attributes and values contain each other, so init sets those.
var (
	anyValue = message{nesting: true}
	keyValue = message{nesting: true, fields: []field{text(1, "key"), one(2, "value", &anyValue), number(3, "")}}

	resource = message{fields: []field{
		many(1, "attributes", &keyValue), number(2, "droppedAttributesCount"),
		many(3, "entityRefs", &message{fields: []field{
			text(1, "schemaUrl"), text(2, "type"),
			{num: 3, name: "idKeys", kind: isString, list: true},
			{num: 4, name: "descriptionKeys", kind: isString, list: true},
		}}),
	}}
	scope = message{fields: []field{text(1, "name"), text(2, "version"), many(3, "attributes", &keyValue), number(4, "droppedAttributesCount")}}

	span = message{event: true, fields: []field{
		traceID(1), spanID(2, "spanId"), text(3, "traceState"), spanID(4, "parentSpanId"), text(5, "name"), enum(6, "kind"),
		timeAt(7, "startTimeUnixNano"), timeAt(8, "endTimeUnixNano"), many(9, "attributes", &keyValue), number(10, "droppedAttributesCount"),
		many(11, "events", &message{fields: []field{timeAt(1, "timeUnixNano"), text(2, "name"), many(3, "attributes", &keyValue), number(4, "droppedAttributesCount")}}),
		number(12, "droppedEventsCount"),
		many(13, "links", &message{fields: []field{traceID(1), spanID(2, "spanId"), text(3, "traceState"), many(4, "attributes", &keyValue), number(5, "droppedAttributesCount"), fixed32(6, "flags")}}),
		number(14, "droppedLinksCount"), one(15, "status", &message{fields: []field{text(2, "message"), enum(3, "code")}}), fixed32(16, "flags"),
	}}
	logRecord = message{event: true, fields: []field{
		timeAt(1, "timeUnixNano"), enum(2, "severityNumber"), text(3, "severityText"), one(5, "body", &anyValue), many(6, "attributes", &keyValue),
		number(7, "droppedAttributesCount"), fixed32(8, "flags"), traceID(9), spanID(10, "spanId"), timeAt(11, "observedTimeUnixNano"), text(12, "eventName"),
	}}

	exemplar = message{fields: []field{
		many(7, "filteredAttributes", &keyValue), timeAt(2, "timeUnixNano"), double(3, "asDouble"), {num: 6, name: "asInt", kind: isSfixed64}, spanID(4, "spanId"), traceID(5),
	}}
	numberPoint = message{event: true, fields: []field{
		many(7, "attributes", &keyValue), timeAt(2, "startTimeUnixNano"), timeAt(3, "timeUnixNano"), double(4, "asDouble"),
		{num: 6, name: "asInt", kind: isSfixed64},
		many(5, "exemplars", &exemplar), number(8, "flags"),
	}}
	histogramPoint = message{event: true, fields: []field{
		many(9, "attributes", &keyValue), timeAt(2, "startTimeUnixNano"), timeAt(3, "timeUnixNano"), fixed64(4, "count"), double(5, "sum"),
		{num: 6, name: "bucketCounts", kind: isFixed64, list: true, packed: true},
		{num: 7, name: "explicitBounds", kind: isDouble, list: true, packed: true},
		many(8, "exemplars", &exemplar), number(10, "flags"), double(11, "min"), double(12, "max"),
	}}
	buckets          = message{fields: []field{{num: 1, name: "offset", kind: isSint}, {num: 2, name: "bucketCounts", kind: isUint, list: true, packed: true}}}
	exponentialPoint = message{event: true, fields: []field{
		many(1, "attributes", &keyValue), timeAt(2, "startTimeUnixNano"), timeAt(3, "timeUnixNano"), fixed64(4, "count"), double(5, "sum"),
		{num: 6, name: "scale", kind: isSint},
		fixed64(7, "zeroCount"), one(8, "positive", &buckets), one(9, "negative", &buckets), number(10, "flags"), many(11, "exemplars", &exemplar),
		double(12, "min"), double(13, "max"), double(14, "zeroThreshold"),
	}}
	summaryPoint = message{event: true, fields: []field{
		many(7, "attributes", &keyValue), timeAt(2, "startTimeUnixNano"), timeAt(3, "timeUnixNano"), fixed64(4, "count"), double(5, "sum"),
		many(6, "quantileValues", &message{fields: []field{double(1, "quantile"), double(2, "value")}}), number(8, "flags"),
	}}
	metric = message{oneOf: true, fields: []field{
		text(1, "name"), text(2, "description"), text(3, "unit"),
		one(5, "gauge", &message{fields: []field{many(1, "dataPoints", &numberPoint)}}),
		one(7, "sum", &message{fields: []field{many(1, "dataPoints", &numberPoint), enum(2, "aggregationTemporality"), {num: 3, name: "isMonotonic", kind: isBool}}}),
		one(9, "histogram", &message{fields: []field{many(1, "dataPoints", &histogramPoint), enum(2, "aggregationTemporality")}}),
		one(10, "exponentialHistogram", &message{fields: []field{many(1, "dataPoints", &exponentialPoint), enum(2, "aggregationTemporality")}}),
		one(11, "summary", &message{fields: []field{many(1, "dataPoints", &summaryPoint)}}),
		many(12, "metadata", &keyValue),
	}}

	traceRequest   = requestOf("resourceSpans", "scopeSpans", "spans", &span)
	metricsRequest = requestOf("resourceMetrics", "scopeMetrics", "metrics", &metric)
	logsRequest    = requestOf("resourceLogs", "scopeLogs", "logRecords", &logRecord)
)

// requestOf is an export request: resources of scopes of what is exported.
func requestOf(resources, scopes, items string, item *message) message {
	inScope := &message{fields: []field{one(1, "scope", &scope), many(2, items, item), text(3, "schemaUrl")}}
	ofResource := &message{fields: []field{one(1, "resource", &resource), many(2, scopes, inScope), text(3, "schemaUrl"), many(1000, "", inScope)}}
	return message{fields: []field{many(1, resources, ofResource)}}
}

func init() {
	anyValue.fields = []field{
		text(1, "stringValue"),
		{num: 2, name: "boolValue", kind: isBool},
		{num: 3, name: "intValue", kind: isInt},
		double(4, "doubleValue"),
		one(5, "arrayValue", &message{nesting: true, fields: []field{many(1, "values", &anyValue)}}),
		one(6, "kvlistValue", &message{nesting: true, fields: []field{many(1, "values", &keyValue)}}),
		{num: 7, name: "bytesValue", kind: isBytes},
		number(8, ""),
	}
}
