package riemann

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"carronade/internal/riemann/wire"
	"carronade/payload"
	"carronade/protocol"
	"carronade/units"
)

// A shape generates the content of events. An event is a function of the
// options, the seed, the stream and the event's index in it, in any process. A
// shape does not change once made, and is safe for concurrent use.
//
// Content repeats with the pool: the texts, tags, attributes and ttl of an event
// are those of the event with number index modulo period. Metric, time and {seq}
// do not repeat.
type shape struct {
	service, host, state, description *fieldText

	tags       []*fieldText
	attributes []fieldAttribute
	ttl        *fieldNumber // nil: none
	metric     *fieldNumber
	kind       wire.MetricKind
	time       timeForm

	period uint64
	mean   float64 // mean bytes of an event, sampled in stream 0
}

type fieldAttribute struct {
	key   string
	value *fieldText
}

// timeForm is the unit in which events state their time.
type timeForm uint8

const (
	timeNone timeForm = iota
	timeSeconds
	timeMicros
)

// The bounds of a pool, in bytes. A pool larger than the processor's cache slows
// sending down. Offsets in it have 32 bits.
const (
	leastPool = 1 << 10
	mostPool  = 1 << 30
)

// newShape reads the event options. An error is a *protocol.Error. With verify,
// the service of every event is unique, and its option is not used.
func newShape(v protocol.Values, seed, runID uint64, verify bool) (*shape, error) {
	s := &shape{}
	r := shapeReader{values: v, seed: mix(seed, 0x72696d)}
	service := v.String(optService)
	if verify {
		service = fmt.Sprintf("%s %08x {client} {seq}", verifyName, uint32(runID))
	}
	s.service = r.text(optService, service)
	s.host = r.text(optHost, v.String(optHost))
	s.state = r.text(optState, v.String(optState))
	s.description = r.text(optDescription, v.String(optDescription))
	for _, given := range v.List(optTag) {
		for _, tag := range splitTags(given) {
			if tag != "" && tag != valueNone {
				s.tags = append(s.tags, r.text(optTag, tag))
			}
		}
	}
	for _, given := range v.List(optAttribute) {
		if given != "" && given != valueNone {
			s.attributes = append(s.attributes, r.attribute(given))
		}
	}
	if ttl := v.String(optTTL); ttl != "" && ttl != valueNone {
		s.ttl = r.number(optTTL, ttl, false, true, ttlForms)
	}
	s.time = map[string]timeForm{"s": timeSeconds, "us": timeMicros}[v.String(optTime)]
	s.kind = map[string]wire.MetricKind{"sint64": wire.Sint64, "double": wire.Double, "float": wire.Float}[v.String(optMetricType)]
	s.metric = r.number(optMetric, orElse(v.String(optMetric), "0"), s.kind == wire.Sint64, false, metricForms)
	if r.err != nil {
		return nil, r.err
	}
	if err := s.checkMetric(); err != nil {
		return nil, &protocol.Error{Doing: "read --" + optMetric, Err: fmt.Errorf("%q: %w", s.metric.typed, err), Hint: "give --" + optMetricType + " double, or smaller numbers"}
	}
	pool := v.Size(optPool)
	if pool < leastPool || pool > mostPool {
		return nil, &protocol.Error{Doing: "read --" + optPool, Err: fmt.Errorf("%q is not from 1KiB to 1GiB", v.String(optPool)), Hint: "the default, 256KiB, stays in the processor's cache"}
	}
	s.measure(pool)
	return s, nil
}

func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// checkMetric checks that the metric's type can represent all of its values.
func (s *shape) checkMetric() error {
	most := max(math.Abs(s.metric.least), math.Abs(s.metric.most))
	switch {
	case s.kind == wire.Sint64 && most > maxNumbers && s.metric.ints == nil:
		return errors.New("above 2^53, not every whole number can be generated") // by a walk
	case s.kind == wire.Float && most > math.MaxFloat32:
		return errors.New("out of the range of a float")
	}
	return nil
}

