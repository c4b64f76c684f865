package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// Codec is a compression of the records of a batch; the values are those in a
// batch's attributes.
type Codec int8

// The codecs.
const (
	None Codec = iota
	Gzip
	Snappy
	LZ4
	Zstd
	codecs
)

var codecNames = [codecs]string{"none", "gzip", "snappy", "lz4", "zstd"}

// String returns the codec's name, as options use it.
func (c Codec) String() string {
	if c >= 0 && c < codecs {
		return codecNames[c]
	}
	return fmt.Sprintf("codec %d", int8(c))
}

// ParseCodec is the inverse of String; "" is None.
func ParseCodec(s string) (Codec, error) {
	if s == "" {
		return None, nil
	}
	if i := slices.Index(codecNames[:], s); i >= 0 {
		return Codec(i), nil
	}
	return None, fmt.Errorf("compression %q: want one of none, gzip, snappy, lz4, zstd", s)
}

// A Compressor compresses the records of batches. It is not safe for
// concurrent use, and keeps its working memory between calls.
type Compressor struct {
	codec Codec
	gz    *gzip.Writer
	huff  *gzip.Writer // Huffman coding only
	lz    *lz4.Writer
	zs    *zstd.Encoder
	buf   bytes.Buffer
	alt   bytes.Buffer // of huff
}

// NewCompressor returns a Compressor at the codec's default level.
func NewCompressor(c Codec) (*Compressor, error) {
	z := &Compressor{codec: c}
	switch c {
	case None, Snappy:
	case Gzip:
		z.gz = gzip.NewWriter(io.Discard)
		var err error
		if z.huff, err = gzip.NewWriterLevel(io.Discard, gzip.HuffmanOnly); err != nil {
			return nil, fmt.Errorf("set up gzip: %w", err)
		}
	case LZ4:
		// Independent blocks of 64 KiB, as the Java client writes them.
		z.lz = lz4.NewWriter(io.Discard)
		if err := z.lz.Apply(lz4.BlockSizeOption(lz4.Block64Kb), lz4.ChecksumOption(false), lz4.ConcurrencyOption(1)); err != nil {
			return nil, fmt.Errorf("set up lz4: %w", err)
		}
	case Zstd:
		// One goroutine, and a window no larger than batches. Literals are always
		// entropy-coded, as by the Java client.
		zs, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20), zstd.WithZeroFrames(true), zstd.WithEncoderCRC(false), zstd.WithAllLitEntropyCompression(true))
		if err != nil {
			return nil, fmt.Errorf("set up zstd: %w", err)
		}
		z.zs = zs
	default:
		return nil, fmt.Errorf("%s is not known", c)
	}
	return z, nil
}

// Append appends src, compressed, to dst.
func (z *Compressor) Append(dst, src []byte) ([]byte, error) {
	switch z.codec {
	case None:
		return append(dst, src...), nil
	case Snappy:
		// A plain block: Xerial's framing belongs to older formats, and readers
		// of v2 accept blocks without it.
		n := len(dst)
		dst = slices.Grow(dst, s2.MaxEncodedLen(len(src))) // large enough: encoded in place
		return dst[:n+len(s2.EncodeSnappy(dst[n:cap(dst)], src))], nil
	case Gzip:
		return z.gzip(dst, src)
	case LZ4:
		if err := z.compressTo(&z.buf, src, z.lz.Reset, z.lz); err != nil {
			return nil, err
		}
		return append(dst, z.buf.Bytes()...), nil
	case Zstd:
		return z.zs.EncodeAll(src, dst), nil
	}
	return nil, fmt.Errorf("%s is not known", z.codec)
}

// gzip compresses as well as the Java client does. At its default level this
// library stores blocks without repetitions uncompressed: even random letters, which
// need only five bits of eight. The levels that code such blocks are slower than
// two passes. So what the first pass does not halve gets a second one, with Huffman
// coding only.
func (z *Compressor) gzip(dst, src []byte) ([]byte, error) {
	if err := z.compressTo(&z.buf, src, z.gz.Reset, z.gz); err != nil {
		return nil, err
	}
	smaller := &z.buf
	if z.buf.Len() > len(src)/2 {
		if err := z.compressTo(&z.alt, src, z.huff.Reset, z.huff); err != nil {
			return nil, err
		}
		if z.alt.Len() < z.buf.Len() {
			smaller = &z.alt
		}
	}
	return append(dst, smaller.Bytes()...), nil
}

