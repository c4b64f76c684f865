package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// A step is found where it is, and none where there is none, as often as promised, at the level that a gate uses for each of two
// rows: one value per revision, runs that differ by 2%, and a step of 5% at any revision that has five or more on either side.
func TestStepRates(t *testing.T) {
	testkit.Need(t, "some seconds")
	const (
		trials    = 120
		revisions = 60
	)
	o := StepOptions{Alpha: 0.0125, Least: 3} // a step of any size
	rnd := rand.New(rand.NewPCG(5, 7))
	near, alone, alarms := 0, 0, 0
	for range trials {
		at := 5 + rnd.IntN(revisions-9)
		factor := 0.95
		if rnd.IntN(2) == 0 {
			factor = 1.05
		}
		series := append(draw(rnd, at, 100, noise), draw(rnd, revisions-at, 100*factor, noise)...)
		steps := Steps(series, o)
		if slices.ContainsFunc(steps, func(s Step) bool { return s.At >= at-2 && s.At <= at+2 && (s.Change > 0) == (factor > 1) }) {
			near++
			if len(steps) == 1 {
				alone++
			}
		}
		if throughput, p99 := draw(rnd, revisions, 100, noise), draw(rnd, revisions, 100, noise); len(Steps(throughput, o))+len(Steps(p99, o)) > 0 {
			alarms++
		}
	}
	t.Logf("of %d trials: %d steps found within 2 revisions, %d of them alone; %d false alarms", trials, near, alone, alarms)
	assert.True(t, near >= trials*90/100, "%d of %d steps were found within 2 revisions, want 90%%", near, trials)
	assert.True(t, alarms <= trials*5/100, "%d of %d series without a step had one, want at most 5%%", alarms, trials)
}

// A series without a step has one as often as allowed, neither more nor much less: a test that is too strict finds too little.
func TestStepAlpha(t *testing.T) {
	const trials = 150
	rnd := rand.New(rand.NewPCG(31, 7))
	alarms := 0
	for range trials {
		if len(Steps(draw(rnd, 40, 100, noise), StepOptions{Alpha: 0.1, Least: 3})) > 0 {
			alarms++
		}
	}
	t.Logf("%d of %d", alarms, trials)
	assert.True(t, alarms >= trials*6/100 && alarms <= trials*14/100, "%d of %d series without a step had one, want 10%%", alarms, trials)
}

// The running sums equal the energy distance.
func TestEnergyIsTheDefinition(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	for range 50 {
		x := make([]float64, 8+rnd.IntN(20))
		for i := range x {
			x[i] = 1e6 + float64(rnd.IntN(12)) // with ties
		}
		at, q := newEnergy(len(x), 2).split(x)
		wantAt, want := 0, math.Inf(-1)
		for end := len(x); end >= 4; end -= max(1, len(x)/maxEnds) {
			for m := 2; m <= end-2; m++ {
				if d := defined(x[:m], x[m:end]); d > want+1e-9 {
					wantAt, want = m, d
				}
			}
		}
		assert.Must(t, at == wantAt && math.Abs(q-want) <= 1e-6, "got %d (%v), want %d (%v): %v", at, q, wantAt, want, x)
	}
}

// defined is the distance between two segments by the definition in the paper.
func defined(x, y []float64) float64 {
	mean := func(a, b []float64, n float64) float64 {
		sum := 0.0
		for _, v := range a {
			for _, w := range b {
				sum += math.Abs(v-w) / n
			}
		}
		return sum
	}
	m, n := float64(len(x)), float64(len(y))
	return m * n / (m + n) * (2*mean(x, y, m*n) - mean(x, x, m*(m-1)) - mean(y, y, n*(n-1)))
}

