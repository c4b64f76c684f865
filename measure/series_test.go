package measure

import (
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// AddLast joins nothing in a full series; the next Add does.
func TestSeriesAddLast(t *testing.T) {
	s := NewSeries(10)
	at := time.Duration(0)
	next := func() Interval {
		at += time.Second
		return Interval{Phase: "measurement", Start: at - time.Second, End: at}
	}
	for range 10 {
		s.Add(next())
	}
	s.AddLast(next())
	assert.Equal(t, len(s.Intervals()), 11, "rows")
	s.Add(next())
	got := len(s.Intervals())
	assert.True(t, got == 11 && len(s.Changed()) == 1 && s.Changed()[0].Length() == 2*time.Second, "got %d rows, want two joined and the next", got)
}

// The lengths of rows of a long run differ by at most a factor of two, and the series stays full.
func TestSeriesIsEven(t *testing.T) {
	const most = 100
	s := NewSeries(most)
	for i := range 10_000 {
		at := time.Duration(i) * time.Second
		before := s.Rows()
		s.Add(Interval{Phase: "measurement", Start: at, End: at + time.Second})
		rows := s.Intervals()
		if i < most {
			assert.Must(t, len(s.Changed()) == 0, "after %d: two rows were joined although there was room", i)
			continue
		}
		short, long := rows[0].Length(), rows[0].Length()
		for _, iv := range rows[:most-1] { // the last one is not complete
			short, long = min(short, iv.Length()), max(long, iv.Length())
		}
		assert.Must(t, len(rows) == most && long <= 2*short, "after %d: %d rows of %v to %v", i, len(rows), short, long)
		j := s.Changed()
		assert.Must(t, before == most || len(s.Intervals()) != before, "after %d: joined %v with %d rows", i, j, before)
	}
}

// With any number of intervals, the series stays within its bound, covers the run without a gap, and keeps the sums.
func TestSeriesKeepsTheSums(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(4, 20).Draw(t, "most")
		s := NewSeries(most)
		want := map[string]*Tally{}
		at := time.Duration(0)
		for _, phase := range []string{"warm-up", "measurement", "drain"} {
			want[phase] = &Tally{Start: at}
			for range rapid.IntRange(0, 200).Draw(t, "intervals") {
				iv := Interval{Phase: phase, Start: at, End: at + time.Second, InFlight: uint64(at)}
				at = iv.End
				iv.Acked = rapid.Uint64Range(0, 9).Draw(t, "acked")
				iv.Service = NewHistogram()
				iv.Service.RecordN(time.Duration(iv.Acked)*time.Millisecond, iv.Acked)
				iv.Generator = Usage{CPU: time.Second, GCPauseMax: time.Duration(iv.Acked)}
				want[phase].Counts.Add(iv.Counts)
				want[phase].Merge(&iv.Set)
				s.Add(iv)
				iv.Service.Record(time.Hour) // the series has a copy
			}
			want[phase].End = at
		}
		if got := len(s.Intervals()); got > most {
			t.Fatalf("got %d intervals, want at most %d", got, most)
		}
		got := map[string]*Tally{}
		end := time.Duration(0)
		for _, iv := range s.Intervals() {
			assert.Must(t, iv.Start == end, "a gap between %v and %v", end, iv.Start)
			end = iv.End
			tally := got[iv.Phase]
			if tally == nil {
				tally = &Tally{}
				got[iv.Phase] = tally
			}
			tally.Counts.Add(iv.Counts)
			tally.Merge(&iv.Set)
			if iv.InFlight != uint64(iv.End-time.Second) {
				t.Fatalf("in flight of %v..%v is not the value at its end: %v", iv.Start, iv.End, iv.InFlight)
			}
			assert.Must(t, iv.Generator.CPU == iv.Length(), "CPU of %v..%v: got %v", iv.Start, iv.End, iv.Generator.CPU)
		}
		assert.Must(t, end == at, "ends at %v, want %v", end, at)
		for phase, w := range want {
			g := got[phase]
			if g == nil {
				g = &Tally{}
			}
			if diff := cmp.Diff(w.Counts, g.Counts); diff != "" {
				t.Fatalf("%s: %s", phase, diff)
			}
			if w.Service.Count() != g.Service.Count() || w.Service.Count() > 0 && !w.Service.Equal(g.Service) {
				t.Fatalf("%s: service times differ", phase)
			}
		}
	})
}