func (z *Compressor) compressTo(to *bytes.Buffer, src []byte, reset func(io.Writer), w io.WriteCloser) error {
	to.Reset()
	reset(to)
	if _, err := w.Write(src); err != nil {
		return fmt.Errorf("compress by %s: %w", z.codec, err)
	}
	if err := w.Close(); err != nil {
		return fmt.Errorf("compress by %s: %w", z.codec, err)
	}
	return nil
}

// MaxDecompressed bounds the result of Decompress for one batch, so that a small
// answer cannot fill the memory.
const MaxDecompressed = 256 << 20

// ErrTooLarge is the error for batches that are larger than MaxDecompressed.
var ErrTooLarge = errors.New("larger than 256 MiB when decompressed")

var (
	gzipReaders sync.Pool // *gzip.Reader
	lz4Readers  = sync.Pool{New: func() any { return lz4.NewReader(nil) }}
	zstdReader  = sync.OnceValues(func() (*zstd.Decoder, error) {
		return zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(MaxDecompressed))
	})
)

var xerialMagic = []byte{0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0}

// Decompress appends the records in src to dst. It is safe for concurrent use.
func Decompress(dst []byte, c Codec, src []byte) ([]byte, error) {
	switch c {
	case None:
		return append(dst, src...), nil
	case Gzip:
		r, _ := gzipReaders.Get().(*gzip.Reader)
		if r == nil {
			r = new(gzip.Reader)
		}
		defer gzipReaders.Put(r)
		if err := r.Reset(bytes.NewReader(src)); err != nil {
			return nil, fmt.Errorf("decompress gzip: %w", err)
		}
		return readInto(dst, r, c)
	case LZ4:
		r := lz4Readers.Get().(*lz4.Reader)
		defer lz4Readers.Put(r)
		r.Reset(bytes.NewReader(src))
		return readInto(dst, r, c)
	case Zstd:
		d, err := zstdReader()
		if err != nil {
			return nil, fmt.Errorf("set up zstd: %w", err)
		}
		out, err := d.DecodeAll(src, dst)
		if err != nil {
			return nil, fmt.Errorf("decompress zstd: %w", err)
		}
		return out, nil
	case Snappy:
		if bytes.HasPrefix(src, xerialMagic) {
			return decodeXerial(dst, src)
		}
		return decodeSnappy(dst, src)
	}
	return nil, fmt.Errorf("decompress: %s is not known", c)
}

func decodeSnappy(dst, src []byte) ([]byte, error) {
	n, err := s2.DecodedLen(src)
	if err != nil {
		return nil, fmt.Errorf("decompress snappy: %w", err)
	}
	if n > MaxDecompressed {
		return nil, fmt.Errorf("decompress snappy: %w", ErrTooLarge)
	}
	// A Snappy block grows by less than a factor of 64.
	if n > 64*len(src)+64 {
		return nil, fmt.Errorf("decompress snappy: %w", ErrLength)
	}
	at := len(dst)
	dst = slices.Grow(dst, n)[:at+n]
	if _, err := s2.Decode(dst[at:], src); err != nil {
		return nil, fmt.Errorf("decompress snappy: %w", err)
	}
	return dst, nil
}

// decodeXerial reads the framing of snappy-java: a magic, two versions, then
// blocks, each with its length before it.
func decodeXerial(dst, src []byte) ([]byte, error) {
	const head = 16
	if len(src) < head {
		return nil, fmt.Errorf("decompress snappy: %w", ErrShort)
	}
	for src = src[head:]; len(src) > 0; {
		if len(src) < 4 {
			return nil, fmt.Errorf("decompress snappy: %w", ErrShort)
		}
		n := binary.BigEndian.Uint32(src)
		src = src[4:]
		if uint64(n) > uint64(len(src)) {
			return nil, fmt.Errorf("decompress snappy: %w", ErrShort)
		}
		var err error
		if dst, err = decodeSnappy(dst, src[:n]); err != nil {
			return nil, err
		}
		if len(dst) > MaxDecompressed {
			return nil, fmt.Errorf("decompress snappy: %w", ErrTooLarge)
		}
		src = src[n:]
	}
	return dst, nil
}

func readInto(dst []byte, r io.Reader, c Codec) ([]byte, error) {
	start := len(dst)
	for {
		if len(dst) == cap(dst) {
			dst = slices.Grow(dst, max(4096, len(dst)))
		}
		n, err := r.Read(dst[len(dst):cap(dst)])
		dst = dst[:len(dst)+n]
		if err == io.EOF {
			return dst, nil
		}
		if err != nil {
			return nil, fmt.Errorf("decompress %s: %w", c, err)
		}
		if len(dst)-start > MaxDecompressed {
			return nil, fmt.Errorf("decompress %s: %w", c, ErrTooLarge)
		}
	}
}
