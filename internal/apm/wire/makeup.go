package wire

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// Protocol is a protocol of the intake.
type Protocol uint8

// The protocols.
const (
	IntakeV2 Protocol = iota // backend agents since apm-server 6.5
	RUMV2                    // browsers, the same lines
	RUMV3                    // browsers, with short names
	V1                       // documents of apm-server 6, removed in 7
	protocols
)

var protocolNames = [protocols]string{"v2", "rum-v2", "rum-v3", "v1"}

// String is the protocol's name in options.
func (p Protocol) String() string {
	if p < protocols {
		return protocolNames[p]
	}
	return fmt.Sprintf("protocol %d", uint8(p))
}

// Protocols are the names of all protocols, in order.
func Protocols() []string { return protocolNames[:] }

// ParseProtocol is the inverse of String.
func ParseProtocol(s string) (Protocol, error) {
	if i := slices.Index(protocolNames[:], s); i >= 0 {
		return Protocol(i), nil
	}
	return 0, fmt.Errorf("protocol %q: want one of v2, rum-v2, rum-v3, v1", s)
}

// ContentType is the content type of a body.
func (p Protocol) ContentType() string {
	if p == V1 {
		return "application/json"
	}
	return "application/x-ndjson"
}

// Path is the URL path for a body. v1 has a separate path for errors.
func (p Protocol) Path(errs bool) string {
	switch {
	case p == RUMV2:
		return "/intake/v2/rum/events"
	case p == RUMV3:
		return "/intake/v3/rum/events"
	case p == V1 && errs:
		return "/v1/errors"
	case p == V1:
		return "/v1/transactions"
	}
	return "/intake/v2/events"
}

// Kind is one of the kinds of events.
type Kind uint8

// The kinds.
const (
	Transaction Kind = iota
	Span
	Error
	Metricset
	Log       // servers since 8.6
	Kinds int = iota
)

var kindNames = [Kinds]string{"transaction", "span", "error", "metricset", "log"}

