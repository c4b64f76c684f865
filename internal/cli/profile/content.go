package profile

import (
	"fmt"
	"math"

	"carronade/internal/kafka/wire"
	traffic "carronade/internal/profile"
	"carronade/payload"
)

// reference is the codec by which values are measured that no batch was compressed with.
const reference = "zstd"

// compressor returns a function for the size of bytes when they are compressed.
func compressor(codec string) (func([]byte) int, error) {
	c, err := wire.ParseCodec(codec)
	if err != nil {
		return nil, err
	}
	z, err := wire.NewCompressor(c)
	if err != nil {
		return nil, err
	}
	var out []byte
	return func(plain []byte) int {
		var err error
		if out, err = z.Append(out[:0], plain); err != nil {
			return len(plain) // what cannot be compressed is stored
		}
		return len(out)
	}, nil
}

// A content is a payload whose events compress like those of the sample.
type content struct {
	payload string
	ratio   float64 // that its events have
}

const (
	// trialBytes is how many bytes are compressed to try a payload.
	trialBytes = 256 << 10
	// mostRatio is the largest share that a payload can be made of.
	mostRatio  = 1.0
	leastRatio = 0.02
)

// fitContent finds the payload with the ratio of the sample, by compressing events of
// candidates: in batches of that many events, or only their values.
func fitContent(c traffic.Content, spec payload.Spec, batchEvents int) (content, error) {
	compress, err := compressor(c.Codec)
	if err != nil {
		return content{}, err
	}
	try := func(kind string) (content, error) {
		spec.Payload = kind
		g, err := payload.New(spec)
		if err != nil {
			return content{}, err
		}
		if c.Of == "batches" {
			return content{kind, ratioOfBatches(g, batchEvents, compress)}, nil
		}
		return content{kind, ratioOfValues(g, compress)}, nil
	}
	best, err := try("random")
	if err != nil || best.ratio <= c.Ratio {
		return best, err
	}
	nearer := func(kind string) (content, error) {
		t, err := try(kind)
		if err == nil && math.Abs(t.ratio-c.Ratio) < math.Abs(best.ratio-c.Ratio) {
			best = t
		}
		return t, err
	}
	low, high := leastRatio, mostRatio
	least, err := nearer(compressible(low))
	if err != nil {
		return best, err
	}
	if least.ratio >= c.Ratio {
		_, err := nearer("zero")
		return best, err
	}
	for range 12 {
		mid := (low + high) / 2
		t, err := nearer(compressible(mid))
		if err != nil {
			return best, err
		}
		if t.ratio < c.Ratio {
			low = mid
		} else {
			high = mid
		}
	}
	return best, nil
}

func compressible(ratio float64) string { return fmt.Sprintf("compressible(%.4g)", ratio) }

// ratioOfBatches compresses record batches of events.
func ratioOfBatches(g *payload.Generator, events int, compress func([]byte) int) float64 {
	headers := wire.HeaderEncoder{Source: g}
	plain, packed := 0, 0
	var batch, key, value []byte
	for n := uint64(0); plain < trialBytes; {
		batch = batch[:0]
		for i := range max(events, 1) {
			value = g.AppendValue(value[:0], n)
			var k []byte
			if g.HasKey() {
				key = g.AppendKey(key[:0], n)
				k = key
			}
			batch = wire.AppendRecord(batch, int32(i), k, value, headers.Encode(n))
			if n++; len(batch) > 1<<20 {
				break
			}
		}
		plain += len(batch)
		packed += compress(batch)
	}
	return float64(packed) / float64(plain)
}

// ratioOfValues compresses values as a sampler does, 64 KiB together.
func ratioOfValues(g *payload.Generator, compress func([]byte) int) float64 {
	s := traffic.NewSampler(reference, compress)
	var value []byte
	for n, bytes := uint64(0), 0; bytes < trialBytes && n < trialBytes; n++ {
		value = g.AppendValue(value[:0], n)
		bytes += len(value)
		s.Record(&traffic.Record{Log: -1, Value: value})
	}
	return s.Content().Ratio
}
