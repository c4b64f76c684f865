package measure

// Counts is what became of the events of one phase, step or interval. All fields
// count events unless their name says otherwise.
//
// Two identities apply at the end of every run, and the engine checks them:
//
//	Offered = Sent + Dropped + Unsent
//	Sent    = Acked + Failed + Unknown
type Counts struct {
	Offered uint64 `json:"offered"` // due within the phase
	Sent    uint64 `json:"sent"`    // handed to the system
	Dropped uint64 `json:"dropped"` // dropped at the in-flight bound
	Unsent  uint64 `json:"unsent"`  // due, but not sent when the run ended
	Acked   uint64 `json:"acked"`   // answered: accepted
	Failed  uint64 `json:"failed"`  // answered, or otherwise certain: not accepted
	Unknown uint64 `json:"unknown"` // sent, without a certain answer

	Consumed uint64 `json:"consumed"` // read by a consumer; zero when only sending
	// Unread counts acked events (sent ones, if nothing is acknowledged) that a run which also reads did not read.
	Unread uint64 `json:"unread,omitempty"`

	Retries    uint64 `json:"retries"`     // attempts beyond the first, in batches
	Batches    uint64 `json:"batches"`     // batches sent
	Answered   uint64 `json:"answered"`    // batches completed with an answer
	Bytes      uint64 `json:"bytes"`       // of events sent (or consumed): key, value and headers, before compression
	AckedBytes uint64 `json:"acked_bytes"` // the part of Bytes whose events were acked
	WireBytes  uint64 `json:"wire_bytes"`  // on the connection, with all overhead
}

// Add adds o to c.
func (c *Counts) Add(o Counts) {
	c.Offered += o.Offered
	c.Sent += o.Sent
	c.Dropped += o.Dropped
	c.Unsent += o.Unsent
	c.Acked += o.Acked
	c.Failed += o.Failed
	c.Unknown += o.Unknown
	c.Consumed += o.Consumed
	c.Unread += o.Unread
	c.Retries += o.Retries
	c.Batches += o.Batches
	c.Answered += o.Answered
	c.Bytes += o.Bytes
	c.AckedBytes += o.AckedBytes
	c.WireBytes += o.WireBytes
}

// IsZero reports whether nothing was counted.
func (c Counts) IsZero() bool { return c == Counts{} }
