package kafka

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
)

// drawn are n bytes drawn from a set of the first so many of all bytes.
func drawn(n, set int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.IntN(set))
	}
	return b
}

// What gzip and zstd leave of a batch is about what the Java client's leave (zlib
// at level 6, zstd at level 3): the bytes on the wire are the same, where nothing
// repeats, too.
func TestRatios(t *testing.T) {
	words := []byte(strings.Repeat("all work and no play makes a dull boy. ", 400))
	for _, tt := range []struct {
		name       string
		src        []byte
		gzip, zstd float64 // at most
	}{
		{"random", drawn(16_000, 256), 1.01, 1.01},
		{"letters", drawn(16_000, 26), 0.62, 0.62},
		{"letters, large", drawn(500_000, 26), 0.62, 0.62},
		{"seventy-nine characters", drawn(16_000, 79), 0.82, 0.82},
		{"seventy-nine characters, large", drawn(500_000, 79), 0.82, 0.82},
		{"a small batch", drawn(300, 26), 0.75, 0.75},
		{"words", words, 0.02, 0.02},
		{"nothing", nil, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for codec, most := range map[Codec]float64{Gzip: tt.gzip, Zstd: tt.zstd, Snappy: 2, LZ4: 2, None: 1} {
				z, err := NewCompressor(codec)
				if err != nil {
					t.Fatal(err)
				}
				for range 2 { // a compressor is used again
					out, err := z.Append([]byte("before"), tt.src)
					if err != nil {
						t.Fatal(err)
					}
					out, ok := bytes.CutPrefix(out, []byte("before"))
					if got := float64(len(out)) / float64(max(len(tt.src), 1)); !ok || len(tt.src) > 0 && got > most {
						t.Errorf("%v leaves %.3f, want %.3f at most", codec, got, most)
					}
					back, err := Decompress(nil, codec, out)
					if err != nil || !bytes.Equal(back, tt.src) {
						t.Errorf("%v comes back as %d bytes, %v", codec, len(back), err)
					}
				}
			}
		})
	}
}

func BenchmarkCompress(b *testing.B) {
	for _, codec := range []Codec{Gzip, Snappy, LZ4, Zstd} {
		for name, set := range map[string]int{"random": 256, "letters": 26} {
			b.Run(codec.String()+"/"+name, func(b *testing.B) {
				z, err := NewCompressor(codec)
				if err != nil {
					b.Fatal(err)
				}
				src := drawn(16_000, set)
				var out []byte
				b.SetBytes(int64(len(src)))
				b.ReportAllocs()
				for b.Loop() {
					if out, err = z.Append(out[:0], src); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