func TestSteps(t *testing.T) {
	flat := func(n int, v float64) []float64 {
		out := make([]float64, n)
		for i := range out {
			out[i] = v * (1 + 0.001*float64(i%3))
		}
		return out
	}
	for _, tt := range []struct {
		name   string
		series []float64
		want   []int
	}{
		{"nothing", nil, nil},
		{"one value", []float64{1}, nil},
		{"all equal", slices.Repeat([]float64{5}, 30), nil},
		{"zeros", make([]float64, 30), nil},
		{"down", slices.Concat(flat(10, 100), flat(10, 90)), []int{10}},
		{"down and up again", slices.Concat(flat(12, 100), flat(12, 90), flat(12, 100)), []int{12, 24}},
		{"a dip", slices.Concat(flat(10, 100), flat(8, 80), flat(12, 100)), []int{10, 18}},
		{"three levels", slices.Concat(flat(15, 100), flat(15, 110), flat(15, 125)), []int{15, 30}},
		{"too small to name", slices.Concat(flat(20, 100), flat(20, 101)), nil},
		{"one odd run", slices.Concat(flat(20, 100), flat(1, 50), flat(20, 100)), nil},
		{"negative values", slices.Concat(flat(10, -5), flat(10, 5)), []int{10}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []int
			steps := Steps(tt.series, StepDefaults)
			for _, s := range steps {
				got = append(got, s.At)
			}
			assert.True(t, slices.Equal(got, tt.want), "got %v, want %v: %+v", got, tt.want, steps)
			again := Steps(tt.series, StepDefaults)
			assert.True(t, slices.Equal(again, steps), "second call: %+v", again)
		})
	}
	s := Steps(slices.Concat(flat(10, 100), flat(10, 90)), StepDefaults)[0]
	assert.True(t, s.Before == 100.1 && math.Abs(s.Change+0.1) <= 0.002 && s.P <= 0.05, "got %+v, want from 100 by -10%%", s)
}

var scalabilities = []Scalability{
	{Lambda: 1000, Sigma: 0.05, Kappa: 0.0002},
	{Lambda: 20, Sigma: 0.3, Kappa: 0},
	{Lambda: 5e5, Sigma: 0, Kappa: 0.001},
	{Lambda: 100, Sigma: 0, Kappa: 0},
	{Lambda: 100, Sigma: 0.9, Kappa: 0.01},
}

func curve(u Scalability, to float64, noise func() float64) (n, throughput []float64) {
	for k := 1.0; k <= to; k *= 2 {
		n, throughput = append(n, k), append(throughput, u.At(k)*(1+noise()))
	}
	return n, throughput
}

// The parameters of exact curves are found.
func TestFitScalabilityExact(t *testing.T) {
	for _, want := range scalabilities {
		got, ok := FitScalability(curve(want, 256, func() float64 { return 0 }))
		near := func(a, b float64) bool { return math.Abs(a-b) < 1e-4*(math.Abs(b)+0.01) }
		assert.True(t, ok && near(got.Lambda, want.Lambda) && near(got.Sigma, want.Sigma) &&
			near(got.Kappa, want.Kappa) && got.Residual <= 1e-4, "got %+v, want %+v", got, want)
	}
}

// With noise of 1 %, the curve is within 3 % of the true one where there are points, and the
// residual says how large the noise was. Where a cliff is, no curve fits.
func TestFitScalabilityNoisy(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, want := range scalabilities {
		for range 50 {
			n, x := curve(want, 256, func() float64 { return 0.01 * rnd.NormFloat64() })
			got, ok := FitScalability(n, x)
			assert.Must(t, ok && got.Residual <= 0.05 && got.Sigma >= 0 && got.Kappa >= 0, "got %+v, want %+v", got, want)
			for _, k := range n {
				off := got.At(k)/want.At(k) - 1
				assert.True(t, math.Abs(off) <= 0.03, "at %v: got %v, want %v", k, got.At(k), want.At(k))
			}
		}
	}
	got, ok := FitScalability([]float64{1, 2, 4, 8, 16, 32}, []float64{10, 20, 40, 80, 30, 30})
	assert.True(t, ok && got.Residual >= 0.05, "got %+v for a cliff", got)
}

