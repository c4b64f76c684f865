package measure

import (
	"math"
	"slices"
	"time"
)

// DefaultSeries is how many intervals a series keeps: an hour of seconds.
const DefaultSeries = 3600

// mostCells is how many bytes the packed cells of a series take before it joins intervals,
// however few there are. An hour of seconds takes 2 to 20 MiB.
const mostCells = 16 << 20

// fewRows is how many rows a series has in any case.
const fewRows = 64

// A Series contains the intervals of a run, in order, in bounded memory. When it is
// full, each added interval makes it join two neighbours of the same phase: first those
// at the beginning, then onwards to the newest, and then from the beginning again. So
// complete rows are at most twice as long as the shortest (except at the ends of
// phases), a run of a week has as many rows as one of an hour, and each interval costs
// the same in a run of any length. Only resolution in time is lost.
//
// It is not safe for concurrent use.
type Series struct {
	most      int
	mostCells int // bytes
	per       int // number of added intervals in a new row
	rows      []row
	cells     int // bytes of the rows' packed cells and lags
	bytes     int // of the rows
	filled    int // number of added intervals in the last row
	next      int // rows before this one were joined since per last changed

	changed []Interval // by the last Add; see Changed
}

// NewSeries returns a series with the given maximum number of intervals, but at least
// four. A run has three phases, and intervals of different phases are never joined.
func NewSeries(most int) *Series { return &Series{most: max(most, 4), mostCells: mostCells, per: 1} }

// Add appends an interval. It copies the histograms (compactly); the caller keeps its
// own.
func (s *Series) Add(iv Interval) {
	s.changed = nil
	iv.Each(func(_ string, h **Histogram) { *h = (*h).Compact() })
	full := len(s.rows) >= s.most
	if full || s.heavy() {
		s.findJoinable()
	}
	n := len(s.rows)
	if n > 0 && s.filled < s.per && s.rows[n-1].phase == iv.Phase {
		s.put(n-1, Join(s.rows[n-1].interval(), iv))
		s.filled++
		return
	}
	newest := time.Duration(-1) // when the newest row of several intervals begins
	if s.filled > 1 {
		newest = s.rows[n-1].start
	}
	if full {
		s.join()
	}
	for s.heavy() {
		s.findJoinable()
		s.join()
	}
	if last := len(s.rows) - 1; newest >= 0 && s.rows[last].start == newest {
		s.changed = append(s.changed, s.rows[last].interval())
	}
	s.rows = append(s.rows, row{})
	s.put(len(s.rows)-1, iv)
	s.filled = 1
}

// heavy reports whether the cells take too much memory.
func (s *Series) heavy() bool { return s.cells > s.mostCells && len(s.rows) >= fewRows }

// join joins the rows that findJoinable found.
func (s *Series) join() {
	i := s.next
	joined := Join(s.rows[i].interval(), s.rows[i+1].interval())
	s.put(i, joined)
	s.drop(i + 1)
	s.rows = slices.Delete(s.rows, i+1, i+2)
	s.changed = append(s.changed, joined)
	s.next = i + 1
}

// put replaces a row.
func (s *Series) put(i int, iv Interval) {
	s.drop(i)
	s.rows[i] = newRow(&iv)
	s.cells += s.rows[i].cells
	s.bytes += len(s.rows[i].data)
}

// drop empties a row.
func (s *Series) drop(i int) {
	s.cells -= s.rows[i].cells
	s.bytes -= len(s.rows[i].data)
	s.rows[i] = row{}
}

// Rows is how many intervals the series has.
func (s *Series) Rows() int { return len(s.rows) }

// Bytes returns roughly how much memory the series takes.
func (s *Series) Bytes() int { return s.bytes + rowBytes*len(s.rows) }

// cellBytes is how many bytes of a row depend on what was measured.
func (iv *Interval) cellBytes() int {
	n := 8 * (len(iv.LagLogs) + 3*len(iv.Groups))
	iv.Each(func(_ string, h **Histogram) {
		if *h != nil {
			n += len((*h).packed)
		}
	})
	return n
}

// AddLast appends one of the few intervals that are completed only at the end of a run.
// The series may then exceed its bound, so that an hour of seconds is not joined
// because of the moment in which the last answers came.
func (s *Series) AddLast(iv Interval) {
	most, mostCells := s.most, s.mostCells
	s.most, s.mostCells = max(most, len(s.rows)+1), math.MaxInt
	s.Add(iv)
	s.most, s.mostCells = most, mostCells
}

// Changed returns the rows of several intervals that the last Add completed: those that it
// joined from two neighbours to make room, and the newest one before it, if that is full.
func (s *Series) Changed() []Interval { return s.changed }

// findJoinable moves next to two rows that can be joined, from the end back to the
// beginning. Four rows of three phases contain two neighbours of the same phase.
func (s *Series) findJoinable() {
	for {
		for ; s.next+1 < len(s.rows); s.next++ {
			if s.rows[s.next].phase == s.rows[s.next+1].phase {
				return
			}
		}
		s.per *= 2
		s.next = 0
	}
}

// Intervals returns the rows, decoded. Their histograms are compact and share memory with
// the series: they must not be changed.
func (s *Series) Intervals() []Interval {
	out := make([]Interval, len(s.rows))
	for i := range s.rows {
		out[i] = s.rows[i].interval()
	}
	return out
}

// Join returns two neighbouring intervals as one: counts and histograms are added,
// levels (in flight, memory, lag) are those at the end. Histograms of the result are
// new and compact.
func Join(a, b Interval) Interval {
	out := a
	out.End = b.End
	out.Within += b.Within
	out.Arrived += b.Arrived
	out.Counts.Add(b.Counts)
	out.Set = Set{}
	var left, right [Histograms]*Histogram
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
	out.Groups = JoinGroups(a.Groups, b.Groups)
	out.Generator = a.Generator.Join(b.Generator)
	return out
}

// JoinGroups returns what groups did in two intervals, or two phases of one, with the levels of the later one. The
// first may have none.
func JoinGroups(a, b []GroupInterval) []GroupInterval {
	out := slices.Clone(b)
	for i := range min(len(a), len(b)) {
		out[i].Consumed += a[i].Consumed
		out[i].Unassigned += a[i].Unassigned
	}
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

// EventsPerSecond returns the interval's part of the throughput of its phase: what arrived
// while the phase lasted, divided by that time; 0 if it did not last then.
func (iv *Interval) EventsPerSecond() float64 { return PerSecond(iv.Arrived, iv.Within) }
