package wire

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"carronade/test/testkit/assert"
)

// randomBytes returns n random bytes below set.
func randomBytes(n, set int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.IntN(set))
	}
	return b
}

// gzip and zstd compress a batch about as well as the Java client (zlib at level 6,
// zstd at level 3), even without repetitions: the bytes on the wire are comparable.
func TestRatios(t *testing.T) {
	words := []byte(strings.Repeat("all work and no play makes a dull boy. ", 400))
	for _, tt := range []struct {
		name       string
		src        []byte
		gzip, zstd float64 // at most
	}{
		{"random", randomBytes(16_000, 256), 1.01, 1.01},
		{"letters", randomBytes(16_000, 26), 0.62, 0.62},
		{"letters, large", randomBytes(500_000, 26), 0.62, 0.62},
		{"seventy-nine characters", randomBytes(16_000, 79), 0.82, 0.82},
		{"seventy-nine characters, large", randomBytes(500_000, 79), 0.82, 0.82},
		{"a small batch", randomBytes(300, 26), 0.75, 0.75},
		{"words", words, 0.02, 0.02},
		{"empty", nil, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for codec, limit := range map[Codec]float64{Gzip: tt.gzip, Zstd: tt.zstd, Snappy: 2, LZ4: 2, None: 1} {
				z := assert.Value(NewCompressor(codec))(t)
				for range 2 { // a compressor is reusable
					out := assert.Value(z.Append([]byte("before"), tt.src))(t)
					out, ok := bytes.CutPrefix(out, []byte("before"))
					got := float64(len(out)) / float64(max(len(tt.src), 1))
					assert.True(t, ok && (len(tt.src) == 0 || got <= limit), "%v: ratio %.3f, want at most %.3f", codec, got, limit)
					back, err := Decompress(nil, codec, out)
					assert.True(t, err == nil && bytes.Equal(back, tt.src), "%v: decompressed to %d bytes, %v", codec, len(back), err)
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
				assert.OK(b, err)
				src := randomBytes(16_000, set)
				var out []byte
				b.SetBytes(int64(len(src)))
				b.ReportAllocs()
				for b.Loop() {
					out, err = z.Append(out[:0], src)
					assert.OK(b, err)
				}
			})
		}
	}
}