// Rows whose cells take much memory are joined before there are many: the bytes stay within
// the bound, the lengths even, and nothing is lost.
func TestSeriesIsBoundedInBytes(t *testing.T) {
	const most = 100 << 10
	s := NewSeries(DefaultSeries)
	s.mostCells = most
	rng := rand.New(rand.NewPCG(1, 2))
	n := testkit.Cases(3000, 1000)
	for i := range n {
		h := NewHistogram()
		for range 300 {
			h.Record(time.Duration(rng.ExpFloat64() * 3e6))
		}
		at := time.Duration(i) * time.Second
		s.Add(Interval{Phase: "measurement", Start: at, End: at + time.Second, Set: Set{Response: h}})
		bytes := 0
		for _, iv := range s.Intervals() {
			bytes += len(iv.Response.packed)
		}
		assert.Must(t, bytes == s.cells && (bytes <= most+most/10 || len(s.Intervals()) <= fewRows),
			"after %d: %d rows have %d bytes, %d are counted, and %d are the bound", i, len(s.Intervals()), bytes, s.cells, most)
	}
	count, short, long := uint64(0), time.Hour, time.Duration(0)
	rows := s.Intervals()
	for _, iv := range rows {
		count += iv.Response.Count()
		long = max(long, iv.Length())
	}
	for _, iv := range rows[:len(rows)-1] {
		short = min(short, iv.Length())
	}
	assert.True(t, count == uint64(300*n) && len(rows) >= fewRows && len(rows) <= n/4 && long <= 2*short,
		"%d rows of %v to %v have %d values, want %d", len(rows), short, long, count, 300*n)
	if s.AddLast(Interval{Phase: "measurement"}); len(s.Changed()) > 1 {
		t.Error("the last row of a run made others join")
	}
}

// A week of seconds takes some MB.
func TestSeriesOfAWeekIsBounded(t *testing.T) {
	s := NewSeries(DefaultSeries)
	h := NewHistogram()
	for i := range 500 {
		h.RecordN(time.Duration(i*i)*time.Microsecond, 1000)
	}
	for i := range 7200 {
		at := time.Duration(i) * time.Second
		s.Add(Interval{Phase: "measurement", Start: at, End: at + time.Second, Set: Set{Service: h}})
	}
	bytes := 0
	for _, iv := range s.Intervals() {
		assert.Must(t, iv.Service.dense == nil, "an interval of the series is not compact")
		bytes += cap(iv.Service.packed)
	}
	assert.Equal(t, len(s.Intervals()), DefaultSeries, "intervals")
	assert.True(t, bytes <= 8<<20, "one histogram per interval takes %d bytes", bytes)
}

func TestStallAdd(t *testing.T) {
	const ms = time.Millisecond
	for _, tt := range []struct {
		name  string
		add   [][2]time.Duration
		want  []Span
		count uint64
	}{
		{"one", [][2]time.Duration{{100 * ms, 300 * ms}}, []Span{{100 * ms, 200 * ms}}, 1},
		{"one that continued", [][2]time.Duration{{100 * ms, 300 * ms}, {100 * ms, 500 * ms}}, []Span{{100 * ms, 400 * ms}}, 1},
		{"two that meet", [][2]time.Duration{{100 * ms, 300 * ms}, {300 * ms, 500 * ms}}, []Span{{100 * ms, 200 * ms}, {300 * ms, 200 * ms}}, 2},
		{"two that overlap", [][2]time.Duration{{100 * ms, 300 * ms}, {200 * ms, 500 * ms}}, []Span{{100 * ms, 200 * ms}, {300 * ms, 200 * ms}}, 2},
		{"one within another", [][2]time.Duration{{100 * ms, 300 * ms}, {200 * ms, 250 * ms}}, []Span{{100 * ms, 200 * ms}}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var s Stall
			for _, x := range tt.add {
				s.Add(x[0], x[1])
			}
			diff := cmp.Diff(tt.want, s.Spans)
			assert.True(t, diff == "" && s.Count == tt.count, "%d stalls, want %d (-want +got):\n%s", s.Count, tt.count, diff)
		})
	}
}

