package workload

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"carronade/load"
	"carronade/measure"
	"carronade/protocol"
	"carronade/test/testkit/assert"
)

const mixText = `
target: cannon://a:1/t
rate: 1k/s
for: 10s
acks: all
parts:
- weight: 1
  header: {a: 1}
- weight: 3.5
  name: heavy
  target: gun://b:2
  calibre: 36
- {acks: 1}
`

func mixOf(t *testing.T, text string, given ...string) (*Workload, error) {
	t.Helper()
	doc, err := ParseDocument("mix.yaml", []byte(text))
	if err != nil {
		return nil, err
	}
	return Resolve(kinds, flags(given...), doc)
}

func TestResolveParts(t *testing.T) {
	w := assert.Value(mixOf(t, mixText, "for=5s", "clients=3"))(t)
	type part struct {
		Name, Target, Op                    string
		Weight                              float64
		Acks, Calibre, Header, For, Clients string
	}
	var got []part
	for _, p := range w.Parts() {
		of := p.Workload
		got = append(got, part{p.Name, of.Target(), of.Op, p.Weight, of.String("acks"), of.String("calibre"), of.String("header"), of.String("for"), of.String("clients")})
	}
	want := []part{
		{"produce 1", "cannon://a:1/t", "produce", 1, "all", "", "a=1", "5s", "3"},
		{"heavy", "gun://b:2", "produce", 3.5, "", "36", "", "5s", ""},
		{"produce 2", "cannon://a:1/t", "produce", 1, "1", "", "", "5s", "3"},
	}
	assert.Same(t, got, want, "parts")
	assert.True(t, w.Op == Mix && w.Target() == "cannon://a:1/t, gun://b:2" && w.String("for") == "5s" &&
		!w.Has("acks"), "the whole: %s %s for %s, acks %q", w.Op, w.Target(), w.String("for"), w.String("acks"))
	plan, err := w.Plan()
	assert.True(t, err == nil && plan.Schedule != nil && plan.Measurement.Time.Seconds() == 5, "the plan is %+v, %v", plan, err)
	assert.True(t, !w.OpenEnded(), "a mix with a time has no end")
}

// TestPartsAgain: the JSON of a workload with parts is a file with the same parts.
func TestPartsAgain(t *testing.T) {
	w := assert.Value(mixOf(t, mixText))(t)
	data := assert.Value(json.Marshal(w))(t)
	again := assert.Value(mixOf(t, string(data)))(t, "%s", data)
	second := assert.Value(json.Marshal(again))(t)
	assert.Equal(t, string(second), string(data), "%s\nbecame\n%s", data, second)
	i := slices.IndexFunc(w.Settings(), func(r Resolved) bool { return r.Name == "parts" })
	if i < 0 || !w.Settings()[i].Independent || !strings.Contains(w.Settings()[i].Text(), "heavy: weight 3.5, produce gun://b:2 calibre=36") {
		t.Errorf("the settings are %+v", w.Settings())
	}
}

// TestPartsWithRates: each part has its own schedule, the whole has all of their events, and its
// JSON is a file with the same parts.
func TestPartsWithRates(t *testing.T) {
	w, err := mixOf(t, "target: gun://a\nfor: 10s\nwarmup: 2s\nparts: [{name: steady, rate: 500/s}, {name: bursts, shape: 'burst(600,2s)', target: gun://b}]\n")
	assert.OK(t, err)
	p := assert.Value(w.Plan())(t)
	if got := p.Schedule.Count(12 * time.Second); got != 500*12+600*5+600 { // the burst begins after the warm-up at its mean rate
		t.Errorf("%d events in 12 s", got)
	}
	a, b := w.Parts()[0].Share(w.Parts()), w.Parts()[1].Share(w.Parts())
	assert.True(t, a == 0.625 && b == 0.375, "shares %v and %v", a, b)
	counted := assert.Value(mixOf(t, "target: gun://a\ncount: 250\nparts: [{rate: 1000/s}, {shape: 'burst(100,200ms)'}]\n"))(t)
	a, b = counted.Parts()[0].Weight, counted.Parts()[1].Weight
	assert.True(t, a == 150 && b == 100, "of 250 events the parts have %v and %v", a, b)
	assert.True(t, !w.Has("rate") && !w.Has("shape"), "the whole has a rate or a shape")
	data := assert.Value(json.Marshal(w))(t)
	again := assert.Value(mixOf(t, string(data)))(t, "%s", data)
	second, err := json.Marshal(again)
	assert.True(t, err == nil && string(second) == string(data) &&
		strings.Contains(string(data), `"shape":"burst(600,2s)"`), "%v\n%s\nbecame\n%s", err, data, second)
}

