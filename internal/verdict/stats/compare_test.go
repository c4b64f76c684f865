package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	moremath "github.com/aclements/go-moremath/stats"

	"carronade/test/testkit/assert"
)

// compareTwo compares two samples, judged alone.
func compareTwo(base, candidate []float64, better Direction, o Options) Comparison {
	return Family([]Row{{Base: base, Candidate: candidate, Better: better}}, o)[0]
}

// around is n values spaced evenly around a level; spread is their range as a share of it.
func around(n int, level, spread float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = level * (1 + spread*(float64(i)/float64(n-1)-0.5))
	}
	return out
}

func TestCompare(t *testing.T) {
	tight := around(6, 100, 0.01)
	for _, tt := range []struct {
		name            string
		base, candidate []float64
		better          Direction
		o               Options
		want            Verdict
		doubt           Doubt
	}{
		{"more is better", tight, around(6, 110, 0.01), More, Options{}, Better, Doubt{}},
		{"more is worse", tight, around(6, 110, 0.01), Less, Options{}, Worse, Doubt{}},
		{"less is worse", tight, around(6, 90, 0.01), More, Options{}, Worse, Doubt{}},
		{"equal", tight, around(6, 100.1, 0.01), More, Options{}, Same, Doubt{}},
		{"differs for certain, by little", tight, around(6, 101.5, 0.005), More, Options{}, Same, Doubt{}},
		{"differs for certain, with a small effect", tight, around(6, 101.5, 0.005), More, Options{Effect: 0.001}, Better, Doubt{}},
		{"identical", slices.Repeat([]float64{7}, 6), slices.Repeat([]float64{7}, 6), More, Options{}, Same, Doubt{}},
		{"all zero", make([]float64, 6), make([]float64, 6), Less, Options{}, Same, Doubt{}},
		{"five, clear", around(5, 100, 0.01), around(5, 200, 0.01), More, Options{}, Better, Doubt{}},
		{"six and five, clear", tight, around(5, 200, 0.01), More, Options{}, Better, Doubt{}},
		{"four and four, 7.5 times as much", []float64{5.4, 5.7, 5.56, 7.1}, []float64{31, 41.6, 44, 42}, Less, Options{}, Worse, Doubt{}},
		{"five, not clear", around(5, 100, 0.01), around(5, 120, 0.01), More, Options{}, Unknown, Doubt{Reason: TooFew, Need: 6}},
		{"five, clear and less than is worth naming", around(5, 100, 0.01), around(5, 140, 0.01), More, Options{Effect: 0.5}, Unknown, Doubt{Reason: TooFew, Need: 6}},
		{"five, equal", around(5, 100, 0.001), around(5, 100, 0.001), More, Options{}, Unknown, Doubt{Reason: TooFew, Need: 6}},
		{"three, clear", around(3, 100, 0.05), around(3, 200, 0.05), Less, Options{}, Worse, Doubt{}},
		{"three, from zero", make([]float64, 3), []float64{5, 5, 5}, Less, Options{}, Worse, Doubt{}},
		{"five, where only six are judged", around(5, 100, 0.01), around(5, 200, 0.01), More, Options{Alpha: 0.05}, Unknown, Doubt{Reason: TooFew, Need: 6}},
		{"two", []float64{1, 1}, []float64{2, 2}, More, Options{}, Unknown, Doubt{Reason: TooFew, Need: 6, Few: 3}},
		{"nothing", nil, tight, More, Options{}, Unknown, Doubt{Reason: Missing}},
		{"nothing on the other side", tight, nil, More, Options{}, Unknown, Doubt{Reason: Missing}},
		{"noisy", around(6, 100, 0.3), around(6, 102, 0.3), More, Options{}, Unknown, Doubt{Reason: Noisy, Need: Many}},
		{"differs by about what is worth naming", around(6, 100, 0.025), around(6, 102.7, 0.025), More, Options{}, Unknown, Doubt{Reason: Small, Need: Many}},
		{"from zero", make([]float64, 6), around(6, 5, 0.1), Less, Options{}, Worse, Doubt{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := compareTwo(tt.base, tt.candidate, tt.better, tt.o)
			c.Doubt.Detects = 0
			assert.True(t, c.Verdict == tt.want && c.Doubt == tt.doubt,
				"got %v (%+v), want %v (%+v); %+v", c.Verdict, c.Doubt, tt.want, tt.doubt, c.Difference)
		})
	}
}

