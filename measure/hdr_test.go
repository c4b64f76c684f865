package measure

import (
	"compress/zlib"
	"encoding/base64"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"pgregory.net/rapid"

	"carronade/test/testkit/assert"
)

// skewed returns a histogram like that of an interval of a run.
func skewed(n int) *Histogram {
	r := rand.New(rand.NewPCG(1, 2))
	h := NewHistogram()
	for range n {
		h.Record(time.Duration(float64(2*time.Millisecond) * (0.2 + r.ExpFloat64())))
	}
	return h.Compact()
}

// The library decodes the same cells, and with its summary the histogram comes back equal.
func TestEncodeHDR(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := NewHistogram()
		for _, d := range durations(t) {
			h.RecordN(d, rapid.Uint64Range(1, 1<<40).Draw(t, "n"))
		}
		if rapid.Bool().Draw(t, "compact") {
			h = h.Compact()
		}
		text := h.EncodeHDR()
		ref, err := hdrhistogram.Decode([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if !ref.Equals(h.ToHDR()) {
			t.Fatal("the library reads other observations")
		}
		got, err := DecodeHDR(text)
		if err != nil {
			t.Fatal(err)
		}
		if got.Count() != h.Count() || got.EncodeHDR() != text {
			t.Fatalf("got %d observations back, want %d of the same text", got.Count(), h.Count())
		}
		// Even without Refine, neither end is understated by the width of a cell.
		if h.Above() == 0 && (got.Max() < h.Max() || got.Min() > max(h.Min(), Lowest)) {
			t.Fatalf("got %v to %v, want at least %v to %v", got.Min(), got.Max(), h.Min(), h.Max())
		}
		want := Summarize(h, nil, nil)
		got.Refine(want)
		diff := Summarize(got, nil, nil)
		if diff.Min != want.Min || diff.Max != want.Max || diff.Above != want.Above || diff.Below != want.Below {
			t.Fatalf("got %+v, want %+v", diff, want)
		}
		for i, v := range diff.Percentiles {
			if v != want.Percentiles[i] {
				t.Fatalf("got %+v, want %+v", v, want.Percentiles[i])
			}
		}
		if off := diff.Mean - want.Mean; off < -0.001 || off > 0.001 {
			t.Fatalf("got a mean of %v us, want %v", diff.Mean, want.Mean)
		}
	})
}

// DecodeHDR decodes what the library encodes.
func TestDecodeHDROfOthers(t *testing.T) {
	h := skewed(10_000)
	b := assert.Value(h.ToHDR().Encode(hdrhistogram.V2CompressedEncodingCookieBase))(t)
	got := assert.Value(DecodeHDR(string(b)))(t)
	got.Refine(Summarize(h, nil, nil))
	if !got.ToHDR().Equals(h.ToHDR()) || got.Percentile(99) != h.Percentile(99) {
		t.Errorf("got p99 %v, want %v", got.Percentile(99), h.Percentile(99))
	}
}

func TestEncodeHDRNothing(t *testing.T) {
	var none *Histogram
	assert.Equal(t, none.EncodeHDR(), "", "for a nil histogram")
	got, err := DecodeHDR(NewHistogram().EncodeHDR())
	assert.True(t, err == nil && got.Count() == 0 && got.Max() == 0 && got.Min() == 0, "got %v and %v, want an empty histogram", got, err)
	got.Record(time.Second)
	assert.Equal(t, got.Min(), time.Second, "minimum")
}

func TestRefineIgnoresOthers(t *testing.T) {
	h := assert.Value(DecodeHDR(skewed(100).EncodeHDR()))(t)
	before := h.Max()
	h.Refine(&Summary{Count: 99, Max: 1e9})
	h.Refine(nil)
	assert.Equal(t, h.Max(), before)
}

func TestDecodeHDRFaults(t *testing.T) {
	ref := hdrhistogram.New(1, 1000, 2)
	other := assert.Value(ref.Encode(hdrhistogram.V2CompressedEncodingCookieBase))(t)
	good := skewed(1000).EncodeHDR()
	for _, tt := range []struct{ name, text, want string }{
		{"nothing", "", "not in V2"},
		{"not base64", "!", "illegal base64"},
		{"another format", base64.StdEncoding.EncodeToString([]byte("some other text")), "not in V2"},
		{"truncated", good[:len(good)/8*4], "truncated"},
		{"another range", string(other), "1 us to 1 h"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, err := DecodeHDR(tt.text)
			assert.ErrorHas(t, err, tt.want, "got %v and", h)
		})
	}
}

func FuzzDecodeHDR(f *testing.F) {
	f.Add("")
	f.Add(NewHistogram().EncodeHDR())
	f.Add(skewed(1000).EncodeHDR())
	f.Fuzz(func(t *testing.T, text string) {
		h, err := DecodeHDR(text)
		if err != nil {
			return
		}
		again, err := DecodeHDR(h.EncodeHDR())
		assert.True(t, err == nil && again.Equal(h), "%q came back as another histogram: %v", text, err)
		_ = Summarize(h, nil, nil)
	})
}

// Fuzzing rarely gets through zlib, so the inflated bytes are fuzzed separately.
func FuzzDecodeHDRInside(f *testing.F) {
	f.Add([]byte{0, 1, 2})
	f.Add(appendZigzag(appendZeros(nil, 5000), 1<<62))
	f.Add(appendZigzag(nil, -1<<63))
	f.Fuzz(func(t *testing.T, counters []byte) {
		if len(counters) > hdrMost {
			return
		}
		h, err := DecodeHDR(wrap(counters))
		if err != nil {
			return
		}
		again, err := DecodeHDR(h.EncodeHDR())
		assert.True(t, err == nil && again.Equal(h), "%x came back as another histogram: %v", counters, err)
	})
}

