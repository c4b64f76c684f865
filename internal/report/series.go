package report

import (
	"encoding/binary"
	"slices"
	"time"

	"carronade/load"
	"carronade/measure"
)

// A Series makes rows of the series of intervals. The zero value is for a closed loop.
type Series struct {
	Mode        load.Mode
	Unanswered  bool      // nothing is acknowledged: rates are of sent events
	Percentiles []float64 // beyond the standard ones
}

// Interval makes a row, with encoded histograms. It is safe for concurrent use.
func (s *Series) Interval(iv *measure.Interval) Interval {
	out := s.row(iv, s.summary)
	out.Histograms, out.times = out.encodeTimes(), nil
	return out
}

// A Kept is what is kept of a row that was encoded, in some hundred bytes: what would take long to
// compute again from the same interval.
type Kept struct {
	sum         Sum    // of its JSON
	percentiles []byte // of its times, in the order of the fields: each a uvarint of twice the time, plus one for a lower bound
}

// Keep returns what Row needs to make the same row again. The row has been encoded.
func (iv *Interval) Keep() (Kept, error) {
	sum, err := iv.Sum()
	if err != nil {
		return Kept{}, err
	}
	var b []byte
	for _, t := range []*measure.Summary{iv.Response, iv.Service, iv.SendDelay, iv.EndToEnd} {
		if t == nil {
			continue
		}
		for _, v := range t.Percentiles {
			n := uint64(v.D) << 1
			if v.AtLeast {
				n++
			}
			b = binary.AppendUvarint(b, n)
		}
	}
	return Kept{sum, slices.Clip(b)}, nil
}

// Row makes a row of a compact interval whose histograms are encoded when they are needed. It
// keeps them, and they must not change. Thousands of such rows take little memory next to the
// engine's. kept is of the same interval, or nil. It is safe for concurrent use.
func (s *Series) Row(iv *measure.Interval, kept *Kept) Interval {
	if kept == nil {
		return s.row(iv, s.summary)
	}
	ps, rest := measure.SummaryPercentiles(s.Percentiles), kept.percentiles
	out := s.row(iv, func(exists bool, h, censored *measure.Histogram) *measure.Summary {
		if h = existing(exists, h); h == nil {
			return nil
		}
		values := make([]measure.Value, len(ps))
		for i, p := range ps {
			n, k := binary.Uvarint(rest)
			values[i], rest = measure.Value{P: p, D: time.Duration(n >> 1), AtLeast: n&1 > 0}, rest[max(k, 0):]
		}
		return measure.SummaryOf(h, censored, values)
	})
	out.sum = &kept.sum
	return out
}

// row makes a row without encoded histograms.
func (s *Series) row(iv *measure.Interval, summary func(exists bool, h, censored *measure.Histogram) *measure.Summary) Interval {
	set := iv.Set
	return Interval{
		Phase: iv.Phase, StartS: iv.Start.Seconds(), EndS: iv.End.Seconds(), Counts: iv.Counts, Statuses: iv.Statuses, Classes: iv.Classes,
		WithinS: iv.Within.Seconds(), Arrived: iv.Arrived, EventsPerS: iv.EventsPerSecond(),
		InFlight: iv.InFlight, LagEvents: iv.LagEvents, LagLogs: iv.LagLogs,
		Response:  summary(s.scheduled() && s.answered(), iv.Response, iv.Censored),
		Service:   summary(s.answered(), iv.Service, nil),
		SendDelay: summary(s.scheduled(), iv.SendDelay, nil),
		EndToEnd:  summary(iv.UnreadAges != nil, iv.EndToEnd, iv.UnreadAges),
		Groups:    groupIntervals(iv.Groups),
		Generator: usage(iv.Generator),
		times:     &set,
	}
}

// encodeTimes encodes the histograms of a row that has them; nil if all are empty.
func (iv *Interval) encodeTimes() map[string]string {
	var out map[string]string
	iv.times.Each(func(name string, h **measure.Histogram) {
		if (*h).Count() == 0 {
			return
		}
		if out == nil {
			out = make(map[string]string)
		}
		out[name] = (*h).EncodeHDR()
	})
	return out
}

// encodedTime is the encoded histogram of a time; "" if nothing was measured.
func (iv *Interval) encodedTime(name string) (text string) {
	if iv.times == nil {
		return iv.Histograms[name]
	}
	iv.times.Each(func(n string, h **measure.Histogram) {
		if n == name && (*h).Count() > 0 {
			text = (*h).EncodeHDR()
		}
	})
	return text
}

// HasHistogram reports whether the interval has a histogram of a time, by its name.
func (iv *Interval) HasHistogram(name string) (has bool) {
	if iv.times == nil {
		return iv.Histograms[name] != ""
	}
	iv.times.Each(func(n string, h **measure.Histogram) { has = has || n == name && (*h).Count() > 0 })
	return has
}

// rateOf says what the rates of a run count: sent events if nothing is acknowledged (acks=0,
// UDP).
func (s *Series) rateOf() string {
	switch {
	case s.Mode == load.Consuming:
		return RateConsumed
	case s.Unanswered:
		return RateSent
	}
	return RateAcked
}

func (s *Series) answered() bool  { return s.rateOf() == RateAcked }
func (s *Series) scheduled() bool { return s.Mode == load.OpenLoop }

// summary returns the summary of a time that exists in this run, even if nothing was counted
// for it; otherwise nil. The mode decides which times exist, not what was measured: a run
// without any answer still has response times, unknown ones.
func (s *Series) summary(exists bool, h, censored *measure.Histogram) *measure.Summary {
	return measure.Summarize(existing(exists, h), censored, s.Percentiles)
}

// existing returns an empty histogram for a missing one of a time that exists.
func existing(exists bool, h *measure.Histogram) *measure.Histogram {
	if h == nil && exists {
		return measure.NewHistogram()
	}
	return h
}

func usage(u measure.Usage) Usage {
	return Usage{
		CPUS: u.CPU.Seconds(), RSSBytes: u.RSS, GCPauses: u.GCPauses,
		GCPauseMaxUS: float64(u.GCPauseMax) / float64(time.Microsecond), GCCPUS: u.GCCPU.Seconds(),
	}
}