// Of very many stalls the longest are kept, in order of time.
func TestStallsAreBounded(t *testing.T) {
	var s Stall
	for i := range 2 * MostSpans {
		at := time.Duration(i) * time.Second
		s.Add(at, at+time.Duration(100+i%2)*time.Millisecond)
	}
	assert.Must(t, s.Count == 2*MostSpans && len(s.Spans) == MostSpans, "%d stalls, %d kept", s.Count, len(s.Spans))
	short := 0
	for i, x := range s.Spans {
		if i > 0 && x.At <= s.Spans[i-1].At {
			t.Fatalf("stall %d is at %v, after %v", i, x.At, s.Spans[i-1].At)
		}
		if x.Length == 100*time.Millisecond {
			short++
		}
	}
	assert.True(t, short <= 1, "%d short stalls are kept instead of long ones", short)
}

// Every percentile of the result is the least of those of the histograms, and its count is that of the first.
func TestLeastOf(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	fill := func(n int, scale, shift float64) *Histogram {
		h := NewHistogram()
		for range n {
			h.Record(time.Duration(shift + scale*rng.ExpFloat64()))
		}
		return h
	}
	for _, tt := range []struct {
		name string
		hs   []*Histogram
	}{
		{"one", []*Histogram{fill(1000, 1e6, 0)}},
		{"crossing", []*Histogram{fill(100_000, 1e6, 2e6), fill(100_000, 5e6, 0)}},
		{"of other counts", []*Histogram{fill(20_000, 1e6, 1e6), fill(150, 2e6, 0), nil, NewHistogram(), fill(70_000, 1e3, 3e6)}},
		{"compact", []*Histogram{fill(5000, 1e6, 2e6).Compact(), fill(5000, 5e6, 0)}},
		{"beyond the range", []*Histogram{fill(1000, 1e12, 5e12), fill(1000, 3e12, 0)}},
		{"below the range", []*Histogram{fill(1000, 100, 0), fill(1000, 1e6, 0)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := LeastOf(tt.hs...)
			assert.Must(t, got.Count() == tt.hs[0].Count(), "counted %d, want %d", got.Count(), tt.hs[0].Count())
			mean := tt.hs[0].Mean()
			for _, p := range []float64{0.1, 1, 10, 50, 90, 99, 99.9, 100} {
				want := time.Duration(1 << 62)
				for _, h := range tt.hs {
					if h.Count() > 0 {
						want = min(want, h.Percentile(p))
						mean = min(mean, h.Mean())
					}
				}
				// With another count, a rank may fall between two of a histogram.
				slack := time.Duration(0)
				if len(tt.hs) > 2 {
					slack = want / 10
				}
				assert.True(t, (got.Percentile(p)-want).Abs() <= slack, "p%v is %v, want %v", p, got.Percentile(p), want)
			}
			assert.True(t, (got.Mean()-mean).Abs() <= 1, "the mean is %v, want %v", got.Mean(), mean)
			again := NewHistogram() // all cells are within the span
			again.Merge(got)
			assert.True(t, again.Percentile(99) == got.Percentile(99) && again.Count() == got.Count(),
				"merged: p99 %v of %d, want %v of %d", again.Percentile(99), again.Count(), got.Percentile(99), got.Count())
		})
	}
	got := LeastOf(nil, NewHistogram())
	assert.True(t, got.Count() == 0 && got.Percentile(50) == 0, "of empty histograms: %d values, p50 %v", got.Count(), got.Percentile(50))
}

