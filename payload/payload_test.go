package payload

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"carronade/test/testkit/assert"
)

func generator(t testing.TB, s Spec) *Generator {
	t.Helper()
	g := assert.Value(New(s))(t)
	return g
}

func TestDefaults(t *testing.T) {
	g := generator(t, Spec{})
	type facts struct {
		Size, Max, MaxKey int
		Mean              float64
		Key               bool
		KeyBytes          string
		Headers           int
		Says              string
	}
	got := facts{g.Size(7), g.MaxSize(), g.MaxKeySize(), g.MeanSize(), g.HasKey(), string(g.AppendKey(nil, 7)), len(g.Headers()), g.Describe()}
	want := facts{Size: 100, Max: 100, Mean: 100, Says: "random, 100 B each; no key"}
	assert.Same(t, got, want)
}

// TestBytesAreStable: reports contain the seed, and repeating a run must give the same
// bytes. A change of these sums breaks that and needs a reason.
func TestBytesAreStable(t *testing.T) {
	for _, test := range []struct {
		name string
		spec Spec
		want uint32
	}{
		{"random", Spec{Seed: 1, Size: "1-2000"}, 0xb018ce14},
		{"text", Spec{Seed: 1, Payload: "text", Size: "300"}, 0xbb57e0a9},
		{"characters", Spec{Seed: 1, Payload: "chars(a-zA-Z0-9.)", Size: "1-301"}, 0x2b3c35c0},
		{"compressible", Spec{Seed: 1, Payload: "compressible(0.3)", Size: "1KiB"}, 0x4ece1eb1},
		{"weighted", Spec{Seed: 1, Size: "weighted(1:1,20:2,300:1)"}, 0x3b674977},
		{"uniform keys", Spec{Seed: 1, Key: "uniform(1000)"}, 0x51e80c16},
		{"zipf keys of a table", Spec{Seed: 1, Key: "zipf(1000,1.1)"}, 0xb15633e5},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := generator(t, test.spec)
			sum := crc32.NewIEEE()
			var b []byte
			for n := range uint64(1000) {
				b = g.AppendKey(g.AppendValue(b[:0], n), n)
				sum.Write(b)
			}
			assert.Equal(t, sum.Sum32(), test.want)
		})
	}
}

var specs = []Spec{
	{},
	{Size: "0"},
	{Size: "7"},
	{Size: "0-40"},
	{Size: "1000-3000", Payload: "text"},
	{Size: "0-600", Payload: "text"},
	{Size: "0-600", Payload: "compressible(0.25)"},
	{Size: "0-600", Payload: "compressible(100%)"},
	{Size: "0-600", Payload: "zero"},
	{Size: "0-600", Payload: "letters"},
	{Size: "0-600", Payload: "letters(3)"},
	{Size: "0-600", Payload: "chars(a-z)"},
	{Size: "weighted(100:70,1KiB:30)", Key: "seq"},
	{Size: "lognormal(1KiB,0.5)", Key: "uniform(1000)"},
	{Payload: "monotonic", Key: "zipf(1000,1.1)"},
	{Payload: "monotonic", Key: "zipf(10m,0.8)"},
	{Key: "uniform(1)", Headers: []string{"a=b"}},
	{Key: "zipf(1,1)"},
	{Size: "quantiles(0,10,10,900)", Key: "zipf(1000,0.9,36)"},
}

