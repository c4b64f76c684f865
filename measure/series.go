package measure

import (
	"slices"
	"time"
)

// DefaultSeries is how many intervals a series keeps: an hour of seconds.
const DefaultSeries = 3600

// A Series contains the intervals of a run, in order, in bounded memory. When it is
// full, each added interval makes it join two neighbours of the same phase: first those
// at the beginning, then onwards to the newest, and then from the beginning again. So
// complete rows are at most twice as long as the shortest (except at the ends of
// phases), a run of a week has as many rows as one of an hour, and each interval costs
// the same in a run of any length. Only resolution in time is lost.
//
// It is not safe for concurrent use.
type Series struct {
	most   int
	per    int // number of added intervals in a new row
	rows   []Interval
	filled int // number of added intervals in the last row
	next   int // rows before this one were joined since per last changed

	// What the last Add changed; -1 for none.
	joined int // the row that it made of two
	ended  int // the row of several intervals that no more are added to
}

// NewSeries returns a series with the given maximum number of intervals, but at least
// four. A run has three phases, and intervals of different phases are never joined.
func NewSeries(most int) *Series { return &Series{most: max(most, 4), per: 1, joined: -1, ended: -1} }

// Add appends an interval. It copies the histograms (compactly); the caller keeps its
// own.
func (s *Series) Add(iv Interval) {
	s.joined, s.ended = -1, -1
	iv.Each(func(_ string, h **Histogram) { *h = (*h).Compact() })
	full := len(s.rows) >= s.most
	if full {
		s.findJoinable()
	}
	if n := len(s.rows); n > 0 && s.filled < s.per && s.rows[n-1].Phase == iv.Phase {
		s.rows[n-1] = Join(s.rows[n-1], iv)
		s.filled++
		return
	}
	if full {
		i := s.next
		s.rows[i] = Join(s.rows[i], s.rows[i+1])
		s.rows = slices.Delete(s.rows, i+1, i+2)
		s.joined, s.next = i, i+1
	}
	if s.filled > 1 {
		s.ended = len(s.rows) - 1
	}
	s.rows = append(s.rows, iv)
	s.filled = 1
}

// AddLast appends one of the few intervals that are completed only at the end of a run.
// The series may then exceed its bound, so that an hour of seconds is not joined
// because of the moment in which the last answers came.
func (s *Series) AddLast(iv Interval) {
	most := s.most
	s.most = max(most, len(s.rows)+1)
	s.Add(iv)
	s.most = most
}

// Changed returns the rows of several intervals that the last Add completed: one that it
// joined from two neighbours to make room, and the newest one before it, if that is full.
// They have been in no earlier result.
func (s *Series) Changed() []Interval {
	var out []Interval
	for _, i := range []int{s.joined, s.ended} {
		if i >= 0 && (len(out) == 0 || i != s.joined) {
			out = append(out, s.rows[i])
		}
	}
	return out
}

// findJoinable moves next to two rows that can be joined, from the end back to the
// beginning. Four rows of three phases contain two neighbours of the same phase.
func (s *Series) findJoinable() {
	for {
		for ; s.next+1 < len(s.rows); s.next++ {
			if s.rows[s.next].Phase == s.rows[s.next+1].Phase {
				return
			}
		}
		s.per *= 2
		s.next = 0
	}
}

// Intervals returns the series' own rows, which must not be changed. The next Add may
// change them.
func (s *Series) Intervals() []Interval { return s.rows }

// Join returns two neighbouring intervals as one: counts and histograms are added,
// levels (in flight, memory, lag) are those at the end. Histograms of the result are
// new and compact.
func Join(a, b Interval) Interval {
	out := a
	out.End = b.End
	out.Counts.Add(b.Counts)
	out.Set = Set{}
	var left, right [8]*Histogram
	i, j := 0, 0
	a.Each(func(_ string, h **Histogram) { left[i] = *h; i++ })
	b.Each(func(_ string, h **Histogram) { right[j] = *h; j++ })
	i = 0
	out.Each(func(_ string, h **Histogram) { *h = mergeCompact(left[i], right[i]); i++ })
	out.Statuses = nil
	out.Statuses.Merge(a.Statuses)
	out.Statuses.Merge(b.Statuses)
	out.Classes = nil
	out.Classes.Merge(a.Classes)
	out.Classes.Merge(b.Classes)
	out.InFlight = b.InFlight
	out.LagEvents, out.LagLogs = b.LagEvents, b.LagLogs
	out.Generator = a.Generator.Join(b.Generator)
	return out
}

// Join returns the usage over two spans, the later one given second.
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

// Length returns End - Start.
func (iv *Interval) Length() time.Duration { return iv.End - iv.Start }
