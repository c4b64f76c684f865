package web

import (
	"bytes"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// A Compressor compresses the body of a request, at the fastest level. It belongs to one goroutine until Release.
type Compressor struct {
	Plain    []byte // what is compressed
	encoding string
	out      []byte
	gz       *gzip.Writer
	zs       *zstd.Encoder
}

var compressors = map[string]*sync.Pool{
	"gzip": {New: func() any {
		k := &Compressor{encoding: "gzip"}
		k.gz, _ = gzip.NewWriterLevel(io.Discard, gzip.BestSpeed)
		return k
	}},
	"zstd": {New: func() any {
		k := &Compressor{encoding: "zstd"}
		k.zs, _ = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(256<<10))
		return k
	}},
}

// NewCompressor returns a compressor for an encoding, gzip or zstd.
func NewCompressor(encoding string) *Compressor { return compressors[encoding].Get().(*Compressor) }

// Release gives it back, with what Compress returned.
func (k *Compressor) Release() { compressors[k.encoding].Put(k) }

// Write implements io.Writer, for its own use.
func (k *Compressor) Write(p []byte) (int, error) {
	k.out = append(k.out, p...)
	return len(p), nil
}

// Compress returns Plain compressed, valid until Release.
func (k *Compressor) Compress() ([]byte, error) {
	if k.zs != nil {
		k.out = k.zs.EncodeAll(k.Plain, k.out[:0])
		return k.out, nil
	}
	k.out = k.out[:0]
	k.gz.Reset(k)
	if _, err := k.gz.Write(k.Plain); err != nil {
		return nil, err
	}
	err := k.gz.Close()
	return k.out, err
}

// mostDecompressed bounds an answer that was compressed.
const mostDecompressed = 1 << 20

var (
	gunzippers   = sync.Pool{New: func() any { return new(gzip.Reader) }}
	unzstandards = sync.Pool{New: func() any {
		d, _ := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(mostDecompressed))
		return d
	}}
)

// Decompressed is an answer without its compression, gzip or zstd, up to a size.
func Decompressed(encoding string, message []byte) ([]byte, error) {
	switch encoding {
	case "gzip":
		z := gunzippers.Get().(*gzip.Reader)
		defer gunzippers.Put(z)
		if err := z.Reset(bytes.NewReader(message)); err != nil {
			return nil, err
		}
		return io.ReadAll(io.LimitReader(z, mostDecompressed))
	case "zstd":
		z := unzstandards.Get().(*zstd.Decoder)
		defer unzstandards.Put(z)
		return z.DecodeAll(message, nil)
	}
	return nil, fmt.Errorf("encoding %.20q", encoding)
}