// TestEvents: with every specification, the value of an event has its size, within the
// maximum, follows the bytes that were there, and is the same every time.
func TestEvents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.SampledFrom(specs).Draw(t, "spec")
		s.Seed = rapid.Uint64().Draw(t, "seed")
		n := rapid.OneOf(rapid.Uint64Max(1000), rapid.Uint64()).Draw(t, "n")
		g := assert.Value(New(s))(t)
		before := rapid.SliceOfN(rapid.Byte(), 0, 9).Draw(t, "before")
		value := g.AppendValue(bytes.Clone(before), n)
		assert.Must(t, bytes.HasPrefix(value, before), "bytes before the value were changed")
		value = value[len(before):]
		if len(value) != g.Size(n) || len(value) > g.MaxSize() {
			t.Fatalf("got %d bytes, Size says %d, MaxSize %d", len(value), g.Size(n), g.MaxSize())
		}
		// Old bytes in the buffer must not matter.
		again := g.AppendValue(bytes.Repeat([]byte{0xaa}, g.MaxSize())[:0], n)
		assert.Must(t, bytes.Equal(value, again), "the same value generated twice differs")
		other := assert.Value(New(s))(t)
		assert.Must(t, bytes.Equal(value, other.AppendValue(nil, n)), "another generator of the same spec made another value")
		key := g.AppendKey(bytes.Clone(before), n)
		assert.Must(t, bytes.HasPrefix(key, before), "bytes before the key were changed")
		key = key[len(before):]
		if len(key) > g.MaxKeySize() || g.HasKey() != (len(key) > 0) {
			t.Fatalf("key %q: MaxKeySize %d, HasKey %v", key, g.MaxKeySize(), g.HasKey())
		}
		if g.HasKey() {
			number, err := strconv.ParseUint(string(key), 10, 64)
			if err != nil || number != g.KeyNumber(n) {
				t.Fatalf("key %q: KeyNumber %d, %v", key, g.KeyNumber(n), err)
			}
		}
	})
}

func TestEventsDiffer(t *testing.T) {
	a, b := generator(t, Spec{Seed: 1}), generator(t, Spec{Seed: 2})
	seen := map[string]bool{}
	for n := range uint64(10000) {
		seen[string(a.AppendValue(nil, n))] = true
		seen[string(b.AppendValue(nil, n))] = true
	}
	assert.Equal(t, len(seen), 20000, "distinct values")
}

func TestKeyText(t *testing.T) {
	for _, test := range []struct {
		name, key string
		n         uint64
		want      string
	}{
		{"none", "none", 5, ""},
		{"sequential", "seq", 5, "000000000005"},
		{"sequential beyond its width", "seq", 1e15, "1000000000000000"},
		{"sequential at the end", "seq", 1<<64 - 1, "18446744073709551615"},
		{"one key", "uniform(1)", 5, "0"},
		{"one key of many digits", "uniform(1,24)", 5, strings.Repeat("0", 24)},
		{"one key of a zipf distribution", "zipf(1,1,3)", 5, "000"},
		{"ten keys", "uniform(10)", 5, strconv.FormatUint(generator(t, Spec{Key: "uniform(10)"}).KeyNumber(5), 10)},
	} {
		t.Run(test.name, func(t *testing.T) {
			assert.Equal(t, string(generator(t, Spec{Key: test.key}).AppendKey(nil, test.n)), test.want)
		})
	}
	t.Run("names", func(t *testing.T) {
		a, b := generator(t, Spec{Key: "names(12)"}), generator(t, Spec{Key: "names(63,2)"})
		seen := map[string]bool{}
		for n := range uint64(10000) {
			got := string(a.AppendKey(nil, n))
			want := strconv.FormatUint(a.KeyNumber(n), 36)
			assert.Must(t, len(got) == 12 && strings.TrimLeft(got, "0") == want, "name %q of event %d: want %q", got, n, want)
			bits := b.AppendKey(nil, n)
			assert.Must(t, len(bits) == b.MaxKeySize() && strings.Trim(string(bits), "01") == "", "name %q of event %d", bits, n)
			seen[got] = true
		}
		assert.Equal(t, len(seen), 10000, "distinct names")
	})
	t.Run("one width", func(t *testing.T) {
		g := generator(t, Spec{Key: "uniform(1001)"})
		for n := range uint64(1000) {
			got := g.AppendKey(nil, n)
			assert.Must(t, len(got) == 4, "key %q of event %d: want 4 digits", got, n)
		}
	})
}