// The difference is that of the two medians, its interval includes it, and a verdict agrees with both,
// whatever the samples: also where the medians and the test disagree.
func TestDifferenceIsThatOfTheMedians(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 1))
	for range 4000 {
		a, b := make([]float64, 3+rnd.IntN(20)), make([]float64, 3+rnd.IntN(20))
		for _, s := range [][]float64{a, b} {
			for i := range s {
				s[i] = math.Exp(0.05 * rnd.NormFloat64())
				if rnd.IntN(2) == 0 {
					s[i] *= 1.84
				}
			}
		}
		c := compareTwo(a, b, More, Options{})
		d := c.Difference
		want := c.Candidate.Median/c.Base.Median - 1
		assert.Must(t, d.Center == want && d.Lo <= want && d.Hi >= want, "%+v, want %v; of %v and %v", d, want, a, b)
		assert.Must(t, c.Verdict != Better && c.Verdict != Worse || !d.straddles() && (d.Center > 0) == (c.Verdict == Better),
			"%s by %+v; of %v and %v", c.Verdict, d, a, b)
	}
	// More values of b are larger, and its median is smaller.
	a := slices.Concat(slices.Repeat([]float64{1}, 49), slices.Repeat([]float64{10}, 51))
	b := slices.Concat(slices.Repeat([]float64{9}, 51), slices.Repeat([]float64{100}, 49))
	c := compareTwo(a, b, More, Options{})
	assert.True(t, c.P <= 0.05 && c.Verdict == Unknown && c.Difference.straddles(), "got %s, p %v, %+v", c.Verdict, c.P, c.Difference)
}

// Swapping the sides inverts the verdict and mirrors the difference.
func TestCompareIsSymmetric(t *testing.T) {
	a, b := around(7, 100, 0.02), around(9, 108, 0.03)
	x, y := compareTwo(a, b, More, Options{}), compareTwo(b, a, More, Options{})
	assert.True(t, x.Verdict == Better && y.Verdict == Worse && math.Abs(x.P-y.P) <= 1e-12,
		"got %v (%v) and %v (%v)", x.Verdict, x.P, y.Verdict, y.P)
	got, want := (1+x.Difference.Lo)*(1+y.Difference.Hi), 1.0
	assert.True(t, math.Abs(got-want) <= 1e-12, "the intervals do not mirror each other: %+v, %+v", x.Difference, y.Difference)
}

// A difference that is significant for one row may be chance among many rows.
func TestFamilyIsJudgedTogether(t *testing.T) {
	odd := Row{ // the U-test says 0.026
		Base: []float64{100, 101, 102, 103, 104, 105}, Candidate: []float64{104.5, 106, 107, 108, 109, 102.5}, Better: More,
	}
	alone := Family([]Row{odd}, Options{})[0]
	assert.Must(t, alone.P <= 0.05 && alone.Verdict == Better, "alone: %v, p %v", alone.Verdict, alone.P)
	rows := []Row{odd}
	for range 3 {
		rows = append(rows, Row{Base: around(6, 100, 0.02), Candidate: around(6, 100.3, 0.02), Better: More})
	}
	got := Family(rows, Options{})[0]
	assert.True(t, got.Verdict == Unknown && got.Doubt.Reason == Crowded && got.P == alone.P,
		"among four: %v (%v), p %v", got.Verdict, got.Doubt.Reason, got.P)
}

func TestHolm(t *testing.T) {
	nan := math.NaN()
	for _, tt := range []struct {
		name    string
		p, want []float64
	}{
		{"none", nil, nil},
		{"one", []float64{0.04}, []float64{0.04}},
		{"two", []float64{0.04, 0.01}, []float64{0.04, 0.02}},
		{"never falls", []float64{0.02, 0.021, 0.9}, []float64{0.06, 0.06, 0.9}},
		{"at most one", []float64{0.6, 0.7}, []float64{1, 1}},
		{"missing tests", []float64{nan, 0.03, nan}, []float64{nan, 0.03, nan}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := Holm(tt.p)
			assert.True(t, slices.EqualFunc(got, tt.want, func(a, b float64) bool {
				return math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) < 1e-12
			}), "got %v, want %v", got, tt.want)
		})
	}
}