// fill sets every field of an interval to something that no other field has.
func fill(t *testing.T, v reflect.Value, next func() int64) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i), next)
		}
	case reflect.Int, reflect.Int64:
		v.SetInt(-next())
	case reflect.Uint64:
		v.SetUint(math.MaxUint64 - uint64(next()))
	case reflect.String:
		v.SetString(time.Duration(next()).String())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 3, 3))
		for i := range v.Len() {
			fill(t, v.Index(i), next)
		}
	case reflect.Pointer:
		h := NewHistogram()
		for range 20 {
			h.Record(time.Duration(next()) * 37 * time.Microsecond)
		}
		h.Record(0)
		h.Record(2 * Highest)
		v.Set(reflect.ValueOf(h.Compact()))
	default:
		t.Fatalf("an interval has a %v", v.Kind())
	}
}

// A row has everything that its interval has.
func TestRowIsItsInterval(t *testing.T) {
	full := Interval{}
	n := int64(0)
	fill(t, reflect.ValueOf(&full).Elem(), func() int64 { n++; return n })
	empty := Interval{Phase: Measurement, Start: time.Second, End: 2 * time.Second, Set: Set{Response: NewHistogram(), Service: &Histogram{}}}
	for _, iv := range []Interval{full, empty, {}} {
		r := newRow(&iv)
		got := r.interval()
		assert.True(t, reflect.DeepEqual(got, iv), "got  %+v\nwant %+v", got, iv)
		assert.True(t, r.cells == iv.cellBytes() && cap(r.data) == len(r.data),
			"%d bytes of cells, want %d; %d bytes in %d", r.cells, iv.cellBytes(), len(r.data), cap(r.data))
	}
}

func TestClasses(t *testing.T) {
	var a, b Classes
	a.Add("timeout", 3, 1)
	a.Add("refused", 2, 2)
	a.Add("timeout", 1, 1)
	b.Add("authorization", 5, 1)
	b.Merge(a)
	want := Classes{{"authorization", 5, 1}, {"refused", 2, 2}, {"timeout", 4, 2}}
	assert.Same(t, b, want)
	assert.Same(t, a, Classes{{"refused", 2, 2}, {"timeout", 4, 2}}, "argument of Merge")
}

func TestStatuses(t *testing.T) {
	var a, b Statuses
	a.Add(503, 1, 10)
	a.Add(202, 2, 20)
	a.Add(503, 1, 5)
	b.Add(400, 1, 1)
	b.Add(202, 1, 10)
	before := append(Statuses(nil), b...)
	a.Merge(b)
	want := Statuses{{202, 3, 30}, {400, 1, 1}, {503, 2, 15}}
	assert.Same(t, a, want)
	assert.Same(t, b, before, "argument of Merge")
}

// A histogram comes back exactly, and adding decoded ones equals adding the originals.
func TestText(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		a, b := NewHistogram(), NewHistogram()
		for range rng.IntN(300) {
			a.RecordN(time.Duration(rng.Int64N(int64(90*time.Minute))>>rng.IntN(43)), 1+rng.Uint64N(5))
			b.Record(time.Duration(rng.Int64N(int64(time.Second))))
		}
		x, y := recoded(t, a), recoded(t, b.Compact())
		assert.Must(t, x.Equal(a) && y.Equal(b) && x.Mean() == a.Mean() && x.Min() == a.Min() && x.Max() == a.Max(),
			"decoded %v, want %v", x, a)
		a.Merge(b)
		if x.Merge(y); !x.Equal(a) || x.Sum() != a.Sum() || x.Below() != a.Below() || x.Above() != a.Above() {
			t.Fatalf("the sum of decoded ones is %v, want %v", x, a)
		}
	}
}

func recoded(t *testing.T, h *Histogram) *Histogram {
	t.Helper()
	text := assert.Value(json.Marshal(Set{Response: h}))(t)
	var s Set
	assert.OK(t, json.Unmarshal(text, &s))
	assert.Must(t, s.Service == nil, "a missing histogram exists after decoding")
	return s.Response
}

