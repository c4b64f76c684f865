package sqlite

import (
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"

	"carronade/internal/store"
)

// mostDocument limits the decompressed size of a part, in bytes: blocks of
// intervals and heads are small.
const mostDocument = 256 << 20

// Encoders are created at the first write, decoders at the first read of a
// report: a list needs neither. Both may be used by several goroutines.
var (
	encoder = sync.OnceValue(func() *zstd.Encoder {
		e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(2), zstd.WithLowerEncoderMem(true), zstd.WithEncoderLevel(zstd.SpeedDefault))
		if err != nil {
			panic("sqlite: options of zstd: " + err.Error()) // they are constants
		}
		return e
	})
	decoder = sync.OnceValue(func() *zstd.Decoder {
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecoderMaxMemory(mostDocument))
		if err != nil {
			panic("sqlite: options of zstd: " + err.Error())
		}
		return d
	})
)

// compress makes a frame with a checksum.
func compress(b []byte) []byte { return encoder().EncodeAll(b, make([]byte, 0, len(b)/3+64)) }

// decompress reads a frame. One that cannot be read is damage.
func decompress(b []byte) ([]byte, error) {
	out, err := decoder().DecodeAll(b, nil)
	if err != nil {
		return nil, fmt.Errorf("%w (a part of a report cannot be read: %w)", store.ErrDamaged, err)
	}
	return out, nil
}
