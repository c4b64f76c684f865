package stats

import (
	"math"
	"math/rand/v2"
	"testing"

	"carronade/test/testkit/assert"
)

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
		if !ok || !near(got.Lambda, want.Lambda) || !near(got.Sigma, want.Sigma) || !near(got.Kappa, want.Kappa) || got.Residual > 1e-4 {
			t.Errorf("got %+v, want %+v", got, want)
		}
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