// FuzzText: no text crashes the decoder, and what it accepts can be used and encoded again.
func FuzzText(f *testing.F) {
	for _, values := range [][]time.Duration{nil, {0}, {time.Hour * 2}, {time.Microsecond, time.Millisecond, time.Hour}} {
		h := NewHistogram()
		for _, d := range values {
			h.Record(d)
		}
		text, _ := h.MarshalText()
		f.Add(string(text))
	}
	f.Add("AQAAAAAAAAAA")
	f.Fuzz(func(t *testing.T, text string) {
		var h Histogram
		if h.UnmarshalText([]byte(text)) != nil {
			return
		}
		h.Percentile(99)
		h.Record(time.Second)
		h.Merge(&h)
		h.Reset()
		assert.Must(t, h.Count() == 0, "not empty after Reset")
	})
}

// TestCounters: each field of Counts is a counter with all that people and programs need, and its value is found.
func TestCounters(t *testing.T) {
	var c Counts
	names := map[string]bool{}
	for i, n := range c.Fields() {
		*n = uint64(i + 1)
		k := &Counters[i]
		assert.True(t, k.Of(&c) == uint64(i+1) && (k.Unit == "events" || k.Unit == "batches" || k.Unit == "bytes") && k.Means != "" && k.Help != "", "%+v is %d", k, k.Of(&c))
		for _, name := range []string{k.Name, "metric " + k.Metric, "field " + k.Field} {
			assert.True(t, !names[name], "two counters are called %s", name)
			names[name] = true
		}
	}
	d := Signed(c)
	d.Add(Signed(c))
	d.Subtract(Signed(c))
	assert.Equal(t, d, Signed(c), "counts plus and minus themselves")
	assert.True(t, d.WireBytes == int64(len(Counters)) && c.Offered == 1 && !c.IsZero() && (Counts{}).IsZero(), "got %+v", d)
}

func TestPercentilesCensored(t *testing.T) {
	answered, unanswered := NewHistogram(), NewHistogram()
	answered.RecordN(time.Millisecond, 98)
	unanswered.Record(2 * time.Second)
	unanswered.Record(3 * time.Second)
	second := func(n int) time.Duration { return time.Duration(n) * time.Second }
	for _, tt := range []struct {
		name        string
		h, censored *Histogram
		want        []Value
	}{
		{"all answered", answered, nil, []Value{{99, time.Millisecond, false}, {50, time.Millisecond, false}}},
		{"two of a hundred without an answer", answered, unanswered, []Value{{99, second(2), true}, {50, time.Millisecond, false}}},
		{"none answered", NewHistogram(), unanswered, []Value{{99, 2998272 * time.Microsecond, true}, {50, second(2), true}}},
		{"only ages", nil, unanswered, []Value{{99, 2998272 * time.Microsecond, true}, {50, second(2), true}}},
		{"nothing", nil, nil, []Value{{P: 99}, {P: 50}}},
	} {
		assert.Same(t, Percentiles(tt.h, tt.censored, []float64{99, 50}), tt.want, tt.name)
	}
}

// TestOneWithoutAnAnswer: one event of thousands moves a percentile by at most one
// rank, so that only those are lower bounds whose next rank is far away.
func TestOneWithoutAnAnswer(t *testing.T) {
	h, ages := NewHistogram(), NewHistogram()
	for i := range 2490 {
		h.Record(time.Millisecond + time.Duration(i)*2*time.Microsecond)
	}
	h.RecordN(time.Second, 2)
	ages.Record(500 * time.Microsecond)
	s := Summarize(h, ages, nil)
	for _, tt := range []struct {
		p       float64
		atLeast bool
		us      float64 // within a hundredth
	}{{50, false, 3490}, {90, false, 5482}, {99, false, 5930}, {99.9, true, 5976}, {99.99, true, 1e6}} {
		v, _ := s.At(tt.p)
		if us := Micros(v.D); v.AtLeast != tt.atLeast || us < 0.99*tt.us || us > 1.01*tt.us {
			t.Errorf("p%v: got %v us (at least: %v), want %v us (%v)", tt.p, us, v.AtLeast, tt.us, tt.atLeast)
		}
	}
	v, _ := s.At(99.9)
	assert.True(t, s.AtLeastFrom == 99.9 && v.AtLeast && s.CensoredMin == 500, "bounds from p%v, the smallest age %v us", s.AtLeastFrom, s.CensoredMin)
	text := assert.Value(json.Marshal(s))(t)
	var back Summary
	assert.OK(t, json.Unmarshal(text, &back))
	assert.Same(t, back.Percentiles, s.Percentiles, "read back")
	// Lower bounds stay distinct from known values of the same size, also after
	// decoding: the 9,000th of 9,001 is p99.99, and only the last may be any time.
	h = NewHistogram()
	h.RecordN(time.Millisecond, 9000)
	text = assert.Value(json.Marshal(Summarize(h, ages, nil)))(t)
	assert.True(t, strings.Contains(string(text), `"censored":1,"at_least_from_us":500,"at_least_from_p":99.99`), "got %s", text)
	back = Summary{}
	assert.OK(t, json.Unmarshal(text, &back))
	for _, v := range back.Percentiles {
		assert.True(t, v.AtLeast == (v.P == 99.99) && v.D == time.Millisecond, "p%v: got %v (at least: %v)", v.P, v.D, v.AtLeast)
	}
}