func TestPartsFaults(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"no list", "target: gun://a\nparts: 3\n", "must be a list of mappings"},
		{"an empty list", "target: gun://a\nparts: []\n", "must be a list of mappings"},
		{"no mapping", "target: gun://a\nparts: [a]\n", "must be a mapping"},
		{"parts of parts", "target: gun://a\nparts: [{parts: [{weight: 1}]}]\n", "has parts of its own"},
		{"a negative weight", "target: gun://a\nparts: [{weight: -1}]\n", "mix.yaml:2"},
		{"no number", "target: gun://a\nparts: [{weight: much}]\n", "must be a number"},
		{"no weight at all", "target: gun://a\nparts: [{weight: 0}, {weight: 0}]\n", "0 for all parts"},
		{"a rate of one part", "target: gun://a\nparts: [{rate: 5/s}, {name: b}]\n", "part 2: has no rate of its own, and part 1 has one"},
		{"a rate and a weight", "target: gun://a\nparts: [{rate: 5/s, weight: 2}]\n", "mix.yaml:2: weight: has no meaning for a part with a rate"},
		{"rates of the parts and of the whole", "target: gun://a\nrate: 9/s\nparts: [{rate: 5/s}]\n", "mix.yaml:2: rate: cannot be combined with parts"},
		{"rates and a concurrency", "target: gun://a\nconcurrency: 9\nparts: [{rate: 5/s}]\n", "mix.yaml:2: concurrency: cannot be combined with parts"},
		{"rates and a number to warm up", "target: gun://a\nwarmup: 100\nparts: [{rate: 5/s}]\n", "warmup: cannot be a number of events"},
		{"a rate and a shape", "target: gun://a\nparts: [{rate: 5/s, shape: 'burst(5,1s)'}]\n", "cannot be combined with"},
		{"a limit", "target: gun://a\nparts: [{count: 5}]\n", "applies to the whole workload"},
		{"consuming", "target: cannon://a\nparts: [{op: consume}]\n", "consume cannot be a part"},
		{"verifying", "target: cannon://a\nverify: true\nparts: [{weight: 1}]\n", "not read back"},
		{"a trace", "target: cannon://a\ntrace: f\nparts: [{weight: 1}]\n", "have no trace"},
		{"an unknown setting", "target: cannon://a\nparts: [{ack: all}]\n", "ack: unknown setting"},
		{"one that no part has", "target: gun://a\ngroup: g\nparts: [{weight: 1}]\n", "has no meaning for a gun"},
		{"no target", "parts: [{weight: 1}]\n", "no target"},
		{"a weight outside", "target: gun://a\nweight: 3\n", "belongs to a part"},
		{"a long name", "target: gun://a\nparts: [{name: " + strings.Repeat("n", 41) + "}]\n", "at most 40"},
		{"too many", "target: gun://a\nparts: [" + strings.Repeat("{weight: 1},", 33) + "]\n", "at most 32"},
	} {
		t.Run(tt.name, func(t *testing.T) { _, err := mixOf(t, tt.in); assert.ErrorHas(t, err, tt.want) })
	}
}

// TestFaultOfTheWholeIsSaidOnce: a wrong setting of the whole is in all parts.
func TestFaultOfTheWholeIsSaidOnce(t *testing.T) {
	_, err := mixOf(t, "target: gun://a\nrate: fast\nparts: [{weight: 1}, {weight: 2}]\n")
	assert.True(t, err != nil && strings.Count(err.Error(), "fast") == 1, "got %v, want one error", err)
}

// opening is a kind of which sessions can be opened, unless its URL says no.
type opening struct {
	gun
	closed *int
}

func (opening) Schemes() []string { return []string{"opening"} }

func (o opening) Open(_ context.Context, s protocol.Spec) (protocol.Session, error) {
	if s.URL.Host == "no" {
		return nil, errors.New("not today")
	}
	return &opened{host: s.URL.Host, most: s.Count, closed: o.closed}, nil
}

type opened struct {
	protocol.Session
	host   string
	most   uint64
	closed *int
}

func (s *opened) Target() load.Target   { return twelve{} }
func (s *opened) Source() load.Source   { return nil }
func (s *opened) Facts() map[string]any { return map[string]any{"host": s.host, "count": s.most} }
func (s *opened) Warnings() []string    { return []string{"careful"} }
func (s *opened) Close() error          { *s.closed++; return nil }

