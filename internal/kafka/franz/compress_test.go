package franz

import (
	"bytes"
	"math/rand/v2"
	"sync"
	"testing"

	"carronade/test/testkit/assert"

	"github.com/twmb/franz-go/pkg/kgo"
)

// The client engine compresses with the wire engine's codecs, other clients can read
// the result, and any number of goroutines may compress at once.
func TestClientCompressor(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	src := make([]byte, 16_000)
	for i := range src {
		src[i] = byte('A' + r.IntN(26))
	}
	for _, tt := range []struct {
		name  string
		codec kgo.CompressionCodecType
		most  float64
	}{
		{"gzip", kgo.CodecGzip, 0.65}, {"snappy", kgo.CodecSnappy, 1.01}, {"lz4", kgo.CodecLz4, 1.01}, {"zstd", kgo.CodecZstd, 0.62},
	} {
		t.Run(tt.name, func(t *testing.T) {
			opts := assert.Value(kgo.NewClient(compressionOf(tt.name)))(t)
			defer opts.Close()
			c, ok := opts.OptValue(kgo.WithCompressor).(kgo.Compressor)
			assert.Must(t, ok, "the client has no compressor")
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() {
					var dst bytes.Buffer
					for range 10 {
						dst.Reset()
						out, codec := c.Compress(&dst, src)
						back, err := kgo.DefaultDecompressor().Decompress(out, codec)
						assert.True(t, codec == tt.codec && err == nil && bytes.Equal(back, src),
							"codec %v, %d bytes, %v", codec, len(back), err)
						got := float64(len(out)) / float64(len(src))
						assert.True(t, got <= tt.most, "compressed to %.3f, want at most %.3f", got, tt.most)
					}
				})
			}
			all.Wait()
		})
	}
	z := &compressor{codec: 4}
	out, codec := z.Compress(new(bytes.Buffer), src, kgo.CompressDisableZstd)
	assert.True(t, codec == kgo.CodecNone && bytes.Equal(out, src), "a broker without zstd gets codec %v", codec)
}
