package profile

import (
	"cmp"
	"hash/maphash"
	"maps"
	"slices"
	"time"
)

const (
	// maxHeaders limits the header names that are counted, and maxLogs the logs, such as the partitions of all topics.
	maxHeaders = 64
	// maxHeaderName is the length above which a name is not kept.
	maxHeaderName = 256
	maxLogs       = 1 << 16
	// maxHeaderValues is up to how many distinct values of a header are counted exactly.
	maxHeaderValues = 4096
	// chunk is how many bytes of values are compressed together to measure them.
	chunk = 64 << 10
	// Of all bytes of values, the first measuredBytes and then one in measuredEvery are
	// compressed.
	measuredBytes = 4 << 20
	measuredEvery = 50
)

// A Sampler takes the records of a sample, and keeps only numbers of them. It is not safe for
// concurrent use.
type Sampler struct {
	// Compress returns the size of bytes when they are compressed; nil: compressibility is not
	// measured. The codec is that of Codec.
	Compress func(plain []byte) int
	Codec    string

	records, nulls uint64
	bytes          float64 // of keys, values and headers
	sizes          Sizes
	keySizes       Sizes
	keys           *Keys
	arrivals       Arrivals
	logs           map[int32]uint64
	headers        map[string]*headerCount
	otherHeaders   uint64
	seed           maphash.Seed

	batches, oneTime uint64
	batchEvents      Sizes
	batchBytes       Sizes // before compression
	codecs           map[string]*codecCount
	pending          []byte
	seen             float64 // bytes of values
	plain, packed    float64 // measured
}

type headerCount struct {
	records uint64
	sizes   Sizes
	last    uint64 // the record that had it last
	values  map[uint64]struct{}
	more    bool // than maxHeaderValues
}

type codecCount struct {
	batches     uint64
	plain, wire float64
}

// NewSampler returns a sampler that measures compressibility by a function; nil: it does not.
func NewSampler(codec string, compress func(plain []byte) int) *Sampler {
	return &Sampler{
		Codec: codec, Compress: compress,
		keys: NewKeys(), logs: map[int32]uint64{}, headers: map[string]*headerCount{}, codecs: map[string]*codecCount{}, seed: maphash.MakeSeed(),
	}
}

// Records is the number of records so far.
func (s *Sampler) Records() uint64 { return s.records }

// Record takes a record. It keeps nothing of its slices.
func (s *Sampler) Record(r *Record) {
	s.records++
	size := r.Size
	if r.Value != nil {
		size = len(r.Value)
		s.measure(r.Value)
	}
	s.bytes += float64(size + len(r.Key))
	switch {
	case r.Null:
		s.nulls++
	default:
		s.sizes.Add(size, 1)
	}
	if r.Keyed {
		s.keys.Add(r.Key, r.Log)
		s.keySizes.Add(len(r.Key), 1)
	}
	if r.Time > 0 {
		s.arrivals.Add(r.Time)
	}
	if r.Log >= 0 && (len(s.logs) < maxLogs || s.logs[r.Log] > 0) {
		s.logs[r.Log]++
	}
	for i := range r.Headers {
		s.header(&r.Headers[i])
	}
}

func (s *Sampler) header(h *Header) {
	s.bytes += float64(len(h.Name) + len(h.Value))
	c := s.headers[string(h.Name)]
	if c == nil {
		if len(s.headers) >= maxHeaders || len(h.Name) > maxHeaderName {
			s.otherHeaders++
			return
		}
		c = &headerCount{values: map[uint64]struct{}{}}
		s.headers[string(h.Name)] = c
	}
	if c.last != s.records {
		c.records, c.last = c.records+1, s.records
	}
	c.sizes.Add(len(h.Value), 1)
	if !c.more {
		c.values[maphash.Bytes(s.seed, h.Value)] = struct{}{}
		if len(c.values) > maxHeaderValues {
			c.more, c.values = true, nil
		}
	}
}

// measure compresses a part of the values, in chunks.
func (s *Sampler) measure(value []byte) {
	if s.Compress == nil {
		return
	}
	s.seen += float64(len(value))
	if s.plain > measuredBytes && s.plain > s.seen/measuredEvery {
		return
	}
	s.pending = append(s.pending, value[:min(len(value), 1<<20)]...)
	if len(s.pending) >= chunk {
		s.flush()
	}
}

func (s *Sampler) flush() {
	if len(s.pending) == 0 {
		return
	}
	s.plain += float64(len(s.pending))
	s.packed += float64(s.Compress(s.pending))
	s.pending = s.pending[:0]
}

// Batch takes a batch.
func (s *Sampler) Batch(b Batch) {
	s.batches++
	if b.OneTime {
		s.oneTime++
	}
	s.batchEvents.Add(b.Events, 1)
	s.batchBytes.Add(int(b.Plain), 1)
	if b.Codec == "" {
		return
	}
	c := s.codecs[b.Codec]
	if c == nil {
		c = &codecCount{}
		s.codecs[b.Codec] = c
	}
	c.batches++
	c.plain += float64(b.Plain)
	c.wire += float64(b.Wire)
}

// SizeDistance is the Kolmogorov-Smirnov distance of the sizes of values. A value that is null
// counts as one that is smaller than all, so a source without any other value is as far as can be
// from what has values.
func (s *Sampler) SizeDistance(o *Sampler) float64 {
	if s.records == 0 || o.records == 0 {
		return 0
	}
	return s.sizes.distance(&o.sizes, float64(s.sizes.n)/float64(s.records), float64(o.sizes.n)/float64(o.records))
}

// KeyDistance is that of the shares of records by the rank of their key. Records without a key
// count as one that comes before all.
func (s *Sampler) KeyDistance(o *Sampler) float64 {
	if s.records == 0 || o.records == 0 {
		return 0
	}
	return curveDistance(s.keys.among(s.records), o.keys.among(o.records))
}

// order returns the keys of a map by their values, the largest first.
func order[K cmp.Ordered, V any](m map[K]V, of func(V) uint64) []K {
	keys := slices.Sorted(maps.Keys(m))
	slices.SortStableFunc(keys, func(a, b K) int { return cmp.Compare(of(m[b]), of(m[a])) })
	return keys
}

// RateWithin is the mean number of records a second in the first part of the time.
func (s *Sampler) RateWithin(d time.Duration) float64 { return s.arrivals.RateWithin(d) }
