package run

import (
	"sync"
	"time"

	"carronade/internal/report"
	"carronade/internal/store"
	"carronade/measure"
)

// A series encodes the intervals of a run as they end, on a goroutine of its
// own, and hands each to the store that keeps the report while the run goes on.
// So an hour's report needs little work at its end.
//
// It joins neighbours as the engine's own series does (measure.Series): past an
// hour of seconds two for each that comes, so that each costs the same.
type series struct {
	form   report.Series
	writer store.Writer // nil: nobody keeps them
	// late: the engine holds the newest row of each phase back until the next
	// one comes, since the end of the run may correct it.
	late bool

	mu     sync.Mutex
	queue  []measure.Interval
	closed bool
	wake   chan struct{}
	done   chan struct{}

	// The goroutine's own until done is closed.
	newest map[string]measure.Interval // by phase, kept back
	rows   *measure.Series
	ready  map[span]encoded
	atEnd  int // how many rows were encoded when the run was over
}

// A span says which interval a row is.
type span struct {
	phase      string
	start, end time.Duration
}

// An encoded is a row that is ready, and what it was made of.
type encoded struct {
	of  mark
	row report.Interval
}

// A mark tells rows of the same span apart. Counters only ever grow, so
// histograms of the same counts and sums are the same.
type mark struct {
	counts    measure.Counts
	inFlight  uint64
	behind    int64
	generator measure.Usage
	times     [8]struct {
		count uint64
		sum   float64
		max   time.Duration
	}
}

func markOf(iv *measure.Interval) mark {
	m := mark{counts: iv.Counts, inFlight: iv.InFlight, behind: iv.LagEvents, generator: iv.Generator}
	i := 0
	iv.Each(func(_ string, h **measure.Histogram) {
		m.times[i].count, m.times[i].sum, m.times[i].max = (*h).Count(), (*h).Sum(), (*h).Max()
		i++
	})
	return m
}

func spanOf(iv *measure.Interval) span { return span{iv.Phase, iv.Start, iv.End} }

// newSeries starts the goroutine, which ends with end. The engine keeps at most
// so many rows.
func newSeries(form report.Series, w store.Writer, late bool, most int) *series {
	s := &series{
		form: form, writer: w, late: late,
		wake: make(chan struct{}, 1), done: make(chan struct{}),
		newest: make(map[string]measure.Interval), rows: measure.NewSeries(most),
		ready: make(map[span]encoded),
	}
	go s.run()
	return s
}

// add takes the rows of an interval that ended. It does not wait.
func (s *series) add(rows []measure.Interval) {
	s.mu.Lock()
	s.queue = append(s.queue, rows...)
	s.mu.Unlock()
	s.nudge()
}

func (s *series) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *series) run() {
	defer close(s.done)
	for range s.wake {
		s.mu.Lock()
		rows, closed := s.queue, s.closed
		s.queue = nil
		s.mu.Unlock()
		for i := range rows {
			s.take(rows[i])
		}
		if closed {
			return
		}
	}
}

// take encodes a row and puts it into the series, as the engine does.
func (s *series) take(row measure.Interval) {
	s.encode(&row)
	if s.late {
		older, ok := s.newest[row.Phase]
		s.newest[row.Phase] = row
		if !ok {
			return
		}
		row = older
	}
	before := len(s.rows.Intervals())
	s.rows.Add(row)
	rows := s.rows.Intervals()
	if j := s.rows.Joined(); j != nil {
		s.encode(j)
		before--
	}
	if len(rows) == before { // it was joined to the last one, which others may follow into
		return
	}
	if n := len(rows); n > 1 {
		if e := s.ready[spanOf(&rows[n-2])]; e.of != markOf(&rows[n-2]) {
			s.encode(&rows[n-2])
		}
	}
	if len(s.ready) > len(rows)+stale {
		s.prune(rows)
	}
}

// stale is how many rows are remembered that are joined to others by now.
const stale = 256

// prune forgets what no row is any more.
func (s *series) prune(rows []measure.Interval) {
	still := make(map[span]encoded, len(rows)+stale)
	retain := func(iv *measure.Interval) {
		if e, ok := s.ready[spanOf(iv)]; ok {
			still[spanOf(iv)] = e
		}
	}
	for i := range rows {
		retain(&rows[i])
	}
	for _, iv := range s.newest {
		retain(&iv)
	}
	s.ready = still
}

// encode makes a row ready.
func (s *series) encode(iv *measure.Interval) {
	row := s.form.Interval(iv)
	e, err := row.Encode()
	if err != nil {
		return // a number that JSON has none for; the report's own encoding tells
	}
	s.ready[spanOf(iv)] = encoded{markOf(iv), row}
	if s.writer != nil {
		s.writer.Interval(e)
	}
}

// end returns the rows of the series as the engine left it, and ends the
// goroutine. What the engine corrected is encoded now: a row or two.
func (s *series) end(rows []measure.Interval) []report.Interval {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.nudge()
	<-s.done
	out := make([]report.Interval, len(rows))
	for i := range rows {
		if e, ok := s.ready[spanOf(&rows[i])]; ok && e.of == markOf(&rows[i]) {
			out[i] = e.row
			continue
		}
		s.atEnd++
		out[i] = s.form.Interval(&rows[i])
		_, _ = out[i].Encode() // it keeps the hash
	}
	s.ready, s.newest, s.rows = nil, nil, nil
	return out
}