func TestFitScalabilityOfTooLittle(t *testing.T) {
	for _, tt := range [][2][]float64{
		{{1, 2, 4}, {1, 2, 3}},
		{{1, 2, 4, 4}, {1, 2, 3, 3}},
		{{1, 2, 4, 8}, {1, 2, 3, 0}},
		{},
	} {
		got, ok := FitScalability(tt[0], tt[1])
		assert.True(t, !ok, "%v: got %+v", tt, got)
	}
	p := (&Scalability{Sigma: 0.36, Kappa: 0.01}).Peak()
	assert.True(t, math.Abs(p-8) <= 1e-9, "got a peak at %v, want 8", p)
}

// noise is how much equal runs differ, as the standard deviation of the logarithm: two percent is typical of a quiet machine.
const noise = 0.02

// draw is a sample of n runs around a level.
func draw(rnd *rand.Rand, n int, level, noise float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = level * math.Exp(noise*rnd.NormFloat64())
	}
	return out
}

// found returns the share of trials in which one of the two primary rows, throughput and response p99, is called better or worse
// if the candidate's levels differ from the base's by a factor; and the share in which the verdict on throughput is right.
func found(seed uint64, trials, n int, factor float64, o Options) (some, right float64) {
	rnd := rand.New(rand.NewPCG(seed, uint64(n)))
	for range trials {
		rows := []Row{
			{Base: draw(rnd, n, 50e3, noise), Candidate: draw(rnd, n, 50e3*factor, noise), Better: More},
			{Base: draw(rnd, n, 0.012, noise), Candidate: draw(rnd, n, 0.012/factor, noise), Better: Less},
		}
		c := Family(rows, o)
		if c[0].Verdict == Better || c[0].Verdict == Worse || c[1].Verdict == Better || c[1].Verdict == Worse {
			some++
		}
		want := Better
		if factor < 1 {
			want = Worse
		}
		if c[0].Verdict == want {
			right++
		}
	}
	return some / float64(trials), right / float64(trials)
}

// A comparison is wrong rarely enough, and finds existing differences often enough.
func TestErrorRates(t *testing.T) {
	testkit.Need(t, "some seconds")
	const trials = 2000
	anything := Options{Effect: 1e-9} // a verdict by significance alone
	for _, tt := range []struct {
		name     string
		n        int
		factor   float64
		o        Options
		most     float64 // largest share of trials with a verdict of better or worse
		least    float64 // smallest share of trials with the right one for throughput
		atLeastN bool
	}{
		{name: "equal, 6 and 6", n: 6, factor: 1, most: 0.05},
		{name: "equal, 10 and 10", n: 10, factor: 1, most: 0.05},
		{name: "equal, 6 and 6, any effect", n: 6, factor: 1, o: anything, most: 0.05},
		{name: "equal, 10 and 10, any effect", n: 10, factor: 1, o: anything, most: 0.05},
		{name: "equal, 15 and 15, any effect", n: 15, factor: 1, o: anything, most: 0.05},
		{name: "10% more, 6 and 6", n: 6, factor: 1.10, most: 1, least: 0.8},
		{name: "10% less, 6 and 6", n: 6, factor: 0.90, most: 1, least: 0.8},
		{name: "5% more, 10 and 10", n: 10, factor: 1.05, most: 1, least: 0.8},
		{name: "5% less, 10 and 10", n: 10, factor: 0.95, most: 1, least: 0.8},
	} {
		t.Run(tt.name, func(t *testing.T) {
			some, right := found(1, trials, tt.n, tt.factor, tt.o)
			t.Logf("called different in %.2f%%, rightly in %.2f%%", 100*some, 100*right)
			assert.True(t, some <= tt.most, "called different in %.2f%% of trials, want at most %.0f%%", 100*some, 100*tt.most)
			assert.True(t, right >= tt.least, "found in %.2f%% of trials, want at least %.0f%%", 100*right, 100*tt.least)
		})
	}
}

