package profile

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"carronade/payload"
	"carronade/test/testkit/assert"
)

// sized counts the sizes of n events of a specification.
func sized(t *testing.T, size string, seed uint64, n int) *Sizes {
	t.Helper()
	g := assert.Value(payload.New(payload.Spec{Seed: seed, Size: size}))(t)
	var s Sizes
	for i := range n {
		s.Add(g.Size(uint64(i)), 1)
	}
	return &s
}

func TestSizeFitRecoversParameters(t *testing.T) {
	for _, test := range []struct {
		name, size, family string
		text               string // "": any
	}{
		{"constant", "100", Constant, "100"},
		{"nothing", "0", Constant, "0"},
		{"uniform", "100-2000", Uniform, "100-2000"},
		{"two", "weighted(100:70,1KiB:30)", Weighted, ""},
		{"lognormal", "lognormal(1KiB,0.5)", Lognormal, ""},
		{"small lognormal", "lognormal(60,0.3)", Lognormal, ""},
		{"three", "weighted(10:1,20:1,500:8)", Weighted, ""},
		{"empirical", "quantiles(10,200,210,220,4000,90000)", Quantiles, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := sized(t, test.size, 1, 50_000)
			f := s.Fit()
			assert.Must(t, f.Family == test.family && (test.text == "" || f.Text == test.text),
				"got %s %.60s, want %s %s", f.Family, f.Text, test.family, test.text)
			assert.True(t, f.Error <= 0.02, "got a distance of %.4f, want at most 0.02", f.Error)
			d := s.Distance(sized(t, f.Text, 2, 50_000))
			assert.True(t, d <= 0.02, "got %.4f from a sample of the fit, %.60s, want at most 0.02", d, f.Text)
		})
	}
}

func TestLognormalParameters(t *testing.T) {
	f := sized(t, "lognormal(1KiB,0.5)", 1, 100_000).Fit()
	assert.True(t, math.Abs(f.Median-1024) <= 10 && math.Abs(f.Sigma-0.5) <= 0.01,
		"got a median of %.0f and a sigma of %.3f, want 1024 and 0.5", f.Median, f.Sigma)
}

func TestSizesWithinBounds(t *testing.T) {
	var s Sizes
	rng := rand.New(rand.NewPCG(1, 1))
	var all []int
	for range 50_000 {
		v := int(math.Exp(rng.Float64() * 20))
		s.Add(v, 1)
		all = append(all, v)
	}
	assert.True(t, !s.Exact() && len(s.buckets) <= 8192,
		"got exact %v with %d buckets, want buckets, at most 8192", s.Exact(), len(s.buckets))
	for _, q := range []float64{0.1, 0.5, 0.9, 0.99} {
		got, below := s.Quantile(q), 0
		for _, v := range all {
			if float64(v) <= float64(got)*1.005 {
				below++
			}
		}
		share := float64(below) / float64(len(all))
		assert.True(t, math.Abs(share-q) <= 0.01, "got %d as the %v quantile, with %v of the sizes up to it", got, q, share)
	}
	for v := range 1 << 16 {
		low, high := bucketRange(bucketOf(v))
		assert.Must(t, v >= low && v <= high, "got the bucket %d to %d for %d", low, high, v)
	}
}

func TestSizesDiffer(t *testing.T) {
	a := sized(t, "lognormal(1KiB,0.5)", 1, 50_000)
	d := a.Distance(sized(t, "lognormal(1100,0.5)", 2, 50_000))
	assert.True(t, d >= 0.04 && d <= 0.08, "got %.4f between medians of 1024 and 1100, want about 0.057", d)
	d = a.Distance(sized(t, "100", 1, 10))
	assert.True(t, d >= 0.99, "got %.4f to a constant, want 1", d)
	f := sized(t, "quantiles(10,200,210,220,4000,90000)", 1, 50_000).Fit()
	assert.True(t, strings.Count(f.Text, ",") == sizeSteps, "got %.60s, want %d quantiles", f.Text, sizeSteps+1)
}
