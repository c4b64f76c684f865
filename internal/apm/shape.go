package apm

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"carronade/internal/apm/wire"
	"carronade/protocol"
	"carronade/units"
)

// durationForms are the texts that parseDurations accepts.
const durationForms = "constant(20ms), uniform(1ms,100ms), exponential(20ms), lognormal(MEDIAN,P99)"

// parseMakeup reads the options for the content of requests.
func parseMakeup(v protocol.Values) (m wire.Makeup, err error) {
	fail := func(option string, err error) (wire.Makeup, error) {
		return m, &protocol.Error{Doing: "read --" + option, Err: err, Hint: "see carronade run --help-all, apm: events"}
	}
	if m.Protocol, err = protocolOf(v); err != nil {
		return fail("intake", err)
	}
	m.FrameBytes, m.EventBytes = int(v.Size("frame-size")), int(v.Size("event-size"))
	for _, r := range []struct {
		to   *wire.Range
		name string
	}{{&m.Events, "events"}, {&m.Spans, "spans"}, {&m.Frames, "frames"}} {
		if *r.to, err = parseRange(v.String(r.name)); err != nil {
			return fail(r.name, err)
		}
	}
	if m.Events.Min < 1 {
		return fail("events", errors.New("a request has at least one event"))
	}
	var kinds []string
	for k := range wire.Kinds {
		kinds = append(kinds, wire.Kind(k).String())
	}
	if err := units.ParseWeights(v.String("mix"), kinds, m.Mix[:]); err != nil {
		return fail("mix", err)
	}
	if err := units.ParseWeights(v.String("outcomes"), []string{"success", "failure", "unknown"}, m.Outcomes[:]); err != nil {
		return fail("outcomes", err)
	}
	if m.Durations, err = parseDurations(v.String("durations")); err != nil {
		return fail("durations", err)
	}
	m.Services, m.Hosts, m.Hops = v.Int("services"), v.Int("hosts"), v.Int("trace-hops")
	for name := range strings.SplitSeq(v.String("agents"), ",") {
		if name = strings.TrimSpace(name); name != "" {
			m.Agents = append(m.Agents, name)
		}
	}
	if err := m.Check(); err != nil {
		return m, &protocol.Error{Doing: "read the options", Err: err, Hint: "see carronade run --help-all, apm: events"}
	}
	return m, nil
}

// protocolOf is the protocol of --intake, v2 where that depends on a server that was not asked yet.
func protocolOf(v protocol.Values) (wire.Protocol, error) {
	if name := v.String("intake"); name != intakeAuto {
		return wire.ParseProtocol(name)
	}
	return wire.IntakeV2, nil
}

// parseRange reads "10" or "1-20".
func parseRange(s string) (r wire.Range, err error) {
	low, high, ok := strings.Cut(s, "-")
	if !ok {
		high = low
	}
	for _, p := range []struct {
		to   *int
		text string
	}{{&r.Min, low}, {&r.Max, high}} {
		n, err := units.ParseCount(strings.TrimSpace(p.text))
		if err != nil || n > math.MaxInt32 {
			return r, fmt.Errorf("%q is neither a number nor a range, such as 10 or 1-20", s)
		}
		*p.to = int(n)
	}
	if r.Max < r.Min {
		return r, fmt.Errorf("%q: the smaller number comes first", s)
	}
	return r, nil
}

// parseDurations reads one of durationForms.
func parseDurations(s string) (d wire.Durations, err error) {
	name, args, ok := strings.Cut(s, "(")
	args, closed := strings.CutSuffix(args, ")")
	shapes := []string{"lognormal", "constant", "uniform", "exponential"} // in the order of apm.Shape
	i := slices.Index(shapes, name)
	if !ok || !closed || i < 0 {
		return d, fmt.Errorf("%q: want one of %s", s, durationForms)
	}
	d.Shape = wire.Shape(i)
	parts := strings.Split(args, ",")
	want := 1
	if d.Shape == wire.LogNormal || d.Shape == wire.Uniform {
		want = 2
	}
	if len(parts) != want {
		return d, fmt.Errorf("%q: want one of %s", s, durationForms)
	}
	if d.Low, err = units.ParseDuration(strings.TrimSpace(parts[0])); err != nil {
		return d, err
	}
	if want == 2 {
		d.High, err = units.ParseDuration(strings.TrimSpace(parts[1]))
	}
	return d, err
}

// partialMakeup is a make-up of exactly n events in one request, otherwise like m.
// It is used where a phase of a run ends within a request.
func partialMakeup(m wire.Makeup, n int) wire.Makeup {
	errs := m.Errors()
	m.Hops = 1
	m.Spans = wire.Range{}
	m.Events = wire.Range{Min: n, Max: n}
	switch {
	case m.Mix != [wire.Kinds]int{} || errs:
	default: // transactions, whose spans go with them
		m.Mix[wire.Transaction] = 1
		m.Events = wire.Range{Min: 1, Max: 1}
		m.Spans = wire.Range{Min: n - 1, Max: n - 1}
	}
	return m
}