func TestMedian(t *testing.T) {
	inf := math.Inf(1)
	for _, tt := range []struct {
		name           string
		sample         []float64
		median, lo, hi float64
	}{
		{"one", []float64{3}, 3, -inf, inf},
		{"five", []float64{5, 1, 4, 2, 3}, 3, -inf, inf},
		{"six", []float64{6, 5, 1, 4, 2, 3}, 3.5, 1, 6},
		{"ten", []float64{10, 9, 8, 7, 6, 5, 4, 3, 2, 1}, 5.5, 2, 9},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := Median(tt.sample, 0.95)
			assert.True(t, e.N == len(tt.sample) && e.Median == tt.median && e.Lo == tt.lo && e.Hi == tt.hi,
				"got %+v, want %v [%v, %v]", e, tt.median, tt.lo, tt.hi)
			assert.True(t, !e.Bounded() || e.Confidence >= 0.95, "confidence %v", e.Confidence)
		})
	}
	e := Median(nil, 0.95)
	assert.True(t, e.N == 0 && math.IsNaN(e.Median) && !e.Bounded(), "empty sample: %+v", e)
	assert.Equal(t, (&Estimate{N: 2, Median: 10, Min: 9, Max: 11, Lo: -inf, Hi: inf}).Spread(), 0.1, "spread of two")
}

// A sample belongs to the caller: no function sorts it.
func TestSamplesAreNotModified(t *testing.T) {
	a, b := []float64{3, 1, 2, 6, 5, 4}, []float64{9, 8, 7, 12, 11, 10}
	compareTwo(a, b, More, Options{})
	Median(a, 0.95)
	Steps(a, StepDefaults)
	assert.True(t, slices.Equal(a, []float64{3, 1, 2, 6, 5, 4}) && slices.Equal(b, []float64{9, 8, 7, 12, 11, 10}), "got %v and %v", a, b)
}

func TestBest(t *testing.T) {
	for _, tt := range []struct {
		name    string
		samples [][]float64
		better  Direction
		best    int
		sure    bool
	}{
		{"none", nil, More, -1, false},
		{"one", [][]float64{around(6, 1, 0.01)}, More, 0, false},
		{"sure", [][]float64{around(6, 100, 0.01), around(6, 120, 0.01), around(6, 90, 0.01)}, More, 1, true},
		{"less is better", [][]float64{around(6, 100, 0.01), around(6, 120, 0.01), around(6, 90, 0.01)}, Less, 2, true},
		{"two alike", [][]float64{around(6, 100, 0.01), around(6, 100.2, 0.01), around(6, 90, 0.01)}, More, 1, false},
		{"too few", [][]float64{around(3, 100, 0.01), around(3, 120, 0.01)}, More, 1, false},
		{"an empty one", [][]float64{nil, around(6, 120, 0.01)}, More, 1, false},
	} {
		best, sure := Best(tt.samples, tt.better, nil, Options{})
		assert.True(t, best == tt.best && sure == tt.sure, "%s: got %d (%v), want %d (%v)", tt.name, best, sure, tt.best, tt.sure)
	}
}

// Large samples are compared by some of their values, without loss of correctness.
func TestLargeSamples(t *testing.T) {
	c := compareTwo(around(5000, 100, 0.1), around(5000, 110, 0.1), More, Options{})
	assert.True(t, c.Verdict == Better && math.Abs(c.Difference.Center-0.1) <= 0.001 && c.Difference.Lo <= 0.1 &&
		c.Difference.Hi >= 0.1, "got %v by %+v", c.Verdict, c.Difference)
}

// A new sample is compared with the level shown for the history: an outlier among the levels, or among the
// repetitions, widens the interval and does not invert it.
func TestPredictionIsOfTheMediansThatAreShown(t *testing.T) {
	for _, tt := range []struct {
		name      string
		history   [][]float64
		candidate []float64
	}{
		{"a level far off", [][]float64{{1.5}, {1.6}, {1.55}, {1.58}, {18.7}, {1.57}, {1.56}}, []float64{1.79}},
		{"a repetition far off", [][]float64{{1.5, 1.51, 30}, {1.6}, {1.55}, {1.58}, {1.57, 1.55, 0.01}, {1.56}}, []float64{1.79, 1.78, 40}},
		{"amounts", [][]float64{{0}, {1}, {0}, {2}, {90}, {1}}, []float64{3}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := Family([]Row{{History: tt.history, Candidate: tt.candidate, Better: Less}}, Options{})[0]
			want := c.Candidate.Median - c.Base.Median
			if c.Difference.Relative {
				want = c.Candidate.Median/c.Base.Median - 1
			}
			if got := c.Difference; !c.Predicted || math.Abs(got.Center-want) > 1e-12 || got.Lo > got.Center || got.Hi < got.Center {
				t.Errorf("got %+v, want the difference %v of %v and %v", got, want, c.Base.Median, c.Candidate.Median)
			}
		})
	}
}