// noises are distributions of the logarithm of what equal runs measure: some with heavy tails, some of which
// are worse for a test that assumes a normal distribution.
var noises = []struct {
	name string
	draw func(*rand.Rand) float64
}{
	{"normal", func(r *rand.Rand) float64 { return 0.15 * r.NormFloat64() }},
	{"normal, wide", func(r *rand.Rand) float64 { return 0.5 * r.NormFloat64() }},
	{"Student, 2 degrees", func(r *rand.Rand) float64 { return student(r, 2) }},
	{"Student, 3 degrees", func(r *rand.Rand) float64 { return student(r, 3) }},
	{"Cauchy", func(r *rand.Rand) float64 { return student(r, 1) }},
	{"Pareto", func(r *rand.Rand) float64 { return 0.5 * r.ExpFloat64() }},
	{"one run in five takes four times as long", func(r *rand.Rand) float64 { return mode(r, 0.2, 4, 0.05) }},
	{"half the runs take twice as long", func(r *rand.Rand) float64 { return mode(r, 0.5, 2, 0.02) }},
	{"a third of the runs take eight times as long", func(r *rand.Rand) float64 { return mode(r, 0.3, 8, 0.05) }},
	{"even", func(r *rand.Rand) float64 { return r.Float64() }},
	{"one of three values", func(r *rand.Rand) float64 { return 0.3 * float64(r.IntN(3)) }},
	{"one of two values", func(r *rand.Rand) float64 { return 0.3 * float64(r.IntN(2)) }},
}

func student(r *rand.Rand, degrees int) float64 {
	squares := 0.0
	for range degrees {
		squares += math.Pow(r.NormFloat64(), 2)
	}
	return 0.15 * r.NormFloat64() / math.Sqrt(squares/float64(degrees))
}

// mode is noise of which a share is larger by a factor.
func mode(r *rand.Rand, share, factor, noise float64) float64 {
	v := noise * r.NormFloat64()
	if r.Float64() < share {
		v += math.Log(factor)
	}
	return v
}

// With fewer than six repetitions, equal sides are called different in at most 5 % of comparisons, however
// runs are distributed; a factor of 2 is found in 95 % of four and four that vary by 15 %.
func TestFewErrorRates(t *testing.T) {
	testkit.Need(t, "some seconds")
	const trials = 2000
	draws := func(r *rand.Rand, n int, factor float64, draw func(*rand.Rand) float64) []float64 {
		out := make([]float64, n)
		for i := range out {
			out[i] = factor * math.Exp(draw(r))
		}
		return out
	}
	different := func(name string, n, m int, factor float64, draw func(*rand.Rand) float64) float64 {
		rnd := rand.New(rand.NewPCG(uint64(n), uint64(m)))
		found := 0.0
		for range trials {
			switch compareTwo(draws(rnd, n, 1, draw), draws(rnd, m, factor, draw), Less, Options{}).Verdict {
			case Better, Worse:
				found++
			}
		}
		t.Logf("%s, %d and %d, factor %v: called different in %.1f%%", name, n, m, factor, 100*found/trials)
		return found / trials
	}
	for _, noise := range noises {
		for _, size := range [][2]int{{3, 3}, {4, 4}, {5, 5}, {3, 5}, {3, 8}, {4, 6}} {
			if got := different(noise.name, size[0], size[1], 1, noise.draw); got > 0.05 {
				t.Errorf("%s, %d and %d: equal sides are called different in %.1f%% of trials, want at most 5%%", noise.name, size[0], size[1], 100*got)
			}
		}
	}
	got := different("normal", 4, 4, 2, noises[0].draw)
	assert.True(t, got >= 0.95, "a factor of 2 was found in %.1f%% of trials, want at least 95%%", 100*got)
	// Shares of failures, which are usually 0 and so have no logarithm.
	for _, n := range []int{3, 4, 5} {
		rnd := rand.New(rand.NewPCG(5, uint64(n)))
		share := func() (out []float64) {
			for range n {
				out = append(out, max(0, 0.02*(rnd.Float64()-0.4)))
			}
			return out
		}
		found := 0.0
		for range trials {
			if c := Family([]Row{{Base: share(), Candidate: share(), Better: Less, Amount: true, Effect: 0.001}}, Options{})[0]; c.Verdict != Unknown {
				found++
			}
		}
		assert.True(t, found/trials <= 0.05, "%d and %d shares of failures: called different in %.1f%% of trials", n, n, 100*found/trials)
	}
}

