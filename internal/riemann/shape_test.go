package riemann

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	standinriemann "carronade/internal/riemann/standin"
	"carronade/internal/riemann/wire"
	"carronade/load"
	"carronade/protocol"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// eventValues are the event options: their defaults, except those in set.
func eventValues(set map[string]string) protocol.Values {
	v := protocol.Values{}
	for _, o := range eventOptions {
		v[o.Name] = []string{o.Default}
	}
	for name, text := range set {
		if _, ok := v[name]; !ok {
			panic("no option " + name)
		}
		v[name] = strings.Split(text, "|")
	}
	return v
}

func shapeOf(t testing.TB, set map[string]string) *shape {
	t.Helper()
	s := assert.Value(newShape(eventValues(set), 1, 0xcafe0123456789ab, false))(t)
	return s
}

func tally(s *shape, n uint64, field func(wire.Event) string) map[string]int {
	out := map[string]int{}
	for i := range n {
		out[field(s.event(0, i))]++
	}
	return out
}

// TestDefaultsAreRealistic: many hosts and services, most of them ok, and all fields set.
func TestDefaultsAreRealistic(t *testing.T) {
	t.Parallel()
	s := shapeOf(t, nil)
	const n = 2000
	hosts := tally(s, n, func(e wire.Event) string { return e.Host })
	services := tally(s, n, func(e wire.Event) string { return e.Service })
	states := tally(s, n, func(e wire.Event) string { return e.State })
	assert.True(t, len(hosts) == 20 && len(services) == 50 && len(states) == 3 && states["ok"] >= n*94/100,
		"got %d hosts, %d services, states %v, want 20, 50 and most of them ok", len(hosts), len(services), states)
	e := s.event(0, 0)
	assert.True(t, len(e.Tags) == 2 && e.HasTTL && e.TTL == 60 && e.Metric.Kind == wire.Double && e.Description != "",
		"got %+v, want two tags, a ttl of 60, a double and a description", e)
	assert.True(t, s.time == timeSeconds && s.period >= 1000,
		"got time %v and %d distinct events, want seconds and a thousand at least", s.time, s.period)
	_, ok := hosts["web-00"]
	assert.True(t, ok, "got hosts %v, want web-00 among them", hosts)
}

// TestEventsAreReproducible: reports contain the seed, and a repeated run gets the same events, in any version. A change of these
// bytes breaks that, and needs a reason.
func TestEventsAreReproducible(t *testing.T) {
	s := shapeOf(t, map[string]string{optMetric: "uniform(0,100)"})
	e := s.event(3, 12345)
	got := string(wire.AppendJSON(nil, &e))
	assert.Same(t, s.event(3, 12345), e)
	const want = `{"host":"web-06","service":"diskstats nvme0n1 reads reqs","state":"ok","description":"sampled by carronade","tags":["carronade","eu"],"ttl":60.0,"metric":2.4355076610665494}`
	assert.Equal(t, got, want)
	other := assert.Value(newShape(eventValues(nil), 2, 0, false))(t)
	same := 0
	for i := range uint64(100) {
		a, b, c := s.event(0, i), other.event(0, i), s.event(1, i)
		if a.Host == b.Host && a.Service == b.Service || a.Host == c.Host && a.Service == c.Service {
			same++
		}
	}
	assert.True(t, same <= 5, "%d of 100 events are those of another seed or stream", same)
}

func TestTexts(t *testing.T) {
	for _, test := range []struct {
		name, typed string
		want        []string // of events 0, 1, ...
	}{
		{"constant", "cpu", []string{"cpu", "cpu"}},
		{"none", "none", []string{""}},
		{"braces", "{{a}} {{{client}}}", []string{"{a} {7}"}},
		{"cycle", "x-{cycle(a, b c,)}", []string{"x-a", "x-b c", "x-", "x-a"}},
		{"seq", "{seq}/{seq}", []string{"0000000000/0000000000", "0000000001/0000000001"}},
		{"one of one", "{pick(a)}{weighted(b:3,c:0)}{uniform(1)}", []string{"ab0", "ab0"}},
		{"colons", "{weighted(a:b:1)}", []string{"a:b"}},
		{"expressions", "a${1 + 1}b{seq}c%{'}'}", []string{"a2b0000000000c}", "a2b0000000001c}"}},
		{"signs that are not of expressions", "$${seq} %%{client} ##{{ $5 100% $", []string{"$0000000000 %7 #{ $5 100% $"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := shapeOf(t, map[string]string{optService: test.typed})
			for i, want := range test.want {
				assert.Equal(t, s.event(7, uint64(i)).Service, want, "event %d", i)
			}
		})
	}
}