// With equal values, the interval does not contradict the test: it may end at
// 0, and does not include values on both sides of it.
func TestTies(t *testing.T) {
	base := []float64{5, 5, 5, 5, 5, 5}
	c := compareTwo(base, []float64{5, 6, 6, 6, 6, 6}, Less, Options{})
	assert.True(t, c.Verdict == Worse && c.Difference.Lo == 0 && c.Difference.Center > 0, "got %v, p %v, %+v", c.Verdict, c.P, c.Difference)
	rnd := rand.New(rand.NewPCG(7, 7))
	for range 4000 {
		n, values := 6+rnd.IntN(2), 3+rnd.IntN(8)
		shift := rnd.Float64() * float64(values)
		a, b := make([]float64, n), make([]float64, n)
		for i := range a {
			a[i], b[i] = 100+float64(rnd.IntN(values)), 100+math.Floor(rnd.Float64()*float64(values)+shift)
		}
		c := compareTwo(a, b, More, Options{})
		d := c.Difference
		assert.Must(t, !(c.P <= 0.05 && d.Lo < 0 && d.Hi > 0 || c.P > 0.05 && (d.Lo > 0 || d.Hi < 0)),
			"p %v and %+v of %v and %v", c.P, d, a, b)
	}
}

// The test and the interval are exact for samples of the same sizes.
func TestExactLimitIsTheTests(t *testing.T) {
	assert.Equal(t, moremath.MannWhitneyExactLimit, exactLimit, "and the test's")
	for _, tt := range []struct{ n, want int }{{5, 3}, {6, 6}, {21, 143}, {30, 318}, {50, 966}} {
		assert.Equal(t, rejected(tt.n, tt.n, 0.05), tt.want, "%d values", tt.n)
	}
}

// scaled is a sample times a factor.
func scaled(sample []float64, factor float64) (out []float64) {
	for _, v := range sample {
		out = append(out, v*factor)
	}
	return out
}

// A difference counts only beyond what groups of equal runs may differ by, in both directions and in all
// scales; the interval is that of the difference itself.
func TestRowBetween(t *testing.T) {
	sample := []float64{99, 99.5, 99.9, 100.1, 100.5, 101}
	few := []float64{99, 100, 101}
	for _, tt := range []struct {
		name            string
		base, candidate []float64
		between         float64
		amount          bool
		want            Verdict
		reason          Reason
	}{
		{"less than they may differ", sample, scaled(sample, 1.045), 0.05, false, Unknown, Apart},
		{"the same without that", sample, scaled(sample, 1.045), 0, false, Worse, ""},
		{"hardly more", sample, scaled(sample, 1.055), 0.05, false, Unknown, Apart},
		{"more", sample, scaled(sample, 1.09), 0.05, false, Worse, ""},
		{"less of it", sample, scaled(sample, 1/1.045), 0.05, false, Unknown, Apart},
		{"much less of it", sample, scaled(sample, 1/1.09), 0.05, false, Better, ""},
		{"below the effect", sample, scaled(sample, 1.005), 0.05, false, Same, ""},
		{"few, by a half", few, scaled(few, 1.5), 0.05, false, Unknown, TooFew},
		{"few, by a half, in turns", few, scaled(few, 1.5), 0, false, Worse, ""},
		{"few, by far", few, scaled(few, 2.2), 0.05, false, Worse, ""},
		{"with zeros, by less", append([]float64{0}, sample...), scaled(append([]float64{100}, sample...), 1.02), 0.05, false, Unknown, ""},
		{"amounts do not differ with time", []float64{0, 0, 0, 0, 0, 0}, scaled(sample, 1e-3), 0.05, true, Worse, ""},
	} {
		c := Family([]Row{{Base: tt.base, Candidate: tt.candidate, Better: Less, Between: tt.between, Amount: tt.amount}}, Options{Effect: 0.02, Few: 3})[0]
		plain := Family([]Row{{Base: tt.base, Candidate: tt.candidate, Better: Less, Amount: tt.amount}}, Options{Effect: 0.02, Few: 3})[0]
		assert.True(t, c.Verdict == tt.want && (tt.reason == "" || c.Doubt.Reason == tt.reason), "%s: got %s (%+v), p %v, %+v", tt.name, c.Verdict, c.Doubt, c.P, c.Difference)
		assert.True(t, c.Difference == plain.Difference, "%s: the interval is %+v, and %+v in turns", tt.name, c.Difference, plain.Difference)
	}
}

