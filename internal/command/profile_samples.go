package command

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"

	"carronade/internal/traffic"
)

const (
	// mostSamples and mostSampleBytes limit the values that are kept.
	mostSamples     = 10_000
	mostSampleBytes = 64 << 20
)

// samples are values that are kept for the workload: a uniform sample of all of them (Vitter's
// algorithm R). A nil one keeps nothing.
type samples struct {
	path   string
	seen   uint64
	bytes  int
	values [][]byte
	delim  string
	rng    *rand.Rand
}

// newSamples returns nil without a file.
func newSamples(path string) *samples {
	if path == "" {
		return nil
	}
	return &samples{path: path, rng: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))} // #nosec G404 -- a sample
}

func (s *samples) count() int { return len(s.values) }

// Record implements traffic.Sink.
func (s *samples) Record(r *traffic.Record) {
	if r.Value == nil {
		return
	}
	s.seen++
	if len(s.values) < mostSamples && s.bytes+len(r.Value) <= mostSampleBytes {
		s.values = append(s.values, bytes.Clone(r.Value))
		s.bytes += len(r.Value)
		return
	}
	if len(s.values) == 0 {
		return
	}
	if i := s.rng.Uint64N(s.seen); i < uint64(len(s.values)) && s.bytes-len(s.values[i])+len(r.Value) <= mostSampleBytes {
		s.bytes += len(r.Value) - len(s.values[i])
		s.values[i] = append(s.values[i][:0], r.Value...)
	}
}

// Batch implements traffic.Sink.
func (s *samples) Batch(traffic.Batch) {}

// write writes the values, with a delimiter that none of them contains.
func (s *samples) write() error {
	if s == nil || len(s.values) == 0 {
		return nil
	}
	contained := func(delim string) bool {
		for _, v := range s.values {
			if bytes.Contains(v, []byte(delim)) {
				return true
			}
		}
		return false
	}
	s.delim = "\n"
	for try := 0; contained(s.delim); try++ {
		if s.delim = "\x00"; try > 0 {
			b := make([]byte, 8)
			for i := range b {
				b[i] = byte(s.rng.Uint32())
			}
			s.delim = string(b)
		}
	}
	err := WriteFile(s.path, func(w io.Writer) error {
		for i, v := range s.values {
			if i > 0 {
				if _, err := io.WriteString(w, s.delim); err != nil {
					return err
				}
			}
			if _, err := w.Write(v); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return &Words{Err: fmt.Errorf("--keep-samples: cannot write %s: %s", s.path, Reason(err)), Hint: "give a file in a writable folder"}
	}
	return nil
}

// payload is the payload that sends the values.
func (s *samples) payload() string {
	delim := ""
	if s.delim != "\n" {
		delim = ",delim="
		for _, c := range []byte(s.delim) {
			delim += `\x` + hex.EncodeToString([]byte{c})
		}
	}
	return "file(" + s.path + ",random" + delim + ")"
}

// both is two sinks.
type both struct{ a, b traffic.Sink }

func (s both) Record(r *traffic.Record) { s.a.Record(r); s.b.Record(r) }
func (s both) Batch(b traffic.Batch)    { s.a.Batch(b); s.b.Batch(b) }

// sinks joins a sampler with samples, if there are any.
func sinks(sampler *traffic.Sampler, kept *samples) traffic.Sink {
	if kept == nil {
		return sampler
	}
	return both{sampler, kept}
}
