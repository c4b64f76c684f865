package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// A step is found where it is, and none where there is none, as often as promised, at the level that a gate
// uses for each of two rows: one value per revision, runs that differ by 2%, and a step of 5% at any revision
// that has five or more on either side.
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

// A series without a step has one as often as allowed, neither more nor much
// less: a test that is too strict finds too little.
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

func BenchmarkSteps(b *testing.B) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, tt := range []struct {
		name   string
		series []float64
	}{
		{"none in 200", draw(rnd, 200, 100, noise)},
		{"one in 200", append(draw(rnd, 100, 100, noise), draw(rnd, 100, 110, noise)...)},
	} {
		b.Run(tt.name, func(b *testing.B) {
			for b.Loop() {
				Steps(tt.series, StepDefaults)
			}
		})
	}
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
