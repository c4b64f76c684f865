package profile

import (
	"encoding/binary"
	"fmt"
	"math"
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
