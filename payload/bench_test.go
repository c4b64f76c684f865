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
