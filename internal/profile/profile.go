package profile

import (
	"fmt"
	"math"
)

// A Profile is what was found in a sample.
type Profile struct {
	Records uint64  `json:"records"`
	Whole   bool    `json:"whole"` // everything that the source has; otherwise a sample
	Nulls   uint64  `json:"nulls"` // records whose value is null
	Bytes   float64 `json:"bytes"` // of keys, values and headers

	Sizes       SizeFit     `json:"sizes"`
	Keys        KeyFit      `json:"keys"`
	KeySizes    *SizeFit    `json:"key_sizes,omitempty"`
	Headers     []HeaderFit `json:"headers"`
	MoreHeaders uint64      `json:"more_headers"` // header values under further names than the 64 that were counted
	Content     Content     `json:"content"`
	Batches     *BatchFit   `json:"batches,omitempty"`
	Pace        PaceFit     `json:"pace"`
	Partitions  *LogFit     `json:"partitions,omitempty"`
}

// A HeaderFit describes the header of a name.
type HeaderFit struct {
	Name     string  `json:"name"`
	Share    float64 `json:"share"`    // of the records that have it
	Size     SizeFit `json:"size"`     // of its values
	Distinct int     `json:"distinct"` // values
	More     bool    `json:"more"`     // there are more distinct values than counted
}

// Content is how well the content compresses.
type Content struct {
	Codec string  `json:"codec,omitempty"` // that it was measured with; "": it was not
	Ratio float64 `json:"ratio"`           // compressed size as a share of the size before
	// Of is "batches" if it is the ratio of the batches of the source, or "values" if values
	// were compressed by carronade, 64 KiB together.
	Of    string  `json:"of,omitempty"`
	Bytes float64 `json:"bytes"` // that were measured
}

// A BatchFit describes batches.
type BatchFit struct {
	Batches uint64             `json:"batches"`
	Events  SizeFit            `json:"events"`
	Bytes   SizeFit            `json:"bytes"`          // before compression
	Codec   string             `json:"codec"`          // of most batches
	Codecs  map[string]float64 `json:"codecs"`         // share of the batches with each codec
	OneTime float64            `json:"one_time_share"` // of the batches, those whose records all have one time
}

// A LogFit describes how records are spread over partitions.
type LogFit struct {
	Partitions int     `json:"partitions"` // that the source has
	Used       int     `json:"used"`       // that have records
	Largest    float64 `json:"largest_share"`
	Smallest   float64 `json:"smallest_share"` // of those that the source has
	// Skew is the largest share, as a multiple of an equal share.
	Skew float64 `json:"skew"`
}

// Profile fits everything. whole says that the sample is everything that the source has, and
// partitions how many logs it has, 0 if that is not known.
func (s *Sampler) Profile(whole bool, partitions int) *Profile {
	p := &Profile{Records: s.records, Whole: whole, Nulls: s.nulls, Bytes: s.bytes, Sizes: s.sizes.Fit(), Keys: s.keys.Fit(whole), Headers: []HeaderFit{}, MoreHeaders: s.otherHeaders}
	p.Keys.Share = float64(s.keys.n) / float64(max(s.records, 1))
	if s.keySizes.n > 0 {
		f := s.keySizes.Fit()
		p.KeySizes = &f
	}
	for _, name := range order(s.headers, func(h *headerCount) uint64 { return h.records }) {
		h := s.headers[name]
		f := HeaderFit{Name: name, Share: float64(h.records) / float64(s.records), Size: h.sizes.Fit(), Distinct: len(h.values), More: h.more}
		if h.more {
			f.Distinct = maxHeaderValues
		}
		p.Headers = append(p.Headers, f)
	}
	together := 1.0
	if s.batches > 0 {
		p.Batches = s.batchFit()
		if p.Batches.OneTime > 0.5 {
			together = s.batchEvents.Mean()
		}
	}
	p.Content = s.Content()
	p.Pace = s.arrivals.Fit(together)
	p.Partitions = s.logFit(partitions)
	return p
}

func (s *Sampler) batchFit() *BatchFit {
	b := &BatchFit{Batches: s.batches, Events: s.batchEvents.Fit(), Bytes: s.batchBytes.Fit(), Codecs: map[string]float64{}, OneTime: float64(s.oneTime) / float64(s.batches)}
	for i, codec := range order(s.codecs, func(c *codecCount) uint64 { return c.batches }) {
		if i == 0 {
			b.Codec = codec
		}
		b.Codecs[codec] = float64(s.codecs[codec].batches) / float64(s.batches)
	}
	return b
}

// Content returns the ratio of the batches with the most frequent codec, if they are
// compressed; otherwise that of the values.
func (s *Sampler) Content() Content {
	if names := order(s.codecs, func(c *codecCount) uint64 { return c.batches }); len(names) > 0 && names[0] != "none" {
		if c := s.codecs[names[0]]; c.plain > 0 {
			return Content{Codec: names[0], Ratio: c.wire / c.plain, Of: "batches", Bytes: c.plain}
		}
	}
	if s.Compress != nil {
		s.flush()
	}
	if s.plain == 0 {
		return Content{}
	}
	return Content{Codec: s.Codec, Ratio: s.packed / s.plain, Of: "values", Bytes: s.plain}
}

func (s *Sampler) logFit(partitions int) *LogFit {
	if len(s.logs) == 0 {
		return nil
	}
	f := &LogFit{Partitions: max(partitions, len(s.logs)), Used: len(s.logs), Smallest: math.Inf(1)}
	total := 0.0
	for _, n := range s.logs {
		total += float64(n)
	}
	for _, n := range s.logs {
		share := float64(n) / total
		f.Largest, f.Smallest = max(f.Largest, share), min(f.Smallest, share)
	}
	if f.Used < f.Partitions {
		f.Smallest = 0
	}
	f.Skew = f.Largest * float64(f.Partitions)
	return f
}

// String describes a fit of sizes in a few words.
func (f SizeFit) String() string {
	switch f.Family {
	case Constant:
		return fmt.Sprintf("%s B each", f.Text)
	case Quantiles, Weighted:
		return fmt.Sprintf("%d-%d B, p50 %d, p99 %d", f.Min, f.Max, f.P50, f.P99)
	}
	return fmt.Sprintf("%s, %d-%d B, p50 %d, p99 %d", f.Text, f.Min, f.Max, f.P50, f.P99)
}