func TestFrequencies(t *testing.T) {
	const n = 100000
	weights := func(of map[string]float64) map[string]float64 {
		sum := 0.0
		for _, w := range of {
			sum += w
		}
		for k := range of {
			of[k] /= sum
		}
		return of
	}
	for _, test := range []struct {
		name, typed string
		want        map[string]float64
	}{
		{"pick", "{pick(a,b,c,d)}", weights(map[string]float64{"a": 1, "b": 1, "c": 1, "d": 1})},
		{"weighted", "{weighted(ok:90,warning:9,critical:1)}", weights(map[string]float64{"ok": 90, "warning": 9, "critical": 1})},
		{"uniform", "{uniform(5)}", weights(map[string]float64{"0": 1, "1": 1, "2": 1, "3": 1, "4": 1})},
		{"zipf", "{zipf(3,1)}", weights(map[string]float64{"0": 1, "1": 0.5, "2": 1. / 3})},
		{"cycle", "{cycle(a,b)}", weights(map[string]float64{"a": 1, "b": 1})},
	} {
		t.Run(test.name, func(t *testing.T) {
			// A large pool, so that no content repeats.
			s := shapeOf(t, map[string]string{optState: test.typed, optPool: "32MiB"})
			got := tally(s, n, func(e wire.Event) string { return e.State })
			assert.Must(t, s.period >= n, "%d events repeat after %d", n, s.period)
			diff := cmp.Diff(sortedKeys(test.want), sortedKeys(got))
			assert.Must(t, diff == "", "-want +got\n%s", diff)
			for k, share := range test.want {
				// Five standard deviations of a count.
				assert.True(t, math.Abs(float64(got[k])-n*share) <= 5*math.Sqrt(n*share*(1-share)),
					"%s: got %d, want about %.0f", k, got[k], n*share)
			}
		})
	}
}

func sortedKeys[V any](m map[string]V) map[string]bool {
	out := map[string]bool{}
	for k := range maps.Keys(m) {
		out[k] = true
	}
	return out
}

// TestFieldsAreIndependent: host and service are not correlated.
func TestFieldsAreIndependent(t *testing.T) {
	s := shapeOf(t, map[string]string{optHost: "{uniform(4)}", optService: "{uniform(4)}", optPool: "16MiB"})
	const n = 40000
	got := tally(s, n, func(e wire.Event) string { return e.Host + e.Service })
	assert.Must(t, len(got) == 16, "got %d pairs, want 16", len(got))
	for pair, count := range got {
		assert.True(t, math.Abs(float64(count)-n/16) <= 5*math.Sqrt(n/16), "%s: got %d, want about %d", pair, count, n/16)
	}
}

func TestMetrics(t *testing.T) {
	for _, test := range []struct {
		name, typed, kind string
		want              []float64 // of events 0, 1, ... where they are not random
		least, most, mean float64   // of many events
	}{
		{"constant", "42.5", "double", []float64{42.5, 42.5}, 42.5, 42.5, 42.5},
		{"cycle", "cycle(1,2,4)", "sint64", []float64{1, 2, 4, 1}, 1, 4, 7. / 3},
		{"pick", "pick(-1,1)", "float", nil, -1, 1, 0},
		{"uniform", "uniform(0,100)", "double", nil, 0, 100, 50},
		{"uniform of whole numbers", "uniform(1,3)", "sint64", nil, 1, 3, 2},
		{"zipf", "zipf(1000,1.1)", "sint64", nil, 0, 999, 98.86},
		{"seq", "seq", "sint64", []float64{0, 1, 2}, 0, 19999, 9999.5},
		{"negative", "-7", "sint64", []float64{-7}, -7, -7, -7},
		{"none", "1", "none", []float64{0}, 0, 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := shapeOf(t, map[string]string{optMetric: test.typed, optMetricType: test.kind})
			for i, want := range test.want {
				assert.Equal(t, s.event(2, uint64(i)).Metric.Value(), want, "event %d", i)
			}
			const n = 20000
			sum, sum2 := 0.0, 0.0
			for i := range uint64(n) {
				m := s.metricAt(2, i)
				v := m.Value()
				assert.Must(t, m.Kind == s.kind && v >= test.least && v <= test.most,
					"event %d: got %v %v, want %v from %v to %v", i, m.Kind, v, s.kind, test.least, test.most)
				sum, sum2 = sum+v, sum2+v*v
			}
			mean := sum / n
			off := 5 * math.Sqrt(max(0, sum2/n-mean*mean)/n)
			assert.True(t, math.Abs(mean-test.mean) <= off+1e-9, "mean: got %v, want %v within %v", mean, test.mean, off)
		})
	}
}

