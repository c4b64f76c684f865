package payload

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"carronade/test/testkit/assert"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// checkChiSquare compares counts with the expectation from probabilities, in cells
// merged until each expects at least 10. The seeds are fixed, so the test is
// deterministic; 5 standard deviations are far more than chance explains.
func checkChiSquare(t *testing.T, counts, probabilities []float64) {
	t.Helper()
	total := 0.0
	for _, c := range counts {
		total += c
	}
	statistic, cells, got, want := 0.0, 0, 0.0, 0.0
	for i, p := range probabilities {
		got, want = got+counts[i], want+p*total
		if want >= 10 {
			statistic += (got - want) * (got - want) / want
			cells++
			got, want = 0, 0
		}
	}
	// Wilson and Hilferty: the cube root of chi-square over its degrees of freedom is very nearly normal.
	k := float64(cells - 1)
	z := (math.Cbrt(statistic/k) - (1 - 2/(9*k))) / math.Sqrt(2/(9*k))
	assert.True(t, math.Abs(z) <= 5 && cells >= 2, "chi-square %.1f of %d cells is %.1f standard deviations off", statistic, cells, z)
}

func TestUniformKeys(t *testing.T) {
	const keys = 1000
	for seed := range uint64(3) {
		g := generator(t, Spec{Seed: seed, Key: "uniform(1000)"})
		counts, want := make([]float64, keys), make([]float64, keys)
		for n := range uint64(500000) {
			counts[g.KeyNumber(n)]++
		}
		for i := range want {
			want[i] = 1.0 / keys
		}
		checkChiSquare(t, counts, want)
	}
}

func TestZipf(t *testing.T) {
	for _, n := range []int{1, 2, 10, 1000, maxAlias + 1} {
		for _, s := range []float64{0.2, 0.99, 1, 1 + 1e-10, 1.1, 2, 5} {
			want, sum := make([]float64, n), 0.0
			for i := range want {
				want[i] = math.Pow(float64(i+1), -s)
				sum += want[i]
			}
			for i := range want {
				want[i] /= sum
			}
			z := newZipf(uint64(n), s)
			z.prepare() // check invert also where the table replaces it
			methods := map[string]func(uint64) uint64{"invert": z.invert, "number": z.number}
			if n > maxAlias {
				delete(methods, "number") // the same as invert
			}
			for name, draw := range methods {
				t.Run(fmt.Sprintf("%s/%d/%g", name, n, s), func(t *testing.T) {
					counts := make([]float64, n)
					for i := range uint64(100000) {
						counts[draw(mix(42, i))]++
					}
					if n == 1 {
						return
					}
					checkChiSquare(t, counts, want)
				})
			}
		}
	}
	t.Run("more keys than memory", func(t *testing.T) {
		g := generator(t, Spec{Seed: 1, Key: "zipf(9007199254740992,0.5)"})
		var highest uint64
		for n := range uint64(10000) {
			highest = max(highest, g.KeyNumber(n))
		}
		// P(k < x) is sqrt(x/keys) here: the highest of 10,000 is near the end.
		assert.True(t, highest < maxKeys && highest >= maxKeys/1000*995, "the highest key is %d", highest)
	})
}

func TestSizes(t *testing.T) {
	for _, test := range []struct {
		size     string
		least    int
		most     int
		mean     float64
		quartile float64 // the lower
	}{
		{"100", 100, 100, 100, 100},
		{"100-2000", 100, 2000, 1050, 575},
		{"0-1", 0, 1, 0.5, 0},
		{"weighted(100:70,1KiB:30)", 100, 1024, 0.7*100 + 0.3*1024, 100},
		{"weighted(1:1,5:0,9:1,50:0)", 1, 9, 5, 1},
		{"weighted(" + strings.TrimSuffix(strings.Repeat("10:1,30:1,", 20), ",") + ")", 10, 30, 20, 10},
		// Bounded at 4.009 sigma, the 1-1/32768 quantile; a mean of exp(sigma^2/2)
		// times the median; the quartile at -0.6745 sigma.
		{"lognormal(1KiB,0.5)", 138, 7600, 1024 * math.Exp(0.125), 1024 * math.Exp(-0.6745*0.5)},
		{"quantiles(60,80,80,500)", 60, 500, (70. + 80 + 290) / 3, 75},
		{"quantiles(7,7)", 7, 7, 7, 7},
		{"lognormal(300,1)", 5, 16524, 300 * math.Exp(0.5), 300 * math.Exp(-0.6745)},
	} {
		t.Run(test.size[:min(len(test.size), 40)], func(t *testing.T) {
			g := generator(t, Spec{Seed: 1, Size: test.size})
			const events = 200000
			sizes, sum := make([]int, events), 0.0
			for n := range sizes {
				sizes[n] = g.Size(uint64(n))
				sum += float64(sizes[n])
			}
			slices.Sort(sizes)
			if sizes[0] < test.least || sizes[events-1] > test.most || g.MaxSize() != test.most {
				t.Errorf("got %d to %d, MaxSize %d, want %d to %d", sizes[0], sizes[events-1], g.MaxSize(), test.least, test.most)
			}
			got := g.MeanSize()
			assert.True(t, math.Abs(got-test.mean) <= 0.003*test.mean, "got a mean of %v, want %v", got, test.mean)
			if got := sum / events; math.Abs(got-g.MeanSize()) > 0.01*test.mean {
				t.Errorf("%d events have a mean of %v, MeanSize says %v", events, got, g.MeanSize())
			}
			if got := float64(sizes[events/4]); math.Abs(got-test.quartile) > 0.02*test.quartile {
				t.Errorf("got a lower quartile of %v, want %v", got, test.quartile)
			}
		})
	}
}

