package profile

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"carronade/load"
	"carronade/payload"
	"carronade/test/testkit/assert"
	"carronade/units"
)

// events are records of a specification, one a millisecond, in batches of ten.
func events(t testing.TB, spec payload.Spec, n int) []Record {
	t.Helper()
	g := assert.Value(payload.New(spec))(t)
	out := make([]Record, n)
	for i := range out {
		r := Record{Log: int32(i / 10 % 3), Time: 1767323045e9 + int64(i)*1e6, Value: g.AppendValue([]byte{}, uint64(i)), Keyed: g.HasKey(), Key: g.AppendKey(nil, uint64(i))}
		for h := range g.NumHeaders() {
			text, name := g.AppendHeader(nil, h, uint64(i))
			r.Headers = append(r.Headers, Header{text[:name], text[name:]})
		}
		out[i] = r
	}
	return out
}

func TestProfileOfASample(t *testing.T) {
	s := NewSampler("half", func(b []byte) int { return len(b) / 2 })
	records := events(t, payload.Spec{Seed: 1, Size: "lognormal(200,0.4)", Key: "zipf(500,1.2)", Headers: []string{"a=b", "n=${rnd.nextInt(50)}"}}, 20_000)
	for i := range records {
		s.Record(&records[i])
		if i%10 == 9 {
			s.Batch(Batch{Codec: "lz4", Events: 10, Plain: 4000, Wire: 1000})
		}
	}
	p := s.Profile(true, 4)
	assert.True(t, p.Sizes.Family == Lognormal && math.Abs(p.Sizes.Median-200) <= 4 && math.Abs(p.Sizes.Sigma-0.4) <= 0.02,
		"got sizes %+v, want lognormal(200,0.4)", p.Sizes)
	assert.True(t, p.Keys.Family == ZipfKeys && math.Abs(p.Keys.Zipf-1.2) <= 0.03 && p.Keys.Share == 1,
		"got keys %+v, want zipf of exponent 1.2", p.Keys)
	assert.True(t, len(p.Headers) == 2 && p.Headers[0].Name == "a" && p.Headers[0].Distinct == 1 && p.Headers[1].Distinct == 50 && p.Headers[1].Share == 1,
		"got headers %+v, want a with one value and n with 50", p.Headers)
	assert.Equal(t, p.Content, (Content{Codec: "lz4", Ratio: 0.25, Of: "batches", Bytes: 8e6}), "content")
	assert.True(t, p.Pace.Family == ConstantPace && math.Abs(p.Pace.Rate-1000) <= 1, "got %+v, want 1000/s", p.Pace)
	l := p.Partitions
	assert.True(t, l.Partitions == 4 && l.Used == 3 && l.Smallest == 0 && math.Abs(l.Skew-4./3) <= 0.01, "got partitions %+v, want 3 of 4 used", l)
	assert.True(t, p.Batches.Batches == 2000 && p.Batches.Events.Text == "10", "got batches %+v, want 2000 of 10", p.Batches)
}

func TestContentOfValues(t *testing.T) {
	s := NewSampler("half", func(b []byte) int { return len(b) / 2 })
	for range 10 {
		s.Record(&Record{Log: -1, Value: make([]byte, 20_000)})
		s.Batch(Batch{Codec: "none", Events: 1, Plain: 20_000, Wire: 20_000})
	}
	c := s.Content()
	assert.True(t, c.Codec == "half" && c.Ratio == 0.5 && c.Of == "values", "got %+v, want half of values", c)
}

func TestHeaderNamesAreBounded(t *testing.T) {
	s := NewSampler("", nil)
	for i := range 200 {
		s.Record(&Record{Log: -1, Value: []byte{}, Headers: []Header{{fmt.Appendf(nil, "name %d", i), nil}}})
	}
	if p := s.Profile(true, 0); len(p.Headers) != maxHeaders || p.MoreHeaders != 200-maxHeaders {
		t.Errorf("got %d headers and %d more, want %d and %d", len(p.Headers), p.MoreHeaders, maxHeaders, 200-maxHeaders)
	}
}