// String is the kind's name in intake v2.
func (k Kind) String() string {
	if int(k) < Kinds {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Counts are events by kind.
type Counts [Kinds]int

// Events is the sum.
func (c Counts) Events() int {
	n := 0
	for _, v := range c {
		n += v
	}
	return n
}

// A Range is a number of things: uniformly distributed from Min to Max.
type Range struct{ Min, Max int }

func (r Range) draw(rng *rand.Rand) int {
	if r.Max <= r.Min {
		return r.Min
	}
	return r.Min + rng.IntN(r.Max-r.Min+1)
}

// Durations is the distribution of the transactions' durations. The zero value is
// a LogNormal of 5 ms and 250 ms.
type Durations struct {
	Shape     Shape
	Low, High time.Duration // their meaning depends on Shape
}

// Shape is the form of a distribution.
type Shape uint8

// The shapes.
const (
	LogNormal   Shape = iota // Low is the median, High the 99th percentile
	Constant                 // Low
	Uniform                  // from Low to High
	Exponential              // Low is the mean
	shapes
)

// maxDuration bounds the duration of a transaction.
const maxDuration = time.Hour

// draw returns microseconds, at least 1.
func (d Durations) draw(rng *rand.Rand) int64 {
	low, high := float64(d.Low)/1e3, float64(d.High)/1e3
	v := low
	switch d.Shape {
	case LogNormal:
		const z99 = 2.3263478740408408 // the standard normal's 99th percentile
		v = low * math.Exp(rng.NormFloat64()*math.Log(max(1, high/low))/z99)
	case Uniform:
		v = low + rng.Float64()*(high-low)
	case Exponential:
		v = low * rng.ExpFloat64()
	}
	return int64(min(max(v, 1), float64(maxDuration/time.Microsecond)))
}

// A Makeup describes the content of requests. For a field that is neither a Range
// nor the Protocol, zero means the default.
type Makeup struct {
	Protocol Protocol

	Events Range // per request, without the spans of transactions
	Spans  Range // per transaction; if 0 and without Mix, events are errors
	Frames Range // per span or error

	// FrameBytes and EventBytes, if not 0, are the sizes to which stack frames, and transactions and
	// errors without their spans and frames, are padded: the former by a variable, the latter by a
	// field of their context.
	FrameBytes, EventBytes int

	// Mix has the weights of the kinds of Events. A Span in it is one whose
	// transaction is in another request. v1 has either transactions or errors,
	// RUM v3 both; neither has other kinds.
	Mix [Kinds]int

	Services  int      // number of services; each request is from one. Default 4
	Hosts     int      // number of hosts per service. Default 4
	Agents    []string // names of agents, such as "java"; default: all for backends, or RUM's
	Outcomes  [3]int   // weights of success, failure, unknown; default 97, 3, 0
	Durations Durations

	// Labels are added to transactions, errors, metricsets and logs, in addition to those that
	// they have anyway (ReservedLabels).
	Labels []Label

	// Hops is how many consecutive requests share their traces: each transaction
	// is called by the last span of one in the request before. Default 1: a trace
	// ends with its request.
	Hops int
}

// mostPadded bounds FrameBytes and EventBytes.
const mostPadded = 1 << 20

// A Label is a label of events.
type Label struct {
	Name string
	// Append appends its value for the event of a number. Numbers differ between the
	// events of all bodies of a Maker. It must be safe for concurrent use.
	Append func(dst []byte, event uint64) []byte
}

// ReservedLabels are the names of labels that events have anyway.
var ReservedLabels = []string{"experiment", "pool", "tier"}

func (m Makeup) withDefaults() Makeup {
	if m.Mix == ([Kinds]int{}) {
		m.Mix[Transaction] = 1
		if m.Spans.Max == 0 {
			m.Mix = [Kinds]int{Error: 1}
		}
	}
	m.Services = cmp.Or(m.Services, 4)
	m.Hosts = cmp.Or(m.Hosts, 4)
	if m.Outcomes == ([3]int{}) {
		m.Outcomes = [3]int{97, 3, 0}
	}
	if m.Durations == (Durations{}) {
		m.Durations = Durations{Low: 5 * time.Millisecond, High: 250 * time.Millisecond}
	}
	m.Hops = cmp.Or(m.Hops, 1)
	if len(m.Agents) == 0 {
		for _, a := range agents {
			if a.rum == m.rum() {
				m.Agents = append(m.Agents, a.name)
			}
		}
	}
	return m
}

func (m Makeup) rum() bool { return m.Protocol == RUMV2 || m.Protocol == RUMV3 }

// Errors reports whether all events are errors, which v1 sends to a separate path.
func (m Makeup) Errors() bool {
	m = m.withDefaults()
	return m.Mix[Error] > 0 && m.Mix[Transaction]+m.Mix[Span]+m.Mix[Metricset]+m.Mix[Log] == 0
}

// Check returns an error if the make-up, with defaults filled in, is invalid.
func (m Makeup) Check() error {
	m = m.withDefaults()
	for _, r := range []struct {
		what string
		r    Range
		most int
	}{{"events", m.Events, 100000}, {"spans", m.Spans, 100000}, {"frames", m.Frames, 10000}} {
		if r.r.Min < 0 || r.r.Max < r.r.Min || r.r.Max > r.most {
			return fmt.Errorf("%d to %d %s: want 0 to %d, the smaller number first", r.r.Min, r.r.Max, r.what, r.most)
		}
	}
	if n := m.Events.Max * (1 + m.Spans.Max); n >= maxIDs {
		return fmt.Errorf("%d events in a request: want fewer than %d", n, maxIDs)
	}
	if err := weights("mix", m.Mix[:]); err != nil {
		return err
	}
	if err := weights("outcomes", m.Outcomes[:]); err != nil {
		return err
	}
	lone := m.Mix[Span] + m.Mix[Metricset] + m.Mix[Log]
	switch d := m.Durations; {
	case m.Protocol >= protocols:
		return fmt.Errorf("%v is not known", m.Protocol)
	case m.Protocol == RUMV3 && lone > 0:
		return errors.New("RUM v3 has spans only inside transactions, and neither metricsets nor logs")
	case m.Protocol == V1 && (lone > 0 || m.Mix[Transaction] > 0 && m.Mix[Error] > 0):
		return errors.New("a v1 request has either transactions with their spans, or errors")
	case m.FrameBytes < 0 || m.FrameBytes > mostPadded || m.EventBytes < 0 || m.EventBytes > mostPadded:
		return fmt.Errorf("frames of %d bytes and events of %d: want 0 to %d", m.FrameBytes, m.EventBytes, mostPadded)
	case m.Services < 1 || m.Services > 1e6 || m.Hosts < 1 || m.Hosts > 1e6:
		return fmt.Errorf("%d services on %d hosts: want 1 to 1000000 of each", m.Services, m.Hosts)
	case m.Hops < 1 || m.Hops > maxHops:
		return fmt.Errorf("traces over %d requests: want 1 to %d", m.Hops, maxHops)
	case d.Shape >= shapes || d.Low <= 0 || d.Low > maxDuration || d.High > maxDuration:
		return fmt.Errorf("durations of %v to %v: want more than 0 and at most %v", d.Low, d.High, maxDuration)
	case (d.Shape == LogNormal || d.Shape == Uniform) && d.High < d.Low:
		return fmt.Errorf("durations of %v to %v: want the shorter first", d.Low, d.High)
	}
	for _, name := range m.Agents {
		if agentNamed(name) == nil {
			return fmt.Errorf("agent %q: want one of %v", name, AgentNames())
		}
	}
	return nil
}

func weights(what string, w []int) error {
	sum := 0
	for _, v := range w {
		if v < 0 || v > 1e6 {
			return fmt.Errorf("a weight of %d in %s: want 0 to 1000000", v, what)
		}
		sum += v
	}
	if sum == 0 {
		return fmt.Errorf("%s without any weight", what)
	}
	return nil
}

// pick draws an index, weighted by w.
func pick(rng *rand.Rand, w []int) int {
	sum := 0
	for _, v := range w {
		sum += v
	}
	x := rng.IntN(sum)
	for i, v := range w {
		if x < v {
			return i
		}
		x -= v
	}
	return 0
}
