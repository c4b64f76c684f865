package trace

// The columns by index.
const (
	colLane = iota
	colSequence
	colAttempt
	colStream
	colEvent
	colKey
	colPhase
	colDue
	colDueLast
	colSent
	colDone
	colRequested
	colConsumed
	colPartition
	colLogOffset
	colEvents
	colBytes
	colWire
	colAcked
	colFailed
	colUnknown
	colOutcome
	colClass
	colStatus
	colRetries
	colCount
)

// A definition is the name and storage of a column. Text is of the SQL type VARCHAR, all else BIGINT.
type definition struct {
	name     string
	text     bool
	words    bool // text with few different values, stored in a dictionary
	optional bool // may be null: did not happen or is not known
	help     string
}

// columns are a stable interface: new ones may be added at the end, but none is moved, removed
// or changed in meaning. Times are nanoseconds since the start of the run, which the file's
// metadata contains as carronade.started_at (RFC 3339) and, on Linux,
// carronade.started_monotonic_ns (CLOCK_MONOTONIC). Events that were due before the run are not
// in the file.
var columns = [colCount]definition{
	colLane:      {name: "connection", help: "the sender: a connection or a client"},
	colSequence:  {name: "sequence", help: "of the batch within its connection, from 0"},
	colAttempt:   {name: "attempt", help: "number of earlier attempts (--retry)"},
	colStream:    {name: "stream", help: "the stream in which the events keep their order"},
	colEvent:     {name: "event", help: "of the first event within its stream: with the stream, what identifies it"},
	colKey:       {name: "key", text: true, optional: true, help: "of the event, where the row is one event and the target knows its key"},
	colPhase:     {name: "phase", text: true, words: true, help: "warm-up, measurement or the name of a step: the phase of its due time"},
	colDue:       {name: "due_ns", optional: true, help: "when the first event was due; null without a schedule"},
	colDueLast:   {name: "due_last_ns", optional: true, help: "when the last event was due"},
	colSent:      {name: "sent_ns", optional: true, help: "when the first byte was written, at any attempt; null if none was"},
	colDone:      {name: "done_ns", help: "when the answer came, or the batch was given up"},
	colRequested: {name: "requested_ns", optional: true, help: "in a pipeline: when its read began"},
	colConsumed:  {name: "consumed_ns", optional: true, help: "in a round trip or a pipeline: read"},
	colPartition: {name: "partition", optional: true, help: "the log, where the target has several and says which"},
	colLogOffset: {name: "log_offset", optional: true, help: "of the first event in its log, where the system said it"},
	colEvents:    {name: "events", help: "that it carried"},
	colBytes:     {name: "bytes", help: "of those events, before compression"},
	colWire:      {name: "wire_bytes", help: "on the connection, all attempts together; 0 where the target does not count"},
	colAcked:     {name: "acked", help: "events taken"},
	colFailed:    {name: "failed", help: "events refused for certain"},
	colUnknown:   {name: "unknown", help: "events written, without a certain answer"},
	colOutcome:   {name: "outcome", text: true, words: true, help: "acked, failed, unknown, or mixed"},
	colClass:     {name: "class", text: true, words: true, optional: true, help: "of what failed or is unknown"},
	colStatus:    {name: "status", optional: true, help: "the answer's code, where the protocol has one"},
	colRetries:   {name: "retries", help: "attempts of the connection's own beyond the first"},
}