// wrap encodes counters that need not be valid.
func wrap(counters []byte) string {
	e := newHDREncoder(zlib.BestSpeed)
	e.encode(NewHistogram())
	return e.seal(append(e.raw[:hdrHead], counters...))
}

func BenchmarkEncodeHDR(b *testing.B) {
	for _, level := range []struct {
		name string
		n    int
	}{{"huffman", zlib.HuffmanOnly}, {"speed", zlib.BestSpeed}, {"default", zlib.DefaultCompression}, {"best", zlib.BestCompression}} {
		for name, n := range map[string]int{"1k": 1000, "100k": 100_000} {
			b.Run(level.name+"/"+name, func(b *testing.B) {
				h := skewed(n)
				e := newHDREncoder(level.n)
				size := 0
				b.ReportAllocs()
				for b.Loop() {
					size = len(e.encode(h))
				}
				b.ReportMetric(float64(size), "B")
			})
		}
	}
}

func BenchmarkDecodeHDR(b *testing.B) {
	text := skewed(100_000).EncodeHDR()
	b.ReportAllocs()
	for b.Loop() {
		assert.Value(DecodeHDR(text))(b)
	}
}

type packedCell struct {
	i int
	n uint64
}

func unpacked(packed []byte) (out []packedCell) {
	eachPacked(packed, func(i int, n uint64) { out = append(out, packedCell{i, n}) })
	return out
}

// Any cells with any counts come back, and the same cells make the same bytes.
func TestPackedCells(t *testing.T) {
	counts := rapid.OneOf(
		rapid.Uint64Range(1, 3), rapid.Uint64Range(1, 300), rapid.Uint64Range(1, 1<<40),
		rapid.SampledFrom([]uint64{1, math.MaxUint32, math.MaxUint32 + 1, math.MaxInt64, 1 << 63, math.MaxUint64}),
	)
	skips := rapid.OneOf(rapid.Just(0), rapid.IntRange(0, 3), rapid.IntRange(0, 2000))
	rapid.Check(t, func(t *rapid.T) {
		var want []packedCell
		w, again := newCellWriter(nil), newCellWriter(nil)
		next := 0
		for range rapid.IntRange(0, 400).Draw(t, "cells") {
			c := packedCell{next + skips.Draw(t, "skip"), counts.Draw(t, "count")}
			next = c.i + 1
			want = append(want, c)
			w.add(c.i, c.n)
			again.add(c.i, c.n)
		}
		packed := w.pack()
		if got := unpacked(packed); !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
		if string(packed) != string(again.pack()) {
			t.Fatal("the same cells make other bytes")
		}
	})
}

// What a histogram takes in the series of a run, for the kinds of times that runs have.
func TestPackedSize(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	random := func(n int, of func() float64) *Histogram {
		h := NewHistogram()
		for range n {
			h.Record(time.Duration(of() * float64(time.Millisecond)))
		}
		return h
	}
	even := NewHistogram()
	even.RecordSpan(0, 5*time.Millisecond, 20_000)
	for _, tt := range []struct {
		name string
		h    *Histogram
		most int // bytes
	}{
		{"one value", random(1, func() float64 { return 1 }), 10},
		{"one value, often", random(20_000, func() float64 { return 1 }), 12},
		{"batching", even, 1700},
		{"200 answers within a millisecond", random(200, func() float64 { return 0.3 + 0.1*rng.ExpFloat64() }), 90},
		{"20,000 events around a millisecond", random(20_000, func() float64 { return 1 + 0.1*rng.NormFloat64() }), 500},
		{"20,000 events, a wide tail", random(20_000, func() float64 { return 0.2 + 2*rng.ExpFloat64() }), 2500},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := tt.h.Compact()
			used := len(unpacked(c.packed))
			t.Logf("%d cells in %d bytes", used, len(c.packed))
			assert.True(t, len(c.packed) <= tt.most, "%d cells take %d bytes, want at most %d", used, len(c.packed), tt.most)
		})
	}
}

func BenchmarkCompact(b *testing.B) {
	h := skewed(100_000)
	b.ReportAllocs()
	size := 0
	for b.Loop() {
		size = len(h.Compact().packed)
	}
	b.ReportMetric(float64(size), "B")
}

func BenchmarkEachPacked(b *testing.B) {
	h := skewed(100_000).Compact()
	cells := 0
	for b.Loop() {
		cells = 0
		eachPacked(h.packed, func(int, uint64) { cells++ })
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(cells), "ns/cell")
}

func TestIndexed(t *testing.T) {
	// The figures of the run in hey-apm's manual.
	x := Indexed{Before: 100, After: 15485, Expected: 19431, Span: 30 * time.Second}
	assert.Equal(t, x.Documents(), int64(15385), "documents")
	got, ok := x.Share()
	assert.True(t, ok && got >= 0.7917 && got <= 0.7918, "share %v %v, want 79.18%%", got, ok)
	got = x.Rate()
	assert.True(t, got >= 512.8 && got <= 512.9, "rate %v, want 512.83", got)
	x = Indexed{Before: 10, After: 4}
	assert.Equal(t, x.Documents(), -6, "documents")
	_, ok = x.Share()
	assert.True(t, !ok && x.Rate() == 0, "a share without expected documents, or a rate without a span")
}