func TestDecimal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Uint64().Draw(t, "n")
		width := rapid.IntRange(1, 20).Draw(t, "width")
		got := string(appendDecimal(nil, n, width))
		want := strconv.FormatUint(n, 10)
		if digits(n) != len(want) {
			t.Fatalf("%d: got %d digits", n, digits(n))
		}
		want = strings.Repeat("0", max(0, width-len(want))) + want
		assert.Must(t, got == want, "got %q, want %q", got, want)
	})
}

func TestMonotonic(t *testing.T) {
	g := generator(t, Spec{Payload: "monotonic", Size: "1KiB"})
	for _, n := range []uint64{0, 9, 10, 12345, 1<<64 - 1} {
		want := strconv.FormatUint(n, 10)
		got := string(g.AppendValue(nil, n))
		assert.True(t, got == want && g.Size(n) == len(want), "got %q of size %d, want %q", got, g.Size(n), want)
	}
}

func TestLetters(t *testing.T) {
	few, all := generator(t, Spec{Payload: "letters(3)", Size: "40"}), generator(t, Spec{Payload: "letters", Size: "40"})
	seen := map[string]map[string]bool{"few": {}, "all": {}}
	var counts [26]float64
	for n := range uint64(1000) {
		seen["few"][string(few.AppendValue(nil, n))] = true
		value := all.AppendValue(nil, n)
		seen["all"][string(value)] = true
		for _, c := range value {
			assert.Must(t, c >= 'A' && c <= 'Z', "event %d is %q: want capital letters", n, value)
			counts[c-'A']++
		}
	}
	got, want := []int{len(seen["few"]), len(seen["all"])}, []int{3, 1000}
	assert.True(t, cmp.Equal(got, want), "got %v different values, want %v", got, want)
	for i, n := range counts {
		assert.True(t, n >= 40_000/26*0.8 && n <= 40_000/26*1.2, "%c occurs %g times of 40,000", 'A'+i, n)
	}
}

// Values contain only the characters of their set, each in proportion to its occurrences there.
func TestChars(t *testing.T) {
	for _, tt := range []struct{ name, form, set string }{
		{"one", "chars(x)", "x"},
		{"ranges", "chars(a-cX-Z)", "abcXYZ"},
		{"a range of one", "chars(a-a)", "a"},
		{"dashes at the ends", "chars(-a-)", "-a-"},
		{"a dash behind a range", "chars(a-c-e)", "abc-e"},
		{"characters of the syntax", "chars((),:= )", "(),:= "},
		{"weights", "chars(aab)", "aab"},
		{"sangrenel's", "chars(a-zA-Z0-9!@#$^&*(){}][:<>.)", "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!@#$^&*(){}][:<>."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := generator(t, Spec{Payload: tt.form, Size: "301"})
			var counts [256]float64
			for n := range uint64(1000) {
				for _, c := range g.AppendValue(nil, n) {
					counts[c]++
				}
			}
			for c, n := range counts {
				want := 301_000 * float64(strings.Count(tt.set, string(rune(c)))) / float64(len(tt.set))
				assert.True(t, n >= 0.9*want && n <= 1.1*want, "%q occurs %g times, want %g", rune(c), n, want)
			}
		})
	}
}

func TestHeaders(t *testing.T) {
	g := generator(t, Spec{Headers: []string{"source=carronade", "empty=", "twice=a=b", "source=again"}})
	want := []Header{
		{"source", []byte("carronade")},
		{"empty", []byte{}},
		{"twice", []byte("a=b")},
		{"source", []byte("again")},
	}
	assert.Same(t, g.Headers(), want)
	assert.Equal(t, g.Describe(), "random, 100 B each; no key; 4 headers, 39 B")
}

func TestDescribe(t *testing.T) {
	for _, test := range []struct {
		spec Spec
		want string
	}{
		{Spec{Size: "1KiB", Key: "zipf(1000,1.1)"}, "random, 1 KiB each; key zipf(1000,1.1)"},
		{Spec{Size: "100-2000", Payload: "text"}, "text, 100-2000 bytes, 1.03 KiB in the mean; no key"},
		{Spec{Payload: "monotonic", Headers: []string{"a=b"}}, "monotonic, 20 B at most; no key; 1 header, 2 B"},
	} {
		t.Run(test.want, func(t *testing.T) { assert.Equal(t, generator(t, test.spec).Describe(), test.want) })
	}
}

