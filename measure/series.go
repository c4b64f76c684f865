package measure

import "time"

// DefaultSeries is how many intervals a series keeps: an hour of seconds.
const DefaultSeries = 3600

// A Series is the intervals of a run, in order, in bounded memory. When it is
// full, neighbours of the same phase are joined in pairs, and from then on new
// intervals are joined to pairs (then fours, ...) before they are kept: a run
// of a week has the same number of rows as one of an hour, each longer.
// Nothing is lost but the resolution in time.
//
// It has one owner.
type Series struct {
	most   int
	per    int // how many added intervals make a kept one
	rows   []Interval
	filled int // how many added ones the last row has
}

// NewSeries returns a series of at most most intervals, and at least four. A
// run has three phases, and intervals of different phases are never joined.
func NewSeries(most int) *Series { return &Series{most: max(most, 4), per: 1} }

// Add appends an interval. Its histograms are copied (compactly) and stay the
// caller's.
func (s *Series) Add(iv Interval) {
	iv.Each(func(_ string, h **Histogram) { *h = (*h).Compact() })
	if n := len(s.rows); n > 0 && s.filled < s.per && s.rows[n-1].Phase == iv.Phase {
		s.rows[n-1] = Join(s.rows[n-1], iv)
		s.filled++
		return
	}
	if len(s.rows) == s.most {
		s.halve()
	}
	s.rows = append(s.rows, iv)
	s.filled = 1
}

func (s *Series) halve() {
	kept := s.rows[:0]
	for i := 0; i < len(s.rows); {
		iv := s.rows[i]
		i++
		if i < len(s.rows) && s.rows[i].Phase == iv.Phase {
			iv = Join(iv, s.rows[i])
			i++
		}
		kept = append(kept, iv)
	}
	clear(s.rows[len(kept):]) // let go of their histograms
	s.rows = kept
	s.per *= 2
}

// Intervals returns the rows. They are the series' own until nothing is added
// any more, and must not be changed.
func (s *Series) Intervals() []Interval { return s.rows }

// Join returns two neighbouring intervals as one: counts and histograms are
// added, levels (in flight, memory, events behind) are those at the end.
// Histograms of the result are new and compact.
func Join(a, b Interval) Interval {
	out := a
	out.End = b.End
	out.Counts.Add(b.Counts)
	out.Set = Set{}
	out.Merge(&a.Set)
	out.Merge(&b.Set)
	out.Statuses = nil
	out.Statuses.Merge(a.Statuses)
	out.Statuses.Merge(b.Statuses)
	out.Each(func(_ string, h **Histogram) { *h = (*h).Compact() })
	out.InFlight = b.InFlight
	out.LagEvents, out.LagLogs = b.LagEvents, b.LagLogs
	out.Generator = a.Generator.Join(b.Generator)
	return out
}

// Join returns the usage of two spans, the later one given second.
func (u Usage) Join(later Usage) Usage {
	return Usage{
		CPU:        u.CPU + later.CPU,
		RSS:        later.RSS,
		MaxRSS:     max(u.MaxRSS, later.MaxRSS),
		GCPauses:   u.GCPauses + later.GCPauses,
		GCPauseMax: max(u.GCPauseMax, later.GCPauseMax),
		GCCPU:      u.GCCPU + later.GCCPU,
	}
}

// Length is End - Start.
func (iv *Interval) Length() time.Duration { return iv.End - iv.Start }
