package measure

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"carronade/test/testkit/assert"

	"pgregory.net/rapid"
)

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
		{"two of a hundred without an answer", answered, unanswered, []Value{
			{99, second(2), true},
			{50, time.Millisecond, false},
		}},
		{"none answered", NewHistogram(), unanswered, []Value{{99, 2998272 * time.Microsecond, true}, {50, second(2), true}}},
		{"only ages", nil, unanswered, []Value{{99, 2998272 * time.Microsecond, true}, {50, second(2), true}}},
		{"nothing", nil, nil, []Value{{P: 99}, {P: 50}}},
	} {
		t.Run(tt.name, func(t *testing.T) { assert.Same(t, Percentiles(tt.h, tt.censored, []float64{99, 50}), tt.want) })
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
	if v, _ := s.At(99.9); s.AtLeastFrom != 99.9 || !v.AtLeast || s.CensoredMin != 500 {
		t.Errorf("bounds from p%v, the smallest age %v us", s.AtLeastFrom, s.CensoredMin)
	}

	text, err := json.Marshal(s)
	assert.OK(t, err)
	var back Summary
	assert.OK(t, json.Unmarshal(text, &back))
	assert.Same(t, back.Percentiles, s.Percentiles, "read back")

	// Lower bounds stay distinct from known values of the same size, also after
	// decoding: the 9,000th of 9,001 is p99.99, and only the last may be any time.
	h = NewHistogram()
	h.RecordN(time.Millisecond, 9000)
	text, err = json.Marshal(Summarize(h, ages, nil))
	assert.OK(t, err)
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

// If every answer had been waited for, the percentile would be as reported if it is not
// marked, and at least that if it is.
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
