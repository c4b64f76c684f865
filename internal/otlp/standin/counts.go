package standin

import (
	"bytes"
	"fmt"
	"sync/atomic"

	"carronade/internal/otlp/wire"
)

// Counts says what a stand-in received and what became of it.
type Counts struct {
	Connections uint64
	Requests    uint64               // export requests, whatever the answer
	Bytes       uint64               // of their bodies as they came
	Accepted    [wire.Signals]uint64 // events
	Rejected    uint64               // events, by partial success
	Invalid     uint64               // requests refused as invalid
	Full        uint64               // requests that found the server's queue full
	Injected    uint64               // requests answered by an error rule
}

// Events is the number of accepted events.
func (c Counts) Events() uint64 { return c.Accepted[0] + c.Accepted[1] + c.Accepted[2] }

// String is the line that a stand-in prints when it ends.
func (c Counts) String() string {
	s := fmt.Sprintf("%d connections, %d requests (%d bytes)", c.Connections, c.Requests, c.Bytes)
	if c.Events() > 0 {
		s += fmt.Sprintf("; accepted %d spans, %d data points, %d log records", c.Accepted[wire.Traces], c.Accepted[wire.Metrics], c.Accepted[wire.Logs])
	}
	for _, p := range []struct {
		n    uint64
		what string
	}{{c.Rejected, "events rejected"}, {c.Invalid, "requests invalid"}, {c.Full, "requests refused: queue full"}, {c.Injected, "requests answered by a rule"}} {
		if p.n > 0 {
			s += fmt.Sprintf(", %d %s", p.n, p.what)
		}
	}
	return s
}

type tally struct {
	connections, requests, bytes, rejected, invalid, full, injected atomic.Uint64

	accepted, refused [wire.Signals]atomic.Uint64 // events
}

func (t *tally) counts() (c Counts) {
	c = Counts{
		Connections: t.connections.Load(), Requests: t.requests.Load(), Bytes: t.bytes.Load(), Rejected: t.rejected.Load(),
		Invalid: t.invalid.Load(), Full: t.full.Load(), Injected: t.injected.Load(),
	}
	for s := range wire.Signals {
		c.Accepted[s] = t.accepted[s].Load()
	}
	return c
}

// metrics are the counters in Prometheus's text format, under the Collector's names: none of a server that discards,
// which does not know how many events there are.
func (s *Server) metrics() (media string, text []byte) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# TYPE carronade_standin_requests counter\ncarronade_standin_requests %d\n", s.Counts().Requests)
	for _, m := range []struct {
		name string
		of   *[wire.Signals]atomic.Uint64
	}{{"otelcol_receiver_accepted_", &s.tally.accepted}, {"otelcol_receiver_refused_", &s.tally.refused}, {"otelcol_exporter_sent_", &s.tally.accepted}} {
		for signal := range wire.Signals {
			if name := m.name + signal.Events(); s.sink == nil {
				fmt.Fprintf(&b, "# TYPE %s counter\n%s %d\n", name, name, m.of[signal].Load())
			}
		}
	}
	return "text/plain; version=0.0.4", b.Bytes()
}