// An interval of 95% includes the true difference in at least 95% of trials, whatever the distribution; and
// it includes 0 exactly if the test does not reject it.
func TestIntervalCoverage(t *testing.T) {
	testkit.Need(t, "some seconds")
	const trials = 1500
	for _, tt := range []struct {
		name string
		n, m int
		draw func(*rand.Rand) float64
	}{
		{"normal", 6, 6, func(r *rand.Rand) float64 { return math.Exp(noise * r.NormFloat64()) }},
		{"skewed", 7, 9, func(r *rand.Rand) float64 { return 1 + r.ExpFloat64() }},
		{"largest exact size", 50, 50, func(r *rand.Rand) float64 { return math.Exp(noise * r.NormFloat64()) }},
		{"beyond the exact size", 51, 60, func(r *rand.Rand) float64 { return math.Exp(noise * r.NormFloat64()) }},
		{"large", 30, 40, func(r *rand.Rand) float64 { return math.Exp(noise * r.NormFloat64()) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(2, 3))
			const factor = 1.07
			covered := 0
			for range trials {
				base, candidate := make([]float64, tt.n), make([]float64, tt.m)
				for i := range base {
					base[i] = tt.draw(rnd)
				}
				for i := range candidate {
					candidate[i] = factor * tt.draw(rnd)
				}
				c := compareTwo(base, candidate, More, Options{})
				d := c.Difference
				if d.Lo <= factor-1 && factor-1 <= d.Hi {
					covered++
				}
				outside := d.Lo > 0 || d.Hi < 0
				assert.Must(t, outside == (c.P <= 0.05), "interval [%v, %v] and p %v contradict each other: %v, %v", d.Lo, d.Hi, c.P, base, candidate)
			}
			got := float64(covered) / trials
			assert.True(t, got >= 0.945 && got <= 0.985, "covered in %.1f%% of trials, want 95%%", 100*got)
		})
	}
}

// A new level of a history is called different as rarely as promised if levels scatter for no reason, however
// many repetitions they have; and real differences are found.
func TestPredictionErrorRates(t *testing.T) {
	testkit.Need(t, "some seconds")
	const trials = 1500
	anything := Options{Effect: 1e-9}
	for _, tt := range []struct {
		name            string
		levels          int
		before, now     int // repetitions
		between, factor float64
		o               Options
		most, least     float64
	}{
		{name: "equal, one run each", levels: 30, before: 1, now: 1, factor: 1, o: anything, most: 0.06},
		{name: "equal, few levels", levels: Levels, before: 1, now: 1, factor: 1, o: anything, most: 0.06},
		{name: "equal, levels differ", levels: 12, before: 6, now: 6, between: 0.03, factor: 1, o: anything, most: 0.06},
		{name: "equal, fewer repetitions now", levels: 12, before: 6, now: 1, factor: 1, o: anything, most: 0.06},
		{name: "10% less, one run each", levels: 30, before: 1, now: 1, factor: 0.9, most: 1, least: 0.9},
		{name: "5% less, five runs each", levels: 7, before: 5, now: 5, factor: 0.95, most: 1, least: 0.8},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(11, uint64(tt.levels)))
			different, right := 0.0, 0.0
			for range trials {
				level := func() float64 { return 100 * math.Exp(tt.between*rnd.NormFloat64()) }
				r := Row{Better: More}
				for range tt.levels {
					r.History = append(r.History, draw(rnd, tt.before, level(), noise))
				}
				r.Candidate = draw(rnd, tt.now, level()*tt.factor, noise)
				c := Family([]Row{r}, tt.o)[0]
				if c.P <= 0.05 {
					different++
				}
				if c.Verdict == Worse {
					right++
				}
				assert.Must(t, c.Predicted, "not compared with the predicted next level")
			}
			t.Logf("different in %.1f%%, worse in %.1f%%", 100*different/trials, 100*right/trials)
			assert.True(t, different/trials <= tt.most && right/trials >= tt.least,
				"different in %.1f%%, worse in %.1f%%; want at most %.0f%% and at least %.0f%%", 100*different/trials, 100*right/trials, 100*tt.most, 100*tt.least)
		})
	}
}