// The same holds for a new level of a history.
func TestPredictionBetween(t *testing.T) {
	var history [][]float64
	for _, v := range []float64{99, 101, 100, 99.5, 100.5, 100} {
		history = append(history, []float64{v})
	}
	for _, tt := range []struct {
		now, between float64
		want         Verdict
	}{{104, 0, Worse}, {104, 0.05, Unknown}, {110, 0.05, Worse}, {90, 0.05, Better}} {
		c := Family([]Row{{History: history, Candidate: []float64{tt.now}, Better: Less, Between: tt.between}}, Options{Effect: 0.02})[0]
		assert.True(t, c.Predicted && c.Verdict == tt.want, "%v within %v: got %s (%+v), p %v", tt.now, tt.between, c.Verdict, c.Doubt, c.P)
	}
}

// Groups show how far groups are apart if there are enough of them. A real change among them does not count,
// and drift over many of them does not either.
func TestBetween(t *testing.T) {
	of := func(levels ...float64) (out [][]float64) {
		for _, v := range levels {
			out = append(out, []float64{v, v, v})
		}
		return out
	}
	for _, tt := range []struct {
		name   string
		groups [][]float64
		want   float64
		ok     bool
	}{
		{"too few", of(100, 110, 100), 0, false},
		{"by 10 %", of(100, 110, 100, 110), math.Pow(1.1, reach) - 1, true},
		{"a change among them", of(100, 101, 100, 101, 200, 202, 200), math.Pow(1.01, reach) - 1, true},
		{"none", of(100, 100, 100, 100, 100), 0, true},
		{"zeros", of(0, 100, 100, 100), 0, false},
		{"an empty one", append(of(100, 110, 100, 110), nil), math.Pow(1.1, reach) - 1, true},
	} {
		got, ok := Between(tt.groups)
		assert.True(t, ok == tt.ok && math.Abs(got-tt.want) < 1e-9, "%s: got %v, %t, want %v, %t", tt.name, got, ok, tt.want, tt.ok)
	}
}

func TestFitLine(t *testing.T) {
	for _, tt := range []struct {
		name string
		x, y []float64
		want Line
		ok   bool
	}{
		{"exact", []float64{1, 2, 3, 4}, []float64{5, 7, 9, 11}, Line{2, 3, 0}, true},
		{"above 0", []float64{1, 2, 3, 4}, []float64{3, 5, 7, 9}, Line{2, 1, 0}, true},
		{"with a residual", []float64{0, 1, 2}, []float64{0, 3, 0}, Line{0, 1, math.Sqrt(3)}, true},
		{"two points", []float64{1, 3}, []float64{1, 2}, Line{0.5, 0.5, math.NaN()}, true},
		{"one x", []float64{2, 2, 2}, []float64{1, 2, 3}, Line{}, false},
		{"one point", []float64{2}, []float64{1}, Line{}, false},
		{"no point", nil, nil, Line{}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := FitLine(len(tt.x), func(i int) (x, y float64) { return tt.x[i], tt.y[i] })
			same := func(a, b float64) bool { return math.Abs(a-b) < 1e-12 || math.IsNaN(a) && math.IsNaN(b) }
			assert.True(t, ok == tt.ok && same(got.Slope, tt.want.Slope) && same(got.Intercept, tt.want.Intercept) &&
				same(got.Error, tt.want.Error), "got %+v, %v, want %+v, %v", got, ok, tt.want, tt.ok)
		})
	}
}