// stored are summaries as older programs wrote them, with one number for the smallest
// age and the first lower bound, and how they are decoded.
var stored = []struct {
	name, text string
	ages       float64 // the smallest, in us
	from       float64 // the first percentile that is a lower bound
}{
	{"bounds", `{"count":95,"mean_us":106,"min_us":100,"p50_us":100,"p90_us":100,"p95_us":200,"p99_us":300,"p999_us":300,"p9999_us":300,"max_us":200,"below_range":0,"above_range":0,"censored":2,"at_least_from_us":200}`, 200, 95},
	{"ages beyond all", `{"count":3,"mean_us":100,"min_us":100,"p50_us":100,"p90_us":100,"max_us":100,"below_range":0,"above_range":0,"censored":1,"at_least_from_us":5000}`, 5000, 0},
	{"all answered", `{"count":3,"mean_us":100,"min_us":100,"p50_us":100,"p99_us":100,"max_us":100,"below_range":0,"above_range":0,"censored":0,"at_least_from_us":null}`, 0, 0},
}

// TestOlderSummary: a summary without at_least_from_p is still decoded as before.
func TestOlderSummary(t *testing.T) {
	for _, tt := range stored {
		t.Run(tt.name, func(t *testing.T) {
			var s Summary
			assert.OK(t, json.Unmarshal([]byte(tt.text), &s))
			assert.True(t, s.CensoredMin == tt.ages && s.AtLeastFrom == tt.from,
				"the smallest age is %v us, bounds are from p%v on; want %v, %v", s.CensoredMin, s.AtLeastFrom, tt.ages, tt.from)
			for _, v := range s.Percentiles {
				assert.Equal(t, v.AtLeast, tt.from > 0 && v.P >= tt.from, "p%v: AtLeast", v.P)
			}
		})
	}
}

