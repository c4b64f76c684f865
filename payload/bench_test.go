package payload

import (
	"fmt"
	"testing"

	"carronade/test/testkit/assert"
)

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

func BenchmarkSize(b *testing.B) {
	for _, size := range []string{"100", "100-2000", "weighted(100:70,1KiB:30)", "lognormal(1KiB,0.5)"} {
		b.Run(size, func(b *testing.B) {
			g := benchmarkGenerator(b, Spec{Seed: 1, Size: size})
			b.ReportAllocs()
			n, sum := uint64(0), 0
			for b.Loop() {
				sum += g.Size(n)
				n++
			}
		})
	}
}

func BenchmarkAppendKey(b *testing.B) {
	for _, key := range []string{"seq", "uniform(1000)", "zipf(1000,1.1)", "zipf(1g,0.9)", "zipf(1000,1)"} {
		b.Run(key, func(b *testing.B) {
			g := benchmarkGenerator(b, Spec{Seed: 1, Key: key})
			dst := make([]byte, 0, g.MaxKeySize())
			b.ReportAllocs()
			n, bytes := uint64(0), 0
			for b.Loop() {
				bytes += len(g.AppendKey(dst, n))
				n++
			}
		})
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
		got := testing.AllocsPerRun(1000, func() {
			dst = e.Append(dst[:0], n)
			n++
		})
		assert.True(t, got <= 0, "%s: %v allocations", tt.text, got)
	}
}
