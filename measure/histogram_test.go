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

// durations draws values in and beyond the range, at every scale.
func durations(t *rapid.T) []time.Duration {
	one := rapid.Custom(func(t *rapid.T) time.Duration {
		scale := rapid.Int64Range(0, 43).Draw(t, "scale")
		return time.Duration(rapid.Int64Range(0, 1<<scale).Draw(t, "d"))
	})
	return rapid.SliceOfN(one, 1, 200).Draw(t, "durations")
}

func inRange(ds []time.Duration) []time.Duration {
	return slices.DeleteFunc(slices.Clone(ds), func(d time.Duration) bool { return d > Highest })
}

// Every percentile equals that of HdrHistogram at the same rank, and exceeds the true
// order statistic by at most a thousandth and a microsecond; it is never below it.
func TestPercentileAgainstHDR(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ds := inRange(durations(t))
		if len(ds) == 0 {
			t.Skip("all out of range")
		}
		h := NewHistogram()
		ref := hdrhistogram.New(1, int64(Highest/Lowest), 3)
		for _, d := range ds {
			h.Record(d)
			assert.OK(t, ref.RecordValue(int64(units(d))))
		}
		slices.Sort(ds)
		n := len(ds)
		for _, p := range []float64{0, 1, 25, 50, 90, 95, 99, 99.9, 99.99, 100} {
			got := h.Percentile(p)
			r := int(rank(p, uint64(n)))
			// The reference rounds ranks to the nearest; for the exact percentage of the rank it must agree.
			want := min(time.Duration(ref.ValueAtPercentile(float64(r)/float64(n)*100))*Lowest, ds[n-1])
			assert.Must(t, got == want, "p%v of %d: got %v, want %v", p, n, got, want)
			truth := ds[r-1]
			if got < truth || float64(got) > float64(truth)*1.001+float64(Lowest) {
				t.Fatalf("p%v of %d: got %v for the order statistic %v", p, n, got, truth)
			}
		}
	})
}

func TestRank(t *testing.T) {
	for _, tt := range []struct {
		name    string
		p       float64
		n, want uint64
	}{
		{"zero percent is the first", 0, 10, 1},
		{"half of an even number", 50, 10, 5},
		{"half of an odd number", 50, 11, 6},
		{"not the last by a rounding error", 99.9, 1000, 999},
		{"nor of ten thousand", 99.99, 10_000, 9_999},
		{"nor of ten million", 99.9, 10_000_000, 9_990_000},
		{"few values", 99, 10, 10},
		{"all", 100, 10, 10},
		{"more than all", 150, 10, 10},
		{"not a number", math.NaN(), 10, 1},
	} {
		assert.Equal(t, rank(tt.p, tt.n), tt.want, "%s: rank(%v, %d)", tt.name, tt.p, tt.n)
	}
}

// Count, sum, extremes and the number out of range are exact.
func TestExactFields(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ds := durations(t)
		h := NewHistogram()
		var sum float64
		var below, above uint64
		for _, d := range ds {
			h.Record(d)
			sum += float64(d)
			if d < Lowest {
				below++
			}
			if d > Highest {
				above++
			}
		}
		if got, want := h.Count(), uint64(len(ds)); got != want {
			t.Fatalf("count: got %d, want %d", got, want)
		}
		if got, want := h.Min(), slices.Min(ds); got != want {
			t.Fatalf("min: got %v, want %v", got, want)
		}
		if got, want := h.Max(), slices.Max(ds); got != want {
			t.Fatalf("max: got %v, want %v", got, want)
		}
		if got := h.Sum(); math.Abs(got-sum) > 1e-9*sum {
			t.Fatalf("sum: got %v, want %v", got, sum)
		}
		if h.Below() != below || h.Above() != above {
			t.Fatalf("out of range: got %d below and %d above, want %d and %d", h.Below(), h.Above(), below, above)
		}
		cells := uint64(0)
		h.EachBucket(func(_ time.Duration, n uint64) { cells += n })
		if cells != h.Count() {
			t.Fatalf("cells contain %d of %d", cells, h.Count())
		}
	})
}