// TestExtremesOfEventsWithoutAnswer: they make the maximum and, if they matter, the mean lower
// bounds, after decoding as well, and in older reports, which lack the mean and largest age.
func TestExtremesOfEventsWithoutAnswer(t *testing.T) {
	const ms = time.Millisecond
	for _, tt := range []struct {
		name        string
		answered    uint64 // with times of 2 ms, one of them 8 ms
		ages        []time.Duration
		each        uint64
		mean, most  Value
		older, peak Value // mean and maximum of an older report
	}{
		{"all answered", 999, nil, 0, Value{D: 2*ms + 6*time.Microsecond}, Value{P: 100, D: 8 * ms}, Value{D: 2*ms + 6*time.Microsecond}, Value{P: 100, D: 8 * ms}},
		{"most not answered", 999, []time.Duration{10 * ms, 30 * ms}, 1500, Value{D: 15*ms + 501500, AtLeast: true}, Value{P: 100, D: 30 * ms, AtLeast: true}, Value{D: 8*ms + 1500, AtLeast: true}, Value{P: 100, D: 30 * ms, AtLeast: true}},
		{"too few to matter", 99_999, []time.Duration{10 * ms, 30 * ms}, 1, Value{D: 2*ms + 60}, Value{P: 100, D: 30 * ms, AtLeast: true}, Value{D: 2*ms + 60}, Value{P: 100, D: 10 * ms, AtLeast: true}},
		{"younger than the answers", 999, []time.Duration{ms}, 1000, Value{D: ms + 503*time.Microsecond, AtLeast: true}, Value{P: 100, D: 8 * ms, AtLeast: true}, Value{D: ms + 503*time.Microsecond, AtLeast: true}, Value{P: 100, D: 8 * ms, AtLeast: true}},
		{"nothing answered", 0, []time.Duration{25 * ms}, 10, Value{D: 25 * ms, AtLeast: true}, Value{P: 100, D: 25 * ms, AtLeast: true}, Value{D: 25 * ms, AtLeast: true}, Value{P: 100, D: 25 * ms, AtLeast: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, ages := NewHistogram(), NewHistogram()
			if tt.answered > 0 {
				h.RecordN(2*ms, tt.answered)
				h.Record(8 * ms)
			}
			for _, age := range tt.ages {
				ages.RecordN(age, tt.each)
			}
			s := Summarize(h, ages, nil)
			text := assert.Value(json.Marshal(s))(t)
			var fields map[string]any
			assert.OK(t, json.Unmarshal(text, &fields))
			delete(fields, "censored_mean_us")
			delete(fields, "censored_max_us")
			lacking := assert.Value(json.Marshal(fields))(t)
			var back, older Summary
			assert.OK(t, errors.Join(json.Unmarshal(text, &back), json.Unmarshal(lacking, &older)))
			for _, c := range []struct {
				name       string
				s          *Summary
				mean, most Value
			}{{"summary", s, tt.mean, tt.most}, {"read back", &back, tt.mean, tt.most}, {"older", &older, tt.older, tt.peak}} {
				mean, _ := c.s.Average()
				most, _ := c.s.Largest()
				assert.True(t, mean == c.mean && most == c.most, "%s: mean %+v, max %+v; want %+v, %+v", c.name, mean, most, c.mean, c.most)
				for _, v := range c.s.Percentiles {
					assert.True(t, v.D <= most.D, "%s: p%v is %v, and the max %v", c.name, v.P, v.D, most.D)
				}
			}
		})
	}
	_, ok := Summarize(NewHistogram(), nil, nil).Largest()
	assert.True(t, !ok, "nothing has a maximum")
}

// TestOlderReaders: an older program takes all percentiles from at_least_from_us on for
// lower bounds. It may take too many of them for bounds, but never too few.
func TestOlderReaders(t *testing.T) {
	for _, tt := range []struct {
		name string
		age  time.Duration
		n    uint64
	}{
		{"one", 3 * time.Millisecond, 1},
		{"a tenth", 3 * time.Millisecond, 250},
		{"longer than all", time.Minute, 250},
		{"shorter than all", time.Microsecond, 250},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, ages := NewHistogram(), NewHistogram()
			for i := range 2490 {
				h.Record(time.Millisecond + time.Duration(i)*2*time.Microsecond)
			}
			ages.RecordN(tt.age, tt.n)
			s := Summarize(h, ages, nil)
			text := assert.Value(json.Marshal(s))(t)
			var old map[string]float64
			assert.OK(t, json.Unmarshal(text, &old))
			got, want := old["at_least_from_us"], Micros(tt.age)
			assert.True(t, got == want, "bounds are from %v us on, the smallest age is %v us", got, want)
			for _, v := range s.Percentiles {
				least := old[PercentileKey(v.P)] >= old["at_least_from_us"]
				assert.True(t, !v.AtLeast || least, "p%v is a lower bound, but an older program takes it as known", v.P)
			}
		})
	}
}