// Values that are null count: a source that has no others is not like what has values, although nothing of it has a size.
func TestSizeDistanceOfNulls(t *testing.T) {
	sampled := func(nulls int, sizes ...int) *Sampler {
		s := NewSampler("", nil)
		for range nulls {
			s.Record(&Record{Log: -1, Null: true})
		}
		for _, size := range sizes {
			s.Record(&Record{Log: -1, Value: make([]byte, size)})
		}
		return s
	}
	of := func(n, size int) []int { return slices.Repeat([]int{size}, n) }
	for _, tt := range []struct {
		name string
		a, b *Sampler
		want float64
	}{
		{"all are null", sampled(100), sampled(0, of(100, 100)...), 1},
		{"all are null in both", sampled(100), sampled(10), 0},
		{"a third", sampled(30, of(60, 100)...), sampled(0, of(50, 100)...), 1. / 3},
		{"none", sampled(0, of(7, 100)...), sampled(0, of(50, 100)...), 0},
		{"nothing", sampled(0), sampled(0, of(50, 100)...), 0},
		{"nulls and smaller ones", sampled(4, 50, 50, 50, 90, 90, 90), sampled(0, of(10, 90)...), 0.7},
		{"nulls and larger ones", sampled(4, 50, 50, 50, 90, 90, 90), sampled(0, of(10, 50)...), 0.4},
		{"as many nulls", sampled(5, of(5, 50)...), sampled(1, 90), 0.5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, got := range []float64{tt.a.SizeDistance(tt.b), tt.b.SizeDistance(tt.a)} {
				assert.True(t, math.Abs(got-tt.want) <= 1e-9, "got %v, want %v", got, tt.want)
			}
		})
	}
}

// Records without a key count as those of one that comes first.
func TestKeyDistanceWithoutKeys(t *testing.T) {
	sampled := func(without int, keys ...string) *Sampler {
		s := NewSampler("", nil)
		for range without {
			s.Record(&Record{Log: -1})
		}
		for _, key := range keys {
			s.Record(&Record{Log: -1, Key: []byte(key), Keyed: true})
		}
		return s
	}
	for _, tt := range []struct {
		name string
		a, b *Sampler
		want float64
	}{
		{"none has a key", sampled(10), sampled(3), 0},
		{"one has none", sampled(10), sampled(0, "a"), 1},
		{"the same keys", sampled(0, "a", "b"), sampled(0, "a", "b"), 0},
		{"half have none", sampled(2, "a", "b"), sampled(0, "a", "b"), 0.5},
		// After the first key: 0.5 + 0.5, and 0.25.
		{"without, and one key", sampled(2, "a", "a"), sampled(0, "a", "b", "c", "d"), 0.75},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, got := range []float64{tt.a.KeyDistance(tt.b), tt.b.KeyDistance(tt.a)} {
				assert.True(t, math.Abs(got-tt.want) <= 1e-9, "got %v, want %v", got, tt.want)
			}
		})
	}
}

// arrivals are the times of the first n events of a shape, or of all.
func arrivals(t *testing.T, shape string, n uint64) *Arrivals {
	t.Helper()
	s := assert.Value(load.ParseShape(shape))(t)
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var a Arrivals
	end := s.End()
	for i := range n {
		due := s.Due(i)
		if end != load.Never && due >= end {
			break
		}
		a.Add(start.Add(due).UnixNano())
	}
	return &a
}