// Fisher's tea tasting: in four of eight cups the milk was poured first.
func TestMoreOften(t *testing.T) {
	for _, tt := range []struct {
		name                               string
		base, baseTrials, candidate, among int
		want                               float64
	}{
		{"all recognized", 0, 4, 4, 4, 1.0 / 70},
		{"three recognized", 1, 4, 3, 4, 17.0 / 70},
		{"none", 0, 4, 0, 4, 1},
		{"all of both sides", 4, 4, 3, 3, 1},
		{"one of one", 0, 12, 1, 1, 1.0 / 13},
		{"no base", 0, 0, 3, 3, 1},
		{"no candidate", 0, 3, 0, 0, 1},
	} {
		got := MoreOften(tt.base, tt.baseTrials, tt.candidate, tt.among)
		assert.True(t, math.Abs(got-tt.want) <= 1e-12, "%s: got %v, want %v", tt.name, got, tt.want)
	}
}

// A base of 0 has no shares: the difference is an amount, and the test decides whether there is one.
func TestEffectOfZero(t *testing.T) {
	zeros := make([]float64, 8)
	for _, tt := range []struct {
		name            string
		base, candidate []float64
		amount          bool
		want            Verdict
		relative, any   bool
		effect          float64
	}{
		{name: "a share of a positive base", base: around(8, 100, 0.01), candidate: around(8, 110, 0.01), want: Worse, relative: true, effect: 0.03},
		{name: "from 0, by very little, for certain", base: zeros, candidate: around(8, 1e-6, 0.1), want: Worse, any: true},
		{name: "from 0 and at 0", base: zeros, candidate: zeros, want: Same, any: true},
		{name: "from 0, one of eight is not", base: zeros, candidate: append([]float64{4}, zeros[1:]...), want: Same, any: true},
		{name: "one outage in a base of 100", base: append([]float64{0}, around(7, 100, 0.01)...), candidate: around(8, 101, 0.01), want: Same, effect: 0.03 * 99.9},
		{name: "to 0", base: around(8, 100, 0.01), candidate: zeros, want: Better, effect: 3},
		{name: "a requested amount", base: zeros, candidate: around(8, 0.01, 0.1), amount: true, want: Same, effect: 0.03},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := Family([]Row{{Base: tt.base, Candidate: tt.candidate, Better: Less, Amount: tt.amount}}, Options{})[0]
			assert.True(t, c.Verdict == tt.want && c.Difference.Relative == tt.relative && c.AnyChange == tt.any && math.Abs(c.Effect-tt.effect) <= 0.1,
				"got %v, relative %v, any change %v, effect %v; want %v, %v, %v, %v: %+v", c.Verdict, c.Difference.Relative, c.AnyChange, c.Effect, tt.want, tt.relative, tt.any, tt.effect, c.Difference)
		})
	}
}

func TestChange(t *testing.T) {
	for _, tt := range []struct {
		name                string
		before, after, want float64
		relative            bool
	}{
		{"a tenth more", 100, 110, 0.1, true},
		{"half of it", 100, 50, -0.5, true},
		{"to nothing", 100, 0, -1, true},
		{"from nothing", 0, 50, 50, false},
		{"nothing", 0, 0, 0, false},
		{"below nothing", -4, -2, 2, false},
	} {
		d := Change(tt.before, tt.after)
		assert.True(t, math.Abs(d.Center-tt.want) <= 1e-12 && d.Relative == tt.relative, "%s: got %+v, want %v, relative %v", tt.name, d, tt.want, tt.relative)
	}
}

// If one revision of a long series was an outage, steps are still shares of
// their levels, and those too small to name do not count.
func TestStepsBesideAnOutage(t *testing.T) {
	series := slices.Concat(around(15, 100, 0.002), around(15, 101, 0.002), around(15, 150, 0.002))
	series[7] = 0
	steps := Steps(series, StepOptions{Alpha: 0.05, Effect: 0.03, Least: 3})
	assert.True(t, len(steps) == 1 && steps[0].At == 30 && steps[0].Relative && math.Abs(steps[0].Change-0.49) <= 0.02,
		"got %+v, want one step of +50%% at 30", steps)
	up := slices.Concat(make([]float64, 10), around(10, 40, 0.01))
	if steps = Steps(up, StepOptions{Alpha: 0.05, Effect: 0.03, Least: 3}); len(steps) != 1 || steps[0].Relative || math.Abs(steps[0].Change-40) > 1 {
		t.Errorf("got %+v, want one step by 40", steps)
	}
}