// TestWalk: at most the step from one event to the next, not repeating with the pool, within its bounds, and covering a range.
func TestWalk(t *testing.T) {
	t.Parallel()
	s := shapeOf(t, map[string]string{optMetric: "walk(50,1)"})
	last := s.metricAt(0, 0).Real
	least, most, longest := last, last, 0.0
	const n = firstPath * 40
	for i := uint64(1); i < n; i++ {
		v := s.metricAt(0, i).Real
		longest = max(longest, math.Abs(v-last))
		least, most, last = min(least, v), max(most, v), v
	}
	assert.True(t, longest <= 1+1e-9 && longest >= 0.9, "maximum step: got %v, want nearly 1 and not more", longest)
	assert.True(t, least >= s.metric.least && most <= s.metric.most && most-least >= 5,
		"got from %v to %v, want within %v and %v, and some way apart", least, most, s.metric.least, s.metric.most)
	same := 0
	for i := range uint64(1000) {
		if s.metricAt(0, i) == s.metricAt(0, i+s.period) || s.metricAt(0, i) == s.metricAt(0, i+firstPath) {
			same++
		}
	}
	assert.True(t, same <= 10, "%d of 1000 metrics are those of one period before", same)
	assert.True(t, s.metricAt(0, 5) != s.metricAt(1, 5), "two streams have the same walk")
}

func TestShapeErrors(t *testing.T) {
	t.Parallel()
	for _, test := range testkit.Table[struct {
		Option, Typed, Want string
	}](t, "testdata/shape_errors.yaml") {
		t.Run(test.Option+" "+test.Typed, func(t *testing.T) {
			_, err := newShape(eventValues(map[string]string{test.Option: test.Typed}), 1, 1, false)
			var e *protocol.Error
			assert.Must(t, errors.As(err, &e) && strings.Contains(err.Error(), test.Want),
				"got %v, want a *target.Error with %q", err, test.Want)
			assert.True(t, e.Doing == "read --"+test.Option && e.Hint != "" && strings.Contains(err.Error(), test.Typed),
				"got %q, hint %q, want the option, the typed text and a hint", err, e.Hint)
		})
	}
	kinds := []struct{ metric, kind, want string }{
		{"1.5", "sint64", "not a whole number"},
		{"1e300", "sint64", "does not fit into 64 bits"},
		{"cycle(0,9223372036854775808)", "sint64", "does not fit into 64 bits"},
		{"walk(1e17,5)", "sint64", "2^53"},
		{"1e300", "float", "out of the range of a float"},
	}
	for _, test := range kinds {
		_, err := newShape(eventValues(map[string]string{optMetric: test.metric, optMetricType: test.kind}), 1, 1, false)
		assert.ErrorHas(t, err, test.want, "%s as %s", test.metric, test.kind)
	}
}

func TestVerifiedServices(t *testing.T) {
	s := assert.Value(newShape(eventValues(map[string]string{optService: "{bad"}), 1, 0xcafe0123456789ab, true))(t)
	seen := map[string]bool{}
	for stream := range int32(3) {
		for i := range 2 * s.period {
			service := s.event(stream, i).Service
			run, of, index, ok := parseService(service)
			assert.Must(t, run == 0x456789ab && of == stream && index == i && ok && !seen[service],
				"%q: got %x, %d, %d, %v (seen before: %v), want 456789ab, %d, %d", service, run, of, index, ok, seen[service], stream, i)
			seen[service] = true
		}
	}
	got, want := s.event(2, 41).Service, serviceOf(0x456789ab, 2, 41)
	assert.True(t, got == want && got == "carronade 456789ab 2 0000000041", "got %q and %q", got, want)
	for _, other := range []string{
		"", "cpu", "carronade 456789ab 2 41", "carronade 456789AB 2 0000000041", "carronade 456789ab 02 0000000041",
		"carronade 456789ab 2 0000000041 ", "carronade 456789ab -1 0000000041", "carronade 456789ab 2 +000000041", "carronad3 456789ab 2 0000000041",
	} {
		_, _, _, ok := parseService(other)
		assert.True(t, !ok, "%q is taken for a verified one", other)
	}
}

