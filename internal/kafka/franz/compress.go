package franz

import (
	"bytes"
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"carronade/internal/kafka/wire"
)

// A compressor compresses the batches of the client engine in the same way as
// the wire engine does, so that a codec compresses the same records equally well in
// both engines. It is safe for concurrent use.
type compressor struct {
	codec wire.Codec
	spare sync.Pool // of *kafka.Compressor
}

// compressionOf returns the client option for a codec's name.
func compressionOf(name string) kgo.ProducerOpt {
	codec, err := wire.ParseCodec(name)
	if err != nil || codec == wire.None { // other names were refused before
		return kgo.ProducerBatchCompression(kgo.NoCompression())
	}
	return kgo.WithCompressor(&compressor{codec: codec})
}

// Compress implements kgo.Compressor. If compression fails, it
// returns src.
func (c *compressor) Compress(dst *bytes.Buffer, src []byte, flags ...kgo.CompressFlag) ([]byte, kgo.CompressionCodecType) {
	if c.codec == wire.Zstd && slices.Contains(flags, kgo.CompressDisableZstd) {
		return src, kgo.CodecNone
	}
	z, ok := c.spare.Get().(*wire.Compressor)
	if !ok {
		var err error
		if z, err = wire.NewCompressor(c.codec); err != nil {
			return src, kgo.CodecNone
		}
	}
	defer c.spare.Put(z)
	out, err := z.Append(dst.AvailableBuffer(), src)
	if err != nil {
		return src, kgo.CodecNone
	}
	dst.Write(out) // so that dst keeps the memory for the next batch
	return dst.Bytes(), kgo.CompressionCodecType(c.codec)
}
