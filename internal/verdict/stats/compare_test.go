package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"carronade/test/testkit/assert"

	moremath "github.com/aclements/go-moremath/stats"
)

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
			c := Compare(tt.base, tt.candidate, tt.better, tt.o)
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
		c := Compare(a, b, More, Options{})
		d := c.Difference
		want := c.Candidate.Median/c.Base.Median - 1
		assert.Must(t, d.Center == want && d.Lo <= want && d.Hi >= want, "%+v, want %v; of %v and %v", d, want, a, b)
		assert.Must(t, c.Verdict != Better && c.Verdict != Worse || !d.straddles() && (d.Center > 0) == (c.Verdict == Better),
			"%s by %+v; of %v and %v", c.Verdict, d, a, b)
	}
	// More values of b are larger, and its median is smaller.
	a := slices.Concat(slices.Repeat([]float64{1}, 49), slices.Repeat([]float64{10}, 51))
	b := slices.Concat(slices.Repeat([]float64{9}, 51), slices.Repeat([]float64{100}, 49))
	if c := Compare(a, b, More, Options{}); c.P > 0.05 || c.Verdict != Unknown || !c.Difference.straddles() {
		t.Errorf("got %s, p %v, %+v", c.Verdict, c.P, c.Difference)
	}
}

// Swapping the sides inverts the verdict and mirrors the difference.
func TestCompareIsSymmetric(t *testing.T) {
	a, b := around(7, 100, 0.02), around(9, 108, 0.03)
	x, y := Compare(a, b, More, Options{}), Compare(b, a, More, Options{})
	assert.True(t, x.Verdict == Better && y.Verdict == Worse && math.Abs(x.P-y.P) <= 1e-12,
		"got %v (%v) and %v (%v)", x.Verdict, x.P, y.Verdict, y.P)
	if got, want := (1+x.Difference.Lo)*(1+y.Difference.Hi), 1.0; math.Abs(got-want) > 1e-12 {
		t.Errorf("the intervals do not mirror each other: %+v, %+v", x.Difference, y.Difference)
	}
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
			if !slices.EqualFunc(got, tt.want, func(a, b float64) bool {
				return math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) < 1e-12
			}) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
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
	Compare(a, b, More, Options{})
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
		t.Run(tt.name, func(t *testing.T) {
			best, sure := Best(tt.samples, tt.better, nil, Options{})
			assert.True(t, best == tt.best && sure == tt.sure, "got %d (%v), want %d (%v)", best, sure, tt.best, tt.sure)
		})
	}
}

// Large samples are compared by some of their values, without loss of correctness.
func TestLargeSamples(t *testing.T) {
	c := Compare(around(5000, 100, 0.1), around(5000, 110, 0.1), More, Options{})
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
	c := Compare(base, []float64{5, 6, 6, 6, 6, 6}, Less, Options{})
	assert.True(t, c.Verdict == Worse && c.Difference.Lo == 0 && c.Difference.Center > 0, "got %v, p %v, %+v", c.Verdict, c.P, c.Difference)
	rnd := rand.New(rand.NewPCG(7, 7))
	for range 4000 {
		n, values := 6+rnd.IntN(2), 3+rnd.IntN(8)
		shift := rnd.Float64() * float64(values)
		a, b := make([]float64, n), make([]float64, n)
		for i := range a {
			a[i], b[i] = 100+float64(rnd.IntN(values)), 100+math.Floor(rnd.Float64()*float64(values)+shift)
		}
		c := Compare(a, b, More, Options{})
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