// The sum of a long run does not overflow, and its mean is exact to the nanosecond.
func TestSumOfAWeek(t *testing.T) {
	h := NewHistogram()
	const events = 10_000_000 * 7 * 86400
	h.RecordN(1234567891*time.Nanosecond, events)
	h.RecordN(1234567893*time.Nanosecond, events)
	assert.Equal(t, h.Mean(), 1234567892*time.Nanosecond, "mean")
	assert.Equal(t, h.Count(), uint64(2*events), "count")
}

func TestOutOfRange(t *testing.T) {
	h := NewHistogram()
	h.Record(-time.Second)
	h.Record(0)
	h.Record(Lowest - 1)
	h.Record(Lowest)
	h.Record(Highest)
	h.Record(Highest + 1)
	h.Record(100 * time.Hour)
	assert.True(t, h.Below() == 3 && h.Above() == 2 && h.Count() == 7,
		"got %d below, %d above of %d; want 3, 2 of 7", h.Below(), h.Above(), h.Count())
	for _, tt := range []struct {
		p    float64
		want time.Duration
	}{{1, 0}, {42, Lowest}, {57, Lowest}, {71, Highest}, {72, Over}, {100, Over}} {
		assert.Equal(t, h.Percentile(tt.p), tt.want, "p%v", tt.p)
	}
	assert.Equal(t, h.Max(), 100*time.Hour, "max")
}

// No matter how observations are divided, merged, compacted or reset, the total is the same.
func TestMergeIsTheWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ds := durations(t)
		whole, a, b := NewHistogram(), NewHistogram(), NewHistogram()
		b.Record(time.Minute)
		b.Reset()
		for _, d := range ds {
			n := rapid.Uint64Range(0, 300).Draw(t, "n")
			for range n {
				whole.Record(d)
			}
			if rapid.Bool().Draw(t, "side") {
				a.RecordN(d, n)
			} else {
				b.RecordN(d, n)
			}
		}
		got := a.Compact()
		got.Merge(b.Compact())
		if !got.Equal(whole) || !got.Compact().Equal(whole) || !whole.Equal(got.Clone()) {
			t.Fatalf("the parts differ from the total: %d and %d of %d", a.Count(), b.Count(), whole.Count())
		}
		if joined := mergeCompact(a, b); !joined.Equal(whole) || joined.dense != nil {
			t.Fatalf("joined they differ from the total: %d of %d", joined.Count(), whole.Count())
		}
		before := got.Clone()
		got.Record(time.Millisecond)
		assert.Must(t, !got.Equal(before), "equal although one observation was added")
		got.Reset()
		assert.Must(t, got.Equal(NewHistogram()), "not empty after Reset")
	})
}

// A span counts the same as its events recorded one by one.
func TestRecordSpan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from := time.Duration(rapid.Int64Range(0, 10_000_000).Draw(t, "from"))
		to := from + time.Duration(rapid.Int64Range(0, 1<<rapid.IntRange(0, 43).Draw(t, "scale")).Draw(t, "length"))
		n := rapid.Uint64Range(0, 3000).Draw(t, "n")
		got, want := NewHistogram(), NewHistogram()
		if rapid.Bool().Draw(t, "reversed") {
			got.RecordSpan(to, from, n)
		} else {
			got.RecordSpan(from, to, n)
		}
		for i := range n {
			d := from
			if n > 1 {
				// Rounded up, as in cells: a value between two nanoseconds lies above the lower one.
				x := uint64(to-from) * i
				d += time.Duration((x + n - 2) / (n - 1))
			}
			want.Record(d)
		}
		if got.Count() != n || got.Below() < want.Below() || got.Below() > want.Below()+1 || got.Above() != want.Above() {
			t.Fatalf("got %d (%d below, %d above), want %d (%d, %d)", got.Count(), got.Below(), got.Above(), want.Count(), want.Below(), want.Above())
		}
		if got.Min() != want.Min() || got.Max() != want.Max() {
			t.Fatalf("extremes: got %v..%v, want %v..%v", got.Min(), got.Max(), want.Min(), want.Max())
		}
		if n > 0 {
			if off := got.mean() - want.mean(); math.Abs(off) > 1 {
				t.Fatalf("mean: got %v, want %v", got.mean(), want.mean())
			}
		}
		gb, wb := map[time.Duration]uint64{}, map[time.Duration]uint64{}
		got.EachBucket(func(top time.Duration, n uint64) { gb[top] = n })
		want.EachBucket(func(top time.Duration, n uint64) { wb[top] = n })
		for top := range wb {
			if gb[top] != wb[top] {
				t.Fatalf("cell up to %v: got %d, want %d", top, gb[top], wb[top])
			}
		}
	})
}

