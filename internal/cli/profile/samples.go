package profile

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"

	"carronade/internal/cli/cmdutil"
	traffic "carronade/internal/profile"
	"carronade/protocol"
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

// add samples the value of a record, nil if it has none.
func (s *samples) add(value []byte) {
	if value == nil {
		return
	}
	s.seen++
	if len(s.values) < mostSamples && s.bytes+len(value) <= mostSampleBytes {
		s.values = append(s.values, bytes.Clone(value))
		s.bytes += len(value)
		return
	}
	if len(s.values) == 0 {
		return
	}
	if i := s.rng.Uint64N(s.seen); i < uint64(len(s.values)) && s.bytes-len(s.values[i])+len(value) <= mostSampleBytes {
		s.bytes += len(value) - len(s.values[i])
		s.values[i] = append(s.values[i][:0], value...)
	}
}

// write writes the values, each followed by a delimiter that none of them contains: so the last may be empty.
func (s *samples) write() error {
	if s == nil || len(s.values) == 0 {
		return nil
	}
	contained := func(delim string) bool {
		return slices.ContainsFunc(s.values, func(v []byte) bool { return bytes.Contains(v, []byte(delim)) })
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
	err := cmdutil.WriteFile(s.path, func(w io.Writer) error {
		for _, v := range s.values {
			if _, err := w.Write(v); err != nil {
				return err
			}
			if _, err := io.WriteString(w, s.delim); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return &protocol.Error{Err: fmt.Errorf("--keep-samples: cannot write %s: %s", s.path, cmdutil.Reason(err)), Hint: "give a file in a writable folder"}
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

// A sampling is records that are read from a source: what is fitted to them, and the values that
// are kept.
type sampling struct {
	sampler *traffic.Sampler
	kept    *samples // nil: none
}

// newSampling measures values by the reference codec, and keeps values for path, if there is one.
func newSampling(path string) (*sampling, error) {
	compress, err := compressor(reference)
	if err != nil {
		return nil, err
	}
	return &sampling{traffic.NewSampler(reference, compress), newSamples(path)}, nil
}

// Record implements traffic.Sink.
func (s *sampling) Record(r *traffic.Record) {
	s.sampler.Record(r)
	if s.kept != nil {
		s.kept.add(r.Value)
	}
}

// Batch implements traffic.Sink.
func (s *sampling) Batch(b traffic.Batch) { s.sampler.Batch(b) }

// fit writes the values that were kept, and fits the records, for a workload with the target to.
func (s *sampling) fit(src source, partitions int, to string) (*recordTraffic, error) {
	if err := s.kept.write(); err != nil {
		return nil, err
	}
	src.Event, src.Read = "record", s.sampler.Records()
	r := &recordTraffic{sampler: s.sampler, recordPlan: recordPlan{Profile: s.sampler.Profile(src.Whole, partitions), source: src, target: to}}
	if s.kept != nil && s.kept.count() > 0 {
		r.samples = s.kept
	}
	r.head = []string{
		fmt.Sprintf("Fitted by carronade profile to %s", src.title()+"."),
		"Distances are those of Kolmogorov and Smirnov: the largest difference between the distribution of the source and the fitted one.",
	}
	return r, nil
}