// TestConcurrent is meant for the race detector.
func TestConcurrent(t *testing.T) {
	for _, s := range specs {
		g := generator(t, s)
		want := g.AppendKey(g.AppendValue(nil, 3), 3)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				assert.True(t, bytes.Equal(g.AppendKey(g.AppendValue(nil, 3), 3), want), "%+v: goroutines differ", s)
			})
		}
		wg.Wait()
	}
}

func TestNoAllocations(t *testing.T) {
	for _, s := range specs {
		g := generator(t, s)
		b, n := make([]byte, 0, g.MaxSize()+g.MaxKeySize()), uint64(0)
		got := testing.AllocsPerRun(100, func() { b = g.AppendKey(g.AppendValue(b[:0], n), n); n++ })
		assert.True(t, got == 0, "%+v: got %v allocations per event, want none", s, got)
	}
}

func benchmarkGenerator(b *testing.B, s Spec) *Generator {
	b.Helper()
	g := assert.Value(New(s))(b)
	return g
}

func BenchmarkAppendValue(b *testing.B) {
	for _, kind := range []string{"random", "text", "letters", "chars(a-zA-Z0-9!@#$^&*(){}][:<>.)", "compressible(0.25)", "zero", "monotonic"} {
		for _, size := range []string{"100", "300", "1KiB"} {
			b.Run(fmt.Sprintf("%s/%s", kind, size), func(b *testing.B) {
				g := benchmarkGenerator(b, Spec{Seed: 1, Payload: kind, Size: size})
				dst := make([]byte, 0, g.MaxSize())
				b.ReportAllocs()
				n, bytes := uint64(0), 0
				for b.Loop() {
					bytes += len(g.AppendValue(dst, n))
					n++
				}
				b.SetBytes(int64(bytes / b.N))
			})
		}
	}
}

// texts are what users write; the first two are mongoose's own examples.
var texts = []struct{ name, text string }{
	{"date", `${date:format("yyyy-MM-dd'T'HH:mm:ssZ").format(date:from(rnd.nextLong(time:millisSinceEpoch())))}`},
	{"name", `x-amz-meta-${math:random(30) + 1}`},
	{"literal", "carronade"},
	{"now", "${date:formatNowIso8601()}"},
	{"refreshed", "#{date:formatNowRfc1123()}"},
	{"sequence", "${this.last() + 1}%{-1}"},
	{"path", "${path:random(16, 2)}"},
	{"format", "${string:format('%08d-%s', rnd.nextInt(1000000), rnd.nextInt(2) == 0 ? 'eu' : 'us')}"},
	{"real", "${math:sqrt(rnd.nextInt(1000000)) / 3}"},
	{"compared", "${int64:toString(rnd.nextInt(9), 10) == '5' ? 'five' : 'other'}"},
}

// A value takes 200 ns at most, and no allocation.
func BenchmarkAppend(b *testing.B) {
	for _, tt := range texts {
		b.Run(tt.name, func(b *testing.B) {
			e := parse(b, tt.text)
			dst := make([]byte, 0, e.MaxLen())
			b.ReportAllocs()
			n := uint64(0)
			for b.Loop() {
				dst = e.Append(dst[:0], n)
				n++
			}
		})
	}
}

func TestAppendAllocatesNothing(t *testing.T) {
	for _, tt := range texts {
		e := parse(t, tt.text)
		dst := make([]byte, 0, e.MaxLen())
		n := uint64(0)
		got := testing.AllocsPerRun(1000, func() { dst = e.Append(dst[:0], n); n++ })
		assert.True(t, got <= 0, "%s: %v allocations", tt.text, got)
	}
}