// If every answer had been waited for, the percentile would be as reported if it is not marked, and at least that if it is.
func TestCensoringIsABound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		truth, answered, ages := NewHistogram(), NewHistogram(), NewHistogram()
		for _, d := range inRange(durations(t)) {
			truth.Record(d)
			if rapid.IntRange(0, 9).Draw(t, "unanswered") == 0 {
				ages.Record(time.Duration(rapid.Int64Range(0, int64(d)).Draw(t, "age")))
			} else {
				answered.Record(d)
			}
		}
		for _, v := range Percentiles(answered, ages, []float64{10, 50, 90, 99, 100}) {
			want := truth.Percentile(v.P)
			off := time.Duration(tolerance*float64(want)) + Lowest
			if v.AtLeast && v.D > want || !v.AtLeast && (v.D-want).Abs() > off {
				t.Fatalf("p%v: got %v (at least: %v), the true value is %v", v.P, v.D, v.AtLeast, want)
			}
			if v.AtLeast && want < ages.Min()-Lowest {
				t.Fatalf("p%v: %v is a bound, but lies below the smallest age %v", v.P, v.D, ages.Min())
			}
		}
	})
}

func TestSummaryJSON(t *testing.T) {
	h, ages := NewHistogram(), NewHistogram()
	h.RecordN(1500*time.Nanosecond, 900)
	h.RecordN(2*time.Millisecond, 90)
	h.RecordN(500*time.Nanosecond, 5)
	ages.RecordN(5*time.Second, 5)
	for _, tt := range []struct {
		name    string
		summary *Summary
		want    string
	}{
		{name: "whole", summary: Summarize(h, ages, []float64{25, 0.1, 99.5, 50, 100}), want: `{"count":995,"mean_us":182.264,"min_us":0.5,"p0_1_us":1,"p25_us":2,"p50_us":2,"p90_us":2,"p95_us":2000,"p99_us":2000,"p995_us":2000,"p999_us":5000000,"p9999_us":5000000,"p100_us":5000000,"max_us":2000,"below_range":5,"above_range":0,"censored":5,"at_least_from_us":5000000,"at_least_from_p":99.9,"censored_mean_us":5000000,"censored_max_us":5000000}`},
		{name: "nothing counted", summary: Summarize(NewHistogram(), nil, nil), want: `{"count":0,"mean_us":null,"min_us":null,"p50_us":null,"p90_us":null,"p95_us":null,"p99_us":null,"p999_us":null,"p9999_us":null,"max_us":null,"below_range":0,"above_range":0,"censored":0,"at_least_from_us":null,"at_least_from_p":null,"censored_mean_us":null,"censored_max_us":null}`},
		{name: "nil", summary: Summarize(nil, nil, nil), want: `null`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := assert.Value(json.Marshal(tt.summary))(t)
			assert.Same(t, string(got), tt.want)
			var back *Summary
			assert.OK(t, json.Unmarshal(got, &back))
			assert.Same(t, string(assert.Value(json.Marshal(back))(t)), string(got), "read back and written")
		})
	}
}

func TestPercentileKey(t *testing.T) {
	for _, tt := range []struct {
		p    float64
		want string
	}{
		{50, "p50_us"},
		{99.9, "p999_us"},
		{99.99, "p9999_us"},
		{5, "p5_us"},
		{5.5, "p5_5_us"},
		{55, "p55_us"},
		{0.01, "p0_01_us"},
		{100, "p100_us"},
	} {
		assert.Equal(t, PercentileKey(tt.p), tt.want, "percentileKey(%v)", tt.p)
		got, ok := parsePercentileKey(tt.want)
		assert.True(t, ok && got == tt.p, "parsePercentileKey(%q): got %v, %v; want %v", tt.want, got, ok, tt.p)
	}
	for _, key := range []string{"mean_us", "p_us", "p50", "pfoo_us", "p1000000_us_us"} {
		got, ok := parsePercentileKey(key)
		assert.True(t, !ok, "parsePercentileKey(%q): got %v, want no percentile", key, got)
	}
}

func FuzzSummary(f *testing.F) {
	f.Add(`{"count":3,"mean_us":1.5,"p50_us":1,"p999_us":null,"censored":1,"at_least_from_us":1}`)
	f.Add(`null`)
	f.Add(`{"p0_1_us":2,"p100_us":3}`)
	f.Fuzz(func(t *testing.T, text string) {
		var s Summary
		if json.NewDecoder(strings.NewReader(text)).Decode(&s) != nil {
			return
		}
		assert.Value(json.Marshal(&s))(t, "%q was read, but cannot be written", text)
	})
}
