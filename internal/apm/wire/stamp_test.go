package wire

import (
	"bytes"
	"hash/crc32"
	"testing"

	kgzip "github.com/klauspost/compress/gzip"

	"carronade/test/testkit/assert"
)

// The raw sums of two parts combine to the raw sum of both.
func TestSumsAreJoined(t *testing.T) {
	all := make([]byte, 1000)
	for i := range all {
		all[i] = byte(i * i)
	}
	for _, n := range []int{0, 1, 7, 500, 999, 1000} {
		got := field.Multiply(field.Shift(len(all)-n), rawSum(all[:n])) ^ rawSum(all[n:])
		assert.Equal(t, got, rawSum(all), "%d bytes and the rest", n)
	}
	assert.True(t, rawSum(all) != crc32.ChecksumIEEE(all), "the raw sum has the inversions")
}

var benches = []struct {
	name string
	m    Makeup
}{
	{"10x0x0", Makeup{Events: Range{10, 10}, Mix: [Kinds]int{Transaction: 1}}},
	{"10x10x10", Makeup{Events: Range{10, 10}, Spans: Range{10, 10}, Frames: Range{10, 10}}},
}

// Stamping an uncompressed body.
func BenchmarkStamp(b *testing.B) {
	for _, bb := range benches {
		b.Run(bb.name, func(b *testing.B) {
			body := maker(b, bb.m).Make(0)
			b.SetBytes(int64(body.Plain))
			b.ReportAllocs()
			for i := range b.N {
				body.Stamp(1, uint64(i), timeMin+int64(i))
			}
		})
	}
}

// Stamping a gzip body. It also reports the ratio of the body compressed in one piece, for comparison.
func BenchmarkStampGzip(b *testing.B) {
	for _, bb := range benches {
		b.Run(bb.name, func(b *testing.B) {
			plain := maker(b, bb.m).Make(0)
			plain.Stamp(1, 1, timeMin*2)
			body := assert.Value(plain.Gzip(6))(b)
			whole := assert.Value(plain.GzipFixed(6))(b)
			b.SetBytes(int64(body.Plain))
			b.ReportAllocs()
			for i := range b.N {
				body.Stamp(1, uint64(i), timeMin+int64(i))
			}
			b.ReportMetric(body.Ratio(), "ratio")
			b.ReportMetric(whole.Ratio(), "whole-ratio")
		})
	}
}

// The alternative: stamping the plain body and compressing all of it.
func BenchmarkRecompress(b *testing.B) {
	for _, bb := range benches {
		b.Run(bb.name, func(b *testing.B) {
			body := maker(b, bb.m).Make(0)
			var out bytes.Buffer
			w, _ := kgzip.NewWriterLevel(&out, 1)
			b.SetBytes(int64(body.Plain))
			b.ReportAllocs()
			for i := range b.N {
				body.Stamp(1, uint64(i), timeMin+int64(i))
				out.Reset()
				w.Reset(&out)
				_, _ = w.Write(body.Bytes)
				_ = w.Close()
			}
			b.ReportMetric(float64(out.Len())/float64(body.Plain), "ratio")
		})
	}
}