func FuzzParseService(f *testing.F) {
	f.Add("carronade 456789ab 2 0000000041")
	f.Fuzz(func(t *testing.T, s string) {
		run, stream, index, ok := parseService(s)
		assert.True(t, !ok || serviceOf(run, stream, index) == s, "%q became %q", s, serviceOf(run, stream, index))
	})
}

// FuzzShape: any text is an error or makes valid events.
func FuzzShape(f *testing.F) {
	f.Add("web-{uniform(20)}{cycle(a,b)}", "walk(50,1)", "cycle(1s,2s)")
	f.Add("{weighted(a:1,b:2)}{{{seq}}}", "uniform(-1,1)", "uniform(1s,1h)")
	f.Add("{zipf(10,1.1)}{client}{service}{pick(x)}", "zipf(10,2)", "none")
	f.Add("a${rnd.nextInt(5)}b%{'}'}$${seq}", "walk(50,1)", "none")
	f.Fuzz(func(t *testing.T, text, metric, ttl string) {
		v := eventValues(nil)
		v[optHost], v[optMetric], v[optTTL] = []string{text}, []string{metric}, []string{ttl}
		v[optPool] = []string{"1KiB"}
		if len(text)+len(metric)+len(ttl) > 200 {
			return
		}
		s, err := newShape(v, 1, 1, false)
		if err != nil {
			return
		}
		p := newEncoder(s, 1, 1)
		out, _ := p.append(nil, 5, 1, time.Unix(1700000000, 0))
		checkMessage(t, s, out[wire.FrameHead:], 1, 5, 1, time.Unix(1700000000, 0))
	})
}

// Expressions are values of text fields: of each event of the pool, by its number and the client's. Commas within them do not
// separate tags, and what comes from the environment is in no report.
func TestShapeExpressions(t *testing.T) {
	t.Setenv("CARRONADE_TEST", "hunter2")
	set := map[string]string{
		optDescription: "order ${rnd.nextInt(1000000)}", optTag: "a-${string:format('%d,%d', 1, 2)},b",
		optAttribute: "same=${1 == 1}|env=%{env:get('CARRONADE_TEST')}|draw=${rnd.nextInt(1000000)}",
	}
	s, again := shapeOf(t, set), shapeOf(t, set)
	seen := map[string]bool{}
	for _, stream := range []int32{0, 1} {
		for n := range uint64(100) {
			e, same := s.event(stream, n), again.event(stream, n)
			diff := cmp.Diff(e, same)
			assert.Must(t, diff == "", "event %d (-one +other):\n%s", n, diff)
			assert.Must(t, e.Tags[0] == "a-1,2" && e.Tags[1] == "b" && e.Attributes[0].Value == "true" &&
				e.Attributes[1].Value == "hunter2", "got %+v", e)
			seen[e.Description] = true
			assert.True(t, "order "+e.Attributes[2].Value != e.Description, "two fields of event %d draw the same number", n)
		}
	}
	assert.True(t, len(seen) >= 195, "%d descriptions of 200 events", len(seen))
	e, repeated := s.event(0, 3), s.event(0, 3+s.period)
	assert.Equal(t, e.Description, repeated.Description, "the event a period later")
	example, ok := s.describe()["example"]
	assert.True(t, !ok, "the report has %v", example)
	delete(set, optAttribute)
	example = shapeOf(t, set).describe()["example"]
	assert.True(t, example != nil, "without the environment, the report has no example")
}

// No comma within braces or expressions separates tags.
func TestSplitTags(t *testing.T) {
	for text, want := range map[string][]string{
		"a,b":                    {"a", "b"},
		"a, {pick(b,c)},d":       {"a", "{pick(b,c)}", "d"},
		"${int64:xor(1,2)},b":    {"${int64:xor(1,2)}", "b"},
		"${'}'},${'{,'}%{','},c": {"${'}'}", "${'{,'}%{','}", "c"},
		"$${pick(a,b)},c":        {"$${pick(a,b)}", "c"},
		"${open,b":               {"${open,b"},
	} {
		assert.Same(t, splitTags(text), want, "%s", text)
	}
}