// TestIndependence: sizes, keys and bytes of one event are independent.
func TestIndependence(t *testing.T) {
	g := generator(t, Spec{Seed: 1, Size: "1-4", Key: "uniform(4)"})
	counts := make([]float64, 4*4*4)
	for n := range uint64(200000) {
		b := g.AppendValue(nil, n)
		counts[(g.Size(n)-1)*16+int(g.KeyNumber(n))*4+int(b[0]>>6)]++
	}
	want := make([]float64, len(counts))
	for i := range want {
		want[i] = 1.0 / float64(len(want))
	}
	checkChiSquare(t, counts, want)
}

// At every position and in every pair of neighbours, all byte values are equally frequent.
func TestRandomBytes(t *testing.T) {
	g := generator(t, Spec{Seed: 1, Size: "43"}) // a block of 32, a word, and the rest
	flat := func(n int) []float64 {
		w := make([]float64, n)
		for i := range w {
			w[i] = 1 / float64(n)
		}
		return w
	}
	places := make([][]float64, 43)
	for i := range places {
		places[i] = make([]float64, 256)
	}
	pairs := make([]float64, 1<<16)
	var b []byte
	for n := range uint64(40000) {
		b = g.AppendValue(b[:0], n)
		for i, c := range b {
			places[i][c]++
			if i > 0 {
				pairs[int(b[i-1])<<8|int(c)]++
			}
		}
	}
	for _, counts := range places {
		checkChiSquare(t, counts, flat(256))
	}
	checkChiSquare(t, pairs, flat(1<<16))
}

// codecs compress a batch in one piece, as a producer does.
var codecs = []struct {
	name     string
	compress func(b []byte) (size int, err error)
}{
	{"gzip", func(b []byte) (int, error) {
		var out bytes.Buffer
		w := gzip.NewWriter(&out)
		_, err := w.Write(b)
		err = errors.Join(err, w.Close())
		return out.Len(), err
	}},
	{"zstd", func(b []byte) (int, error) {
		w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<17))
		if err != nil {
			return 0, err
		}
		return len(w.EncodeAll(b, nil)), nil
	}},
	{"lz4", func(b []byte) (int, error) {
		n, err := lz4.CompressBlock(b, make([]byte, lz4.CompressBlockBound(len(b))), nil)
		return n, err
	}},
	{"snappy", func(b []byte) (int, error) { return len(s2.EncodeSnappy(nil, b)), nil }},
}

// Batches of 128 KiB of events compress to the requested ratio, with each codec and at each size.
func TestCompression(t *testing.T) {
	for _, test := range []struct {
		payload  string
		low, top float64
	}{
		{"random", 1, 1.005},
		{"text", 0.15, 0.75},
		{"zero", 0, 0.06}, // snappy encodes a copy of 64 bytes in 3
		{"compressible(0.1)", 0.07, 0.16},
		{"compressible(0.25)", 0.22, 0.30},
		{"compressible(0.5)", 0.47, 0.54},
		{"compressible(0.75)", 0.72, 0.78},
		{"compressible(1)", 1, 1.005},
	} {
		for _, size := range []string{"100", "1KiB", "64KiB", "100-2000"} {
			g := generator(t, Spec{Seed: 1, Payload: test.payload, Size: size})
			var batch []byte
			for n := uint64(0); len(batch) < 128<<10; n++ {
				batch = g.AppendValue(batch, n)
			}
			for _, codec := range codecs {
				t.Run(fmt.Sprintf("%s/%s/%s", test.payload, size, codec.name), func(t *testing.T) {
					compressed := assert.Value(codec.compress(batch))(t)
					got := float64(compressed) / float64(len(batch))
					t.Logf("%.3f", got)
					assert.True(t, got >= test.low && got <= test.top, "got %.3f, want %v to %v", got, test.low, test.top)
				})
			}
		}
	}
}

func TestText(t *testing.T) {
	got := len(strings.Fields(wordList))
	assert.Must(t, got == 256, "got %d words, want 256", got)
	known := map[string]bool{}
	for w := range strings.FieldsSeq(wordList) {
		assert.True(t, len(w) <= 15 && !known[w], "word %q is too long or repeated", w)
		known[w] = true
	}
	value := string(generator(t, Spec{Payload: "text", Size: "1000"}).AppendValue(nil, 0))
	all := strings.Split(value, " ")
	for _, w := range all[:len(all)-1] {
		assert.True(t, known[w], "%q is not a word of the list", w)
	}
}
