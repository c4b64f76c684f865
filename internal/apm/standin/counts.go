package standin

import (
	"fmt"
	"sync/atomic"

	"carronade/internal/apm/wire"
)

// Counts says what a stand-in received and what became of it.
type Counts struct {
	Connections uint64 `json:"connections"`
	Requests    uint64 `json:"requests"` // to the paths for events, whatever the answer
	Bytes       uint64 `json:"bytes"`    // of their bodies that were read, on the wire
	Plain       uint64 `json:"plain"`    // the same uncompressed; 0 with discard

	Accepted     uint64 `json:"accepted"` // events
	Transactions uint64 `json:"transactions"`
	Spans        uint64 `json:"spans"`
	Errors       uint64 `json:"errors"`
	Metricsets   uint64 `json:"metricsets"`
	Logs         uint64 `json:"logs,omitempty"`

	Invalid      uint64 `json:"invalid"`   // events refused as invalid
	TooLarge     uint64 `json:"too_large"` // events, or documents of v1
	Full         uint64 `json:"full"`      // requests that found the queue full
	Unauthorized uint64 `json:"unauthorized"`
	Injected     uint64 `json:"injected"` // requests answered by an error rule

	Waiting uint64 `json:"waiting"` // events in the queue
	Indexed uint64 `json:"indexed"`
	Failed  uint64 `json:"failed"` // could not be indexed
	Lost    uint64 `json:"lost"`   // on purpose
}

// String is the line that a stand-in prints when it ends.
func (c Counts) String() string {
	s := fmt.Sprintf("%d connections, %d requests (%d bytes)", c.Connections, c.Requests, c.Bytes)
	if c.Accepted > 0 || c.Plain > 0 {
		s += fmt.Sprintf("; accepted %d events (%d transactions, %d spans, %d errors, %d metricsets",
			c.Accepted, c.Transactions, c.Spans, c.Errors, c.Metricsets)
		if c.Logs > 0 {
			s += fmt.Sprintf(", %d logs", c.Logs)
		}
		s += ")"
	}
	for _, p := range []struct {
		n    uint64
		what string
	}{
		{c.Invalid, "invalid"},
		{c.TooLarge, "too large"},
		{c.Full, "requests refused: queue full"},
		{c.Unauthorized, "unauthorized"},
		{c.Injected, "requests answered by a rule"},
	} {
		if p.n > 0 {
			s += fmt.Sprintf(", %d %s", p.n, p.what)
		}
	}
	if c.Indexed+c.Failed+c.Lost > 0 {
		s += fmt.Sprintf("; indexed %d, failed %d, lost %d, waiting %d", c.Indexed, c.Failed, c.Lost, c.Waiting)
	}
	return s
}

type tally struct {
	connections, requests, bytes, plain, invalid, tooLarge, full, unauthorized, injected atomic.Uint64

	kinds [wire.Kinds]atomic.Uint64
}

func (t *tally) accept(c wire.Counts) {
	for k, n := range c {
		t.kinds[k].Add(uint64(n))
	}
}

func (t *tally) counts() Counts {
	c := Counts{
		Connections: t.connections.Load(), Requests: t.requests.Load(), Bytes: t.bytes.Load(), Plain: t.plain.Load(),
		Invalid: t.invalid.Load(), TooLarge: t.tooLarge.Load(), Full: t.full.Load(), Unauthorized: t.unauthorized.Load(), Injected: t.injected.Load(),
		Transactions: t.kinds[wire.Transaction].Load(), Spans: t.kinds[wire.Span].Load(), Errors: t.kinds[wire.Error].Load(), Metricsets: t.kinds[wire.Metricset].Load(), Logs: t.kinds[wire.Log].Load(),
	}
	c.Accepted = c.Transactions + c.Spans + c.Errors + c.Metricsets + c.Logs
	return c
}