func TestToHDR(t *testing.T) {
	h := NewHistogram()
	for i := range 100_000 {
		h.Record(time.Duration(i*i) * time.Microsecond / 3)
	}
	h.Record(2 * time.Hour)
	hdr := h.ToHDR()
	assert.Equal(t, hdr.TotalCount(), int64(h.Count()), "count")
	for _, p := range []float64{1, 50, 99, 99.9} {
		r := float64(rank(p, h.Count())) / float64(h.Count()) * 100
		got, want := hdr.ValueAtPercentile(r), int64(h.Percentile(p)/Lowest)
		assert.True(t, got == want, "p%v: got %d us, want %d us", p, got, want)
	}
}

func TestRecordDoesNotAllocate(t *testing.T) {
	h := NewHistogram()
	h.Record(time.Millisecond)
	got := testing.AllocsPerRun(100, func() {
		h.Record(time.Millisecond)
		h.RecordN(time.Second, 100)
		h.RecordSpan(time.Millisecond, 2*time.Millisecond, 2400)
		h.Reset()
	})
	assert.True(t, got == 0, "got %v allocations, want none", got)
}

// sample returns typical service times: around 400 us, with a tail.
func sample() []time.Duration {
	r := rand.New(rand.NewPCG(1, 2))
	out := make([]time.Duration, 1<<12)
	for i := range out {
		out[i] = time.Duration(400e3 * math.Exp(0.5*r.NormFloat64()))
	}
	return out
}

func BenchmarkRecord(b *testing.B) {
	ds := sample()
	b.Run("carronade", func(b *testing.B) {
		h := NewHistogram()
		for i := 0; b.Loop(); i++ {
			h.Record(ds[i&(len(ds)-1)])
		}
	})
	b.Run("hdrhistogram-go", func(b *testing.B) {
		h := hdrhistogram.New(1, int64(Highest/Lowest), 3)
		for i := 0; b.Loop(); i++ {
			_ = h.RecordValue(int64(ds[i&(len(ds)-1)] / Lowest))
		}
	})
}

func BenchmarkRecordSpan(b *testing.B) {
	h := NewHistogram()
	for b.Loop() {
		h.RecordSpan(800*time.Microsecond, 1040*time.Microsecond, 2400)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/2400, "ns/event")
}

func BenchmarkMerge(b *testing.B) {
	h, o := NewHistogram(), NewHistogram()
	for _, d := range sample() {
		o.Record(d)
	}
	b.Run("dense", func(b *testing.B) {
		for b.Loop() {
			h.Merge(o)
		}
	})
	c := o.Compact()
	b.Run("compact", func(b *testing.B) {
		for b.Loop() {
			h.Merge(c)
		}
		b.ReportMetric(float64(len(c.packed)), "bytes")
	})
}

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
		ref := assert.Value(hdrhistogram.Decode([]byte(text)))(t)
		assert.Must(t, ref.Equals(h.ToHDR()), "the library reads other observations")
		got := assert.Value(DecodeHDR(text))(t)
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
	assert.True(t, got.ToHDR().Equals(h.ToHDR()) && got.Percentile(99) == h.Percentile(99), "got p99 %v, want %v", got.Percentile(99), h.Percentile(99))
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
		h, err := DecodeHDR(tt.text)
		assert.ErrorHas(t, err, tt.want, "%s: got %v and", tt.name, h)
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
		assert.Must(t, string(packed) == string(again.pack()), "the same cells make other bytes")
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