// measure sets the number of events in a pool of the given bytes: a multiple of
// the cycles' lengths, so that cycles continue from the last event to the first.
func (s *shape) measure(pool int64) {
	const (
		sample = 256
		least  = 32 // bytes that an event counts as at least, since each also needs an offset
	)
	size, framed := 0, 0
	for k := range uint64(sample) {
		e := s.content(eventPlace{content: k})
		s.fillTime(&e, time.Unix(0, 0))
		e.Metric = s.metricAt(0, k)
		n := wire.EventSize(&e)
		size += n
		framed += wire.FrameHead + wire.MsgSize(&wire.Msg{Events: []wire.Event{e}})
	}
	s.mean = float64(size) / sample
	s.period = max(1, uint64(float64(pool)/max(least, float64(framed)/sample)))
	if turn := s.commonCycle(s.period); turn <= s.period {
		s.period -= s.period % turn
	}
}

// shrink makes the pool smaller, but not so small that cycles which it had are cut short.
func (s *shape) shrink(pool int64) {
	whole := s.period
	cycle := s.commonCycle(whole)
	s.measure(pool)
	if cycle <= whole {
		s.period = max(s.period, cycle)
	}
}

// commonCycle is the number of events after which all cycles begin again. If
// that exceeds most, the result is only some number above most.
func (s *shape) commonCycle(most uint64) uint64 {
	turn := uint64(1)
	add := func(n int) {
		if n > 0 && turn <= most {
			turn *= uint64(n) / gcd(turn, uint64(n))
		}
	}
	for _, t := range s.texts() {
		for _, p := range t.parts {
			if p.kind == partCycled {
				add(len(p.items))
			}
		}
	}
	if s.ttl != nil && s.ttl.kind == numberCycle {
		add(len(s.ttl.items))
	}
	return turn
}

// seqs returns how many {seq} the texts of an event contain.
func (s *shape) seqs() (n int) {
	for _, t := range s.texts() {
		for _, p := range t.parts {
			if p.kind == partSeq {
				n++
			}
		}
	}
	return n
}

func gcd(a, b uint64) uint64 {
	for b > 0 {
		a, b = b, a%b
	}
	return a
}

func (s *shape) texts() []*fieldText {
	all := append([]*fieldText{s.service, s.host, s.state, s.description}, s.tags...)
	for _, a := range s.attributes {
		all = append(all, a.value)
	}
	return all
}

// usesEnv reports whether a text contains the value of an environment variable.
func (s *shape) usesEnv() bool {
	for _, t := range s.texts() {
		for _, p := range t.parts {
			if p.kind == partExpression && p.expression.UsesEnv() {
				return true
			}
		}
	}
	return false
}

// event returns event number index of the stream, apart from its time.
func (s *shape) event(stream int32, index uint64) wire.Event {
	e := s.content(eventPlace{stream: stream, content: index % s.period, seq: index})
	e.Metric = s.metricAt(stream, index)
	return e
}

// content returns an event without metric and time.
func (s *shape) content(a eventPlace) wire.Event {
	var b []byte
	made := func(t *fieldText) string {
		b = t.append(b[:0], a)
		return string(b)
	}
	e := wire.Event{Service: made(s.service), Host: made(s.host), State: made(s.state), Description: made(s.description)}
	for _, t := range s.tags {
		e.Tags = append(e.Tags, made(t))
	}
	for _, x := range s.attributes {
		e.Attributes = append(e.Attributes, wire.Attribute{Key: x.key, Value: made(x.value)})
	}
	if s.ttl != nil {
		e.TTL, e.HasTTL = float32(s.ttl.at(a.stream, a.content)), true
	}
	return e
}

// metricAt returns the metric of an event, in the precision of its type.
func (s *shape) metricAt(stream int32, index uint64) wire.Metric {
	if s.kind == wire.NoMetric {
		return wire.Metric{}
	}
	if s.kind == wire.Sint64 {
		var one [1]int64
		s.metric.fillInts(one[:], stream, index)
		return wire.Metric{Kind: s.kind, Int: one[0]}
	}
	v := s.metric.at(stream, index)
	switch s.kind {
	case wire.Float:
		return wire.Metric{Kind: s.kind, Real: float64(float32(v))}
	}
	return wire.Metric{Kind: s.kind, Real: v}
}

// fillTime sets the event's time in the configured unit.
func (s *shape) fillTime(e *wire.Event, t time.Time) {
	switch s.time {
	case timeSeconds:
		e.Time, e.HasTime = t.Unix(), true
	case timeMicros:
		e.TimeMicros, e.HasTimeMicros = t.UnixMicro(), true
	}
}

// shortestTTL returns the shortest ttl of the events; false if they have none,
// so that the server's default applies.
func (s *shape) shortestTTL() (time.Duration, bool) {
	if s.ttl == nil {
		return 0, false
	}
	return time.Duration(s.ttl.least * float64(time.Second)), true
}