func TestPaceFitRecoversParameters(t *testing.T) {
	for _, test := range []struct {
		name, shape string
		n           uint64
		family      string
		values      []string // in the fitted shape, each at most 5 % off
	}{
		{"constant", "constant(2k/s)", 20_000, ConstantPace, []string{"2k/s", "10s"}},
		{"slow", "constant(20/s)", 2000, ConstantPace, []string{"20/s", "100s"}},
		{"poisson", "poisson(2k/s)", 40_000, PoissonPace, []string{"2k/s", "20s"}},
		{"ramp", "ramp(1k/s,5k/s,10s)", 1e6, RampPace, []string{"1k/s", "5k/s", "10s"}},
		{"burst", "burst(500,1s)", 10_000, BurstPace, []string{"500", "1s", "20s"}},
		{"a long time", "constant(1/s)", 200_000, ConstantPace, []string{"1/s", "200000s"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := arrivals(t, test.shape, test.n).Fit(1)
			got := strings.FieldsFunc(f.Shape, func(r rune) bool { return strings.ContainsRune("(),:", r) })
			assert.Must(t, f.Family == test.family && len(got) == len(test.values)+1,
				"got %s %s, want %s of %v", f.Family, f.Shape, test.family, test.values)
			for i, want := range test.values {
				g, w := number(t, got[i+1]), number(t, want)
				if math.Abs(g-w) > 0.05*w {
					t.Errorf("got %s in %s, want %s", got[i+1], f.Shape, want)
				}
			}
			assert.True(t, f.Error <= 0.05, "got a distance of %.3f, want at most 0.05", f.Error)
		})
	}
}

// number reads a rate, a time or a count.
func number(t *testing.T, text string) float64 {
	t.Helper()
	if r, err := units.ParseRate(text); err == nil && strings.Contains(text, "/") {
		return r
	}
	if d, err := units.ParseDuration(text); err == nil {
		return d.Seconds()
	}
	f := assert.Value(strconv.ParseFloat(text, 64))(t)
	return f
}

func TestPaceOfSteps(t *testing.T) {
	f := arrivals(t, "steps(1k/s:5s,4k/s:5s,500/s:5s)", 1e6).Fit(1)
	assert.Must(t, f.Family == StepsPace && f.Error <= 0.02,
		"got %s %s with a distance of %.3f, want steps within 0.02", f.Family, f.Shape, f.Error)
	s := assert.Value(load.ParseShape(f.Shape))(t)
	for _, want := range []struct {
		at   time.Duration
		rate float64
	}{{2500 * time.Millisecond, 1000}, {7500 * time.Millisecond, 4000}, {12 * time.Second, 500}} {
		got := float64(s.Count(want.at+500*time.Millisecond) - s.Count(want.at-500*time.Millisecond))
		assert.True(t, math.Abs(got-want.rate) <= 0.05*want.rate, "got %.0f/s at %v of %s, want %.0f/s", got, want.at, f.Shape, want.rate)
	}
}

func TestDispersion(t *testing.T) {
	for _, test := range []struct {
		shape    string
		from, to float64
	}{
		{"constant(10k/s)", 0, 0.05},
		{"poisson(10k/s)", 0.7, 1.3},
		{"burst(1000,100ms)", 100, 2000},
	} {
		t.Run(test.shape, func(t *testing.T) {
			d, ok := arrivals(t, test.shape, 100_000).Dispersion(100)
			assert.True(t, ok && d.Index >= test.from && d.Index <= test.to, "got %+v, want an index from %v to %v", d, test.from, test.to)
		})
	}
}

func TestArrivalsOutOfOrder(t *testing.T) {
	var a Arrivals
	for _, s := range []int64{1000, 1, 500_000, 7} {
		a.Add(s * 1e9)
	}
	assert.True(t, a.Count() == 4 && a.Span() == 499_999*time.Second && a.last-a.first < maxBins,
		"got %d events over %v in bins %d to %d, want 4 over 499999s in fewer than %d", a.Count(), a.Span(), a.first, a.last, maxBins)
	total := uint64(0)
	for _, n := range a.bins {
		total += n
	}
	assert.Equal(t, total, 4, "events in bins")
	f := a.Fit(1)
	assert.True(t, f.Family == NoPace, "got %s of 4 events, want none", f.Family)
}
