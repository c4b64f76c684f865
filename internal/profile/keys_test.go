package profile

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"carronade/payload"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// drawn counts the keys of n events of a specification.
func drawn(t *testing.T, key string, seed uint64, n int) *Keys {
	t.Helper()
	g := assert.Value(payload.New(payload.Spec{Seed: seed, Key: key}))(t)
	k := NewKeys()
	var b []byte
	for i := range n {
		b = g.AppendKey(b[:0], uint64(i))
		k.Add(b, 0)
	}
	return k
}

func TestKeyFitRecoversParameters(t *testing.T) {
	for _, test := range []struct {
		name, key string
		n         int
		family    string
		keys      float64 // at most 3 % off
		zipf      float64 // at most 0.02 off
	}{
		{"uniform, all keys often", "uniform(1000)", 100_000, UniformKeys, 1000, 0},
		{"uniform, some keys never", "uniform(50000)", 50_000, UniformKeys, 50000, 0},
		{"one key", "uniform(1)", 1000, UniformKeys, 1, 0},
		{"zipf, all keys", "zipf(1000,1.1)", 200_000, ZipfKeys, 1000, 1.1},
		{"zipf below 1", "zipf(2000,0.7)", 200_000, ZipfKeys, 2000, 0.7},
		{"zipf, many keys never", "zipf(100000,1.0)", 200_000, ZipfKeys, 100000, 1.0},
		{"steep", "zipf(500,2)", 200_000, ZipfKeys, 500, 2},
		{"unique", "seq", 10_000, UniqueKeys, 10000, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.n > 100_000 && test.zipf != 2 {
				testkit.Need(t, "a second")
			}
			k := drawn(t, test.key, 1, test.n)
			f := k.Fit(true)
			assert.True(t, f.Family == test.family && math.Abs(f.Zipf-test.zipf) <= 0.02,
				"got %s with exponent %.4f, want %s with %.4f", f.Family, f.Zipf, test.family, test.zipf)
			assert.True(t, math.Abs(float64(f.Keys)-test.keys) <= 0.03*test.keys || test.zipf >= 2,
				"got %d keys, want %.0f", f.Keys, test.keys)
			assert.True(t, f.Error <= 0.02, "got a distance of %.4f, want at most 0.02", f.Error)
			assert.True(t, f.Exact && f.DistinctLow == f.Distinct && f.DistinctHigh == f.Distinct,
				"got %d distinct keys in [%d, %d], exact %v: want them exact", f.Distinct, f.DistinctLow, f.DistinctHigh, f.Exact)
			assert.True(t, test.zipf <= 0 || f.ZipfLow <= test.zipf+0.005 && f.ZipfTop >= test.zipf-0.005,
				"got an interval of %.4f to %.4f, want %.4f in it", f.ZipfLow, f.ZipfTop, test.zipf)
		})
	}
}

func TestKeysInTurnAreUniform(t *testing.T) {
	k := NewKeys()
	for i := range 1000 {
		k.Add([]byte{byte(i % 10)}, 0)
	}
	if f := k.Fit(true); f.Family != UniformKeys || f.Keys != 10 {
		t.Errorf("got %s of %d keys with exponent %v, want uniform of 10", f.Family, f.Keys, f.Zipf)
	}
}

func TestKeysBeyondTheTable(t *testing.T) {
	k := NewKeys()
	k.most = 4096
	const distinct = 100_000
	var b [8]byte
	for range 3 {
		for i := range distinct {
			binary.LittleEndian.PutUint64(b[:], uint64(i))
			k.Add(b[:], 0)
		}
	}
	for range 100_000 { // one key has a quarter of the records
		binary.LittleEndian.PutUint64(b[:], 0)
		k.Add(b[:], 0)
	}
	got, relative := k.Distinct()
	assert.True(t, !k.Exact() && math.Abs(got-distinct) <= 4*relative*distinct && relative <= 0.04,
		"got %.0f distinct keys with a relative error of %.3f, want %d within four of them", got, relative, distinct)
	assert.True(t, k.used <= k.most, "got %d entries, want at most %d", k.used, k.most)
	if f := k.Fit(true); math.Abs(f.TopShare-0.25) > 0.01 || f.Exact {
		t.Errorf("got a top share of %.3f, exact %v, want 0.25 of an estimate", f.TopShare, f.Exact)
	}
}

func TestSampleIsALowerBound(t *testing.T) {
	k := drawn(t, "uniform(20000)", 1, 10_000)
	f := k.Fit(false)
	assert.True(t, f.Distinct < f.DistinctLow && f.DistinctLow <= 20000 && f.DistinctHigh >= 20000,
		"got %d distinct keys and [%d, %d], want an interval above it with 20000", f.Distinct, f.DistinctLow, f.DistinctHigh)
}

func TestKeyDistance(t *testing.T) {
	a, b := drawn(t, "zipf(1000,1.1)", 1, 100_000), drawn(t, "zipf(1000,1.1)", 2, 100_000)
	d := a.Distance(b)
	assert.True(t, d <= 0.01, "got %.4f between two samples of one distribution, want less than 0.01", d)
	d = a.Distance(drawn(t, "uniform(1000)", 1, 100_000))
	assert.True(t, d >= 0.3, "got %.4f between zipf and uniform, want more than 0.3", d)
	assert.Equal(t, a.Distance(a), 0, "to itself")
}

func TestKeysByLog(t *testing.T) {
	k := NewKeys()
	for i := range 100 {
		key := fmt.Appendf(nil, "%d", i)
		k.Add(key, int32(i%4))
		k.Add(key, int32(i%4))
	}
	assert.Equal(t, k.Single(), 1, "of the keys in one log")
	k.Add([]byte("1"), 3)
	assert.Equal(t, k.Single(), 0.99, "of the keys in one log")
}

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