func TestShapeFacts(t *testing.T) {
	t.Parallel()
	s := shapeOf(t, map[string]string{optTTL: "cycle(2m,30s)", optTime: "none", optDescription: "none", optTag: "none", optAttribute: "env=prod|zone={client}"})
	got, ok := s.shortestTTL()
	assert.True(t, got == 30*time.Second && ok, "shortest ttl: got %v, %v, want 30s", got, ok)
	facts := s.describe()
	example := facts["example"].(string)
	if facts["time"] != "the server's" || !strings.Contains(example, `"ttl":120.0,"env":"prod","zone":"0",`) || strings.Contains(example, "description") || strings.Contains(example, "tags") {
		t.Errorf("got %v", facts)
	}
	got, ok = shapeOf(t, map[string]string{optTTL: "none"}).shortestTTL()
	assert.True(t, got == 0 && !ok, "no ttl: got %v, %v", got, ok)
	// The pool's cycles end at its end.
	s = shapeOf(t, map[string]string{optState: "{cycle(a,b,c)}", optHost: "{cycle(a,b,c,d,e)}", optTTL: "cycle(1s,2s)"})
	assert.Equal(t, s.period%30, 0, "rest of %d distinct events by 30", s.period)
}

// Whole numbers of 64 bits are sent as they were given, in messages and in texts.
func TestWholeNumbers(t *testing.T) {
	t.Parallel()
	for typed, want := range map[string][]int64{
		"9007199254740993": {9007199254740993}, "-9223372036854775808": {math.MinInt64}, "1e18": {1e18},
		"cycle(9223372036854775807,-1)": {math.MaxInt64, -1}, "uniform(9007199254740993,9007199254740994)": {9007199254740993, 9007199254740994},
		"uniform(-9223372036854775808,9223372036854775807)": nil, "pick(9223372036854775807)": {math.MaxInt64},
	} {
		s := shapeOf(t, map[string]string{optMetric: typed, optMetricType: "sint64"})
		seen := map[int64]bool{}
		message, _ := newEncoder(s, 0, 8).append(nil, 0, 8, time.Now())
		m := assert.Value(wire.DecodeMsg(message[wire.FrameHead:]))(t)
		for i := range uint64(8) {
			v := s.metricAt(0, i)
			assert.Equal(t, v, m.Events[i].Metric, "%s: event %d", typed, i)
			seen[v.Int] = true
			assert.True(t, want == nil || slices.Contains(want, v.Int), "%s: got %d", typed, v.Int)
		}
		assert.True(t, len(want) < 2 || len(seen) == len(want), "%s: %v", typed, seen)
	}
}

// A field by an expression arrives at the server, over each transport that encodes events.
func TestExpressionsArrive(t *testing.T) {
	t.Parallel()
	srv := startStandin(t, standinriemann.Options{})
	for i, target := range []string{"riemann://" + srv.AddrOf("tcp"), "riemann+ws://" + srv.AddrOf("ws")} {
		s := openSession(t, specOf(t, target, fmt.Sprintf("service=arrives %d {seq}", i), "attribute=order=o-${string:format('%06d', rnd.nextInt(1000000))}", "pool=4KiB", "ttl=10m"))
		r, err := load.Fire(t.Context(), load.Plan{Measurement: load.Limits{Events: 200}, BatchEvents: 1, MaxInFlight: 100}, s.Target())
		assert.Must(t, err == nil && r.Measurement.Acked == 200, "%s: %v, acked %d", target, err, r.Measurement.Acked)
		found := assert.Value(ask(t, "riemann://"+srv.Addr(), nil, fmt.Sprintf(`service =~ "arrives %d %%"`, i)))(t)
		seen := map[string]bool{}
		for _, e := range found {
			if order := e.Attributes["order"]; strings.HasPrefix(order, "o-") && len(order) == len("o-000000") {
				seen[order] = true
			}
		}
		assert.True(t, len(found) == 200 && len(seen) >= 20, "%s: %d events, %d different orders", target, len(found), len(seen))
	}
}