// Capabilities are all that a session may have: none of these functions returns an error.
func (s *opened) Capabilities() protocol.SessionCapabilities {
	return protocol.SessionCapabilities{
		Unanswered: true,
		Encoding: func() *measure.Encoding {
			return &measure.Encoding{Events: measure.Pooled, Distinct: uint64(len(s.host)), Codec: "gzip"}
		},
		Brokers:      func() []measure.Client { return []measure.Client{{Broker: "1"}} },
		Figures:      func(context.Context) ([]measure.Figure, error) { return []measure.Figure{{Name: s.host}}, nil },
		Survey:       func(context.Context) error { return nil },
		Leader:       func(context.Context, int) (string, error) { return s.host + ":1", nil },
		Finish:       func() error { return nil },
		Notice:       func() string { return "look" },
		Pipeline:     func() (load.Follower, load.StagePlan) { return nil, load.StagePlan{} },
		Transactions: struct{ protocol.Transactions }{},
		Confirm:      func(context.Context, uint64) (*measure.Indexed, error) { return nil, nil },
	}
}

// twelve is a target with twelve events.
type twelve struct{ load.Target }

func (twelve) Partitioner() load.Partitioner { return load.Single() }
func (twelve) Capabilities() load.TargetCapabilities {
	return load.TargetCapabilities{Events: 12, Pending: func() []string { return []string{"an answer"} }}
}

// lacking are the fields of a struct that are zero.
func lacking(of any) (names []string) {
	v := reflect.ValueOf(of)
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			names = append(names, v.Type().Field(i).Name)
		}
	}
	return names
}

func TestOpenParts(t *testing.T) {
	closed := 0
	kinds := []protocol.Kind{opening{closed: &closed}}
	open := func(text string) (protocol.Session, error) {
		doc := assert.Value(ParseDocument("mix.yaml", []byte(text)))(t)
		w := assert.Value(Resolve(kinds, nil, doc))(t)
		spec := assert.Value(w.Spec())(t)
		return w.Kind.Open(t.Context(), spec)
	}
	s, err := open("count: 100\nparts: [{name: a, weight: 1, target: opening://a}, {name: b, weight: 3, target: opening://b}]\n")
	assert.OK(t, err)
	want := map[string]any{"parts": map[string]any{"a": map[string]any{"host": "a", "count": uint64(25)}, "b": map[string]any{"host": "b", "count": uint64(75)}}}
	assert.Same(t, s.Facts(), want, "facts")
	assert.Same(t, s.Warnings(), []string{"a: careful", "b: careful"})
	can := s.Capabilities()
	assert.Same(t, lacking(can), []string{"Pipeline", "Groups", "Transactions", "Confirm"}, "what parts can do and a mix cannot")
	assert.Equal(t, assert.Value(can.Leader(t.Context(), -1))(t), "a:1", "the leader is that of the first part")
	assert.Same(t, can.Encoding(), &measure.Encoding{Events: measure.Pooled, Distinct: 1, Codec: "gzip"})
	assert.Same(t, s.Target().Capabilities().Pending(), []string{"a: an answer", "b: an answer"})
	assert.Same(t, can.Brokers(), []measure.Client{{Broker: "a: 1"}, {Broker: "b: 1"}})
	assert.Same(t, assert.Value(can.Figures(t.Context()))(t), []measure.Figure{{Name: "a"}, {Name: "b"}})
	assert.Equal(t, can.Notice(), "a: look; b: look")
	err = s.Close()
	assert.True(t, err == nil && closed == 2, "%d sessions were closed, want 2: %v", closed, err)
	closed = 0
	_, err = open("parts: [{name: a, target: opening://a}, {name: b, target: opening://no}]\n")
	assert.ErrorHas(t, err, "part b: not today", "a part that cannot be opened")
	assert.Equal(t, closed, 1, "sessions closed after a part could not be opened")
}