// describe describes the events, for a report.
func (s *shape) describe() map[string]any {
	facts := map[string]any{
		"event-bytes":     math.Round(s.mean*10) / 10,
		"distinct-events": s.period,
	}
	if !s.usesEnv() { // what comes from the environment is not shown
		example := s.event(0, 0)
		facts["example"] = string(wire.AppendJSON(nil, &example))
	}
	if s.time == timeNone {
		facts["time"] = "the server's"
	}
	return facts
}

// verifyName begins the service of every verified event.
const verifyName = "carronade"

// parseService takes the service of a verified event apart; ok is false for
// any other text. The index is that of the event modulo 10^10.
func parseService(s string) (runID uint32, stream int32, index uint64, ok bool) {
	words := strings.Split(s, " ")
	if len(words) != 4 || words[0] != verifyName || len(words[1]) != 8 || len(words[3]) != seqDigits {
		return 0, 0, 0, false
	}
	run, err1 := strconv.ParseUint(words[1], 16, 32)
	of, err2 := strconv.ParseUint(words[2], 10, 31)
	index, err3 := strconv.ParseUint(words[3], 10, 64)
	if err1 != nil || err2 != nil || err3 != nil || s != serviceOf(uint32(run), int32(of), index) {
		return 0, 0, 0, false
	}
	return uint32(run), int32(of), index, true
}

// serviceOf is the service of a verified event.
func serviceOf(runID uint32, stream int32, index uint64) string {
	return fmt.Sprintf("%s %08x %d %010d", verifyName, runID, stream, index%1e10)
}

// splitTags splits at commas outside braces and expressions.
func splitTags(s string) []string {
	var out []string
	depth, from := 0, 0
	for i := 0; i < len(s); i++ {
		if begins, _ := payload.StartsExpression(s[i:]); begins {
			i += max(0, payload.ExpressionLen(s[i:])-1)
			continue
		}
		switch s[i] {
		case '{':
			depth++
		case '}':
			depth--
		case ',':
			if depth == 0 {
				out = append(out, strings.TrimSpace(s[from:i]))
				from = i + 1
			}
		}
	}
	return append(out, strings.TrimSpace(s[from:]))
}

// A shapeReader reads options one after the other and keeps the first error.
// The random choices of different options are independent.
type shapeReader struct {
	values protocol.Values
	seed   uint64
	read   uint64
	err    error
}

func (r *shapeReader) next() uint64 {
	r.read++
	return mix(r.seed, r.read)
}

func (r *shapeReader) fail(option, typed string, err error, forms string) {
	if r.err != nil {
		return
	}
	why := fmt.Errorf("%q: %w", typed, err)
	var unit *units.Error
	if errors.As(err, &unit) && unit.Text == typed {
		why = fmt.Errorf("%q %w", typed, unit.Why) // do not quote the same text twice
	}
	r.err = &protocol.Error{Doing: "read --" + option, Err: why, Hint: "want " + forms}
}

func (r *shapeReader) text(option, typed string) *fieldText {
	t, err := parseText(typed, r.next())
	if err != nil {
		r.fail(option, typed, err, textForms)
	}
	return t
}

func (r *shapeReader) number(option, typed string, whole, isTTL bool, forms string) *fieldNumber {
	n, err := parseNumber(typed, r.next(), whole, isTTL)
	if err != nil {
		r.fail(option, typed, err, forms)
	}
	return n
}

// reservedFields are fields of events. The server keeps attributes next to them,
// so an attribute of the same name would replace one.
var reservedFields = []string{"host", "service", "state", "description", "metric", "tags", "time", "ttl"}

func (r *shapeReader) attribute(given string) fieldAttribute {
	key, value, ok := payload.CutText(given, '=')
	switch {
	case payload.HasExpression(key):
		r.fail(optAttribute, given, errors.New("a name is not an expression"), "NAME=TEXT, such as order=${rnd.nextInt(1000)}")
	case !ok || key == "":
		r.fail(optAttribute, given, errors.New("a name or a value is missing"), "NAME=TEXT, such as env=production")
	case slices.Contains(reservedFields, key):
		r.fail(optAttribute, given, fmt.Errorf("%s is a field of Riemann's own", key), "another name, or the option of that field")
	}
	return fieldAttribute{key: key, value: r.text(optAttribute, value)}
}