func TestParseLimit(t *testing.T) {
	for _, c := range []struct {
		text, name, shown, time string
		kind                    LimitKind
		value                   float64
	}{
		{"p99<20ms", "p99", "p99 < 20 ms", "", DurationKind, 0.02},
		{" p99.9 <= 1s ", "p99.9", "p99.9 <= 1 s", "", DurationKind, 1},
		{"max<2s", "max", "max < 2 s", "", DurationKind, 2},
		{"mean<2ms", "mean", "mean < 2 ms", "", DurationKind, 0.002},
		{"service.p50<5ms", "service.p50", "service.p50 < 5 ms", "service", DurationKind, 0.005},
		{"response_p99<50ms", "response.p99", "response.p99 < 50 ms", "response", DurationKind, 0.05},
		{"end_to_end_p99<50ms", "end-to-end.p99", "end-to-end.p99 < 50 ms", "end_to_end", DurationKind, 0.05},
		{"end-to-end.p99.99<50ms", "end-to-end.p99.99", "end-to-end.p99.99 < 50 ms", "end_to_end", DurationKind, 0.05},
		{"throughput>=50k/s", "throughput", "throughput >= 50 k/s", "", RateKind, 50e3},
		{"failure_rate<0.1%", "failure-rate", "failure-rate < 0.1 %", "", ShareKind, 0.001},
		{"error-rate=0", "failure-rate", "failure-rate = 0 %", "", ShareKind, 0},
		{"avg<2ms", "mean", "mean < 2 ms", "", DurationKind, 0.002},
		{"response_p999<2ms", "response.p99.9", "response.p99.9 < 2 ms", "response", DurationKind, 0.002},
		{"drops=0", "dropped", "dropped = 0", "", CountKind, 0},
		{"lost==0", "lost", "lost = 0", "", CountKind, 0},
		{"rss<2GiB", "rss", "rss < 2GiB", "", SizeKind, 2 << 30},
		{"target-share>95%", "target-share", "target-share > 95 %", "", ShareKind, 0.95},
		{"server.Heap_used<=0.5", "server.Heap_used", "server.Heap_used <= 0.5", "", NumberKind, 0.5},
		{"system.open files<100", "system.open files", "system.open files < 100", "", NumberKind, 100},
		{"server.heap<64MiB", "server.heap", "server.heap < 64MiB", "", NumberKind, 64 << 20},
		{"host.steal<1%", "host.steal", "host.steal < 1%", "", NumberKind, 1},
		{"server.pause<50ms", "server.pause", "server.pause < 50ms", "", NumberKind, 0.05},
		{"steady", "steady", "steady", "", VerdictKind, 0},
		{"keeps_up", "keeps-up", "keeps-up", "", VerdictKind, 0},
	} {
		l, err := ParseLimit(c.text)
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		if shown := strings.ReplaceAll(l.String(), "\u00a0", " "); l.Name != c.name || shown != c.shown && strings.ReplaceAll(shown, " ", "") != strings.ReplaceAll(c.shown, " ", "") || l.Time != c.time || l.Kind != c.kind || l.Value != c.value {
			t.Errorf("%q: got %+v, shown %q; want name %q, shown %q, time %q, kind %d, value %v", c.text, l, shown, c.name, c.shown, c.time, c.kind, c.value)
		}
	}
}

func TestParseLimitErrors(t *testing.T) {
	for _, c := range []struct{ text, fault, hint string }{
		{"", "names no result", "NAME<VALUE"},
		{"<20ms", "names no result", "NAME<VALUE"},
		{"p99", "no comparison", "NAME<VALUE"},
		{"p99<", "value is missing", "NAME<VALUE"},
		{"p99<20", "unit", "p99<=20ms"},
		{"p99>20ms", "upper limit", "p99<=20ms"},
		{"p99=20ms", "never exactly", "p99<=20ms"},
		{"p99<20ms,p50<5ms", "more than one", "once for each"},
		{"failure-rate<1", "may mean 1% or 100%", "failure-rate<1%"},
		{"target-share>=x", "", "target-share>=1%"},
		{"lost<0", "below 0", "lost<=0"},
		{"p99.<20ms", "unknown result", ""},
		{"p1e1<20ms", "unknown result", ""},
		{"p100<1s", "largest value", "max"},
		{"p0<1s", "unknown result", ""},
		{"throughput<5k/s", "lower limit", "throughput>=5k/s"},
		{"steady=1", "takes no value", "--slo steady"},
		{"latency<5ms", "unknown result", ""},
		{"server.<1", "names no metric", "server.NAME"},
		{"server.x<64K", "may mean 64KiB", "server.x"},
		{"server.x<one", "must be a number", "server.x"},
		{"lost=none", "", "lost<=0"},
	} {
		_, err := ParseLimit(c.text)
		var e *protocol.Error
		assert.True(t, errors.As(err, &e) && strings.Contains(e.Error(), c.fault) && strings.Contains(e.Hint, c.hint),
			"%q: got %v (%+v), want %q, with hint %q", c.text, err, e, c.fault, c.hint)
	}
}

// TestLimitNames: every name that is suggested parses.
func TestLimitNames(t *testing.T) {
	for _, name := range limitNames() {
		ok := false
		for _, rest := range []string{"", "<1s", ">=1/s", "<=1%", ">=1%", "=0", "<1MiB"} {
			if _, err := ParseLimit(name + rest); err == nil {
				ok = true
			}
		}
		assert.True(t, ok, "%s cannot be used", name)
	}
}

func FuzzParseLimit(f *testing.F) {
	for _, s := range []string{"p99<20ms", "service.p99.9>=1s", "throughput>50k/s", "lost=0", "steady", "server.a.b<1e3", "p<", "=", "p1e-300<1s"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		l, err := ParseLimit(s)
		if err != nil {
			return
		}
		again, err := ParseLimit(l.Text)
		assert.True(t, err == nil && again == l, "%q: parsed again: %+v, %v; want %+v", l.Text, again, err, l)
		_ = l.String()
	})
}
